"""Queries for tantivy: plans become its own, one index for notes and one for passages.

A tree may hold one word in a title and the next in a body, which are documents of two indexes.
So a leaf is asked of the notes first, and what they answer enters the passages' query as a set of
notes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

import numpy as np
import tantivy
from tantivy import Occur, Query

from ragvault.index.keyword_fields import Fields
from ragvault.index.keyword_plan import Every, Has, Match, Plan, Row, Some, Term, Without
from ragvault.index.keyword_time import Deadline
from ragvault.sought import Sought

if TYPE_CHECKING:
    from numpy.typing import NDArray

ABSENT = "\x00"  # the one word of an empty field, which counts as one word long
PLACES = "places"  # tantivy's name for what cuts our text (keyword_tantivy_draft.py)
# Numbers up to which asking for each beats tantivy's query for a set of them, which walks through
# the dictionary of every segment: 143 of 107,880 passages took 0.9 and 2.5 ms, 1,200 notes 2.6 and
# 1.8.
FEW = 500


class Level:
    """The notes or the passages: an index, its fields, and one moment of it."""

    def __init__(
        self, schema: Any, searcher: Any, boosts: Mapping[str, float], removed: int = 0
    ) -> None:
        self.schema, self.searcher, self.boosts = schema, searcher, boosts
        self.removed = removed  # documents that are in the files still
        # How many documents hold a term; removed ones count until they are merged away. No method
        # of ours: a searcher maps files that others delete, and would wait for the collector.
        self.holders = lru_cache(4096)(lambda name, text: int(searcher.doc_freq(name, text)))

    def boosted(self, boosts: Mapping[str, float]) -> Level:
        """The same moment with other boosts."""
        return Level(self.schema, self.searcher, boosts, self.removed)

    def weighs(self, terms: Iterable[Term]) -> bool:
        """Whether each of these terms, wherever it stands, adds to a score."""
        return all(
            term.weight * self.boosts[name] > 0 for term in terms for name in self.names(term.field)
        )

    def lives(self, name: str, text: str) -> bool:
        """Whether a document that was not removed holds a term."""
        held = self.holders(name, text)
        if held > self.removed or not held:
            return bool(held)
        return bool(self.searcher.search(self.term(name, text), 1, count=False).hits)

    def begins(self, name: str, letters: str) -> list[str]:
        """The terms of a field with a beginning."""
        return [term for term, _ in self.searcher.terms_with_prefix(name, letters)]

    def names(self, field: str) -> list[str]:
        """The fields of this level that are meant."""
        return [name for name in self.boosts if field in ("", name)]

    def scoring(self, terms: Iterable[Term], only: str = "") -> Any | None:
        """Every term in every field, each with its weight; None where none is held."""
        clauses = [
            (Occur.Should, Query.boost_query(self.term(name, term.text), scale))
            for term in terms
            for name in self.names(term.field)
            if only in ("", name)
            and (scale := term.weight * self.boosts[name]) > 0
            and self.holders(name, term.text)
        ]
        return Query.boolean_query(clauses) if clauses else None

    def term(self, name: str, text: str) -> Any:
        return Query.term_query(self.schema, name, text)

    def row(self, name: str, places: Sequence[tuple[str, int]]) -> Any:
        if len(places) == 1:
            return self.term(name, places[0][0])
        return Query.phrase_query(self.schema, name, [(place, text) for text, place in places])

    def of(self, column: str, ids: Sequence[int]) -> Any:
        """The documents whose number in a column is one of these."""
        if len(ids) > FEW:
            return Query.term_set_query(self.schema, column, list(ids))
        each = [(Occur.Should, Query.term_query(self.schema, column, id_)) for id_ in ids]
        return Query.boolean_query(each)

    def ask(self, query: Any, limit: int, *columns: str) -> tuple[NDArray[Any], ...]:
        """Scores of the best, and what each of the columns holds for them."""
        hits = self.searcher.search(query, limit, count=False).hits if limit > 0 else []
        scores, where = map(list, zip(*hits, strict=True)) if hits else ([], [])
        values = (self.searcher.fast_field_values(column, where) for column in columns)
        return np.array(scores, np.float64), *(np.array(column, np.int64) for column in values)


class Asking:
    """Both levels at one moment."""

    def __init__(self, notes: Level, passages: Level, fields: Fields) -> None:
        self.notes, self.passages, self.fields = notes, passages, fields
        # Of the last query, which is soon asked again for the scores of what other legs found: the
        # near spellings, and what guesses are multiplied by.
        self.near: dict[Sought, dict[str, tuple[str, ...]]] = {}
        self.scales: dict[Plan, float] = {}

    def boosted(self, fields: Fields) -> Asking:
        """The same moment with other boosts."""
        if fields is self.fields:
            return self
        notes, passages = self.notes.boosted(fields.note), self.passages.boosted(fields.passage)
        return Asking(notes, passages, fields)

    def scores_matches(self, match: Match, terms: Sequence[Term]) -> bool:
        """Whether what any term scores is what is meant: no tree has to be matched besides."""
        weighs = self.notes.weighs(terms) and self.passages.weighs(terms)
        return only_words(match) and weighs and not any(term.near for term in terms)

    def matching(self, match: Match, deadline: Deadline) -> Any:
        """The passages that a tree matches, as a query that scores nothing."""
        return unscored(self._match(match, deadline, wanted=True))

    def _match(self, match: Match, deadline: Deadline, wanted: bool) -> Any:
        if isinstance(match, Has | Row):
            return _UNREAD[wanted]() if deadline.over() else self._leaf(match)
        if isinstance(match, Without):
            part = self._match(match.part, deadline, not wanted)
            return Query.boolean_query([(Occur.Must, Query.all_query()), (Occur.MustNot, part)])
        occur = Occur.Must if isinstance(match, Every) else Occur.Should
        parts = [(occur, self._match(part, deadline, wanted)) for part in match.parts]
        return Query.boolean_query(parts)

    def _leaf(self, match: Has | Row) -> Any:
        """What one term or phrase finds, in the passages' own fields or in their notes'."""

        def query(level: Level) -> list[tuple[Any, Any]]:
            places = [(match.text, 0)] if isinstance(match, Has) else match.places
            return [(Occur.Should, level.row(name, places)) for name in level.names(match.field)]

        found, own = query(self.passages), query(self.notes)
        if own:
            everyone = max(1, self.notes.searcher.num_docs)
            _, notes = self.notes.ask(Query.boolean_query(own), everyone, "id")
            if len(notes):
                found.append((Occur.Should, self.passages.of("note", notes.tolist())))
        return Query.boolean_query(found) if found else Query.empty_query()

    def lives(self, field: str, term: str) -> bool:
        """Whether anything holds a term that was not removed."""
        levels = (self.passages, self.notes)
        return any(level.lives(name, term) for level in levels for name in level.names(field))

    def begins(self, field: str, letters: str) -> set[str]:
        """The terms with a beginning, also of what was removed."""
        levels = (self.passages, self.notes)
        names = ((level, name) for level in levels for name in level.names(field))
        return {term for level, name in names for term in level.begins(name, letters)}

    def lacks(self, field: str, letters: str) -> set[str]:
        """The terms that begin so behind their first letter, in the field that has most words."""
        name = field or self.fields.main
        level = self.notes if name in self.fields.note else self.passages
        return {term for one in ascii_lowercase for term in level.begins(name, one + letters)}


# What there is no time to look up: nothing where it is wanted, and everything where it is not.
_UNREAD = {True: Query.empty_query, False: Query.all_query}


def unscored(query: Any) -> Any:
    """The same documents, none of them better than another."""
    return Query.const_score_query(query, 0.0)


def filtered(query: Any | None, *filters: Any | None) -> Any:
    """What passes all filters, scored by the query; whether it finds them does not matter."""
    needed = [(Occur.Must, f) for f in filters if f is not None]
    scored = [(Occur.Should, query)] if query is not None else []
    return Query.boolean_query([*needed, *scored])


def only_words(match: Match) -> bool:
    """Is any one of its terms enough? Then what scores is what matches."""
    return isinstance(match, Some) and all(isinstance(part, Has) for part in match.parts)


def schema(texts: Iterable[str], columns: Iterable[str]) -> Any:
    """Text that is cut by us, and numbers to find, filter and read by."""
    builder = tantivy.SchemaBuilder()
    for name in texts:
        builder.add_text_field(name, stored=False, tokenizer_name=PLACES, index_option="position")
    for name in columns:
        # Signed: deleting by an unsigned number deletes nothing (tantivy 0.27).
        builder.add_integer_field(name, stored=False, indexed=True, fast=True)
    return builder.build()
