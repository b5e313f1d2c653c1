"""Mark: where a text holds what was sought, by the analyzer's own eyes.

`configure` marks configuration when it would find it, a part marks its part of a compound, and a
phrase marks only where it stands whole.
"""

from __future__ import annotations

from ragvault.index.analyze import Analyzer
from ragvault.index.keyword_plan import leaves
from ragvault.sought import Phrase, Sought, Words

Span = tuple[int, int]


def highlight(text: str, sought: Sought, analyzer: Analyzer) -> list[Span]:
    """Spans of the words and phrases that are sought, in order and apart."""
    spans: list[Span] = []
    stops = _only_stops(sought, analyzer)
    for leaf in leaves(sought):
        if isinstance(leaf, Phrase):
            spans += _phrase_spans(text, leaf, analyzer)
        else:
            spans += _word_spans(text, leaf, analyzer, stops)
    return _apart(spans)


def _only_stops(sought: Sought, analyzer: Analyzer) -> bool:
    return all(word.stop for leaf in leaves(sought) for *_, word in analyzer.words(leaf.text))


def _word_spans(text: str, leaf: Words, analyzer: Analyzer, stops: bool) -> list[Span]:
    wanted = {
        term
        for *_, word in analyzer.words(leaf.text)
        if stops or not word.stop
        for term in (*(term for term, _ in word.main), *word.exact)
    }
    spans = []
    for start, _, _, word in analyzer.words(text):
        # The whole comes first: where it is meant, its parts need no marks of their own.
        for left, right, terms in word.spans:
            if wanted & terms:
                spans.append((start + left, start + right))
    return spans


def _phrase_spans(text: str, leaf: Phrase, analyzer: Analyzer) -> list[Span]:
    wanted = [
        (term, at + place)
        for _, at, _, word in analyzer.words(leaf.text)
        for term, place in word.phrase
    ]
    if not wanted:
        return []
    where: dict[tuple[str, int], Span] = {}
    for start, at, chunk, word in analyzer.words(text):
        for term, place in word.tokens:
            where.setdefault((term, at + place), _span_of(term, start, chunk, word.spans))
    first, base = wanted[0]
    spans = []
    for term, at in list(where):
        if term != first:
            continue
        row = [where.get((other, at - base + place), (0, 0)) for other, place in wanted]
        if (0, 0) not in row:
            spans.append((min(start for start, _ in row), max(end for _, end in row)))
    return spans


def _span_of(
    term: str, start: int, chunk: str, spans: tuple[tuple[int, int, frozenset[str]], ...]
) -> Span:
    for left, right, terms in spans:
        if term in terms:
            return start + left, start + right
    return start, start + len(chunk)


def _apart(spans: list[Span]) -> list[Span]:
    """In order, and joined where they touch or overlap."""
    joined: list[Span] = []
    for start, end in sorted(set(spans)):
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
