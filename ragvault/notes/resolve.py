"""What a link means in this vault: Obsidian's order, and nothing guessed in silence.

    1  the exact path in the vault: `[[Note]]` is `Note.md` at the root
    2  a note in the folder of the one that links
    3  the shortest path of that name; two equally short ones are ambiguous
    4  an alias, which Obsidian does not follow and people mean: a weaker kind, labelled

Markdown links are looked up beside their note first, as every Markdown tool does. Names are
compared without case and in NFC.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Protocol

from ragvault.notes.links import NOTE_SUFFIX
from ragvault.text.markup import page_names
from ragvault.types import Heading, Link, Target, Via

Anchors = tuple[Sequence[Heading], Mapping[str, int]]
_FOLDER_NOTES = ("index", "readme", "_index")  # what a link to a folder opens, in this order
_MARKUP = re.compile(r"[!\"#$%&()*+,.:;<=>?@^`{|}~/\[\]\\_]+")
_NOT_SLUG = re.compile(r"[^\w\- ]")


class NamedNote(Protocol):
    """Anything with a path and aliases; a Note is one."""

    @property
    def path(self) -> str: ...
    @property
    def aliases(self) -> Sequence[str]: ...


class Resolver:
    """Knows the names of a vault; asks `anchors` for the headings and block ids of one note."""

    def __init__(
        self, notes: Iterable[NamedNote], anchors: Callable[[str], Anchors] | None = None
    ) -> None:
        self._paths: dict[str, list[str]] = defaultdict(list)
        self._names: dict[str, list[str]] = defaultdict(list)
        self._aliases: dict[str, list[str]] = defaultdict(list)
        self._folders: set[str] = set()
        known: dict[str, NamedNote] = {}
        for note in sorted(notes, key=lambda note: note.path):
            self._add(note)
            known[note.path] = note
        read = anchors or (lambda path: _anchors_of(known[path]))
        self._places_in = lru_cache(maxsize=1000)(lambda path: Places(*read(path)))

    def _add(self, note: NamedNote) -> None:
        names = _bare(note.path)
        for bare in names:
            self._paths[bare].append(note.path)
            self._folders.add(bare.rpartition("/")[0])
        for last in {bare.rpartition("/")[2] for bare in names}:
            self._names[last].append(note.path)
        for alias in note.aliases:
            self._aliases[name_key(alias)].append(note.path)

    def resolve(self, source: str, link: Link) -> Target:
        """The note, and the place in it, that a link of `source` means."""
        if not link.target:
            return self._placed(Target("resolved", source, "self"), link)
        return self._placed(self._note(source, link), link)

    def _note(self, source: str, link: Link) -> Target:
        name = name_key(NOTE_SUFFIX.sub("", link.target))
        folder = name_key(source.rpartition("/")[0])
        for place, via in _places(name, folder, link.form == "markdown"):
            found = self._at(place, link.target)
            if found:
                return Target("resolved", found, via)
        found_by_name = _best(self._named(name.strip("/")), "name")
        if found_by_name or link.form == "markdown":
            return found_by_name or Target("unresolved")
        by_alias = sorted(set(self._aliases.get(name, ())))
        return _best(by_alias, "alias") or Target("unresolved")

    def _at(self, place: str, spelled: str) -> str | None:
        """The note at a path; if two differ only in case, the one spelled that way."""
        paths = self._paths.get(place)
        if paths:
            last = NOTE_SUFFIX.sub("", spelled).rpartition("/")[2]
            exact = [p for p in paths if NOTE_SUFFIX.sub("", p).rpartition("/")[2] == last]
            return (exact or paths)[0]
        if place in self._folders:
            inside = (f"{place}/{name}".lstrip("/") for name in _FOLDER_NOTES)
            return next((self._paths[path][0] for path in inside if path in self._paths), None)
        return None

    def _named(self, name: str) -> list[str]:
        """The notes of that name; `a/b` is any note `b` in a folder `a`."""
        paths = self._names.get(name.rpartition("/")[2], [])
        if "/" not in name:
            return paths
        return [p for p in paths if any(f"/{bare}".endswith("/" + name) for bare in _bare(p))]

    def _placed(self, target: Target, link: Link) -> Target:
        if not link.anchor or target.path is None:
            return target
        start = self._places_in(target.path).find(link.anchor)
        return Target(
            target.status, target.path, target.via, start, start is not None, target.others
        )


def _bare(path: str) -> list[str]:
    """The path of a note as links spell it."""
    folder, slash, _ = path.rpartition("/")
    return [name_key(folder + slash + name) for name in page_names(NOTE_SUFFIX.sub("", path))]


def name_key(name: str) -> str:
    """Names compare without case, in NFC."""
    return unicodedata.normalize("NFC", name).casefold()


class Places:
    """What anchors name in one note: looked up, as a note may have 10,000 links to its headings."""

    def __init__(self, headings: Sequence[Heading], blocks: Mapping[str, int]) -> None:
        self._headings, self._blocks = headings, blocks

    def find(self, anchor: Sequence[str]) -> int | None:
        """The offset an anchor names: a block id, a chain of headings, or a heading's slug."""
        last = anchor[-1]
        if last.startswith("^"):
            return self._blocks.get(last[1:].casefold())
        start = self._chains.get(tuple(map(heading_key, anchor)))
        return self._slugs.get(name_key(last)) if start is None and len(anchor) == 1 else start

    @cached_property
    def _chains(self) -> Mapping[tuple[str, ...], int]:
        """Every heading, after any of those above it in their order; the first of a name counts."""
        found: dict[tuple[str, ...], int] = {}
        for heading in self._headings:
            *above, last = map(heading_key, heading.path)
            for count in range(len(above) + 1):
                for names in combinations(above, count):
                    found.setdefault((*names, last), heading.start)
        return found

    @cached_property
    def _slugs(self) -> Mapping[str, int]:
        """GitHub's anchors: `## What's new?` is `#whats-new`, its second copy `#whats-new-1`."""
        seen: dict[str, int] = defaultdict(int)
        found: dict[str, int] = {}
        for heading in self._headings:
            slug = _NOT_SLUG.sub("", name_key(heading.text)).strip().replace(" ", "-")
            found.setdefault(f"{slug}-{seen[slug]}" if seen[slug] else slug, heading.start)
            seen[slug] += 1
        return found


def heading_key(text: str) -> str:
    """A heading as links spell it: no case, no markup, single spaces."""
    return " ".join(_MARKUP.sub(" ", name_key(text)).split())


def _places(name: str, folder: str, markdown: bool) -> list[tuple[str, Via]]:
    """The paths to try, in order, and what a hit there is called."""
    beside = posixpath.normpath(posixpath.join(folder, name)).lstrip("/")
    if name.startswith(("./", "../")):
        return [] if beside.startswith("..") else [(beside, "folder")]
    exact: tuple[str, Via] = (name.strip("/"), "path")
    if name.startswith("/"):
        return [exact]
    return [(beside, "folder"), exact] if markdown else [exact, (beside, "folder")]


def _best(paths: Sequence[str], via: Via) -> Target | None:
    """The shortest path; of two equally short ones the first, marked as ambiguous."""
    if not paths:
        return None
    ordered = sorted(paths, key=lambda path: (len(path), path))
    rivals = tuple(path for path in ordered[1:] if len(path) == len(ordered[0]))
    return Target("ambiguous" if rivals else "resolved", ordered[0], via, others=rivals)


def _anchors_of(note: NamedNote) -> Anchors:
    return getattr(note, "headings", ()), getattr(note, "blocks", {})
