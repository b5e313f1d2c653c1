"""The graph leg: one passage of each neighbour, in the order of the hits that led to them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ragvault.candidate import Hit, NoteFacts, PassageFacts
from ragvault.config import profiles
from ragvault.ports import Neighbour, VaultFacts
from ragvault.retrieve.gather import LegHits, graph_hits

HUB = 1


class Corpus:
    """A note that links to others, each of which has three passages: 10n, 10n + 1, 10n + 2."""

    config = profiles.config("default")
    facts = VaultFacts()

    def __init__(self, notes):
        self.notes, self.asked = notes, []

    def passages(self, passages):
        hub = NoteFacts(HUB, "Hub.md")
        return {each: PassageFacts(each, hub) for each in passages}

    def neighbours(self, seeds, depth):
        assert (seeds, depth) == ({HUB: 1}, 1)
        return [Neighbour(note, 1.0, 1, 1, HUB, "link", "out", None) for note in sorted(self.notes)]

    def passages_of(self, parts):
        self.asked.append(len(parts))
        return [[10 * note + at for at in range(3)] for note, _ in parts]

    def within(self, passages, scope):
        return scope & set(passages)


def hits(notes, allowed, limit):
    """The passages that enter, and how many notes were asked for at a time."""
    corpus = Corpus(notes)
    seed = {"keyword": LegHits((Hit(10 * HUB, 1, 1.0),))}
    found = graph_hits(corpus, seed, lambda passages: {}, limit=limit, scope=allowed)
    assert [hit.rank for hit in found.hits] == list(range(1, len(found.hits) + 1))
    return [hit.passage for hit in found.hits], corpus.asked


def test_all_neighbours_are_asked_for_at_once():
    every = {10 * note + 1 for note in range(2, 7)}

    assert hits(range(2, 7), every, limit=50) == ([21, 31, 41, 51, 61], [5])


def test_a_neighbour_that_may_not_enter_takes_no_place():
    found, asked = hits(range(2, 12), {70, 81, 92, 112}, limit=3)

    assert found == [70, 81, 92]
    assert asked == [3, 3, 3]  # the tenth was not looked at


@given(st.sets(st.integers(2, 30)), st.sets(st.integers(20, 320)), st.integers(1, 9))
def test_it_is_the_first_of_those_that_may_enter_whatever_is_asked_at_once(notes, allowed, limit):
    entering = ([c for c in range(10 * n, 10 * n + 3) if c in allowed] for n in sorted(notes))
    expected = [passages[0] for passages in entering if passages]

    assert hits(notes, allowed, limit)[0] == expected[:limit]
