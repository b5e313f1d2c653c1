"""Match: where in a result the query matches, for people and for citations.

    find_matches   the snippet of each result, its line, the headings it stands under
    quoted         a result cut down to the headings under which it matches, for a prompt

The heading of a match is found in the text itself, so it is right for a note that has changed on
disk too. Short sections share a result: then its text has several headings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from ragvault.answer.snippet import Snippet, best_snippet, units_of
from ragvault.candidate import Candidate
from ragvault.plan import QueryPlan
from ragvault.ports import Corpus
from ragvault.rank.pipeline import Outcome, outcome_of
from ragvault.text.readable import Readable, plain_lines, readable
from ragvault.text.spans import Span
from ragvault.types import DERIVED_TEXT, PLAIN_TEXT

MIN_QUOTE = 200  # characters; a shorter quote says too little by itself
SURE = 0.5  # the confidence from which another passage of a section is quoted too


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
