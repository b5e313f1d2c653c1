"""Fitting the confidence: the curve that judged results call for, and what it costs."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.confidence import MOST_HELD, Curve, Held, Shown, brier, chosen_threshold, fit_curve

EVIDENCE = [at / 500 for at in range(1000)]


def drawn(curve: Curve, seed: int = 0) -> list[Shown]:
    """Results that are right as often as the curve says."""
    chance = random.Random(seed)
    return [Shown(each, chance.random() < curve.confidence(each)) for each in EVIDENCE]


@pytest.mark.parametrize("curve", [Curve(0.4, 8.0), Curve(0.9, 4.0), Curve(1.2, 15.0)])
def test_the_curve_that_made_the_results_is_found_again(curve):
    found = fit_curve(drawn(curve))

    assert found.threshold == pytest.approx(curve.threshold, abs=0.06)
    assert found.steepness == pytest.approx(curve.steepness, rel=0.25)


def test_a_fitted_curve_costs_less_on_other_results_than_a_wrong_one():
    right, wrong = Curve(0.4, 8.0), Curve(0.8, 8.0)
    unseen = drawn(right, seed=1)

    assert brier(unseen, fit_curve(drawn(right))) < brier(unseen, wrong) - 0.02


@given(st.lists(st.tuples(st.floats(0, 3), st.booleans()), max_size=40))
def test_every_set_of_results_has_a_curve_that_settings_accept(pairs):
    found = fit_curve([Shown(evidence, right) for evidence, right in pairs])

    assert 0 <= found.threshold <= 5
    assert 0.5 <= found.steepness <= 50


def test_who_is_sure_and_right_costs_nothing():
    sharp = Curve(0.5, 50.0)

    assert brier([Shown(1.0, True), Shown(0.0, False)], sharp) < 1e-6
    assert brier([Shown(1.0, False), Shown(0.0, True)], sharp) > 0.99


CONFIDENCES = st.lists(st.floats(0, 1), min_size=1, max_size=40)


@given(st.lists(CONFIDENCES, min_size=1, max_size=4))
def test_the_chosen_threshold_holds_back_few_of_every_vault(vaults):
    answerable = [[Held(True, each) for each in confidences] for confidences in vaults]
    others = [Held(False, 0.0)] * 9  # which nothing keeps from being held back

    chosen = chosen_threshold([[*each, *others] for each in answerable])

    for confidences in vaults:
        assert sum(each < chosen for each in confidences) <= MOST_HELD * len(confidences)
