"""Match: where in a result the query matches, for people and for citations.

    best_snippet   the part of a passage that shows best why it matched, as people read it
    find_matches   the snippet of each result, its line, the headings it stands under
    quoted         a result cut down to the headings under which it matches, for a prompt

The heading of a match is found in the text itself, so it is right for a note that has changed on
disk too. Short sections share a result: then its text has several headings.

If words matched, a snippet begins with the sentence that contains most of them, or with the first
one under a heading that contains more. If only the vector matched, it begins with the sentence
nearest to the query: by the vectors of the vault's own words, else by shared four-letter pieces.
A list item, a table row and a line of code count as sentences.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from ragvault.candidate import Candidate
from ragvault.plan import QueryPlan
from ragvault.ports import Corpus
from ragvault.rank.pipeline import Outcome, outcome_of
from ragvault.text.readable import Readable, plain_lines, readable
from ragvault.text.spans import Span, sentences
from ragvault.types import DERIVED_TEXT, PLAIN_TEXT

MIN_QUOTE = 200  # characters; a shorter quote says too little by itself
SURE = 0.5  # the confidence from which another passage of a section is quoted too


LENGTH = 240  # characters: three lines of a terminal
LINES = 3
FILLED = 40  # characters: more room than this is filled with the beginning of the next sentence
# Share of the query's pieces. Up to this it is chance, and the first sentence is shown.
ALIKE = 0.25
MORE = "\u2026"
_SPACE = re.compile(r"\s+")
_WORD = re.compile(r"\w+")


class Snippet(NamedTuple):
    """Up to three lines of text, the spans of it that matched, and where in the passage it is."""

    text: str
    marks: tuple[Span, ...]
    at: int  # offset in the passage: of the first match, else of the sentence that was chosen

    def below(self, line: str, marks: Sequence[Span]) -> Snippet:
        """The same under another line, which is not in the passage."""
        first = line if len(line) <= LENGTH else line[: LENGTH - 1] + MORE
        shown = [(a, b) for a, b in marks if b < LENGTH]
        body = "\n".join(self.text.split("\n")[: LINES - 1])
        lead = len(first) + 1
        kept = [(a + lead, b + lead) for a, b in self.marks if b <= len(body)]
        return Snippet(f"{first}\n{body}".rstrip(), (*shown, *kept), self.at)

    def line_in(self, passage: str) -> str:
        """The line of the passage in which the snippet begins."""
        before, after = passage[: self.at], passage[self.at :]
        return (before.rpartition("\n")[2] + after.partition("\n")[0]).strip()


class Unit(NamedTuple):
    """A sentence, an item, a row, a line of code or a heading; `line` is its line's number."""

    start: int
    end: int
    line: int
    heading: bool = False


class Match(NamedTuple):
    """How a result matches. `line` is the line of the file in which the snippet begins.

    `headings` are those that the match stands under. `in_title`: its note's title has a word of
    the query.
    """

    snippet: Snippet
    line: int
    headings: tuple[str, ...] = ()
    in_title: bool = False
    line_text: str = ""  # of that line


# A result, its passage as people read it, and what of that matched.
_Passage = tuple[Candidate, Readable, Sequence[Span]]


def find_matches(results: Sequence[Candidate], plan: QueryPlan, corpus: Corpus) -> dict[int, Match]:
    """The match of every result, by the id of its passage."""
    read = [_read(each, plan, corpus) for each in results]
    nearness = _nearness(read, plan, corpus)
    return {each[0].id: _match(each, nearness, plan, corpus) for each in read}


def _read(candidate: Candidate, plan: QueryPlan, corpus: Corpus) -> _Passage:
    passage, order = candidate.passage, corpus.config.links.order
    if passage.kind == "properties":
        shown = plain_lines(passage.text, order=order, paragraphs=False)
    elif passage.note.path.lower().endswith(PLAIN_TEXT):
        shown = plain_lines(passage.text, order=order)
    else:
        shown = readable(passage.text, code=passage.kind == "code", order=order)
    return candidate, shown, _marks(shown.text, plan, corpus)


def _marks(text: str, plan: QueryPlan, corpus: Corpus) -> Sequence[Span]:
    if plan.keyword_query is None or "keyword" not in corpus.facts.searchable:
        return []
    return corpus.words.highlight(text, plan.keyword_query)


def _match(
    found: _Passage, nearness: dict[int, Sequence[float]], plan: QueryPlan, corpus: Corpus
) -> Match:
    candidate, shown, marks = found
    query = plan.hypothesis or plan.text
    snippet = best_snippet(shown, marks, query, nearness.get(candidate.id))
    line, line_text = _line(candidate, snippet, corpus), snippet.line_in(candidate.passage.text)
    matched = {shown.text[a:b].casefold() for a, b in marks}
    if found_in := _property(candidate, matched, plan, corpus):
        snippet = snippet.below(*found_in)
        if of_property := _property_line(candidate, found_in[0], corpus):
            line, line_text = of_property
    return Match(
        snippet,
        line,
        _headings(candidate, shown, snippet.at),
        bool(_marks(candidate.note.title, plan, corpus)),
        line_text,
    )


def _property(
    candidate: Candidate, matched: set[str], plan: QueryPlan, corpus: Corpus
) -> tuple[str, Sequence[Span]] | None:
    """The property of its note with most words of the query that the passage does not have."""
    if plan.keyword_query is None or plan.listing:
        return None
    written = (" ".join(line.split()) for line in corpus.property_lines(candidate.note.id))
    lines = [plain_lines(line, order=corpus.config.links.order).text for line in written]
    if not lines or not _marks("\n".join(lines), plan, corpus):
        return None
    found = [(line, _marks(line, plan, corpus)) for line in lines]
    new = [len({line[a:b].casefold() for a, b in marks} - matched) for line, marks in found]
    return found[new.index(max(new))] if any(new) else None


def _property_line(candidate: Candidate, shown: str, corpus: Corpus) -> tuple[int, str] | None:
    """The line of the file in which a property is, and its text; None if it is not known."""
    if candidate.passage.origin != "index":
        return None
    name = shown.partition(":")[0]
    before = corpus.note_text(candidate.note.id).split("\n")[: candidate.passage.lines[1]]
    lines = ((number, line.strip()) for number, line in enumerate(before, 1))
    return next((each for each in lines if each[1].startswith(f"{name}:")), None)


def _nearness(
    read: Iterable[_Passage], plan: QueryPlan, corpus: Corpus
) -> dict[int, Sequence[float]]:
    """How near the sentences of passages are that share no word with the query, by vector."""
    if not plan.embed:
        return {}
    asked: dict[int, int] = {}
    texts: list[str] = []
    for candidate, shown, marks in read:
        if not marks:
            units = units_of(shown)
            asked[candidate.id] = len(units)
            texts += [shown.text[unit.start : unit.end] for unit in units]
    cosines = corpus.query_cosines(plan.embed, texts) if texts else None
    if cosines is None:
        return {}
    rest = iter(cosines)
    return {id_: [next(rest) for _ in range(count)] for id_, count in asked.items()}


def _line(candidate: Candidate, snippet: Snippet, corpus: Corpus) -> int:
    """The line of the file: counted in the passage; looked up in the note if lines are hidden.

    A comment that is not indexed has lines too, so the count alone would be too low.
    """
    passage = candidate.passage
    (first, last), text = passage.lines, passage.text
    lead = len(text) - len(text.lstrip())
    counted = min(first + text.count("\n", lead, snippet.at), last)
    if passage.note.path.lower().endswith(DERIVED_TEXT):
        return first
    made = passage.kind == "properties"  # its text is not written so in the file
    exact = not made and last - first == text.strip().count("\n")
    if exact or passage.origin != "index":  # of a changed note the index has another text
        return counted
    line = snippet.line_in(passage.text)
    lines = corpus.note_text(passage.note.id).split("\n")[first - 1 : last]
    near = [first + at for at, each in enumerate(lines) if line in each]
    if made and not near:
        name, counted = f"{line.partition(':')[0]}:", first
        near = [first + at for at, each in enumerate(lines) if each.startswith(name)]
    return min(near, key=lambda number: abs(number - counted)) if near else counted


# --- Headings ---


def _headings(candidate: Candidate, shown: Readable, at: int) -> tuple[str, ...]:
    """The headings that an offset of the passage is under, outermost first."""
    above = candidate.passage.headings
    if not candidate.passage.subheadings:
        return above
    inner: list[tuple[int, str]] = []
    for _, level, text in shown.headings(until=at):
        inner = [*(each for each in inner if each[0] < level), (level, text)]
    names = [text for _, text in inner]
    if names and names[0] in above:
        above = above[: above.index(names[0])]
    return (*above, *names)


# --- Quotes ---


def quoted(candidate: Candidate, match: Match, stages: Sequence[Outcome]) -> Candidate:
    """The result from the heading of its match to the last heading under which a passage matches.

    It never begins before the heading that it cites: a budget cuts at the end. If that is too
    short to be of use, all of the section is quoted, under the headings of all of it.
    """
    shown = candidate.shown
    if shown is None:
        return candidate
    heads = readable(shown.text).headings()
    places = list(_matched_places(candidate, match, stages))
    if len(heads) < 2 or not places or _has_other_lines(candidate):
        return _cited(candidate, match.headings)
    parts = [_under(heads, at, shown.text) for at in places]
    first, last = parts[0][0], max(end for _, end in parts)
    text = shown.text[first:last].rstrip()
    if len(text) < MIN_QUOTE:
        return candidate
    lead = len(shown.text) - len(shown.text.lstrip())
    line = shown.lines[0] + shown.text.count("\n", lead, first)
    lines = (line, line + text.count("\n"))
    part = replace(shown, text=text, lines=lines, headings=match.headings)
    return replace(candidate, shown=part)


def _cited(candidate: Candidate, headings: tuple[str, ...]) -> Candidate:
    assert candidate.shown is not None
    return replace(candidate, shown=replace(candidate.shown, headings=headings))


def _matched_places(candidate: Candidate, match: Match, stages: Sequence[Outcome]) -> Iterator[int]:
    """Offsets in the text of a result: of its match, and of its other passages that match."""
    removed = (each.candidate for each in outcome_of("parents", stages).removed)
    others = [
        each for each in removed if each.id in candidate.merged and (each.confidence or 0) >= SURE
    ]
    own = (candidate, (match.snippet.at,))
    for each, offsets in (own, *((each, (0, len(each.passage.text) - 1)) for each in others)):
        text = each.passage.text
        start = candidate.text.find(text.strip())
        lead = len(text) - len(text.lstrip())
        if start >= 0:
            yield from (start + max(0, at - lead) for at in offsets)


def _under(heads: Sequence[tuple[int, int, str]], at: int, text: str) -> Span:
    """The span of the text under the heading above an offset, with the headings below that one."""
    above = [number for number, head in enumerate(heads) if head[0] <= at]
    if not above:
        return 0, _line_start(text, heads[0][0])
    start, level, _ = heads[above[-1]]
    after = (_line_start(text, head[0]) for head in heads[above[-1] + 1 :] if head[1] <= level)
    return _line_start(text, start), next(after, len(text))


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def _has_other_lines(candidate: Candidate) -> bool:
    """Whether the file's lines are not those of the text: it has comments, or is a canvas."""
    first, last = candidate.lines
    derived = candidate.note.path.lower().endswith(DERIVED_TEXT)
    return derived or last - first != candidate.text.strip().count("\n")


# --- Snippets ---


def units_of(shown: Readable) -> list[Unit]:
    """What a snippet may begin with, in order."""
    found = []
    for number, line in enumerate(shown.lines):
        if line.kind in ("prose", "item"):
            spans = sentences(shown.text, line.start, line.end)
        else:
            spans = [(line.start, line.end)]
        found += [Unit(start, end, number, line.kind == "heading") for start, end in spans]
    return found


def best_snippet(
    shown: Readable,
    marks: Sequence[Span],
    query: str,
    nearness: Sequence[float] | None = None,
    length: int = LENGTH,
) -> Snippet:
    """The best part of a passage. `marks` are the spans that matched, in order, not overlapping.

    `nearness` says how near each of `units_of(shown)` is to the query.
    """
    units = units_of(shown)
    if not units:
        return Snippet("", (), 0)
    first, last = _window(shown, units, _best(shown, units, marks, query, nearness), marks, length)
    inside = [(a, b) for a, b in marks if first <= a and b <= last]
    before = f"{MORE} " if _is_cut(shown, first, -1) else ""
    text = shown.text[first:last].rstrip()
    after = _closed(text) + (f" {MORE}" if _is_cut(shown, first + len(text), 0) else "")
    moved = tuple((a - first + len(before), b - first + len(before)) for a, b in inside)
    return Snippet(before + text + after, moved, shown.source(inside[0][0] if inside else first))


def _best(
    shown: Readable,
    units: Sequence[Unit],
    marks: Sequence[Span],
    query: str,
    nearness: Sequence[float] | None,
) -> int:
    """The unit to begin with: never a heading, unless there is nothing else."""
    if marks:
        worth = [float(len(_matched(shown.text, each, marks))) for each in units]
    else:
        worth = _alike(shown.text, units, query)
        if nearness is not None:
            worth = [near + share for near, share in zip(nearness, worth, strict=True)]
        else:
            worth = [share if share > ALIKE else 0.0 for share in worth]
    bodies = [at for at, unit in enumerate(units) if not unit.heading] or [0]
    # Of equals the first, and a sentence before a heading, which is shown beside the snippet.
    best = max(range(len(units)), key=lambda at: (worth[at], not units[at].heading, -at))
    if worth[best] <= 0:
        return bodies[0]
    return next((at for at in bodies if at >= best), bodies[-1])


def _matched(text: str, unit: Unit, marks: Sequence[Span]) -> set[str]:
    """The different words that matched in a unit."""
    return {text[a:b].casefold() for a, b in marks if unit.start <= a < unit.end}


def _alike(text: str, units: Sequence[Unit], query: str) -> list[float]:
    """The share of the query's pieces that each unit has."""
    wanted = _pieces(query)
    return [len(wanted & _pieces(text[u.start : u.end])) / (len(wanted) or 1) for u in units]


def _pieces(text: str) -> set[str]:
    """All runs of four letters inside words: inflected forms of a word share most of them."""
    words = _WORD.findall(text.casefold())
    return {word[at : at + 4] for word in words for at in range(max(len(word) - 3, 1))}


def _window(
    shown: Readable, units: Sequence[Unit], best: int, marks: Sequence[Span], length: int
) -> Span:
    """From the best unit on, as far as `length` allows, at most up to the next heading.

    Where little follows, it begins earlier.
    """
    low = high = best
    while high + 1 < len(units) and _fits(units[low], units[high + 1], length):
        high += 1
    whole = high + 1 == len(units) or units[high + 1].heading
    while whole and low and units[high].end - units[low].start < length // 2:
        if not _fits(units[low - 1], units[high], length):
            break
        low -= 1
    first, last = units[low].start, units[high].end
    if last - first > length:  # one long unit: begin near the match
        held = [mark for mark in marks if first <= mark[0] < last]
        if held and held[0][1] - first > length // 2:
            first = _word(shown.text, held[0][0] - length // 3, first)
        return first, min(last, _word_end(shown.text, first, first + length))
    room = first + length - last
    if not whole and units[high + 1].line == units[high].line and room >= FILLED:
        last = _word_end(shown.text, last, last + room)
    return first, last


def _fits(first: Unit, last: Unit, length: int) -> bool:
    """Whether these units and all between them can be shown together."""
    if first.heading or last.heading:
        return False
    return last.end - first.start <= length and last.line - first.line < LINES


def _is_cut(shown: Readable, at: int, step: int) -> bool:
    """Whether a line goes on before or after an offset."""
    beside = at + step
    return 0 <= beside < len(shown.text) and shown.text[beside] != "\n"


def _closed(text: str) -> str:
    """The backtick that a cut took away."""
    return "`" if text.rpartition("\n")[2].count("`") % 2 else ""


def _word(text: str, at: int, least: int) -> int:
    """Where the first word at or after `at` begins."""
    found = _SPACE.search(text, max(at, least))
    return found.end() if found else max(at, least)


def _word_end(text: str, first: int, at: int) -> int:
    """Where the last word before `at` ends; a word longer than the room is cut."""
    if at >= len(text):
        return len(text)
    if text[at].isspace():
        return at
    ends = [found.start() for found in _SPACE.finditer(text, first, at)]
    return ends[-1] if ends and ends[-1] > first else at
