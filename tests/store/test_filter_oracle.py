"""The filter in SQL keeps what a loop over the notes keeps, and nothing that was typed is SQL."""

from __future__ import annotations

import random
from datetime import datetime, timezone
from functools import cached_property

import numpy as np
import pytest
from filter_oracle import NOW, ZONE, Asker
from filter_vault import Piece, Spec, specs, store

from ragvault.answer.results import VaultAnswer
from ragvault.config import profiles
from ragvault.config.load import load_settings
from ragvault.corpus import LocalCorpus
from ragvault.engines import Engines
from ragvault.plan import (
    And,
    HasPart,
    KeywordQuery,
    MatchesWords,
    NameContains,
    Not,
    Or,
    Phrase,
    Property,
    Tagged,
    Words,
)
from ragvault.query.understand import understand
from ragvault.search import search
from ragvault.store.catalogue import Catalogue
from ragvault.types import SearchRequest


class Vault:
    """The notes, the catalogue they are in, and a keyword index that reads every passage."""

    def __init__(self, catalogue: Catalogue, notes: list[Spec]) -> None:
        self.catalogue = catalogue
        self.notes = notes
        self.pieces = [piece for note in notes for piece in note.pieces]

    def passages(self, query: str) -> list[int]:
        plan = understand(query, profiles.config("default").query, now=NOW)
        found = self.catalogue.filtered_passages(plan.filter, self.matching)
        return found.tolist()

    def listed(self, query: str) -> list[int]:
        plan = understand(query, profiles.config("default").query, now=NOW)
        return self.catalogue.filtered_notes(plan.filter, self.matching)

    def found(self, query: str) -> VaultAnswer:
        """All that a search gives; its conditions on words are met by the passages above."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self.opened, "_matching", self.matching)
            request = SearchRequest(query, NOW, len(self.notes), verify=False)
            return search(request, self.opened)

    @cached_property
    def opened(self) -> LocalCorpus:
        """A search's own way to the catalogue, with no other index beside it."""
        folder = self.catalogue.folder
        return LocalCorpus(folder, self.catalogue, Engines(folder, load_settings()))

    def matching(self, leaf: MatchesWords) -> list[int]:
        return [piece.id for piece in self.pieces if found_by(leaf.query, piece)]


def found_by(query: KeywordQuery, piece: Piece) -> bool:
    if isinstance(query, Words):
        return all(word in piece.text.split() for word in query.text.split())
    if isinstance(query, Phrase):
        return f" {query.text} " in f" {' '.join(piece.text.split())} "
    assert isinstance(query, (And, Or))
    join = all if isinstance(query, And) else any
    return join(found_by(part, piece) for part in query.parts)


@pytest.fixture(scope="session")
def vault(tmp_path_factory):
    notes = specs(2000)
    with Catalogue.open(tmp_path_factory.mktemp("filters"), write=True) as catalogue:
        store(catalogue, notes)
        yield Vault(catalogue, notes)


def test_the_vault_has_2000_notes(vault):
    assert len(vault.notes) >= 1900


@pytest.mark.parametrize(
    "batch", [0, 1, *(pytest.param(number, marks=pytest.mark.slow) for number in range(2, 6))]
)
def test_300_queries_keep_what_a_loop_over_the_notes_keeps(vault, batch):
    """As passages, and as the list of notes that a filter alone gives, newest first.

    Also through the whole read path.
    """
    asker = Asker(vault.notes, random.Random(f"filters {batch}"))
    telling = 0
    for _ in range(50):
        asked = asker.query()
        kept = {note.id: [p for p in note.pieces if asked.keeps(note, p)] for note in vault.notes}
        passages = sorted(piece.id for pieces in kept.values() for piece in pieces)
        listed = [note for note in vault.notes if kept[note.id]]
        listed.sort(key=lambda note: (-note.date, note.path))

        assert vault.passages(asked.text) == passages, asked.text
        assert vault.listed(asked.text) == [note.id for note in listed], asked.text
        telling += 0 < len(passages) < len(vault.pieces)
        if understand(asked.text, profiles.config("default").query, now=NOW).listing:
            results = vault.found(asked.text).results
            assert [each.note.id for each in results] == [note.id for note in listed], asked.text
            firsts = [kept[note.id][0].text for note in listed]
            assert [each.passage.text for each in results] == firsts, asked.text
    assert telling > 25  # a query that keeps all or nothing would hide mistakes


def test_no_filter_keeps_everything(vault):
    assert vault.catalogue.filtered_passages(None) is None
    assert len(vault.catalogue.filtered_notes(None)) == len(vault.notes)


def test_ids_are_sorted_whole_numbers(vault):
    found = vault.catalogue.filtered_passages(Not(HasPart("image")))

    assert found.dtype == np.int64
    assert (np.diff(found) > 0).all()


def test_a_filter_that_keeps_nothing_gives_an_empty_array(vault):
    assert vault.catalogue.filtered_passages(Tagged("no such tag")).tolist() == []


@pytest.mark.parametrize(
    "typed",
    [
        "'); DROP TABLE notes; --",
        '" OR 1=1 --',
        "%",
        "_",
        "\x00",
        "'",
        "*" * 500,
        "\\u",
        "a" * 5000,
    ],
)
@pytest.mark.parametrize("where", ["path", "file", "title", "alias"])
def test_what_was_typed_never_becomes_sql(vault, typed, where):
    trees = [NameContains(where, typed), Tagged(typed), Property(typed)]
    kept = vault.catalogue.filtered_passages(And(tuple(trees)))

    assert kept.tolist() == []
    assert len(vault.catalogue.filtered_notes(None)) == len(vault.notes)


def test_half_a_character_that_was_typed_finds_nothing(vault):
    for condition in ('path:"\ud800"', "title:\udcff", "tag:\ud800x", "[status:\ud800]"):
        assert vault.listed(condition) == []


def test_percent_and_underscore_are_letters_like_any_other(vault):
    assert vault.listed('path:"%"') == vault.listed("path:_") == []


def test_without_a_tag_no_passage_of_a_note_that_has_it_is_left(vault):
    with_tag = {note.id for note in vault.notes if any("inbox" in tag for tag in note.tags)}
    kept = set(vault.passages("-tag:inbox"))

    for note in vault.notes:
        ids = {piece.id for piece in note.pieces}
        assert ids.isdisjoint(kept) if note.id in with_tag else ids <= kept


def test_without_code_the_other_passages_of_a_note_are_left(vault):
    mixed = next(n for n in vault.notes if len({"code" in piece.has for piece in n.pieces}) == 2)
    kept = set(vault.passages("-has:code"))

    assert {p.id for p in mixed.pieces} & kept == {
        p.id for p in mixed.pieces if "code" not in p.has
    }


def test_a_hundred_conditions_side_by_side_are_one_query(vault):
    one_of = Or((*(Tagged(f"t{number}") for number in range(99)), Tagged("inbox")))
    both = And((one_of, *(Not(Tagged(f"t{number}")) for number in range(99))))

    kept = vault.catalogue.filtered_passages(both)
    assert kept.tolist() == vault.passages("tag:inbox")


def test_a_day_without_a_time_is_that_day_in_every_zone(vault):
    day = next(n for n in vault.notes if n.modified % 86400 == 0 and n.pieces)
    name = datetime.fromtimestamp(day.modified, tz=timezone.utc).date().isoformat()

    for now in (NOW, datetime(2024, 3, 1, tzinfo=timezone.utc), datetime(2024, 3, 1)):
        plan = understand(f"modified:{name}", profiles.config("default").query, now=now)
        assert day.id in vault.catalogue.filtered_notes(plan.filter)


def test_an_instant_is_the_day_it_was_where_you_are(vault):
    night = next(n for n in vault.notes if n.modified % 86400 and (n.modified % 86400) < 8 * 3600)
    here = datetime.fromtimestamp(night.modified, tz=ZONE).date().isoformat()
    in_london = datetime.fromtimestamp(night.modified, tz=timezone.utc).date().isoformat()

    assert night.id in vault.listed(f"modified:{here}")
    assert night.id not in vault.listed(f"modified:{in_london}")


def test_a_filter_that_asks_for_words_needs_an_index_to_find_them(vault):
    with pytest.raises(ValueError, match="no index was given"):
        vault.catalogue.filtered_passages(MatchesWords(Words("rye")))
