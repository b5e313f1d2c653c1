"""Notes for the tests of the store: small, cut by line, and looked up by a plain rule."""

from __future__ import annotations

import os
import posixpath
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

from ragvault.store.links import file_stem, link_key
from ragvault.store.notes import note_rows
from ragvault.types import (
    Date,
    Dates,
    File,
    Heading,
    Link,
    Note,
    Passage,
    PassageText,
    Section,
    Target,
)

NOBODY = 65534
NONE: frozenset[str] = frozenset()


def digest(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=16).digest()


def link(target: str, *anchor: str, start: int = 0) -> Link:
    return Link("link", "wiki", target, anchor, target, 1, start)


def note(path: str, text: str = "one\ntwo", *links: Link, **fields) -> Note:
    """A note whose lines that begin with # are its headings."""
    headings, at = [], 0
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("#"):
            headings.append(Heading(line[1:], 1, number, at, (line[1:],)))
        at += len(line) + 1
    return Note(path, text, links=links, headings=tuple(headings), **fields)


def cut_by_line(note: Note) -> dict:
    """Sections of two lines, passages of one, and their hashes: the arguments of `note_rows`."""
    passages, sections, at = [], [], 0
    lines = note.text.split("\n")
    for i, line in enumerate(lines):
        span = (at, at + len(line))
        passage = Passage(i, i // 2, (), "prose", NONE, NONE, *span, (i + 1,) * 2, (1, 1), line)
        passages.append(passage)
        at = span[1] + 1
    for i in range(0, len(lines), 2):
        pair = passages[i : i + 2]
        span = (pair[0].start, pair[-1].end)
        sections.append(Section(i // 2, (note.title,), *span, (i + 1, i + len(pair))))
    hashes = [digest(passage.text) for passage in passages]
    return {"sections": sections, "passages": passages, "hashes": hashes}


def file(path: str, mtime_ns: int = 1) -> File:
    return File(path, path, 10, mtime_ns)


def dates(at: float = 1.0) -> Dates:
    return Dates(Date(at, "mtime"), at, at + 1)


def put(catalogue, note: Note, *, mtime_ns: int = 1, at: float = 1.0, **changes) -> int:
    parts = {"dates": dates(at), "recipe": "r1", **cut_by_line(note), **changes}
    cut = (parts.pop(name) for name in ("sections", "passages", "hashes"))
    read = {"file": file(note.path, mtime_ns), "digest": digest(note.text), "read_ns": 7}
    return catalogue.put(note_rows(note, *cut, **read), **parts)


def move(catalogue, old: str, new: str) -> int:
    """Give a note another path and nothing else."""
    return put(catalogue, replace(catalogue.note(old), path=new), was=old)


def passages(catalogue, path: str) -> list[PassageText]:
    """The passages of a note, in order."""
    ids = catalogue.passage_ids_of(catalogue.note_id(path))
    found = {passage.id: passage for passage in catalogue.passage_texts(ids)}
    return [found[passage] for passage in ids]


def look_up(catalogue) -> int:
    """Look up every link that waits, by a plain rule; returns how many those were.

    The name in the same folder, else the shortest path, else an alias, else the index of a folder
    of that name; a heading by its text.
    """
    notes = [(row.path, file_stem(row.path), row.aliases) for row in catalogue.names()]
    waiting = list(catalogue.links_to_resolve())
    catalogue.set_targets(
        (link_id, meaning(catalogue, notes, path, link)) for link_id, path, link in waiting
    )
    return len(waiting)


def meaning(catalogue, notes, source: str, link: Link) -> Target:
    if not link.target:
        return at_anchor(catalogue, source, "self", link)
    key = link_key(link.target)
    named = sorted((path for path, stem, _ in notes if link_key(stem) == key), key=len)
    here = [path for path in named if folder(path) == folder(source)]
    also = [path for path, _, aliases in notes if key in map(link_key, aliases)]
    inside = posixpath.normpath(f"{folder(source)}/{link.target}/index.md".lstrip("/"))
    index = [path for path, _, _ in notes if path == inside]
    for via, found in (("folder", here), ("name", named), ("alias", also), ("path", index)):
        if found:
            return at_anchor(catalogue, found[0], via, link, tuple(found[1:]))
    return Target("unresolved")


def at_anchor(catalogue, path, via, link, others=()) -> Target:
    status = "ambiguous" if others else "resolved"
    if not link.anchor:
        return Target(status, path, via, others=others)
    starts = [h.start for h in catalogue.anchors(path)[0] if h.text == link.anchor[-1]]
    start = starts[0] if starts else None
    return Target(status, path, via, start, bool(starts), others)


def folder(path: str) -> str:
    return path.rpartition("/")[0]


@contextmanager
def unprivileged():
    """A folder of a user to whom rights apply; root, to whom they do not, becomes nobody."""
    place = Path(tempfile.mkdtemp())
    root = os.geteuid() == 0
    try:
        if root:
            os.chown(place, NOBODY, NOBODY)
            os.seteuid(NOBODY)
        yield place
    finally:
        if root:
            os.seteuid(0)
        for inside in [place, *(path for path in place.rglob("*") if path.is_dir())]:
            inside.chmod(0o700)
        shutil.rmtree(place)
