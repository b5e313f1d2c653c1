"""Note lookup: which note a person means by what they typed.

A note can be named by its path in the vault, by a file path relative to the current folder, or by
its file name with or without the extension, in any case. Where several notes are accepted, a folder
means all notes in it. A name that fits no note is an error that suggests the nearest one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from unicodedata import normalize

from ragvault.config import folders
from ragvault.errors import UsageError


class NoSuchNote(UsageError):
    """No note in the index has that name."""


def find_note(root: Path, known: Sequence[str], named: str) -> str:
    """The path of the note. Raises UsageError if there is none, several, or it is a folder."""
    found = find_notes(root, known, named)
    if len(found) > 1:
        raise UsageError(
            f"{named} is a folder with {len(found):,} notes",
            fix=f"name one note, for example {found[0]}",
        )
    return found[0]


def find_notes(root: Path, known: Sequence[str], named: str) -> list[str]:
    """The paths of the notes; all notes of a folder. Raises UsageError."""
    wanted = normalize("NFC", named)
    for path in (wanted.replace(os.sep, "/"), _inside(root, wanted)):
        if path in known:
            return [path]
        below = [note for note in known if path and note.startswith(f"{path.rstrip('/')}/")]
        if below:
            return below
    same = [note for note in known if wanted.casefold() in _names(note)]
    if len(same) == 1:
        return same
    if same:
        raise UsageError(f"{named} could be {', '.join(same)}", fix="give the path of one of them")
    near = nearest_notes(known, wanted, 1)
    fix = f"did you mean {near[0]}?" if near else "give the path of a note in the vault"
    raise NoSuchNote(f"no note called “{named}”", fix=fix)


def nearest_notes(
    known: Sequence[str], wanted: str, count: int, similarity: float = 0.6
) -> list[str]:
    """The notes with the most similar paths or names, where “Daily Notes” is daily-notes.md."""
    spelt = {_plain(name): note for note in reversed(known) for name in (note, *_names(note))}
    near = get_close_matches(_plain(normalize("NFC", wanted)), spelt, 4 * count, similarity)
    return list(dict.fromkeys(spelt[name] for name in near))[:count]


def _plain(name: str) -> str:
    return name.casefold().replace("-", " ").replace("_", " ")


def _inside(root: Path, named: str) -> str:
    """The path in the vault of a file named relative to the current folder; empty if outside."""
    if not named or "\0" in named:
        return ""  # an empty variable in a script does not mean the current folder
    # Only its folder is resolved: the note itself may be gone.
    path = Path(os.path.normpath(folders.here() / os.path.expanduser(named)))  # noqa: PTH111
    folder = path.parent.resolve() / path.name
    return folder.relative_to(root).as_posix() if folder.is_relative_to(root) else ""


def _names(note: str) -> set[str]:
    path = PurePosixPath(note)
    return {path.name.casefold(), path.stem.casefold(), str(path.with_suffix("")).casefold()}
