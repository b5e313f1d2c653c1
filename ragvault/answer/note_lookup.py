"""Note lookup: the note that a person names, or the error that says why there is none.

A note can be named by any of these, and the first that fits one decides (text/names.py):

    Technique/Steam.md          its path in the vault, or a file path from the current folder
    Steam, steam.md             its file name, with or without the extension and its folders
    Vapour in the oven          its title, as `search` prints it
    steaming                    one of its aliases
    steam                       a part of its path, its title or an alias

Case never matters, and neither do the link brackets, the heading and the line that `search` prints
with a name: [[Steam]], Steam > Doing it, Technique/Steam.md:12. Where several notes are accepted, a
folder means all notes in it: `Projects/` always, and `Projects` if no note has that name. A name
that fits several notes lists them, and one that fits none suggests the nearest; if a file of the
vault has that name and is not indexed, `left_out` has the reason.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import chain, islice
from pathlib import Path, PurePosixPath
from shlex import quote
from typing import TYPE_CHECKING

from ragvault.config import folders
from ragvault.errors import RagvaultError, UsageError
from ragvault.notes.ignore import OBSIDIAN, RAGIGNORE, ignore_line
from ragvault.notes.read import EXCLUDED
from ragvault.text.names import (
    TypedName,
    nearest_notes,
    notes_called,
    notes_with,
    plain_words,
    typed_forms,
)
from ragvault.types import Head

if TYPE_CHECKING:
    from ragvault.config.settings import Walk
    from ragvault.store.catalogue import Catalogue
    from ragvault.types import Skipped

CANDIDATES = 8  # notes that an error lists
LOOKED_AT = 10_000  # files that are not indexed: a folder that is excluded may be very large


class NoSuchNote(UsageError):
    """No note in the index has that name. `near` are the paths of notes that may be meant.

    `left_out`: a file of the vault has that name, and is not indexed.
    """

    def __init__(
        self,
        named: str,
        near: Sequence[str] = (),
        *,
        message: str = "",
        fix: str = "",
        left_out: bool = False,
    ) -> None:
        search = f"give the path of a note in the vault, or search: ragvault search {quote(named)}"
        meant = f"did you mean {' or '.join(filter(None, (', '.join(near[:-1]), *near[-1:])))}?"
        super().__init__(
            message or f"no note called “{named}”", fix=meant if near else fix or search
        )
        self.named, self.near, self.left_out = named, tuple(near), left_out


def find_note(root: Path, catalogue: Catalogue, named: str) -> str:
    """The path of the note. Raises UsageError if there is none, several, or it is a folder."""
    return find_place(root, catalogue.names(), named)[0]


def find_place(root: Path, notes: Sequence[Head], named: str) -> tuple[str, TypedName]:
    """The same among these notes, with the part of the note that the name has."""
    found, typed = find_notes(root, notes, named)
    if len(found) > 1:
        raise UsageError(
            f"{named} is a folder with {len(found):,} notes",
            fix=f"name one note, for example {found[0]}",
        )
    return found[0], typed


def find_notes(root: Path, notes: Sequence[Head], named: str) -> tuple[list[str], TypedName]:
    """The notes that are meant, all those of a folder, and their name. Raises UsageError."""
    forms, paths = typed_forms(named), {each.id: each.path for each in notes}
    for form in forms:
        if form.note.endswith("/"):
            if below := _in_folder(root, paths, form.note):
                return below, form
        elif found := _of_this_name(root, paths, notes, form.note):
            return _only(named, found), form
    for form in forms:
        if below := _in_folder(root, paths, form.note):
            return below, form
        if found := [paths[note] for note in notes_with(notes, form.note)]:
            return _only(named, found), form
    raise no_such_note(notes, named, forms[-1].note)


def no_such_note(
    notes: Sequence[Head], named: str, name: str, count: int = 1, least: float = 0.6
) -> NoSuchNote:
    """The error for a name that no note has, with the nearest names."""
    return NoSuchNote(named, list(nearest_notes(notes, name, count, least)))


def left_out(
    root: Path, catalogue: Catalogue, settings: Walk, named: str, *, here: bool = False
) -> NoSuchNote | None:
    """The error for a name that only a file has which is not indexed. Walks the vault.

    At least half of the words of its name are enough. With `here` it may also be a file path from
    the current folder.
    """
    from ragvault.notes.walk import notes_in, walk

    try:
        walked = walk(root, settings)
    except RagvaultError:
        return None
    found = {file.path for file in walked.files}
    unread = [skip for skip in catalogue.skipped() if skip.path in found]
    names = [form.note for form in typed_forms(named)] + [_inside(root, named)] * here
    words = {*plain_words(named)}
    skipped = ((skip.path, skip) for skip in (*walked.skipped, *unread))
    excluded = ((path, skip) for skip in walked.excluded for path in notes_in(root, skip, settings))
    partly: NoSuchNote | None = None
    for path, skip in islice(chain(skipped, excluded), LOOKED_AT):
        if notes_called([of_file(0, path)], names):
            return _left_out(named, path, skip)
        own = {*plain_words(PurePosixPath(path).stem)}
        if partly is None and words and words <= own and 2 * len(words) >= len(own):
            partly = _left_out(named, path, skip)
    return partly


def of_file(number: int, path: str) -> Head:
    """A file that is not indexed: only its name is known."""
    return Head(number, path, PurePosixPath(path).stem, ())


def _left_out(named: str, path: str, skip: Skipped) -> NoSuchNote:
    """The reason, and what includes the note again."""
    if skip.reason != EXCLUDED:
        return NoSuchNote(
            named,
            left_out=True,
            message=f"{path} is not indexed ({skip.reason}): {skip.detail}",
            fix="ragvault status -v lists all files that are not indexed",
        )
    source = skip.detail.removeprefix("by ")
    if source == OBSIDIAN:
        how = "take it out of Obsidian's excluded files, or set walk.obsidian_ignore to false"
    elif source.endswith(RAGIGNORE):
        how = f"take it out of {source}"
    else:
        how = f"add the line !{ignore_line(skip.path)} to {RAGIGNORE}"
    message = f"{path} is excluded {skip.detail}"
    fix = f"{how}; then run: ragvault index"
    return NoSuchNote(named, message=message, fix=fix, left_out=True)


def listed(paths: Sequence[str]) -> str:
    """Some names in a sentence, and how many more there are."""
    more = len(paths) - CANDIDATES
    shown = ", ".join(paths[:CANDIDATES])
    return f"{shown} and {more} more" if more > 0 else shown


def _of_this_name(
    root: Path, paths: Mapping[int, str], notes: Sequence[Head], name: str
) -> list[str]:
    """The note of this path; else all notes that have this name in the best way."""
    typed = [name.replace(os.sep, "/"), *filter(None, [_inside(root, name)])]
    known = set(paths.values())
    if own := [path for path in typed if path in known]:
        return own[:1]
    called = notes_called(notes, typed)
    for kind in ("file", "title", "alias"):
        if found := [paths[note] for note, by in called.items() if by == kind]:
            return found
    return []


def _only(named: str, found: list[str]) -> list[str]:
    """This one note. Raises UsageError for several."""
    if len(found) > 1:
        raise UsageError(f"{named} could be {listed(found)}", fix="give the path of one of them")
    return found


def _in_folder(root: Path, paths: Mapping[int, str], name: str) -> list[str]:
    """All notes of this folder."""
    for folder in filter(None, (name.replace(os.sep, "/"), _inside(root, name))):
        if below := [path for path in paths.values() if path.startswith(f"{folder.rstrip('/')}/")]:
            return below
    return []


def _inside(root: Path, named: str) -> str:
    """The path in the vault of a file named relative to the current folder; empty if outside."""
    if not named or "\0" in named:
        return ""  # an empty variable in a script does not mean the current folder
    # Only its folder is resolved: the note itself may be gone.
    path = Path(os.path.normpath(folders.here() / os.path.expanduser(named)))  # noqa: PTH111
    folder = path.parent.resolve() / path.name
    return folder.relative_to(root).as_posix() if folder.is_relative_to(root) else ""
