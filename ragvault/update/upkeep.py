"""Upkeep: what keeps an index private, small and whole, beside indexing.

    forget              a note is removed at once, with every byte of it
    compact_if_due      at the end of a run: the last bytes of removed notes leave every file
    adopt_index         a vault that was renamed or moved keeps its index: nothing is embedded again
    rebuild_catalogue   a catalogue that is damaged or of an older format is replaced

`forget` does not touch the note's file: nothing is ever written into a vault. A file that is still
there is indexed again by the next run, unless the vault ignores it. The bytes of a note that was
deleted in the vault earlier may still be in the files of a large index: every `forget` removes
them, also one that names such a note, whose name the index no longer knows.

Compacting rewrites these files:

    keyword     rebuilt from the catalogue
    vectors     a file with a removed passage is rewritten
    vocabulary  words that no passage has any more are dropped
    catalogue   rewritten by SQLite's VACUUM, and its journal truncated

After a note was removed that is done at once where it writes little, as in most vaults, and in a
large vault when much was removed or a day has passed. A watcher indexes edits first and compacts
when nothing else waits. Editing one note writes nothing more than the edit. Removed text may come
back (an undo, a `git checkout`), so its vectors are kept by their hashes for a day; `forget` does
not wait. Vectors of a replaced model are kept for a day as well.

An index belongs to the path of its vault. When a folder is indexed for the first time, and the
folder of a known vault is gone, the two are compared by the content of some of their notes; where
most are the same, the index moves: its place, its name and whether it is the default. The names of
other indexes without a vault are reported, so that they can be removed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from ragvault.answer.note_lookup import NoSuchNote, find_notes
from ragvault.config.settings import Config
from ragvault.engines import Engines
from ragvault.errors import EngineMissing, IndexUnusable, RagvaultError
from ragvault.models.load import same_model
from ragvault.notes.ignore import ignore_line
from ragvault.notes.read import digest
from ragvault.notes.walk import walk
from ragvault.ports import Progress
from ragvault.store import layout
from ragvault.store.access import forget_accesses, path_digest
from ragvault.store.catalogue import OLD, Catalogue, drop_old, file_sizes, is_rebuilding, set_aside
from ragvault.store.database import RebuildNeeded
from ragvault.store.files import WriterLock
from ragvault.store.layout import KnownVault
from ragvault.types import File
from ragvault.update.freshness import is_gone
from ragvault.update.graph import LinkGraph
from ragvault.update.keyword import prune_vocabulary, refresh_keyword
from ragvault.update.notes import Report, resolve_links
from ragvault.update.vectors import refresh_answering, replaced_models

GRACE = 86_400.0  # seconds for which the vectors of removed text are kept
MANY_REMOVED = 0.05  # share of removed passages from which edits are compacted too
SMALL_INDEX = 8_000_000  # bytes of catalogue and keyword index, rewritten at once after a removal
SAMPLE = 32  # notes compared by content, to know a vault that was moved
MOST = 0.5  # more than this share of them, and of the paths of each vault, must be the same


# --- Forgetting ---


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was forgotten. `still_there` are the files that the next index would bring back.

    `removed` counts passages and notes that were removed earlier, with bytes still in its files.
    """

    notes: tuple[str, ...]
    passages: int
    still_there: tuple[str, ...]
    removed: int = 0


def forget(root: Path, catalogue: Catalogue, engines: Engines, named: str | None) -> Forgotten:
    """Forget one note, or all notes of a folder; without a name, what was removed before.

    The caller holds the writer's lock. Raises UsageError when more than one note has that name, or
    none and nothing removed waits; IndexUnusable while a search that began earlier still reads
    what is to go.
    """
    removed, notes = catalogue.removal_count(), list[str]()
    try:
        notes = find_notes(root, catalogue.names(), named)[0] if named is not None else []
    except NoSuchNote:
        if not removed:  # it may have been removed already
            raise
    ids = [catalogue.note_id(path) for path in notes]
    passages = sum(map(len, catalogue.passage_ids_by_note(ids).values()))
    for path in notes:
        catalogue.remove(path)
    facts = catalogue.facts
    run = facts.last_run
    if warnings := run.get("warnings"):
        kept = [line for line in warnings if not any(note in line for note in notes)]
        run = {**run, "warnings": kept}
    marks = {path_digest(path).hex() for path in notes}
    catalogue.set_facts(forgotten=facts.forgotten | marks, last_run=run)
    resolve_links(catalogue, engines.progress)
    forget_accesses(catalogue.folder, notes)
    LinkGraph(catalogue).update()
    _compact_now(catalogue, engines)
    return Forgotten(tuple(notes), passages, _still_there(root, engines, notes), removed)


def _still_there(root: Path, engines: Engines, notes: Sequence[str]) -> tuple[str, ...]:
    try:
        found = {file.path for file in walk(root, engines.config.walk).files} if notes else set()
    except RagvaultError:
        return ()  # the vault cannot be read now, so this is not known
    return tuple(note for note in notes if note in found)


def ignore_lines(notes: Sequence[str], named: str | None) -> list[str]:
    """The lines of .ragignore that mean these notes: one for a folder, else one a note."""
    folder = (named or "").strip("/")
    inside = [note.startswith(f"{folder}/") for note in notes]
    return [ignore_line(f"{folder}/")] if folder and all(inside) else list(map(ignore_line, notes))


# --- Compacting ---


def compact_if_due(
    catalogue: Catalogue, engines: Engines, report: Report, *, postpone: bool = False
) -> None:
    """The last step of a run: compact what is due, or only report that with `postpone`."""
    engines.drop_unused(catalogue)
    before = time.time() - GRACE
    due = _caches_due(catalogue, before)
    if due and not postpone:
        try:
            compact_caches(catalogue, engines)
        except EngineMissing as missing:
            report.warn(missing)
            return
    if _drop_old_vectors(catalogue, before) + _drop_replaced(catalogue, engines, before):
        catalogue.set_facts(vacuum_due=True)
    report.compact_due = due or catalogue.facts.vacuum_due or catalogue.is_wasteful
    if postpone or not report.compact_due:
        return
    try:
        _vacuum(catalogue)
    except IndexUnusable as error:  # a search still reads; the next run does it
        report.warn(error)
        return
    if due:
        catalogue.set_facts(compacted=catalogue.revision)
    report.compact_due = False


def _compact_now(catalogue: Catalogue, engines: Engines) -> None:
    """Remove everything that was deleted, at once. Raises IndexUnusable."""
    engines.drop_unused(catalogue)
    compact_caches(catalogue, engines)
    catalogue.drop_unused_vectors()
    # First: without removed passages nothing else shows that something is due.
    catalogue.set_facts(vacuum_due=True, compacted=catalogue.revision)
    catalogue.drop_removals(catalogue.revision)
    _vacuum(catalogue)


def _vacuum(catalogue: Catalogue) -> None:
    """Rewrite the catalogue's file; if a search still reads it, or this is stopped, the next run
    does it. Raises IndexUnusable."""
    catalogue.set_facts(vacuum_due=True)
    catalogue.vacuum()
    catalogue.set_facts(vacuum_due=False)


def compact_caches(catalogue: Catalogue, engines: Engines) -> None:
    """Rewrite every cache that has something removed."""
    refresh_keyword(catalogue, engines, rebuild=True)
    with closing(engines.keyword(catalogue)) as keyword:
        prune_vocabulary(catalogue, keyword)
    refresh_answering(catalogue, engines, clean=True)


def _caches_due(catalogue: Catalogue, before: float) -> bool:
    """Whether caches are compacted now: much was removed, or long ago, or it costs little."""
    since = catalogue.facts.compacted
    removed = len(catalogue.removed_since(since))
    if removed > MANY_REMOVED * catalogue.passage_count():
        return True
    if not catalogue.removed_notes_since(since):
        return False
    old = max(since, catalogue.removed_before(before))
    sizes = file_sizes(catalogue.folder)  # about as much is written
    is_small = sizes[layout.CATALOGUE] + sizes.get("keyword", 0) <= SMALL_INDEX
    return is_small or len(catalogue.removed_since(old)) < removed


def _drop_old_vectors(catalogue: Catalogue, before: float) -> int:
    """Delete the vectors of text that did not come back, and the record of its removal."""
    facts = catalogue.facts
    # Of vectors that were taken over, nobody knows when their texts were removed.
    dropped = catalogue.drop_unused_vectors(None if facts.taken_over else before)
    catalogue.set_facts(taken_over=False)
    catalogue.drop_removals(min(catalogue.removed_before(before), facts.compacted))
    return dropped


def _drop_replaced(catalogue: Catalogue, engines: Engines, before: float) -> int:
    """Delete the vectors of models that were replaced before a moment and are not configured."""
    wanted = (engines.full_model(catalogue), engines.config.models.static)
    gone = (
        model
        for model in replaced_models(catalogue, before)
        if not any(same_model(model, name) for name in wanted)
    )
    return sum(catalogue.drop_model(model) for model in gone)


# --- A vault that was moved ---


def adopt_index(root: Path, folder: Path, config: Config, progress: Progress) -> None:
    """Give a vault without an index the one it had under another path, if there is one."""
    data = folder.parent.parent
    left = (
        []
        if folder.exists()
        else [
            known
            for known in layout.known_vaults(data)
            if is_gone(known.root) and (known.folder / layout.CATALOGUE).exists()
        ]
    )
    if not left:
        return
    files = {file.path: file for file in walk(root, config.walk).files}
    same = [known for known in left if _is_same_vault(root, files, known, config)]
    for known in same:
        if _move_index(known, root, folder):
            progress.info(f"{known.root} has moved here; continuing with its index ({known.name})")
            return
    if names := ", ".join(known.name for known in left if known not in same):
        progress.info(
            f"the folder of {names} is gone; to delete an index: ragvault vaults remove NAME"
        )


def _is_same_vault(root: Path, files: dict[str, File], known: KnownVault, config: Config) -> bool:
    try:
        with Catalogue.open(known.folder) as catalogue:
            seen = catalogue.files()
    except RagvaultError:
        return False
    both = sorted(seen.keys() & files.keys())
    if len(both) <= MOST * max(len(seen), len(files)):
        return False
    some = both[:: -(-len(both) // SAMPLE)]
    most = config.walk.max_bytes
    same = [path for path in some if digest(root, files[path], most) == seen[path].digest]
    return len(same) > MOST * len(some)


def _move_index(known: KnownVault, root: Path, folder: Path) -> bool:
    """Whether the index is in its new place, under its new name.

    Raises IndexLocked while another process writes it.
    """
    data = folder.parent.parent
    chosen = layout.default_vault(data)
    with WriterLock(known.folder, "ragvault index"):
        pass  # nobody writes; a folder cannot be renamed everywhere while a file in it is open
    try:
        known.folder.rename(folder)
    except OSError:
        return False
    own = known.name != known.root.name  # keep a chosen name, but not one that came from the folder
    now = layout.register_vault(root, data, known.name if own else root.resolve().name)
    if chosen is not None and chosen.folder == known.folder:
        layout.set_default_vault(now)
    return True


# --- A catalogue that is damaged, or of an older format ---


def rebuild_catalogue(folder: Path, progress: Progress, *, check: bool) -> None:
    """Make a new catalogue in place of a damaged one or one of an older format, with its vectors.

    The run that follows fills it from the vault. A rebuild that was stopped is finished. Only with
    `check`, which reads the whole file, is damage looked for.
    """
    why = ""
    if is_there := (folder / layout.CATALOGUE).exists():
        try:
            with Catalogue.open(folder, write=True) as catalogue:
                why = catalogue.check() if check else ""
        except RebuildNeeded as error:
            why = error.why
    if why or not is_there:
        set_aside(folder)
    if not is_rebuilding(folder):
        return
    with Catalogue.open(folder, write=True) as catalogue:
        saved = catalogue.take_over(folder / OLD)
        catalogue.set_facts(taken_over=True)
    drop_old(folder)
    why = why or "the run that began to rebuild it was stopped"
    progress.info(f"rebuilding the index from the vault, because {why}; {saved:,} vectors are kept")
