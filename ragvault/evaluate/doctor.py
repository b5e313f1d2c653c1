"""The doctor: does every part work, on this machine and for this vault?

    check_machine    Python, libraries, models, folders, free space
    check_watching   whether the system can watch every folder of the vault
    check_index      the catalogue, the caches against the catalogue, and the vault's files
    check_signals    each leg and boost, tried with the vault's own words

It reads everything and changes nothing: a fix is a command for the user. A check that cannot run
because an earlier part is broken is skipped, so one fault has one finding.
"""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ragvault import __version__
from ragvault.answer.results import changed_files
from ragvault.answer.status import Status
from ragvault.config import folders
from ragvault.config.load import load_settings
from ragvault.config.settings import Config
from ragvault.engines import Engines
from ragvault.errors import (
    DISTRIBUTION,
    EngineMissing,
    IndexMissing,
    RagvaultError,
    VaultNotFound,
    in_shell,
)
from ragvault.evaluate.probes import probes
from ragvault.evaluate.questions import Question
from ragvault.evaluate.report import ScoredAnswer, is_reordered
from ragvault.evaluate.run import BOOSTS, Replay, ablations, parts_off, with_values
from ragvault.notes.links import Resolver, find_wiki
from ragvault.ports import CacheBroken, Progress
from ragvault.rank.pipeline import outcome_of
from ragvault.retrieve.gather import SEEDS
from ragvault.store.catalogue import Catalogue
from ragvault.store.schema import KEYWORD
from ragvault.text.markup import Order
from ragvault.vault import Vault, absence, around_here

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragvault.store.layout import KnownVault

State = Literal["fine", "note", "behind", "broken"]

# 3: the index is out of date; 4: something cannot be used.
EXIT_CODES: dict[State, int] = {"fine": 0, "note": 0, "behind": 3, "broken": 4}
FEW_BROKEN = 10  # links with a label: fewer say nothing of how a vault is written
LIBRARIES = {  # module: what it is for
    "numpy": "vectors",
    "faiss": "vector search",
    "whoosh": "keyword search",
    "networkx": "links",
    "onnxruntime": "models",
    "tokenizers": "models",
    "safetensors": "models",
    "pyromark": "parsing Markdown",
    "Stemmer": "word stems",
    "yaml": "frontmatter",
}
MIN_FREE = 200_000_000  # bytes: an index of a vault of medium size needs this much
INOTIFY = Path("/proc/sys/fs/inotify/max_user_watches")
INDEX = "ragvault index"
PROBES = 28  # four of each kind: a few seconds
REBUILD = "ragvault index --rebuild, and report it if that fails"
SIGNALS = {  # legs, boosts and expansion: what searches found none of if it had nothing to do
    "name": "names like their words",
    "vector": "passages with vectors",
    "keyword": "passages with their words",
    "code": "code with their words",
    "graph": "further notes by links",
    "backlinks": "notes that others link to",
    "recency": "recent notes",
    "community": "notes of one community",
    "importance": "notes with an importance property",
    "access": "notes that were opened",
    "templates": "notes in a templates folder",
    "superseded": "notes that others supersede",
    "expansion": "near words in the vault",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One checked part: its state, what was found, and what fixes it.

    `part` is one or two words. `note` means that nothing is wrong, but the user may want to know.
    """

    part: str
    state: State
    message: str
    fix: str = ""


def fine(part: str, message: str) -> Finding:
    return Finding(part, "fine", message)


def _unusable(part: str, error: RagvaultError) -> Finding:
    """A missing index is behind; anything else that cannot be opened is broken."""
    state: State = "behind" if isinstance(error, IndexMissing) else "broken"
    return Finding(part, state, str(error), error.fix)


def exit_code(findings: Iterable[Finding]) -> int:
    """The exit code of the worst finding."""
    return max((EXIT_CODES[each.state] for each in findings), default=0)


def diagnose(
    where: str | None, now: datetime, progress: Progress | None = None
) -> tuple[str | None, list[Finding]]:
    """The name of the vault and all findings; without one vault, those of the machine, and whether
    the index of each vault is up to date.

    Raises VaultNotFound for a vault that was named, and ConfigError.
    """
    if where is None and len(around := around_here()) > 1:
        machine = check_machine(load_settings().config)
        choose = "to check everything about one vault: ragvault doctor --vault NAME"
        return None, [*machine, *map(_glance, around), Finding("vault", "note", choose)]
    try:
        vault = Vault.open(where)
    except VaultNotFound as unknown:
        if where is not None:
            raise
        config = load_settings().config
        return None, [*check_machine(config), Finding("vault", "behind", str(unknown), unknown.fix)]
    return vault.name, list(_diagnose(vault, now, progress or Progress()))


def _glance(known: KnownVault) -> Finding:
    """Whether a vault is there, and its index up to date."""
    part = f"vault {known.name}"
    try:
        if away := absence(known):
            raise away
        found = Vault.open(known.root).status()
    except RagvaultError as error:
        return _unusable(part, error)
    if found.pending or found.pending.why:
        why = found.pending.why or "the index is behind its files"
        return Finding(part, "behind", why, f"{INDEX} {known.name}")
    return fine(part, "the index is up to date")


def _diagnose(vault: Vault, now: datetime, progress: Progress) -> Iterator[Finding]:
    config = vault.settings.config
    progress.step("checking libraries and models")
    try:
        with vault.catalogue() as catalogue:
            models = {catalogue.tier_model(tier) for tier in ("full", "static")}
    except RagvaultError as error:
        yield from check_machine(config)
        yield _unusable("index", error)
        return
    yield from check_machine(config, frozenset(models - {""}))
    progress.step("checking the index")
    status = vault.status()
    if not status.pending.why:
        yield check_watching(Path(status.root))
    with vault.catalogue() as catalogue:
        found = list(check_index(catalogue, Engines(vault.folder, vault.settings), status))
        found += check_link_order(catalogue, config.links.order)
    yield from found
    broken = {each.part.removesuffix(" index") for each in found if each.state == "broken"}
    if "catalogue" in broken:
        return
    # A leg whose index is broken finds nothing; its finding is already there.
    if "keyword" in broken:
        broken.add("code")  # a leg of the same index
    signals = check_signals(vault, now, progress=progress)
    yield from (each for each in signals if each.part not in broken)


# --- The machine ---


def check_machine(config: Config, needed: frozenset[str] = frozenset()) -> Iterator[Finding]:
    """Everything but the index. `needed` are full names of models that the index was made with.

    Imports the libraries, which takes a second.
    """
    system = f"{platform.system()} {platform.machine()}"
    yield fine(
        "python",
        f"ragvault {__version__}, Python {platform.python_version()},"
        f" SQLite {sqlite3.sqlite_version}, {system}",
    )
    yield from check_libraries(config)
    yield from check_models(config, needed)
    yield from _check_folders(config)


def check_libraries(config: Config) -> Iterator[Finding]:
    """Import each library, and those of extras that the settings need.

    They are really imported, because a wheel that was built for another processor or lacks a system
    library fails only then.
    """
    wanted = dict(LIBRARIES)
    if config.keyword.engine == "tantivy":
        wanted["tantivy"] = "keyword search"
    failed = {name: why for name in wanted if (why := _import_failure(name))}
    for name, why in failed.items():
        message = f"{name} ({wanted[name]}): {why}"
        yield Finding("libraries", "broken", message, _library_fix(name, why))
    if not failed:
        yield fine("libraries", f"all {len(wanted)} can be imported")


def _import_failure(name: str) -> str:
    try:
        import_module(name)
    except Exception as error:  # a broken wheel raises whatever its loader does
        return " ".join(str(error).split()) or type(error).__name__
    return ""


def _library_fix(name: str, why: str) -> str:
    if name == "tantivy":
        return 'pip install tantivy, or set keyword.engine = "auto"'
    if "libomp" in why or "libgomp" in why:
        # The FAISS wheel brings its own; a build from source uses the system's.
        system = "brew install libomp" if sys.platform == "darwin" else "install libgomp1"
        return f"{system}, then: pip install --force-reinstall faiss-cpu"
    return f"pip install --force-reinstall {DISTRIBUTION}"


def check_models(config: Config, needed: frozenset[str]) -> Iterator[Finding]:
    """Whether the models are installed and have the right bytes. They are hashed, not loaded."""
    settings = config.models
    wanted = {*needed, settings.embedder, settings.static}
    if config.rerank.enabled:
        wanted.add(settings.reranker)
    short = {name.partition("@")[0] for name in needed if "@" in name}
    # A vault keeps its build; the same model named in the settings need not be checked too.
    for name in sorted(wanted - short):
        yield _check_model(name, name in needed)


def _check_model(name: str, needed: bool) -> Finding:
    from ragvault.models import load, registry

    part, models_dir = "model", folders.models_dir()
    if name.startswith("fake"):
        return Finding(part, "note", f"{name} is for tests only: it is far worse than a real model")
    if load.is_unlisted(name):
        return Finding(part, "note", f"{name} is a model of your own; its bytes cannot be verified")
    try:
        build = registry.installed(registry.find_model(name)[1], models_dir)
    except RagvaultError as error:
        return Finding(part, "broken", str(error), error.fix)
    pull = f"ragvault models pull {name.partition('@')[0]}"
    if build is None and needed:
        return Finding(part, "broken", f"{name} is not installed, and the index needs it", pull)
    if build is None:
        message = f"{name} is not installed; ragvault index fetches it when needed"
        return Finding(part, "note", message, pull)
    wrong = registry.faults(build, models_dir)
    if wrong:
        return Finding(part, "broken", f"{name}: {'; '.join(wrong)}", pull)
    return fine(part, f"{name} is installed and verified")


def _check_folders(config: Config) -> Iterator[Finding]:
    data = folders.data_dir(override=config.paths.data)
    yield _check_folder("data folder", data)
    yield _check_folder("models folder", folders.models_dir())
    free = shutil.disk_usage(_nearest_existing(data)).free
    if free < MIN_FREE:
        message = f"only {free / 1e6:.0f} MB are free on the disk of {data}"
        yield Finding(
            "disk", "broken", message, "free some space, or set paths.data to another disk"
        )
    else:
        yield fine("disk", f"{free / 1e9:.1f} GB are free")


def _check_folder(part: str, folder: Path) -> Finding:
    above = _nearest_existing(folder)
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        message = f"{above} is not writable"
        return Finding(
            part, "broken", message, f"chmod u+rwx {in_shell(above)}, or set RAGVAULT_HOME"
        )
    if not folder.exists():
        return fine(part, f"{folder} will be created when needed")
    vaults = folder / "vaults"  # not in the models folder
    if os.name == "posix" and vaults.exists() and vaults.stat().st_mode & 0o077:
        message = f"other users can read {vaults}, and an index contains your notes"
        return Finding(part, "broken", message, f"chmod 700 {in_shell(vaults)}")
    return fine(part, f"{folder} is writable and private")


def _nearest_existing(folder: Path) -> Path:
    return next(above for above in (folder, *folder.parents) if above.exists())


def check_watching(root: Path) -> Finding:
    """Whether the system can watch every folder of a vault, ignored ones as well."""
    if sys.platform != "linux" or not INOTIFY.exists():
        return fine("watching", "this system reports changes without a limit")
    limit = int(INOTIFY.read_text())
    count = sum(1 for _ in os.walk(root))
    if count > limit // 2:  # other programs of the same user share the limit
        message = (
            f"{count:,} folders, but the system allows {limit:,} watches; ragvault watch polls"
        )
        fix = f"sudo sysctl fs.inotify.max_user_watches={max(count * 4, 524_288)}"
        return Finding("watching", "note", message, fix)
    return fine("watching", f"{count:,} folders; the system allows {limit:,} watches")


# --- The index ---


def check_index(catalogue: Catalogue, engines: Engines, status: Status) -> Iterator[Finding]:
    """Everything that can be compared without a search.

    Each cache must have the catalogue's revision and contain exactly its passages.
    """
    wrong = catalogue.check()
    if wrong:
        yield Finding("catalogue", "broken", wrong, f"{INDEX} --rebuild")
        return
    held = status.counts
    message = f"{held.notes:,} notes, {held.passages:,} passages, revision {held.revision}"
    yield fine("catalogue", message)
    with catalogue.snapshot():
        yield _check_keyword_index(catalogue, engines)
        yield from _check_vector_indexes(catalogue, engines)
    yield from _check_files(status)


def check_link_order(catalogue: Catalogue, order: Order) -> Iterator[Finding]:
    """Whether most broken links would lead to a note if their two parts were read the other way."""
    broken = catalogue.broken_with_label()
    if len(broken) < FEW_BROKEN:
        return
    other: Order = "target-first" if order == "label-first" else "label-first"
    resolver = Resolver(catalogue.names(), lambda path: ((), {}))
    turned = 0
    for path, target, label in broken:
        pair = (target, label) if order == "target-first" else (label, target)
        links = find_wiki(f"[[{'|'.join(pair)}]]", other)
        turned += any(resolver.resolve(path, link).path is not None for link in links)
    if turned > len(broken) / 2:
        yield Finding(
            "links",
            "note",
            f"{turned:,} of {len(broken):,} broken links with a label work if read {other}",
            f'write links.order = "{other}" into .ragvault.toml in the vault, then: {INDEX}',
        )


def _check_files(status: Status) -> Iterator[Finding]:
    """Whether the index reflects the files of the vault."""
    pending = status.pending
    if pending.why:
        fix = "check that the folder exists and is readable"
        yield Finding("vault", "broken", pending.why, fix)
    elif pending:
        waits = {
            "passages to add to the keyword index": pending.words,
            "passages to embed": pending.passages,
            "links to resolve": pending.links,
        }
        parts = [changed_files(pending.files)] if pending.files else []
        parts += [f"{what}: {number:,}" for what, number in waits.items() if number]
        yield Finding("vault", "behind", "; ".join(parts), INDEX)
    else:
        yield fine("vault", "every file is indexed as it is now")
    if status.skipped:
        message = f"{len(status.skipped):,} files are skipped"
        yield Finding("skipped", "note", message, "ragvault status -v shows why")
    if status.writer:
        message = f"{status.writer} is writing; it may still finish what is pending"
        yield Finding("writer", "note", message)


def _check_keyword_index(catalogue: Catalogue, engines: Engines) -> Finding:
    part, cache = "keyword index", catalogue.cache(KEYWORD)
    if cache is None:
        return Finding(part, "broken", "there is none", INDEX)
    try:
        with closing(engines.keyword(catalogue)) as index:
            if cache.revision != catalogue.revision:
                message = f"has revision {cache.revision}, the catalogue has {catalogue.revision}"
                return Finding(part, "behind", message, INDEX)
            wanted = catalogue.passage_ids()
            return _compare_passages(part, index.passages(), wanted, f"{cache.engine}: ")
    except (CacheBroken, EngineMissing) as broken:
        return Finding(part, "broken", str(broken), broken.fix)


def _check_vector_indexes(catalogue: Catalogue, engines: Engines) -> Iterator[Finding]:
    import numpy as np

    part = "vector index"
    answering = engines.answering(catalogue)
    if answering is None:
        yield Finding(part, "note", "there is none: this vault is searched by keyword only", INDEX)
        return
    _, model, dim = answering
    try:
        with closing(engines.vectors(model, dim, catalogue)) as index:
            own = index.ids()
    except (CacheBroken, EngineMissing) as broken:
        yield Finding(part, "broken", f"{model}: {broken}", broken.fix)
        return
    lacking = np.array(catalogue.unembedded(model), np.int64)
    embedded = np.setdiff1d(catalogue.passage_ids(), lacking)
    yield _compare_passages(part, own, embedded, f"{model}: ")


def _compare_passages(
    part: str, has: NDArray[np.int64], wanted: NDArray[np.int64], of: str = ""
) -> Finding:
    import numpy as np

    missing, extra = len(np.setdiff1d(wanted, has)), len(np.setdiff1d(has, wanted))
    if missing or extra:
        message = f"{of}{missing:,} passages are missing and {extra:,} are not in the catalogue"
        return Finding(
            part, "behind", message, f"{INDEX}, or {INDEX} --rebuild if that is not enough"
        )
    return fine(part, f"{of}all {len(has):,} passages")


# --- Signals ---


def check_signals(
    vault: Vault, now: datetime, count: int = PROBES, progress: Progress | None = None
) -> Iterator[Finding]:
    """Search for probes of the vault, and again without each leg and each boost.

    A signal that changes the order of an answer works. One that runs and changes none, and one that
    has nothing to do, is worth a note. One that never runs although it must is broken.
    """
    with vault.catalogue() as catalogue:
        questions = probes(catalogue, count)
        must_run = _must_run(questions, catalogue, vault.settings.config)
    if not questions:
        yield fine("search", "the vault has nothing to search for yet")
        return
    with Replay(vault, questions, now, progress=progress) as replay:
        ran, failed = _ran(replay)
        base, off = list(replay.answers(replay.config)), parts_off(replay.config)
        without = {each.name: each.off for each in ablations(replay.config)}
        asked = f"of {len(questions)} searches with the vault's own words"
        for name, thing in SIGNALS.items():
            if name in off or ("boost" in off and name in BOOSTS):
                yield Finding(name, "note", "off in your settings")
            elif name in failed:
                yield Finding(name, "broken", f"fails: {failed[name]}", INDEX)
            elif not ran[name] and name in must_run:
                yield Finding(name, "broken", f"had an effect in none {asked}", REBUILD)
            elif not ran[name]:
                message = f"{len(questions)} test searches found no {thing}"
                yield Finding(name, "note", message)
            elif name in without and not _changes_an_order(replay, without[name], base):
                yield Finding(name, "note", f"no effect in {ran[name]} test searches")
            else:  # the only leg cannot be switched off
                yield fine(name, f"ran in {ran[name]} {asked} and changed an order")


def _must_run(
    questions: Iterable[Question], catalogue: Catalogue, config: Config
) -> frozenset[str]:
    """The signals that the text of the notes gives cause: an empty table must not excuse them."""
    kinds = {each.kind for each in questions}
    # In a small vault the other legs find every note.
    is_small = len(catalogue.files()) <= SEEDS
    cause = {
        "name": "title" in kinds,
        "vector": bool(catalogue.model_dims()),
        "keyword": True,
        "graph": "link" in kinds and not is_small,
        "backlinks": "link" in kinds,
    }
    return frozenset(name for name, must in cause.items() if must)


def _ran(replay: Replay) -> tuple[Counter[str], Mapping[str, str]]:
    """In how many searches each signal did something, and why a leg failed."""
    ran: Counter[str] = Counter()
    failed = dict(replay.missing)
    for prepared, stages in replay.traces():
        failed |= {run.leg: run.failed for run in prepared.runs if run.failed}
        boosted = outcome_of("boost", stages)
        steps = (step for each in boosted for step in each.steps if step.stage == "boost")
        names = {term.name for step in steps for term in step.terms}
        # Candidates, not hits: a hit that matches no passage is of no use.
        names |= {run.leg for run in prepared.runs if run.candidates}
        ran.update(names | ({"expansion"} if prepared.plan.expansions else set()))
    return ran, failed


def _changes_an_order(replay: Replay, off: Mapping[str, Any], base: Iterable[ScoredAnswer]) -> bool:
    """Whether an answer has another order without a signal; searches until one has."""
    answers = replay.answers(with_values(replay.config, off))
    return any(map(is_reordered, answers, base))
