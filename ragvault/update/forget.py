"""Forget: a note leaves the index at once, with every byte of it.

    remove -> look links up -> words, vectors, links follow -> compact

The file is not touched: nothing is ever written into a vault. One that is still there comes back
with the next index, unless the vault says that it is ignored. What was deleted in the vault, and
removed by an index run since, may wait in the files of a large index (compact.py): it goes with
whatever is forgotten, and also when its name, which nobody has kept, is all that is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ragvault.answer.note_lookup import NoSuchNote, find_notes
from ragvault.engines import Engines
from ragvault.errors import RagvaultError
from ragvault.notes.walk import walk
from ragvault.store import access
from ragvault.store.catalogue import Catalogue
from ragvault.update.compact import compact
from ragvault.update.graph import LinkGraph
from ragvault.update.keyword import refresh_keyword
from ragvault.update.notes import look_links_up
from ragvault.update.vectors import refresh_vectors


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was forgotten. `still_there` are the files that the next index would bring back.

    `removed` counts passages and notes that were out of the index already, and in its files still.
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
    removed = catalogue.tombstones()
    notes = _meant(root, catalogue, named, removed)
    ids = [catalogue.note_id(path) for path in notes]
    passages = sum(len(catalogue.passages_of(path)) for path in notes)
    for path in notes:
        catalogue.remove(path)
    look_links_up(catalogue)
    _forget_sayings(catalogue, notes)
    access.forget_accesses(catalogue.folder, ids)
    engines.own(catalogue)
    _follow(catalogue, engines)
    compact(catalogue, engines)
    return Forgotten(tuple(notes), passages, _still_there(root, engines, notes), removed)


def _meant(root: Path, catalogue: Catalogue, named: str | None, removed: int) -> list[str]:
    """The notes that are to go; none where it may have been removed already."""
    if named is None:
        return []
    try:
        return find_notes(root, sorted(catalogue.files()), named)
    except NoSuchNote:
        if not removed:
            raise
        return []


def ignore_line(note: str) -> str:
    """The line of .ragignore that means this note and no other."""
    line = re.sub(r"([\\*?\[])", r"\\\1", note)
    return f"/{line[:-1]}\\ " if line.endswith(" ") else f"/{line}"


def _forget_sayings(catalogue: Catalogue, notes: Iterable[str]) -> None:
    """What the last run said of a note goes as well."""
    run = dict(catalogue.last_run())
    said = run.get("warnings", ())
    run["warnings"] = [line for line in said if not any(note in line for note in notes)]
    if len(run["warnings"]) != len(said):
        catalogue.set_last_run(run)


def _follow(catalogue: Catalogue, engines: Engines) -> None:
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
        return ()  # the vault is not here now: nothing can be said of it
    return tuple(note for note in notes if note in found)
