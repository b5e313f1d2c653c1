"""Tiers: every passage is found in exactly one of them, also while it moves."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vector_shelf import Shelf, brute_force, create, fill, reopen, vector_of

from ragvault.index.vector_tiers import Tiers

# Two models: same texts, other numbers, so that a score of one means nothing in the other.
DIMS = {"full": 16, "static": 8}


class Vault:
    """Both tiers of some passages, in a folder."""

    def __init__(self, folder, count=0):
        self.folder, self.shelves = Path(folder), {tier: Shelf(dim) for tier, dim in DIMS.items()}
        self.texts = {i: f"{i} {i % 5}" for i in range(count)}
        for tier, shelf in self.shelves.items():
            shelf.put({i: vector_of(text, DIMS[tier]) for i, text in self.texts.items()})
        self.tiers = Tiers({t: create(self.folder / t, s) for t, s in self.shelves.items()})

    def index(self, tier):
        return self.tiers._indexes[tier]

    def add(self, tier, ids):
        rows = self.shelves[tier].rows
        self.tiers.add(tier, sorted(ids), np.stack([rows[i] for i in sorted(ids)]))

    def reopen(self):
        return Tiers({t: reopen(self.folder / t, s) for t, s in self.shelves.items()})


def queries(text="3 3"):
    return {tier: vector_of(text, dim) for tier, dim in DIMS.items()}


def everything(tiers, **kwargs):
    """The ids that each tier's list has when the lists are long enough for all."""
    found = tiers.search(queries(), limit=1000, **kwargs)
    return {tier: set(ids.tolist()) for tier, (ids, _) in found.items()}


@pytest.fixture
def vault(tmp_path):
    return Vault(tmp_path, 60)


def test_each_list_is_ranked_by_its_own_model_alone(vault):
    vault.add("static", range(60))
    vault.add("full", range(0, 60, 2))
    vault.tiers.commit(1)
    found = vault.tiers.search(queries(), limit=7)
    for tier, members in (("full", range(0, 60, 2)), ("static", range(1, 60, 2))):
        rows = {i: vault.shelves[tier].rows[i] for i in members}
        expected = brute_force(rows, queries()[tier], 7)
        assert list(zip(*map(np.ndarray.tolist, found[tier]), strict=True)) == expected
    assert list(found) == ["full", "static"]
    assert vault.tiers.counts() == {"full": 30, "static": 30}


def test_scores_of_a_passage_come_from_its_own_tier(vault):
    vault.add("static", range(4))
    vault.add("full", [2])
    vault.tiers.commit(1)
    scores = vault.tiers.scores_of(queries(), [1, 2, 50])
    assert np.isnan(scores["full"]).tolist() == [True, False, True]
    assert np.isnan(scores["static"]).tolist() == [False, True, True]


def test_a_tier_without_a_query_vector_is_left_out_and_hides_nothing(vault):
    """The better tier was committed and the worse one not yet: its passages are in both."""
    fill(vault.index("static"), vault.shelves["static"], vault.shelves["static"].rows)
    vault.add("full", [5])
    vault.index("full").commit(2)
    assert everything(vault.tiers) == {"full": {5}, "static": set(range(60)) - {5}}
    found = vault.tiers.search({"static": queries()["static"]}, limit=100)
    assert set(found) == {"static"}
    assert set(found["static"][0].tolist()) == set(range(60))


def test_a_filter_holds_in_every_tier(vault):
    vault.add("static", range(60))
    vault.add("full", range(30))
    vault.index("full").commit(1)
    vault.index("static").commit(1)
    allowed = np.array([1, 2, 40, 41])
    assert everything(vault.tiers, allowed=allowed) == {"full": {1, 2}, "static": {40, 41}}
    vault.add("static", range(60))  # again, so that some are in both
    vault.tiers.commit(2)
    assert everything(vault.tiers, allowed=allowed) == {"full": {1, 2}, "static": {40, 41}}


def test_a_removed_passage_is_in_no_tier(vault):
    vault.add("static", range(60))
    vault.add("full", range(30))
    vault.tiers.remove([3, 33])
    vault.tiers.commit(1)
    vault.tiers.compact()
    while vault.tiers.merge():
        pass
    assert everything(vault.reopen()) == {
        "full": set(range(30)) - {3},
        "static": set(range(30, 60)) - {33},
    }


steps = st.lists(
    st.tuples(
        st.sampled_from(["static", "full", "remove"]),
        st.sets(st.integers(0, 39), min_size=1),
        st.sampled_from(["commit", "die before", "die between"]),
    ),
    max_size=6,
)


@settings(max_examples=40)
@given(steps)
def test_an_upgrade_stopped_anywhere_loses_nothing_and_hides_nothing(history):
    with tempfile.TemporaryDirectory() as folder:
        vault = Vault(folder, 40)
        vault.add("static", range(40))
        vault.tiers.commit(1)
        alive = set(range(40))
        for revision, (what, ids, end) in enumerate(history, start=2):
            if what == "remove":
                vault.tiers.remove(sorted(ids))
            else:
                vault.add(what, ids)
            if end == "commit":
                vault.tiers.commit(revision)
                alive = alive - ids if what == "remove" else alive | ids
            elif end == "die between" and what != "remove":
                vault.index("full").commit(revision)
                alive |= ids if what == "full" else set()
            vault.tiers = vault.reopen()
            lists = everything(vault.tiers)
            assert lists["full"] | lists["static"] == alive
            assert not lists["full"] & lists["static"]
            members = {tier: set(i.tolist()) for tier, i in vault.tiers.members().items()}
            assert members == lists


def test_a_search_during_an_upgrade_misses_nothing(vault):
    """One thread moves passages up while others look for all of them."""
    vault.add("static", range(60))
    vault.tiers.commit(1)
    wrong, done = [], threading.Event()

    def look(tiers, refresh):
        while not done.is_set():
            if refresh:
                tiers.refresh()
            lists = everything(tiers)
            if len(lists["full"]) + len(lists["static"]) != 60:
                wrong.append(lists)

    threads = [
        threading.Thread(target=look, args=(vault.tiers, False)),
        threading.Thread(target=look, args=(vault.reopen(), True)),
    ]
    for thread in threads:
        thread.start()
    for first in range(0, 60, 4):
        vault.add("full", range(first, first + 4))
        vault.tiers.commit(first)
        vault.tiers.merge()
    done.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert vault.tiers.counts() == {"full": 60, "static": 0}
