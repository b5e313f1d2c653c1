"""Chunk: a note is cut twice, into sections that are shown and passages that are searched.

Sections (parents) aim at 1,500 to 2,000 characters: small sibling headings share one, a long one
is cut between blocks. Passages (children) aim at 500 and never cross a section. Both lie end to
end: every character of the body is in exactly one of each, blank lines with what is before them.
A passage that several short sections share keeps the headings of all of them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ragvault.config import settings as config
from ragvault.notes.parse import Lines
from ragvault.notes.pieces import Visible, pieces
from ragvault.notes.segment import Piece, Wish, segment
from ragvault.text.spans import cut
from ragvault.types import Block, Held, Kind, Note, Passage, PassageText, Section

_KINDS: tuple[Kind, ...] = ("prose", "list", "table", "code", "callout")  # ties go to the first
_CODE_STAYS_WHOLE = 4  # times a section's size: a listing longer than that is a file


def chunk(note: Note, settings: config.Chunk) -> tuple[list[Section], list[Passage]]:
    """The sections and the passages of a note, both in order; none for a note without text."""
    visible = Visible(note.text, note.excluded)
    if visible.letters(note.body, len(note.text)) is None:
        return [], []
    cutter = _Cutter(note, visible, settings)
    sections = list(cutter.sections())
    passages = [passage for section in sections for passage in cutter.passages(section)]
    return sections, [replace(passage, ordinal=i) for i, passage in enumerate(passages)]


def embedding_text(passage: Passage | PassageText) -> str:
    """What is embedded for a passage: its headings and its text.

    Never the file's name: a renamed note embeds nothing.
    """
    return "\n\n".join(filter(None, [" > ".join(passage.headings), passage.text.strip()]))


class _Cutter:
    """One note being cut."""

    def __init__(self, note: Note, visible: Visible, settings: config.Chunk) -> None:
        self.note, self.visible, self.settings = note, visible, settings
        self.lines = Lines(note.text)
        self.heading_starts = [heading.start for heading in note.headings]
        self.held_starts = [held.start for held in note.layout.held]
        self.held_ends = [held.end for held in note.layout.held]

    def sections(self) -> Iterator[Section]:
        s = self.settings
        soft = s.parent_max * 9 // 10  # leaves room for the heading
        code = s.parent_max * _CODE_STAYS_WHOLE
        found = pieces(self.note.layout.blocks, self.visible, soft=soft, hard=soft, code=code)
        for ordinal, (start, end) in enumerate(_stretches(found, _section_wish(s))):
            headings = _common(self._paths(start, end))
            yield Section(ordinal, headings, start, end, self._lines(start, end))

    def passages(self, section: Section) -> Iterator[Passage]:
        s = self.settings
        blocks = list(_clipped(self.note.layout.blocks, section))
        found = pieces(
            blocks, self.visible, soft=s.child_target, hard=s.child_max, code=s.child_max
        )
        before = ""
        for start, end in _stretches(found, _passage_wish(s)):
            own = cut(self.note.text, start, end, self.note.excluded)
            overlap = _tail(before, s.overlap)
            yield self._chunk(section, start, end, overlap + own, len(overlap), blocks)
            before = own

    def _chunk(
        self, section: Section, start: int, end: int, text: str, overlap: int, blocks: list[Block]
    ) -> Passage:
        paths = self._paths(start, end)
        headings = _common(paths)
        held = self._held(start, end)
        first, last = self._letters(start, end)
        return Passage(
            ordinal=0,
            section=section.ordinal,
            headings=headings,
            kind=_kind(blocks, start, end),
            lang=frozenset(each.lang for each in held if each.lang),
            has=self._marks(start, end) | {each.part for each in held},
            start=start,
            end=end,
            lines=(self.lines.of(first), self.lines.of(last)),
            columns=(self.lines.column(first), self.lines.column(last)),
            text=text,
            overlap=overlap,
            subheadings=_below(headings, paths),
        )

    def _letters(self, start: int, end: int) -> tuple[int, int]:
        """Where the first and the last visible letter of a stretch stand."""
        first, last = self.visible.letters(start, end) or (start, end)
        return first, last - 1

    def _lines(self, start: int, end: int) -> tuple[int, int]:
        first, last = self._letters(start, end)
        return self.lines.of(first), self.lines.of(last)

    def _paths(self, start: int, end: int) -> list[tuple[str, ...]]:
        """The path of the heading that each part of a stretch stands under; () before the first."""
        first, last = self._letters(start, end)
        i, j = bisect_right(self.heading_starts, first), bisect_right(self.heading_starts, last)
        paths = [heading.path for heading in self.note.headings[max(i - 1, 0) : j]]
        return paths if i else [(), *paths]

    def _marks(self, start: int, end: int) -> frozenset[str]:
        marks = self.note.layout.marks
        i, j = bisect_left(marks, (start, "")), bisect_left(marks, (end, ""))
        return frozenset(mark for _, mark in marks[i:j])

    def _held(self, start: int, end: int) -> tuple[Held, ...]:
        """The code and the tables that a stretch has a part of."""
        i, j = bisect_right(self.held_ends, start), bisect_left(self.held_starts, end)
        return self.note.layout.held[i:j]


def _section_wish(settings: config.Chunk) -> Wish:
    """Full sections. Short is forgiven where a heading ends, since it gives no more; one very short
    section is better than two that are both a little short, and one that ends inside the text of
    a heading should not have begun before it."""
    return Wish(
        most=settings.parent_max,
        least=settings.parent_min,
        short=3.0,
        short_closed=1.0,
        mixed=1.5,
        dear=20.0,
        glue=True,
    )


def _passage_wish(settings: config.Chunk) -> Wish:
    """Passages near the target, each about one heading where that can be."""
    return Wish(
        most=settings.child_max,
        least=settings.child_min,
        short=2.0,
        short_closed=2.0,
        target=settings.child_target,
        crossing=0.3,
    )


def _stretches(found: Sequence[Piece], wish: Wish) -> Iterator[tuple[int, int]]:
    for i, j in segment(found, wish):
        yield found[i].start, found[j - 1].end


def _clipped(blocks: Sequence[Block], section: Section) -> Iterator[Block]:
    """The blocks of a section, those it shares with a neighbour cut to its own part."""
    for block in blocks:
        start, end = max(block.start, section.start), min(block.end, section.end)
        if (start, end) == (block.start, block.end):
            yield block
        elif start < end:
            cuts = tuple(c for c in block.cuts if start < c < end)
            yield replace(block, start=start, end=end, cuts=cuts)


def _kind(blocks: Sequence[Block], start: int, end: int) -> Kind:
    """What most of a stretch is."""
    sizes = dict.fromkeys(_KINDS, 0)
    for block in blocks:
        size = min(block.end, end) - max(block.start, start)
        if size > 0 and block.kind != "heading":
            sizes[block.kind] += size
    return max(_KINDS, key=lambda kind: sizes[kind])


def _common(paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    shortest = min(paths, key=len, default=())
    for i, name in enumerate(shortest):
        if any(path[i] != name for path in paths):
            return shortest[:i]
    return shortest


def _below(path: tuple[str, ...], paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The headings that these paths have below their common one, each once."""
    return tuple(dict.fromkeys(name for each in paths for name in each[len(path) :]))


def _tail(text: str, size: int) -> str:
    """The last `size` characters of a text, from the beginning of a word where there is one."""
    if size <= 0 or not text:
        return ""
    tail = text[-size:]
    words = tail.split(None, 1)
    inside_word = len(text) > size and not text[-size - 1].isspace() and not tail[:1].isspace()
    return words[1] if inside_word and len(words) > 1 else tail
