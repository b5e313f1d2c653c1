"""The vector leg: nearest passages, and true cosines of what other legs found."""

from types import SimpleNamespace

import numpy as np

from ragvault.ports import VaultFacts
from ragvault.retrieve.gather import vector_leg

PLAN = SimpleNamespace(embed="a question", hypothesis="")


class Corpus:
    """A vault that has been searched: it has a list, and knows cosines."""

    facts = VaultFacts(tier="static")

    def __init__(self, listed, cosines):
        self._listed, self._cosines = listed, cosines

    def embed_query(self, text, role):
        return np.zeros(2, np.float32)

    def nearest(self, vector, limit, scope):
        ids, scores = [i for i, _ in self._listed], [score for _, score in self._listed]
        return np.array(ids, np.int64), np.array(scores)

    def cosines(self, vector, ids):
        return np.array([self._cosines.get(int(i), np.nan) for i in ids])


def found(listed, cosines):
    return vector_leg(Corpus(listed, cosines), PLAN, 10, None)


def scores(hits):
    return {hit.passage: hit.score for hit in hits}


def test_hits_have_their_cosines_and_what_others_found_gets_its_own():
    answer = found([(7, 0.6), (8, 0.2)], {9: 0.1})
    assert [(hit.passage, hit.rank) for hit in answer.hits] == [(7, 1), (8, 2)]
    assert scores(answer.hits) == {7: 0.6, 8: 0.2}
    assert scores(answer.score([9, 10]).hits) == {9: 0.1}


def test_a_leg_without_a_hit_of_its_own_scores_what_others_found():
    answer = found([], {3: 0.7})
    assert answer.hits == ()
    assert scores(answer.score([3, 9]).hits) == {3: 0.7}
