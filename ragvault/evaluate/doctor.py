"""The doctor: does every part work, on this machine and for this vault?

    check_machine    Python, libraries, models, folders, free space
    check_watching   whether the system can watch every folder of the vault
    check_index      the catalogue, the caches against the catalogue, and the vault's files
    check_signals    each leg, boost and filter, tried with the vault's own words

It reads everything and changes nothing: a fix is a command for the user. A check that cannot run
because an earlier part is broken is skipped, so one fault has one finding.
"""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ragvault import __version__
from ragvault.answer.results import changed_files
from ragvault.answer.status import Status
from ragvault.config import folders
from ragvault.config.load import load_settings
from ragvault.config.settings import Config, Walk
from ragvault.corpus import LocalCorpus
from ragvault.engines import Engines
from ragvault.errors import (
    DISTRIBUTION,
    EngineMissing,
    IndexMissing,
    RagvaultError,
    VaultNotFound,
)
from ragvault.evaluate.probes import probes
from ragvault.evaluate.signals import Signal, count_signals
from ragvault.notes.links import Order, find_wiki
from ragvault.notes.resolve import Resolver
from ragvault.notes.walk import IncrementalWalk
from ragvault.ports import CacheBroken, NoProgress, Progress
from ragvault.store.caches import KEYWORD
from ragvault.store.catalogue import Catalogue
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
PROBES = 28  # four of each kind: a second or two
REBUILD = "ragvault index --rebuild, and report it if that fails"


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
    return vault.name, list(_diagnose_vault(vault, now, progress or NoProgress()))


def _glance(known: KnownVault) -> Finding:
    """Whether a vault is there, and its index up to date."""
    part = f"vault {known.name}"
    try:
        if away := absence(known):
            raise away
        found = Vault.open(known.root).status()
    except RagvaultError as error:
        state: State = "behind" if isinstance(error, IndexMissing) else "broken"
        return Finding(part, state, str(error), error.fix)
    if found.pending or found.pending.why:
        why = found.pending.why or "the index is behind its files"
        return Finding(part, "behind", why, f"{INDEX} {known.name}")
    return fine(part, "the index is up to date")


def _diagnose_vault(vault: Vault, now: datetime, progress: Progress) -> Iterator[Finding]:
    config = vault.settings.config
    try:
        catalogue = vault.catalogue()
    except IndexMissing as missing:
        yield from check_machine(config)
        yield Finding("index", "behind", str(missing), missing.fix)
        return
    except RagvaultError as error:
        yield from check_machine(config)
        yield Finding("index", "broken", str(error), error.fix)
        return
    with catalogue:
        needed = frozenset(
            name for tier in ("full", "static") if (name := catalogue.tier_model(tier))
        )
    progress.step("checking libraries and models")
    yield from check_machine(config, needed)
    progress.step("checking the index")
    yield from _diagnose_index(vault, now, progress)


def _diagnose_index(vault: Vault, now: datetime, progress: Progress) -> Iterator[Finding]:
    engines = Engines(vault.folder, vault.settings)
    status = vault.status()
    if not status.pending.why:
        yield check_watching(Path(status.root), vault.settings.config.walk)
    with vault.catalogue() as catalogue:
        found = list(check_index(catalogue, engines, status))
        found += check_link_order(catalogue, vault.settings.config.links.order)
    yield from found
    if any(each.part == "catalogue" and each.state == "broken" for each in found):
        return
    # A leg whose index is broken finds nothing; its finding is already there.
    known = {each.part.removesuffix(" index") for each in found if each.state == "broken"}
    if "keyword" in known:
        known.add("code")  # a leg of the same index
    with vault.corpus() as index:
        signals = check_signals(index, now, progress=progress)
        yield from (each for each in signals if each.part not in known)


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
    failed = [(name, why) for name in wanted if (why := _import_failure(name))]
    for name, why in failed:
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
        return Finding(part, "broken", message, f"chmod u+rwx {above}, or set RAGVAULT_HOME")
    if not folder.exists():
        return fine(part, f"{folder} will be created when needed")
    if os.name == "posix" and part == "data folder" and _is_open_to_others(folder / "vaults"):
        message = f"other users can read {folder / 'vaults'}, and an index contains your notes"
        return Finding(part, "broken", message, f"chmod 700 {folder / 'vaults'}")
    return fine(part, f"{folder} is writable and private")


def _is_open_to_others(folder: Path) -> bool:
    return folder.exists() and bool(folder.stat().st_mode & 0o077)


def _nearest_existing(folder: Path) -> Path:
    return next(above for above in (folder, *folder.parents) if above.exists())


def check_watching(root: Path, settings: Walk) -> Finding:
    """Whether the system can watch every folder of a vault that is not ignored."""
    if sys.platform != "linux" or not INOTIFY.exists():
        return fine("watching", "this system reports changes without a limit")
    limit = int(INOTIFY.read_text())
    seen = IncrementalWalk(root, settings)
    seen.walk()
    count = seen.folders
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
    try:
        if cache is None:
            return Finding(part, "broken", "there is none", INDEX)
        index = engines.keyword(catalogue)
    except (CacheBroken, EngineMissing) as broken:
        return Finding(part, "broken", str(broken), broken.fix)
    try:
        if cache.revision != catalogue.revision:
            message = f"has revision {cache.revision}, the catalogue has {catalogue.revision}"
            return Finding(part, "behind", message, INDEX)
        wanted = catalogue.passage_ids()
        return _compare_passages(part, index.passages(), wanted, f"{cache.engine}: ")
    except CacheBroken as broken:
        return Finding(part, "broken", str(broken), broken.fix)
    finally:
        index.close()


def _check_vector_indexes(catalogue: Catalogue, engines: Engines) -> Iterator[Finding]:
    import numpy as np

    part = "vector index"
    dims, models = catalogue.model_dims(), engines.models(catalogue)
    if not models:
        yield Finding(part, "note", "there is none: this vault is searched by keyword only", INDEX)
    for place, model in enumerate(models):
        try:
            if model not in dims:
                continue
            index = engines.vectors(model, dims[model], catalogue)
        except (CacheBroken, EngineMissing) as broken:
            yield Finding(part, "broken", f"{model}: {broken}", broken.fix)
            continue
        try:
            own = index.ids()
            if place:  # passages that a better model has embedded are not searched here
                own = np.intersect1d(own, np.array(catalogue.unembedded(*models[:place]), np.int64))
            yield _compare_passages(part, own, _embedded(catalogue, models, place), f"{model}: ")
        finally:
            index.close()


def _embedded(catalogue: Catalogue, models: list[str], place: int) -> NDArray[np.int64]:
    """The passages in a model's index: those it has embedded and no better model has."""
    import numpy as np

    lacking = np.array(catalogue.unembedded(models[place]), np.int64)
    mine = np.setdiff1d(catalogue.passage_ids(), lacking)
    better = catalogue.unembedded(*models[:place]) if place else mine
    return np.intersect1d(mine, np.array(better, np.int64))


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
    index: LocalCorpus, now: datetime, count: int = PROBES, progress: Progress | None = None
) -> Iterator[Finding]:
    """Search for probes of the vault and count every signal that the settings enable.

    A signal that changed the order of an answer works. One that runs and changes no order, and one
    without cause, is worth a note. One that never runs although the notes give it cause is broken.
    """
    questions = probes(index.catalogue, count)
    if not questions:
        yield fine("search", "the vault has nothing to search for yet")
        return
    signals = count_signals(index, questions, now, moves=0, progress=progress)
    yield from (_signal(each) for each in signals if each.group not in ("stage", "filter"))
    yield from _filters([each for each in signals if each.group == "filter"])


def _signal(signal: Signal) -> Finding:
    if signal.state == "off":
        return Finding(signal.name, "note", "off in your settings")
    if signal.state == "failed":
        return Finding(signal.name, "broken", f"fails: {signal.failed}", INDEX)
    if signal.state == "idle":
        return Finding(signal.name, "note", signal.lacks)
    searches = f"of {signal.asked} searches with the vault's own words"
    if signal.state == "alive":
        return fine(signal.name, f"ran in {signal.fired} {searches} and changed an order")
    if signal.state == "same order":
        return Finding(signal.name, "note", f"no effect in {signal.fired} test searches")
    message = f"had an effect in none {searches}"
    return Finding(signal.name, "broken", message, REBUILD)


def _filters(signals: Sequence[Signal]) -> Iterator[Finding]:
    """One line for all filters that work, and one for each that does not."""
    for each in signals:
        if each.state == "dead":
            message = f"{each.name} keeps none of the {each.asked} notes that it should keep"
            yield Finding("filter", "broken", message, REBUILD)
    working = [each.name for each in signals if each.state in ("alive", "same order")]
    if working:
        yield fine("filters", f"{', '.join(working)} keep the notes that they should keep")
