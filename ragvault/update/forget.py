"""Forget: remove a note from the index at once, with every byte of it.

    remove -> resolve links -> update keyword, vectors, graph -> compact

The file is not touched: nothing is ever written into a vault. A file that is still there is indexed
again by the next run, unless the vault ignores it. The bytes of a note that was deleted in the
vault earlier may still be in the files of a large index (compact.py): every `forget` removes them,
also one that names such a note, whose name the index no longer knows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragvault.answer.note_lookup import NoSuchNote, find_notes
from ragvault.engines import Engines
from ragvault.errors import RagvaultError
from ragvault.notes.ignore import ignore_line
from ragvault.notes.walk import walk
from ragvault.store.access import forget_accesses, path_digest
from ragvault.store.catalogue import Catalogue
from ragvault.update.compact import compact_now
from ragvault.update.graph import LinkGraph
from ragvault.update.keyword import refresh_keyword
from ragvault.update.notes import resolve_links
from ragvault.update.vectors import refresh_vectors


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
    removed = catalogue.removal_count()
    notes = _notes_named(root, catalogue, named, removed)
    ids = [catalogue.note_id(path) for path in notes]
    passages = sum(map(len, catalogue.passage_ids_by_note(ids).values()))
    for path in notes:
        catalogue.remove(path)
    marks = {path_digest(path).hex() for path in notes}
    catalogue.set_facts(
        forgotten=catalogue.facts.forgotten | marks, last_run=_run_without(catalogue, notes)
    )
    resolve_links(catalogue, engines.progress)
    forget_accesses(catalogue.folder, notes)
    _update_caches(catalogue, engines)
    compact_now(catalogue, engines)
    return Forgotten(tuple(notes), passages, _still_there(root, engines, notes), removed)


def _notes_named(root: Path, catalogue: Catalogue, named: str | None, removed: int) -> list[str]:
    """The notes to forget; none where the named one may have been removed already."""
    if named is None:
        return []
    try:
        return find_notes(root, catalogue, named)
    except NoSuchNote:
        if not removed:
            raise
        return []


def ignore_lines(notes: Sequence[str], named: str | None) -> list[str]:
    """The lines of .ragignore that mean these notes: one for a folder, else one a note."""
    folder = (named or "").strip("/")
    inside = [note.startswith(f"{folder}/") for note in notes]
    return [ignore_line(f"{folder}/")] if folder and all(inside) else list(map(ignore_line, notes))


def _run_without(catalogue: Catalogue, notes: Collection[str]) -> dict[str, Any]:
    """The report of the last run, without its warnings about these notes."""
    run = catalogue.facts.last_run
    warnings = run.get("warnings", [])
    kept = [line for line in warnings if not any(note in line for note in notes)]
    return {**run, "warnings": kept} if warnings else run


def _update_caches(catalogue: Catalogue, engines: Engines) -> None:
    refresh_keyword(catalogue, engines)
    models = engines.models(catalogue)
    for model in models:
        refresh_vectors(model, catalogue, engines, "" if model == models[0] else models[0])
    LinkGraph(catalogue, engines.config.graph).update()


def _still_there(root: Path, engines: Engines, notes: Sequence[str]) -> tuple[str, ...]:
    if not notes:
        return ()
    try:
        found = {file.path for file in walk(root, engines.config.walk).files}
    except RagvaultError:
        return ()  # the vault cannot be read now, so this is not known
    return tuple(note for note in notes if note in found)
