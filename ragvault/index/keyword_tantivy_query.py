"""Queries for tantivy: plans become its own, one index for notes and one for passages.

A tree may hold one word in a title and the next in a body, which are documents of two indexes.
So a leaf is asked of the notes first, and what they answer enters the passages' query as a set of
notes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import tantivy
from tantivy import Occur, Query

from ragvault.index.keyword_fields import Fields
from ragvault.index.keyword_plan import Every, Has, Match, Row, Some, Term, Without

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

    def __init__(self, schema: Any, searcher: Any, boosts: Mapping[str, float]) -> None:
        self.schema, self.searcher, self.boosts = schema, searcher, boosts
        # How many documents hold a term; removed ones count until they are merged away. No method
        # of ours: a searcher maps files that others delete, and would wait for the collector.
        self.holders = lru_cache(4096)(lambda name, text: int(searcher.doc_freq(name, text)))

    def weighs(self, terms: Iterable[Term]) -> bool:
        """Whether each of these terms, wherever it stands, adds to a score."""
        return all(
            term.weight * self.boosts[name] > 0 for term in terms for name in self.names(term.field)
        )

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

    def boosted(self, fields: Fields) -> Asking:
        """The same moment with other boosts."""
        if fields is self.fields:
            return self
        notes = Level(self.notes.schema, self.notes.searcher, fields.note)
        passages = Level(self.passages.schema, self.passages.searcher, fields.passage)
        return Asking(notes, passages, fields)

    def scores_matches(self, match: Match, terms: Sequence[Term]) -> bool:
        """Whether what any term scores is what is meant: no tree has to be matched besides."""
        weighs = self.notes.weighs(terms) and self.passages.weighs(terms)
        return only_words(match) and weighs and not any(term.near for term in terms)

    def matching(self, match: Match) -> Any:
        """The passages that a tree matches, as a query that scores nothing."""
        return unscored(self._match(match))

    def _match(self, match: Match) -> Any:
        if isinstance(match, Has):
            return self._leaf(match.field, lambda level, name: level.term(name, match.text))
        if isinstance(match, Row):
            return self._leaf(match.field, lambda level, name: level.row(name, match.places))
        if isinstance(match, Without):
            return Query.boolean_query(
                [(Occur.Must, Query.all_query()), (Occur.MustNot, self._match(match.part))]
            )
        occur = Occur.Must if isinstance(match, Every) else Occur.Should
        return Query.boolean_query([(occur, self._match(part)) for part in match.parts])

    def _leaf(self, field: str, query: Any) -> Any:
        """What one term or phrase finds, in the passages' own fields or in their notes'."""
        found = [(Occur.Should, query(self.passages, n)) for n in self.passages.names(field)]
        own = [(Occur.Should, query(self.notes, n)) for n in self.notes.names(field)]
        if own:
            everyone = max(1, self.notes.searcher.num_docs)
            _, notes = self.notes.ask(Query.boolean_query(own), everyone, "id")
            if len(notes):
                found.append((Occur.Should, self.passages.of("note", notes.tolist())))
        return Query.boolean_query(found) if found else Query.empty_query()


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
