"""Held-out figures: nothing that is reported was chosen on what it is reported on."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from msgspec.structs import replace
from rank_kit import context, ids, pools

from benchmarks import heldout, related
from ragvault.answer.related import Reason
from ragvault.config import profiles
from ragvault.evaluate.questions import Judged, Question
from ragvault.evaluate.report import ScoredAnswer
from ragvault.rank.fuse import fuse


class Told:
    """A corpus that likes one of the settings best, and answers with what it is asked under."""

    def __init__(self, name, likes, root=None):
        self.corpus = SimpleNamespace(name=name, root=root or name)
        self.config = profiles.config("default")
        self._likes = likes

    def scores(self, values):
        return [float(values == heldout.tried()[self._likes])] * 2

    def answers(self, values):
        return [answer(f"{self.corpus.name}:q", 0.9 if not values else 0.7)]


def answer(name, value):
    asked = Question(name, "?", (Judged("a.md", 2),))
    return ScoredAnswer(asked, {"ndcg@10": value, "mrr@10": value})


def test_weights_are_chosen_on_the_other_corpora(monkeypatch):
    monkeypatch.setattr(heldout, "_better_leg", lambda corpus: [answer(f"{corpus.name}:q", 0.5)])

    one, other, all_ = heldout.weights([Told("one", 3), Told("other", 8)], heldout.tried())

    assert one["values"] == heldout.tried()[8]
    assert other["values"] == heldout.tried()[3]
    assert all_["chosen"]["ndcg@10"] == pytest.approx(0.7)
    assert all_["over_default"]["mean"] == pytest.approx(-0.2)
    assert all_["over_leg"]["mean"] == pytest.approx(0.2)


def test_questions_about_one_vault_are_left_out_together(monkeypatch):
    monkeypatch.setattr(heldout, "_better_leg", lambda corpus: [answer(f"{corpus.name}:q", 0.5)])
    corpora = [Told("judged", 3, "vault"), Told("typed", 3, "vault"), Told("other", 8)]

    judged, typed, _, _ = heldout.weights(corpora, heldout.tried())

    assert judged["values"] == typed["values"] == heldout.tried()[8]


def test_of_settings_that_chance_decides_among_the_middle_one_is_chosen():
    weights = heldout.CHOICES["fuse.weights.keyword"]
    settings = [heldout.tried()[0] | {"fuse.weights.keyword": each} for each in weights]
    noise = np.tile([0.2, -0.2], 20)
    equal = np.array([np.full(40, 0.5), *(np.full(40, 0.49) + noise for _ in weights[1:3])])
    worse = np.array([np.full(40, 0.3) + noise for _ in weights[3:]])

    found = heldout.chosen(settings, [np.vstack([equal, worse])])

    assert found["fuse.weights.keyword"] == weights[1]


@given(pools())
def test_what_chooses_sums_as_fusion_does(pool):
    """Exact hits aside, of which fusion lifts the best passage of a note only."""
    plain = [replace(each, exact="") for each in pool]
    ctx = context("default", fuse__exact=0)

    evidence, _ = heldout.known(plain, ctx)
    sums = dict(zip(ids(plain), heldout.summed(evidence, ctx.settings.fuse), strict=True))

    for each in fuse(plain, ctx):
        assert sums[each.id] == pytest.approx(each.score)


def test_the_settings_that_are_tried_are_always_the_same():
    assert heldout.tried() == heldout.tried()
    assert all(each.keys() == heldout.CHOICES.keys() for each in heldout.tried())


def test_a_hidden_link_is_hidden_both_ways_and_no_other():
    rows = [(1, 2, "link"), (2, 1, "link"), (1, 3, "link")]
    catalogue = SimpleNamespace(link_rows=lambda notes: rows, other="kept")

    hidden = related.Hidden(catalogue, frozenset((1, 2)))

    assert hidden.link_rows([1]) == [(1, 3, "link")]
    assert hidden.other == "kept"


def test_a_note_that_is_linked_directly_is_no_wrong_answer():
    near = Reason("links", 1, "")
    found = ({7: near}, {8: near}, {8: near, 9: near}, {})

    assert related.order(found, related.DEFAULT) == [8, 9]
