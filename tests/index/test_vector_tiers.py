"""Tiers: every passage is found in exactly one of them, also while it moves."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vector_shelf import Shelf, brute_force, vector_of

from ragvault.index.tiers import Tiers
from ragvault.index.vector import FaissVectors

# Two models: same texts, other numbers, so that a score of one means nothing in the other.
DIMS = {"full": 16, "static": 8}


class Vault:
    """Both tiers of some passages, and readers of them."""

    def __init__(self, folder, count=0):
        self.folder, self.shelves = Path(folder), {tier: Shelf(dim) for tier, dim in DIMS.items()}
        self.texts = {i: f"{i} {i % 5}" for i in range(count)}
        for shelf in self.shelves.values():
            shelf.add(self.texts)
        self.tiers = self.open()

    def open(self):
        return Tiers({tier: FaissVectors(shelf) for tier, shelf in self.shelves.items()})

    def embed(self, tier, ids):
        """What has a vector keeps it."""
        shelf = self.shelves[tier]
        new = {i: vector_of(self.texts[i], DIMS[tier]) for i in ids if i not in shelf.rows}
        shelf.embed({i: row for i, row in new.items() if i in shelf.added})

    def remove(self, ids):
        for shelf in self.shelves.values():
            shelf.remove(ids)

    def write(self, tier):
        if self.shelves[tier].rows:
            self.shelves[tier].write(self.folder / tier)

    def retire(self):
        """Static vectors of what has a full one go, and the file may still hold them."""
        for passage in self.shelves["full"].rows:
            self.shelves["static"].rows.pop(passage, None)


def queries(text="3 3"):
    return {tier: vector_of(text, dim) for tier, dim in DIMS.items()}


def everything(tiers, **kwargs):
    """The ids that each tier's list has when the lists are long enough for all."""
    found = tiers.search(queries(), limit=1000, **kwargs)
    return {tier: set(ids.tolist()) for tier, (ids, _) in found.items()}


@pytest.fixture(params=["file", "tail"])
def vault(request, tmp_path):
    made = Vault(tmp_path, 60)
    made.finish = lambda: [made.write(tier) for tier in DIMS if request.param == "file"]
    return made


def test_each_list_is_ranked_by_its_own_model_alone(vault):
    vault.embed("static", range(60))
    vault.embed("full", range(0, 60, 2))
    vault.finish()
    vault.tiers.refresh()
    found = vault.tiers.search(queries(), limit=7)
    for tier, members in (("full", range(0, 60, 2)), ("static", range(1, 60, 2))):
        rows = {i: vault.shelves[tier].rows[i] for i in members}
        expected = brute_force(rows, queries()[tier], 7)
        assert list(zip(*map(np.ndarray.tolist, found[tier]), strict=True)) == expected
    assert list(found) == ["full", "static"]
    assert vault.tiers.counts() == {"full": 30, "static": 30}
    assert len(vault.tiers) == 60


def test_scores_of_a_passage_come_from_its_own_tier(vault):
    vault.embed("static", range(4))
    vault.embed("full", [2])
    vault.finish()
    vault.tiers.refresh()
    scores = vault.tiers.scores_of(queries(), [1, 2, 50])
    assert np.isnan(scores["full"]).tolist() == [True, False, True]
    assert np.isnan(scores["static"]).tolist() == [False, True, True]


def test_a_tier_without_a_query_vector_is_left_out_and_hides_nothing(vault):
    vault.embed("static", range(60))
    vault.finish()
    vault.embed("full", [5])
    vault.tiers.refresh()
    assert everything(vault.tiers) == {"full": {5}, "static": set(range(60)) - {5}}
    found = vault.tiers.search({"static": queries()["static"]}, limit=100)
    assert set(found) == {"static"}
    assert set(found["static"][0].tolist()) == set(range(60))


def test_a_filter_holds_in_every_tier(vault):
    vault.embed("static", range(60))
    vault.embed("full", range(30))
    vault.finish()
    vault.tiers.refresh()
    allowed = np.array([1, 2, 40, 41])
    assert everything(vault.tiers, allowed=allowed) == {"full": {1, 2}, "static": {40, 41}}


def test_a_removed_passage_is_in_no_tier(vault):
    vault.embed("static", range(60))
    vault.embed("full", range(30))
    vault.finish()
    vault.remove([3, 33])
    expected = {"full": set(range(30)) - {3}, "static": set(range(30, 60)) - {33}}
    assert everything(vault.open()) == expected
    vault.tiers.refresh()
    assert everything(vault.tiers) == expected


steps = st.lists(
    st.tuples(
        st.sampled_from(["static", "full", "remove", "retire", "write static", "write full"]),
        st.sets(st.integers(0, 39), min_size=1),
        st.booleans(),
    ),
    max_size=10,
)


@settings(max_examples=60, deadline=None)
@given(steps)
def test_while_passages_move_nothing_is_lost_hidden_or_found_twice(history):
    with tempfile.TemporaryDirectory() as folder:
        vault = Vault(folder, 40)
        vault.embed("static", range(40))
        alive = set(range(40))
        for what, ids, anew in history:
            if what == "remove":
                vault.remove(ids)
                alive -= ids
            elif what == "retire":
                vault.retire()
            elif what.startswith("write"):
                vault.write(what.split()[1])
            else:
                vault.embed(what, ids)
            if anew:
                vault.tiers = vault.open()
            vault.tiers.refresh()
            lists = everything(vault.tiers)
            assert lists["full"] | lists["static"] == alive
            assert not lists["full"] & lists["static"]
            assert lists["full"] == set(vault.shelves["full"].rows)
            members = {tier: set(i.tolist()) for tier, i in vault.tiers.members().items()}
            assert members == lists
