"""Chunk: a note is cut twice, into sections that are shown and passages that are searched.

Sections (parents) aim at 1,500 to 2,000 characters: small sibling headings share one, a long one is
cut between blocks. Passages (children) aim at 500 and never cross a section. Both lie end to end:
every character of the body is in exactly one of each, and blank lines go with what is before them.
A passage that several short sections share has the headings of all of them.

Both are cut by one rule with different numbers:

    1  Blocks are divided into units, only as far as their size requires: a list at its items, a
       table at its rows, a quotation at its blocks, prose at its sentences, code at blank lines
       and then at lines. What is still too long is cut at a space, a very long word anywhere.
    2  Every place between two units has a price (before a heading it is free, inside a sentence
       it is high), and every group of units has one for being too short or too long.
    3  The grouping with the lowest total wins (dynamic programming), so the result does not
       depend on where one starts.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, count, pairwise
from math import sqrt
from pathlib import PurePosixPath
from typing import NamedTuple

from ragvault.config import settings as config
from ragvault.text.readable import property_line, readable_properties
from ragvault.text.spans import Lines, cut
from ragvault.types import Block, Held, Kind, Note, Passage, PassageText, Section

_KINDS: tuple[Kind, ...] = ("prose", "list", "table", "code", "callout")  # ties go to the first
_CODE_STAYS_WHOLE = 4  # times a section's size: a listing longer than that is a file


def chunk(note: Note, settings: config.Chunk) -> tuple[list[Section], list[Passage]]:
    """The sections and the passages of a note, both in order.

    A note without text has no section and one passage, so that it can be found.
    """
    visible = _Visible(note.text, note.excluded)
    if visible.letters(note.body, len(note.text)) is None:
        return [], [_of_properties(note, settings.child_max)]
    cutter = _Cutter(note, visible, settings)
    sections = list(cutter.sections())
    return sections, [passage for section in sections for passage in cutter.passages(section)]


def embedding_text(passage: Passage | PassageText) -> str:
    """What is embedded for a passage: its headings and its text.

    Never the file's name, so that a renamed note embeds nothing, unless the note has no text.
    """
    return "\n\n".join(filter(None, [" > ".join(passage.headings), passage.text.strip()]))


def _of_properties(note: Note, most: int) -> Passage:
    """The passage of a note without text: its names and its properties, each on a line."""
    names = (note.title, PurePosixPath(note.path).stem, *note.aliases)
    others = (
        property_line(name, values)
        for name, values in readable_properties(note.properties)
        if values and name.casefold() not in _NAMES
    )
    lines: dict[str, str] = {}
    for line in (*names, *others):
        lines.setdefault(line.casefold(), " ".join(line.split()))
    front = note.text[: note.body].rstrip()
    return Passage(
        ordinal=0,
        section=0,
        headings=(),
        kind="properties",
        lang=frozenset(),
        has=frozenset(),
        start=0,
        end=0,
        lines=(1, 1 + front.count("\n")),
        columns=(1, max(1, len(front.rpartition("\n")[2]))),
        text="\n".join(filter(None, lines.values()))[:most].rstrip(),
    )


_NAMES = ("title", "alias", "aliases")  # properties that are names of the note


class _Cutter:
    """One note being cut."""

    def __init__(self, note: Note, visible: _Visible, settings: config.Chunk) -> None:
        self.note, self.visible, self.settings = note, visible, settings
        self.ordinals = count()  # of passages
        self.rule = _passage_rule(settings)
        self.lines = Lines(note.text, note.layout.places)
        self.heading_starts = [heading.start for heading in note.headings]
        self.block_starts = [block.start for block in note.layout.blocks]
        self.held_starts = [held.start for held in note.layout.held]
        self.held_ends = [held.end for held in note.layout.held]

    def sections(self) -> Iterator[Section]:
        s = self.settings
        soft = s.parent_max * 9 // 10  # leaves room for the heading
        code = s.parent_max * _CODE_STAYS_WHOLE
        found = _units(self.note.layout.blocks, self.visible, soft=soft, hard=soft, code=code)
        for ordinal, (i, j) in enumerate(_grouped(found, _section_rule(s))):
            start, end = found[i].start, found[j - 1].end
            headings = _common(self._paths(start, end))
            lines = self.lines.span(*self._letters(start, end))
            yield Section(ordinal, headings, start, end, lines)

    def passages(self, section: Section) -> Iterator[Passage]:
        s = self.settings
        blocks = list(self._blocks_of(section))
        found = _units(
            blocks, self.visible, soft=s.child_target, hard=s.child_max, code=s.child_max
        )
        before = ""
        for i, j in _grouped(found, self.rule):
            start, end = found[i].start, found[j - 1].end
            own = cut(self.note.text, start, end, self.note.excluded)
            overlap = _tail(before, s.overlap)
            yield self._passage(section, start, end, overlap + own, len(overlap), blocks)
            before = own

    def _passage(
        self, section: Section, start: int, end: int, text: str, overlap: int, blocks: list[Block]
    ) -> Passage:
        paths = self._paths(start, end)
        headings = _common(paths)
        held = self._held(start, end)
        first, last = self._letters(start, end)
        return Passage(
            ordinal=next(self.ordinals),
            section=section.ordinal,
            headings=headings,
            kind=_kind(blocks, start, end),
            lang=frozenset(each.lang for each in held if each.lang),
            has=self._marks(start, end) | {each.part for each in held},
            start=start,
            end=end,
            lines=self.lines.span(first, last),
            columns=(self.lines.column(first), self.lines.column(last)),
            text=text,
            overlap=overlap,
            subheadings=_below(headings, paths),
        )

    def _blocks_of(self, section: Section) -> Iterator[Block]:
        """The blocks of a section; one that it shares with a neighbour is cut to its own part."""
        # Blocks lie end to end, so those of a section are neighbours.
        first = max(bisect_right(self.block_starts, section.start) - 1, 0)
        for block in self.note.layout.blocks[first : bisect_left(self.block_starts, section.end)]:
            start, end = max(block.start, section.start), min(block.end, section.end)
            if (start, end) == (block.start, block.end):
                yield block
            elif start < end:
                i, j = bisect_right(block.cuts, start), bisect_left(block.cuts, end)
                yield block._replace(start=start, end=end, cuts=block.cuts[i:j])

    def _letters(self, start: int, end: int) -> tuple[int, int]:
        """The offsets of the first and the last visible letter of a span."""
        first, last = self.visible.letters(start, end) or (start, end)
        return first, last - 1

    def _paths(self, start: int, end: int) -> list[tuple[str, ...]]:
        """The heading paths of a span, in order; () for text before the first heading."""
        first, last = self._letters(start, end)
        i, j = bisect_right(self.heading_starts, first), bisect_right(self.heading_starts, last)
        paths = [heading.path for heading in self.note.headings[max(i - 1, 0) : j]]
        return paths if i else [(), *paths]

    def _marks(self, start: int, end: int) -> frozenset[str]:
        marks = self.note.layout.marks
        i, j = bisect_left(marks, (start, "")), bisect_left(marks, (end, ""))
        return frozenset(mark for _, mark in marks[i:j])

    def _held(self, start: int, end: int) -> tuple[Held, ...]:
        """The code blocks and tables that overlap a span."""
        i, j = bisect_right(self.held_ends, start), bisect_left(self.held_starts, end)
        return self.note.layout.held[i:j]


def _section_rule(settings: config.Chunk) -> _GroupRule:
    """Full sections. One very short section is better than two that are a little short, and one
    that ends inside the text of a heading should not have begun before it."""
    return _GroupRule(
        most=settings.parent_max,
        least=settings.parent_min,
        short=3.0,
        short_closed=1.0,
        mixed=1.5,
        cut_weight=20.0,
        glue=True,
    )


def _passage_rule(settings: config.Chunk) -> _GroupRule:
    """Passages near the target, each about one heading where that can be."""
    return _GroupRule(
        most=settings.child_max,
        least=settings.child_min,
        short=2.0,
        short_closed=2.0,
        target=settings.child_target,
        crossing=0.3,
    )


def _kind(blocks: Sequence[Block], start: int, end: int) -> Kind:
    """The kind of block that most of a span is."""
    sizes = dict.fromkeys(_KINDS, 0)
    for kind, first, last, *_ in blocks:
        if first >= end:
            break
        if last > start and kind != "heading":
            sizes[kind] += min(last, end) - max(first, start)
    return max(sizes, key=sizes.__getitem__)


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


# --- Units: a block is divided only as far as its size requires ---

# The price of a cut, by what follows it.
BLOCK, ITEM, SENTENCE, LINE, WORD, AFTER_HEADING = 0.1, 0.3, 0.6, 1.0, 4.0, 6.0

_SENTENCE = re.compile(r"(?<=[.!?…])[\"'”’»)\]*_]*\s+(?=[^\sa-zà-ÿ])|(?<=[。！？])(?=\S)")
_BLANK_LINE = re.compile(r"\n[ \t]*\n+")
_LINE = re.compile(r"\n")
_WORD_START = re.compile(r"(?<=\s)(?=\S)")
_GRAIN = 16  # units below a sixteenth of the target are joined: a thousand of them stay cheap

_Cut = tuple[int, float]  # where, and at what price


class _Visible:
    """Counts the characters of a text that are indexed, and finds the first and last of them."""

    def __init__(self, text: str, excluded: Sequence[tuple[int, int]]) -> None:
        self.text = text
        self.excluded = excluded
        self._starts = [start for start, _ in excluded]
        self._hidden = [0, *accumulate(end - start for start, end in excluded)]

    def before(self, offset: int) -> int:
        """How many indexed characters come before an offset."""
        if not self.excluded:
            return offset
        i = bisect_left(self._starts, offset)
        inside = max(0, self.excluded[i - 1][1] - offset) if i else 0
        return offset - self._hidden[i] + inside

    def letters(self, start: int, end: int) -> tuple[int, int] | None:
        """Where the first visible letter of a span begins and the last one ends, if any."""
        if not self.excluded:
            return self._edges(start, end)
        found = [edges for span in self._shown(start, end) if (edges := self._edges(*span))]
        return (found[0][0], found[-1][1]) if found else None

    def _shown(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        i = max(0, bisect_left(self._starts, start) - 1)
        for hidden, until in self.excluded[i : bisect_left(self._starts, end)]:
            if hidden > start:
                yield start, hidden
            start = max(start, until)
        if start < end:
            yield start, end

    def _edges(self, start: int, end: int) -> tuple[int, int] | None:
        span = self.text[start:end]
        left = len(span) - len(span.lstrip())
        return (start + left, start + len(span.rstrip())) if left < len(span) else None


def _units(
    blocks: Iterable[Block], visible: _Visible, *, soft: int, hard: int, code: int
) -> list[_Unit]:
    """The blocks as units: whole up to `soft` characters, code up to `code`, none over `hard`."""
    found: list[_Unit] = []
    grain = soft // _GRAIN
    room, until = 0, 0  # up to where small parts join the last unit, and how far they reach by now
    after_heading = False
    for block in blocks:
        whole = code if block.kind == "code" else soft
        # The line under a heading belongs to it.
        price = AFTER_HEADING if after_heading else 0.0 if block.level else BLOCK
        cuts = [(block.start, price), *_cuts(block, visible, whole, hard), (block.end, 0.0)]
        for (start, cost), (end, _) in pairwise(cuts):
            level = block.level if start == block.start else 0
            if end < room and not level:
                until = end  # they are measured together, however many there are
                continue
            if until:
                found[-1], until = _grown(found[-1], until, visible), 0
            _append(found, _unit(start, end, cost, level, visible, found), grain)
            last = found[-1]
            room = 0 if last.heading or last.first == last.last else last.start + grain
        after_heading = block.level > 0
    if until:
        found[-1] = _grown(found[-1], until, visible)
    return found


def _grown(unit: _Unit, end: int, visible: _Visible) -> _Unit:
    """A unit with a letter, and what follows it up to `end`."""
    letters = visible.letters(unit.start, end)
    return unit if letters is None else unit._replace(end=end, last=visible.before(letters[1]))


def _append(found: list[_Unit], unit: _Unit, grain: int) -> None:
    """Add a unit; one smaller than `grain` joins the small one before it."""
    last = found[-1] if found else None
    if last and len(found) == 1 and last.first == last.last:
        # Nothing visible has come yet: what there is belongs to the first unit that has a letter.
        found[-1] = unit._replace(start=last.start, price=last.price)
    elif last and not unit.heading and not last.heading and unit.last - last.first < grain:
        found[-1] = last._replace(end=unit.end, last=unit.last)
    else:
        found.append(unit)


def _unit(
    start: int, end: int, price: float, heading: int, visible: _Visible, before: list[_Unit]
) -> _Unit:
    """A unit; one without a visible letter takes no room, wherever it is put."""
    letters = visible.letters(start, end)
    if letters is None:
        at = before[-1].last if before else visible.before(end)
        return _Unit(start, end, at, at, price, heading)
    first, last = letters
    return _Unit(start, end, visible.before(first), visible.before(last), price, heading)


def _cuts(block: Block, visible: _Visible, soft: int, hard: int) -> list[_Cut]:
    """Where a block is cut, in order: by its own parts if it is large, further if they are."""
    if block.end - block.start <= soft or _size(block.start, block.end, visible) <= soft:
        return []
    rules = _CODE if block.kind == "code" else _PROSE
    cuts: list[_Cut] = []
    for start, end in _parts(block):
        if start > block.start:
            cuts.append((start, ITEM))
        if end - start > soft and _size(start, end, visible) > soft:
            cuts += sorted(_by_rules(start, end, visible, hard, rules))
    return cuts


def _parts(block: Block) -> list[tuple[int, int]]:
    inner = block.cuts[1:] if block.kind == "table" else block.cuts  # a header keeps its first row
    return list(pairwise([block.start, *inner, block.end]))


_CutRule = tuple[re.Pattern[str], float]
_PROSE: tuple[_CutRule, ...] = ((_SENTENCE, SENTENCE), (_LINE, LINE))
_CODE: tuple[_CutRule, ...] = ((_BLANK_LINE, SENTENCE), (_LINE, LINE))


def _by_rules(
    start: int, end: int, visible: _Visible, hard: int, rules: Sequence[_CutRule]
) -> list[_Cut]:
    """Cut at the first rule; a part that is then still over `hard` at the next, or at spaces."""
    if not rules:
        return list(_at_spaces(start, end, visible.text, hard))
    (pattern, price), *rest = rules
    places = [found.end() for found in pattern.finditer(visible.text, start, end)]
    if places and places[-1] == end:
        places.pop()
    cuts = [(at, price) for at in places]
    for left, right in pairwise([start, *places, end]):
        if right - left > hard and _size(left, right, visible) > hard:
            cuts += _by_rules(left, right, visible, hard, rest)
    return cuts


def _at_spaces(start: int, end: int, text: str, hard: int) -> Iterator[_Cut]:
    """The last space that keeps each part within `hard`; without any, the place itself."""
    while end - start > hard:
        spaces = [m.end() for m in _WORD_START.finditer(text, start, start + hard + 1)]
        start = spaces[-1] if spaces and spaces[-1] > start else start + hard
        if start < end:
            yield start, WORD


def _size(start: int, end: int, visible: _Visible) -> int:
    """How many visible characters a span has from its first letter to its last."""
    letters = visible.letters(start, end)
    return visible.before(letters[1]) - visible.before(letters[0]) if letters else 0


# --- The cheapest way to group units ---

INFINITE = float("inf")
MOST_UNITS = 128  # in one group: so many short headings, nothing else has as many
EMPTY = 1000.0  # the price of a group without a letter: chosen only where nothing else is possible


class _Unit(NamedTuple):
    """A span that stays whole. `price` is that of a cut just before it, `heading` its level if it
    is a heading. `first` and `last` count the visible characters before its first letter and up to
    its last, so the size of a group is the last unit's `last` minus the first unit's `first`."""

    start: int
    end: int
    first: int
    last: int
    price: float
    heading: int = 0


@dataclass(frozen=True, slots=True)
class _GroupRule:
    """The wanted size of a group of units, and the price of every other size.

    A group is closed if a heading or the end of the note follows. It could not have been longer, so
    being short costs `short_closed` there and `short` elsewhere.
    """

    most: int  # characters, never more
    least: int  # fewer is short
    short: float
    short_closed: float
    target: int = 0  # the best size; others cost the square of the difference. 0 means none
    crossing: float = 0.0  # the price of every heading after the first unit
    mixed: float = 0.0  # the price of ending inside the text of a heading it contains
    cut_weight: float = 1.0  # the weight of the prices of cuts
    glue: bool = False  # a heading stays with what follows, even if that is too long


def _grouped(units: Sequence[_Unit], rule: _GroupRule) -> list[tuple[int, int]]:
    """Groups [i, j) of units at the lowest price; a group over `most` is a single unit."""
    firsts = [unit.first for unit in units]
    headings = [unit.heading > 0 for unit in units]
    best: list[float] = []  # the price of all groups before each unit, and of the cut there
    price = 0.0
    came_from: list[int] = [0]
    for j, unit in enumerate(units, 1):
        best.append(price + unit.price * rule.cut_weight if best else 0.0)
        closed = j == len(units) or headings[j]
        price, start = _cheapest(firsts, headings, best, unit.last, closed, rule)
        came_from.append(start)
    groups = []
    j = len(units)
    while j > 0:
        groups.append((came_from[j], j))
        j = came_from[j]
    return groups[::-1]


def _cheapest(
    firsts: Sequence[int],
    headings: Sequence[bool],
    best: Sequence[float],
    last: int,
    closed: bool,
    rule: _GroupRule,
) -> tuple[float, int]:
    """The price of the cheapest group that ends with the last of `best`, and where it begins."""
    # The innermost loop of reading a vault: names are local, and nothing is called.
    end = len(best) - 1
    least, target, stop = rule.least, rule.target, float(rule.most)
    short = rule.short_closed if closed else rule.short
    crossing, mixed = rule.crossing, 0.0 if closed else rule.mixed
    found, start, inside = INFINITE, end, 0  # headings after the first unit
    for i in range(end, max(end - MOST_UNITS, -1), -1):
        size = last - firsts[i]
        if size > stop and i < end:
            alone = inside - headings[end] + headings[i] == end - i  # headings, and one unit
            if not (rule.glue and alone):
                break
        price = best[i]
        if price < found:
            if size < least:
                price += short + 0.2 * (least - size) / least if size > 0 else EMPTY
            if target:
                miss = (size - target) / target
                price += miss * miss
            if inside:
                price += inside * crossing + mixed
            if price < found:
                found, start = price, i
                if target:  # larger groups cost even more
                    stop = min(stop, target + target * sqrt(found))
        inside += headings[i]
    return found, start
