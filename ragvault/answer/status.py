"""Status: what an index contains, and what the next `index` would do.

Walks the vault without reading a note. Loads no model, opens no cache and writes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragvault.config import folders
from ragvault.config.settings import Config, Models
from ragvault.errors import RagvaultError
from ragvault.store.catalogue import Catalogue, Counts
from ragvault.store.files import lock_owner
from ragvault.store.schema import KEYWORD
from ragvault.text.printable import encode
from ragvault.types import LINK_STATES, Link, Skipped, Target, Tier
from ragvault.update.freshness import check_vault, waiting

if TYPE_CHECKING:
    from ragvault.notes.walk import Walked


@dataclass(frozen=True, slots=True)
class Pending:
    """What `index` would do. `why` says why the vault's files could not be compared."""

    new: int = 0
    changed: int = 0  # by size and time alone
    gone: int = 0
    recut: int = 0  # chunked with other settings
    passages: int = 0  # without a vector of the configured model
    links: int = 0  # not resolved yet
    why: str = ""
    words: int = 0  # passages that the keyword index does not have yet

    @property
    def files(self) -> int:
        return self.new + self.changed + self.gone + self.recut

    def __bool__(self) -> bool:
        return bool(self.files or self.passages or self.links or self.words)


@dataclass(frozen=True, slots=True)
class Status:
    """An index at one moment."""

    name: str
    root: str
    folder: str
    counts: Counts
    engine: str  # of the keyword index; empty before there is one
    tiers: Mapping[str, int]  # passages by their best tier: full, static, keyword, none
    tier: Tier  # as last asked for
    pending: Pending
    # For each use (full, static, reranker) the model that the settings or the index name, and
    # whether it is installed: None if it is in no registry.
    models: Mapping[str, tuple[str, bool | None]]
    writer: str
    skipped: Sequence[Skipped]
    excluded: Sequence[Skipped]  # ignored notes, and ignored folders, by what
    warnings: Mapping[str, Sequence[str]]
    dangling: Sequence[tuple[str, Link, Target]]  # each link with the path of its note
    unread: Mapping[str, int]  # documents in the vault that are no notes, by suffix
    removed: int  # deleted passages and notes whose text is still in some index file

    def to_dict(self) -> dict[str, Any]:
        """The status as `--json` has it; it does not say whether a watcher runs."""
        import json

        found: dict[str, Any] = json.loads(status_json(self, None))
        return found

    def __repr__(self) -> str:
        return f"<Status of {self.name}: {self.counts.notes} notes, {self.pending.files} pending>"


def status_json(
    status: Status, watcher: Mapping[str, Any] | None, resident: Mapping[str, Any] | None = None
) -> str:
    """The state of an index, with every skipped file, warning and broken link.

    `watcher` watches this vault; `resident` is the process that a search has started.
    """
    counts = asdict(status.counts)
    files = None if status.pending.why else status.pending.files
    return encode(
        {
            "vault": status.name,
            "root": status.root,
            "folder": status.folder,
            **counts,
            "links": {LINK_STATES.get(state, state): n for state, n in status.counts.links.items()},
            "keyword_engine": status.engine or None,
            "tiers": status.tiers,
            "tier": status.tier,
            "removed": status.removed,
            "pending": asdict(status.pending) | {"files": files},
            "models": {
                use: {"name": name, "here": here} for use, (name, here) in status.models.items()
            },
            "watcher": watcher,
            "resident": resident,
            "writer": status.writer or None,
            "skipped_files": status.skipped,
            "excluded": status.excluded,
            "unread": status.unread,
            "warnings": status.warnings,
            "dangling": [
                {
                    "path": path,
                    "line": link.line,
                    "target": link.target,
                    "status": LINK_STATES.get(target.status, target.status),
                    "others": target.others,
                }
                for path, link, target in status.dangling
            ],
        }
    )


def status(name: str, root: Path, catalogue: Catalogue, config: Config, tier: Tier) -> Status:
    """Everything that `ragvault status` shows. `tier` is the one this vault was asked to have."""
    writing = lock_owner(catalogue.folder)
    with catalogue.snapshot():
        counts = catalogue.counts()
        unworded = _unworded(catalogue)
        tiers = by_tier(catalogue, counts.passages, unworded)
        walked = _walked(root, config)
        return Status(
            name=name,
            root=str(root),
            folder=str(catalogue.folder),
            counts=counts,
            engine=_engine(catalogue),
            tiers=tiers,
            tier=tier,
            pending=pending(root, catalogue, config, counts, tiers, tier, len(unworded), walked),
            models=index_models(catalogue, config.models),
            writer=writing.words(time.time()) if writing else "",
            skipped=catalogue.skipped(),
            excluded=walked.excluded if walked else (),
            warnings=dict(catalogue.warnings()),
            dangling=catalogue.dangling(),
            unread=walked.unread if walked else {},
            removed=catalogue.removal_count(catalogue.facts.compacted),
        )


def _walked(root: Path, config: Config) -> Walked | None:
    """What is in the vault; None if it cannot be listed."""
    from ragvault.notes.walk import walk

    try:
        return walk(root, config.walk)
    except RagvaultError:
        return None


def _engine(catalogue: Catalogue) -> str:
    cache = catalogue.cache(KEYWORD)
    return cache.engine if cache else ""


def _unworded(catalogue: Catalogue) -> set[int]:
    """Passages that are not in the keyword index yet: a run was stopped before, or is at work."""
    cache = catalogue.cache(KEYWORD)
    return set(catalogue.passages_since(cache.revision if cache else 0))


def by_tier(catalogue: Catalogue, total: int, unworded: AbstractSet[int]) -> dict[str, int]:
    """How many passages each tier covers.

    `keyword`: without any vector; `none`: not in the keyword index either.
    """
    full, static = catalogue.full_model, catalogue.tier_model("static")
    unread = len(catalogue.unembedded(full)) if full else total
    lacking = (
        catalogue.unembedded(full, static) if full or static else catalogue.passage_ids().tolist()
    )
    wordy, none = len(lacking), len(unworded & set(lacking)) if unworded else 0
    return {
        "full": total - unread,
        "static": unread - wordy,
        "keyword": wordy - none,
        "none": none,
    }


def covering_tier(catalogue: Catalogue) -> Tier:
    """The tier that answers: keyword, static or full."""
    tiers: tuple[Tier, ...] = ("full", "static")
    return next((tier for tier in tiers if catalogue.tier_model(tier)), "keyword")


def pending(
    root: Path,
    catalogue: Catalogue,
    config: Config,
    counts: Counts,
    tiers: Mapping[str, int],
    tier: Tier,
    words: int,
    walked: Walked | None = None,
) -> Pending:
    """What `index` would do, with the tier that was last asked for.

    Pass `walked` if the vault was walked already.
    """
    wordy = tiers["keyword"] + tiers["none"]
    wanted = {"full": tiers["static"] + wordy, "static": wordy}
    passages = wanted.get(tier, 0)
    links = counts.links.get("waiting", 0)
    try:
        files = waiting(root, catalogue, config, walked)
        check_vault(root, catalogue)
    except RagvaultError as error:
        return Pending(passages=passages, links=links, why=str(error), words=words)
    return Pending(*files, passages=passages, links=links, words=words)


def index_models(catalogue: Catalogue, settings: Models) -> dict[str, tuple[str, bool | None]]:
    """The models the index uses, or would use, and whether they are installed."""
    named = {
        "full": catalogue.full_model or settings.embedder,
        "static": catalogue.tier_model("static") or settings.static,
        "reranker": settings.reranker,
    }
    return {use: (name, _is_here(name)) for use, name in named.items()}


def _is_here(name: str) -> bool | None:
    """Whether the folder of a model of the registry is there; its bytes are not looked at."""
    from ragvault.models import registry

    try:
        builds = registry.find_model(name)[1]
    except RagvaultError:
        return None
    return registry.installed(builds, folders.models_dir()) is not None
