"""Highlight: which words of a text a query matches.

It uses the analyzer of the index, so `configure` marks configuration exactly when it finds it. A
part marks its part of a compound, and a phrase is marked only where it occurs whole.
"""

from __future__ import annotations

from ragvault.plan import KeywordQuery, Phrase, Words, leaves
from ragvault.text.analyze import Analyzer

Marked = tuple[int, int]


def highlight(text: str, query: KeywordQuery, analyzer: Analyzer) -> list[Marked]:
    """Spans of the words and phrases of a query, in order and apart."""
    spans: list[Marked] = []
    wanted = list(leaves(query, negated=False))
    stops = all(word.stop for leaf in wanted for *_, word in analyzer.words(leaf.text))
    for leaf in wanted:
        if isinstance(leaf, Phrase):
            spans += _phrase_spans(text, leaf, analyzer)
        else:
            spans += _word_spans(text, leaf, analyzer, stops)
    return _apart(spans)


def _word_spans(text: str, leaf: Words, analyzer: Analyzer, stops: bool) -> list[Marked]:
    wanted = {
        term
        for *_, word in analyzer.words(leaf.text)
        if stops or not word.stop
        for term in (*(lookup.term for lookup in word.lookups), *word.exact)
    }
    wanted |= {analyzer.term_of(each.word) for each in leaf.spellings}
    # The whole comes first: where it is meant, its parts need no marks of their own.
    return [
        (start + span.start, start + span.end)
        for start, _, word in analyzer.words(text)
        for span in word.spans
        if wanted & span.terms
    ]


def _phrase_spans(text: str, leaf: Phrase, analyzer: Analyzer) -> list[Marked]:
    wanted = [form for *_, word in analyzer.words(leaf.text) for form in word.forms]
    names = {word.name for *_, word in analyzer.words(leaf.text) if word.name}
    row: list[tuple[str, Marked]] = []
    written: set[str] = set()
    for start, _, word in analyzer.words(text):
        whole = (start + word.spans[0].start, start + word.spans[0].end)
        pieces = [(start + span.start, start + span.end) for span in word.spans[1:]] or [whole]
        same = len(pieces) == len(word.forms)
        row += [(form, pieces[at] if same else whole) for at, form in enumerate(word.forms)]
        written.add(word.name)
    if not wanted or not names <= written:
        return []
    forms = [form for form, _ in row]
    return [
        (row[at][1][0], row[at + len(wanted) - 1][1][1])
        for at in range(len(forms) - len(wanted) + 1)
        if forms[at : at + len(wanted)] == wanted
    ]


def _apart(spans: list[Marked]) -> list[Marked]:
    """In order, and joined where they overlap."""
    joined: list[Marked] = []
    for start, end in sorted(set(spans)):
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
