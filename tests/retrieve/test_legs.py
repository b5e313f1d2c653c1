"""The vector leg while passages move from the static tier to the full one."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragvault.retrieve.legs import VectorLeg, merge_tiers

PLAN = SimpleNamespace(embed="a question", hypothesis="")


class Corpus:
    """Two tiers that have been searched: each has a list, and knows the cosines of its own."""

    def __init__(self, lists, cosines):
        self._lists, self._cosines = lists, cosines

    def embed_query(self, text, role):
        return dict.fromkeys(self._lists, np.zeros(2, np.float32))

    def nearest(self, vectors, limit, scope):
        return {
            tier: (np.array([i for i, _ in found], np.int64), np.array([s for _, s in found]))
            for tier, found in self._lists.items()
        }

    def cosines(self, vectors, ids):
        return {
            tier: np.array([self._cosines[tier].get(int(i), np.nan) for i in ids])
            for tier in self._lists
        }


def found(lists, cosines):
    return VectorLeg(Corpus(lists, cosines)).search(PLAN, 10, None)


def scores(hits):
    return {hit.passage: hit.score for hit in hits}


def test_what_only_the_rough_tier_holds_is_scored_where_a_filter_leaves_nothing_else():
    answer = found({"full": [], "static": [(7, 0.6), (8, 0.2)]}, {"full": {}, "static": {9: 0.1}})
    assert scores(answer.hits) == {7: 0.6, 8: 0.2}
    assert answer.tiers == {7: "static", 8: "static"}
    assert scores(answer.score([9]).hits) == {9: 0.1}


def test_a_leg_without_a_hit_of_its_own_tells_the_scores_of_what_others_found():
    answer = found({"full": [], "static": []}, {"full": {3: 0.7}, "static": {9: 0.1}})
    assert answer.hits == ()
    assert scores(answer.score([3, 9]).hits) == {3: 0.7}


def test_a_passage_of_the_rough_tier_beyond_its_list_still_has_a_score():
    full, static = [(1, 0.9), (2, 0.7)], [(7, 0.5), (8, 0.1)]
    answer = found({"full": full, "static": static}, {"full": {3: 0.65}, "static": {9: 0.0}})
    assert scores(answer.hits) == {1: 0.9, 7: 0.9, 2: 0.7, 8: 0.7}
    # As far below the last of its list as 0.1 is on a scale of 0.4, which is 0.2 in the other.
    more = answer.score([3, 9])
    assert scores(more.hits) == {3: 0.65, 9: pytest.approx(0.65)}
    assert more.tiers == {3: "full", 9: "static"}


falling = st.lists(st.floats(-1, 1), min_size=1, max_size=9).map(lambda s: sorted(s)[::-1])


@given(falling, falling, st.floats(-1, 1), st.floats(-1, 1))
def test_a_better_cosine_never_counts_less_and_none_beyond_a_list_passes_it(ours, theirs, a, b):
    lists = {
        "full": (np.arange(len(ours)), np.array(ours)),
        "static": (100 + np.arange(len(theirs)), np.array(theirs)),
    }
    hits, scales = merge_tiers(lists)
    low, high = sorted((a, b))
    assert 0 <= scales["static"](low) <= scales["static"](high)
    assert scales["static"](high) <= max(0.0, ours[-1])
    assert [hit.rank for hit in hits] == list(range(1, len(ours) + len(theirs) + 1))
    assert all(x.score >= y.score for x, y in itertools.pairwise(hits))
