"""Note lookup: which note a person means by what they typed.

A note can be named by any of these, and the first that fits one decides:

    Technique/Steam.md          its path in the vault, or a file path from the current folder
    Steam, steam.md             its file name, with or without the extension
    Vapour in the oven          its title, as `search` prints it, or one of its aliases
    steam                       a part of its path, its title or an alias

Case never matters, and neither do the link brackets, the heading and the line that `search` prints
with a name: [[Steam]], Steam > Doing it, Technique/Steam.md:12. Where several notes are accepted, a
folder means all notes in it: `Projects/` always, and `Projects` if no note has that name. A name
that fits several notes lists them, and one that fits none suggests the nearest; if a file of the
vault has that name and is not indexed, `left_out` has the reason.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path, PurePosixPath
from shlex import quote
from typing import TYPE_CHECKING
from unicodedata import normalize

from ragvault.config import folders
from ragvault.errors import RagvaultError, UsageError
from ragvault.notes.ignore import OBSIDIAN, RAGIGNORE, ignore_line
from ragvault.notes.read import EXCLUDED
from ragvault.text.fold import plain_name
from ragvault.text.names import plain_words, typed_name
from ragvault.text.spelling import nearest

if TYPE_CHECKING:
    from ragvault.config.settings import Walk
    from ragvault.store.catalogue import Catalogue
    from ragvault.types import Head, Skipped

CANDIDATES = 8  # notes that an error lists
LOOKED_AT = 10_000  # files that are not indexed: a folder that is excluded may be very large
_LINE = re.compile(r":(\d+)(?:-\d+)?$")
_LINK = re.compile(r"\[\[(.+?)(?:\|.*)?\]\]")
_HEADING = re.compile(r"\s+>\s.*|(?<=[^\s#])#(?=[^\s#]).*", re.DOTALL)


class NoSuchNote(UsageError):
    """No note in the index has that name."""

    def __init__(self, named: str, *, fix: str = "", message: str = "") -> None:
        super().__init__(message or f"no note called “{named}”", fix=fix)
        self.named = named


class NoteLeftOut(NoSuchNote):
    """A file of the vault has that name, and is not indexed."""


def find_note(root: Path, catalogue: Catalogue, named: str) -> str:
    """The path of the note. Raises UsageError if there is none, several, or it is a folder."""
    found = find_notes(root, catalogue, named)
    if len(found) > 1:
        raise UsageError(
            f"{named} is a folder with {len(found):,} notes",
            fix=f"name one note, for example {found[0]}",
        )
    return found[0]


def find_notes(root: Path, catalogue: Catalogue, named: str) -> list[str]:
    """The paths of the notes; all notes of a folder. Raises UsageError."""
    known, forms = sorted(catalogue.files()), list(_forms(named))
    for form in forms:
        by_path = _in_folder if form.endswith("/") else _by_path
        if found := by_path(root, known, form):
            return found
    notes = catalogue.heads()
    files = {form: _file_paths(root, form) for form in forms}
    fits: Sequence[Callable[[str, Head], bool]] = (
        lambda wanted, note: not files[wanted].isdisjoint(_file_names(note.path)),
        _is_title,
        _is_alias,
        _has_part,
    )
    for fit in fits:
        for form in forms:
            if fit is _has_part and (found := _in_folder(root, known, form)):
                return found
            same = sorted(note.path for note in notes if fit(form, note))
            if len(same) == 1:
                return same
            if same:
                raise UsageError(
                    f"{named} could be {listed(same)}", fix="give the path of one of them"
                )
    near = nearest_notes(notes, forms[-1], 1)
    fix = f"did you mean {near[0]}?" if near else search_instead(named)
    raise NoSuchNote(named, fix=fix)


def left_out(
    root: Path, catalogue: Catalogue, settings: Walk, named: str, *, here: bool = False
) -> NoteLeftOut | None:
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
    forms = [*_forms(named), *([_inside(root, named)] if here else [])]
    wanted, words = {typed_name(form) for form in forms} - {""}, {*plain_words(named)}
    skipped = ((skip.path, skip) for skip in (*walked.skipped, *unread))
    excluded = ((path, skip) for skip in walked.excluded for path in notes_in(root, skip, settings))
    partly: NoteLeftOut | None = None
    for path, skip in islice(chain(skipped, excluded), LOOKED_AT):
        if wanted & {typed_name(each) for each in (path, *_file_names(path))}:
            return _left_out(named, path, skip)
        own = {*plain_words(PurePosixPath(path).stem)}
        if partly is None and words and words <= own and 2 * len(words) >= len(own):
            partly = _left_out(named, path, skip)
    return partly


def _left_out(named: str, path: str, skip: Skipped) -> NoteLeftOut:
    """The reason, and what includes the note again."""
    if skip.reason != EXCLUDED:
        return NoteLeftOut(
            named,
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
    return NoteLeftOut(named, message=message, fix=f"{how}; then run: ragvault index")


def search_instead(named: str) -> str:
    """What to do with a name that no note has, nor nearly."""
    return f"give the path of a note in the vault, or search: ragvault search {quote(named)}"


def line_of(named: str) -> int | None:
    """The line in a name such as Technique/Steam.md:12."""
    found = _LINE.search(named)
    return int(found[1]) if found else None


def heading_of(named: str) -> str:
    """The last heading in a name such as `Steam > Doing it` or `Steam#Doing it`."""
    link = _LINK.fullmatch(named.strip())
    found = _HEADING.search(link[1] if link else named)
    return re.split(r"\s+>\s+|#", found[0])[-1].strip() if found else ""


def listed(paths: Sequence[str]) -> str:
    """Some names in a sentence, and how many more there are."""
    more = len(paths) - CANDIDATES
    shown = ", ".join(paths[:CANDIDATES])
    return f"{shown} and {more} more" if more > 0 else shown


def _forms(named: str) -> Iterator[str]:
    """The name as typed, and without what is not part of a name."""
    name = normalize("NFC", named)
    yield name
    for less in (_LINE.sub("", name), _LINK.sub(r"\1", name.strip())):
        if less != name:
            yield less
            name = less
    if (less := _HEADING.sub("", name)) not in ("", name):
        yield less


def _by_path(root: Path, known: Sequence[str], wanted: str) -> list[str]:
    """The note of this path."""
    return [path for path in _paths(root, wanted) if path in known][:1]


def _in_folder(root: Path, known: Sequence[str], wanted: str) -> list[str]:
    """All notes of this folder."""
    for path in filter(None, _paths(root, wanted)):
        if below := [note for note in known if note.startswith(f"{path.rstrip('/')}/")]:
            return below
    return []


def _paths(root: Path, wanted: str) -> tuple[str, str]:
    return wanted.replace(os.sep, "/"), _inside(root, wanted)


def _file_paths(root: Path, wanted: str) -> set[str]:
    """As what a name may stand among the names of a file: `./Projects` too; a folder as nothing."""
    return set() if wanted.endswith("/") else {path.casefold() for path in _paths(root, wanted)}


def _is_title(wanted: str, note: Head) -> bool:
    return plain_name(wanted) == plain_name(note.title)


def _is_alias(wanted: str, note: Head) -> bool:
    return plain_name(wanted) in map(plain_name, note.aliases)


def _has_part(wanted: str, note: Head) -> bool:
    part = plain_name(wanted)
    return bool(part) and any(part in plain_name(each) for each in _all_names(note))


def _all_names(note: Head) -> Iterable[str]:
    return (note.path, note.title, *note.aliases)


def nearest_notes(
    notes: Sequence[Head], wanted: str, count: int, similarity: float = 0.6
) -> list[str]:
    """The notes with the most similar paths or names, where “Daily Notes” is daily-notes.md."""
    spelt = {
        _spaced(name): note.path
        for note in sorted(notes, key=lambda note: note.path, reverse=True)
        for name in (*_all_names(note), *_file_names(note.path))
    }
    near = nearest(_spaced(wanted), spelt, 4 * count, similarity)
    return list(dict.fromkeys(spelt[name] for name in near))[:count]


def _spaced(name: str) -> str:
    return plain_name(name.replace("-", " ").replace("_", " "))


def _inside(root: Path, named: str) -> str:
    """The path in the vault of a file named relative to the current folder; empty if outside."""
    if not named or "\0" in named:
        return ""  # an empty variable in a script does not mean the current folder
    # Only its folder is resolved: the note itself may be gone.
    path = Path(os.path.normpath(folders.here() / os.path.expanduser(named)))  # noqa: PTH111
    folder = path.parent.resolve() / path.name
    return folder.relative_to(root).as_posix() if folder.is_relative_to(root) else ""


def _file_names(note: str) -> set[str]:
    path = PurePosixPath(note)
    return {path.name.casefold(), path.stem.casefold(), str(path.with_suffix("")).casefold()}
