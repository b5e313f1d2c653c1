"""Named: which note a person means, who types what they see in an editor or in a shell.

A note is named by its path in the vault, by its file, or by its name with or without the ending,
whatever the case; a folder stands for the notes in it where several are wanted. Pure but for the
current folder, from which a relative file is named.
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
    """No note of the index has that name."""


def find_note(root: Path, known: Sequence[str], named: str) -> str:
    """The one note that is meant. Raises UsageError when it is none, several, or a folder."""
    found = find_notes(root, known, named)
    if len(found) > 1:
        raise UsageError(
            f"{named} is a folder of {len(found):,} notes", fix=f"name one note, such as {found[0]}"
        )
    return found[0]


def find_notes(root: Path, known: Sequence[str], named: str) -> list[str]:
    """The notes that are meant; all of its notes for a folder. Raises UsageError."""
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
        raise UsageError(f"{named} could be {', '.join(same)}", fix="name one of them by its path")
    near = get_close_matches(wanted, known, n=1)
    meant = f"; did you mean {near[0]}?" if near else ""
    raise NoSuchNote(
        f"the index has no note {named}", fix=f"name a note by its path in the vault{meant}"
    )


def _inside(root: Path, named: str) -> str:
    """The path in the vault of a file named as the shell names it; empty for one outside."""
    if not named:
        return ""  # an empty variable of a script, and not the current folder
    # Not resolved to the end: the note itself may be gone.
    path = Path(os.path.normpath(folders.here() / os.path.expanduser(named)))  # noqa: PTH111
    folder = path.parent.resolve() / path.name
    return folder.relative_to(root).as_posix() if folder.is_relative_to(root) else ""


def _names(note: str) -> set[str]:
    path = PurePosixPath(note)
    return {path.name.casefold(), path.stem.casefold(), str(path.with_suffix("")).casefold()}
