"""Diff: what happened to a vault since it was last indexed.

A pure comparison of what is known with what a walk found. The file's status (size, times, inode)
decides first; content is read only where that differs, or where a new file may be one that went
missing elsewhere. So a vault in which nothing happened is confirmed without opening a note.

    added      not known
    changed    known, and its content is another
    touched    known, with the same content and another status: record that
    moved      not known, but a note that is gone had this content
    removed    known, and gone
    kept       known, but its present state cannot be determined

A time cannot be trusted while it is as young as the clock's tick: a file written twice within one
tick, and read in between, keeps its size and its time. So each note is known with the moment its
bytes were read, and one that was written about then is compared by content once more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragvault.types import File, IndexedFile, Skipped

if TYPE_CHECKING:
    from ragvault.notes.walk import Walked

# The coarsest clock among file systems in use: FAT counts in two seconds.
TICK_NS = 2_000_000_000


DigestOf = Callable[[File], bytes | Skipped]  # of a file's content, or why it cannot be read now


Move = tuple[str, File]  # the path that a note had, and the file that it is now


@dataclass(frozen=True, slots=True)
class Changes:
    """Each path, known or found, is in one class or is one of the `unchanged`; sorted by path."""

    added: tuple[File, ...] = ()
    changed: tuple[File, ...] = ()
    touched: tuple[File, ...] = ()
    moved: tuple[Move, ...] = ()
    removed: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    unreadable: tuple[Skipped, ...] = ()  # those of `kept` that the walk saw, with the reason
    unchanged: int = 0

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.added or self.changed or self.touched or self.moved or self.removed)


def diff(known: Mapping[str, IndexedFile], walked: Walked, digest_of: DigestOf) -> Changes:
    """Compare what is indexed with what a walk found."""
    found = {file.path: file for file in walked.files}
    doubtful = [
        file for path, file in found.items() if path in known and is_doubtful(known[path], file)
    ]
    changed, touched, unread = by_content(known, doubtful, digest_of)
    gone = sorted(known.keys() - found.keys())
    hidden = {path for path in gone if is_hidden(path, walked.unreadable)}
    added = [file for path, file in found.items() if path not in known]
    moved = moves(known, [path for path in gone if path not in hidden], added, digest_of)
    old = {path for path, _ in moved}
    new = {file.path for _, file in moved}
    return Changes(
        added=tuple(file for file in added if file.path not in new),
        changed=changed,
        touched=touched,
        moved=moved,
        removed=tuple(path for path in gone if path not in hidden and path not in old),
        kept=tuple(sorted(hidden.union(skip.path for skip in unread))),
        unreadable=tuple(unread),
        unchanged=len(found) - len(added) - len(doubtful),
    )


def is_doubtful(known: IndexedFile, file: File) -> bool:
    """Whether the content has to be read to know that it is the same."""
    if has_other_status(known, file):
        return True
    # A time far in the future is not racy: an edit would bring it back to the present.
    return abs(known.indexed_ns - file.mtime_ns) <= TICK_NS


def has_other_status(known: IndexedFile, file: File) -> bool:
    """Whether size, times or inode differ."""
    return status_of(known) != status_of(file)


def status_of(file: File | IndexedFile) -> tuple[int, ...]:
    """What the file system knows of a file without opening it."""
    return file.size, file.mtime_ns, file.ctime_ns, file.inode


def by_content(
    known: Mapping[str, IndexedFile], files: Iterable[File], digest_of: DigestOf
) -> tuple[tuple[File, ...], tuple[File, ...], list[Skipped]]:
    """Files with other content, files with the same, and those that cannot be read."""
    changed, touched, unread = [], [], []
    for file in files:
        digest = digest_of(file)
        if isinstance(digest, Skipped):
            unread.append(digest)
        elif digest == known[file.path].digest:
            touched.append(file)
        else:
            changed.append(file)
    return tuple(changed), tuple(touched), unread


def is_hidden(path: str, unreadable: frozenset[str]) -> bool:
    """Whether the walk could not see this path: itself, or a folder that it lies in."""
    if not unreadable:
        return False
    parts = path.split("/")
    folders = ("/".join(parts[:depth]) + "/" for depth in range(1, len(parts)))
    return path in unreadable or any(folder in unreadable for folder in folders)


def moves(
    known: Mapping[str, IndexedFile],
    gone: Iterable[str],
    added: Iterable[File],
    digest_of: DigestOf,
) -> tuple[Move, ...]:
    """Pairs of a path that is gone and a file that appeared, of one content."""
    old: dict[bytes, list[str]] = defaultdict(list)
    for path in gone:
        old[known[path].digest].append(path)
    sizes = {known[path].size for paths in old.values() for path in paths}
    new: dict[bytes, list[File]] = defaultdict(list)
    for file in added:
        # Another size is another content: a new vault is not hashed for nothing.
        digest = digest_of(file) if file.size in sizes else None
        if isinstance(digest, bytes) and digest in old:
            new[digest].append(file)
    pairs = [pair for digest, files in new.items() for pair in matched(old[digest], files)]
    return tuple(sorted(pairs, key=lambda move: move[1].path))


def matched(old: list[str], new: list[File]) -> list[Move]:
    """Copies of one content: first those that kept their name, then in the order of paths."""
    left, pairs = list(old), list[Move]()
    for file in new:
        same = next((path for path in left if name_of(path) == name_of(file.path)), None)
        if same is not None:
            left.remove(same)
            pairs.append((same, file))
    taken = {file.path for _, file in pairs}
    rest = (file for file in new if file.path not in taken)
    return pairs + list(zip(left, rest, strict=False))


def name_of(path: str) -> str:
    return path.rpartition("/")[2]
