"""Boosts: the seeds' factors, and the bound of ours."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rank_kit import DAY, NOW, candidate, context, few, ids, names, note, pools

from ragvault.candidate import best_first
from ragvault.rank.boost import boost
from ragvault.types import Date

UNBOUNDED = {"boost__bounded": False}


def factor(ctx, **facts):
    """What the boosts make of a score of 1."""
    (found,) = boost([candidate(of=note(**facts), score=1.0)], ctx)
    return found.score


@pytest.mark.parametrize(("links", "times"), [(0, 1.0), (5, 1.5), (10, 2.0), (25, 2.0)])
def test_backlinks_as_the_seed_counts_them(links, times):
    assert factor(context(boost__backlinks__enabled=True), links=links) == pytest.approx(times)


def test_one_note_that_links_ten_times_is_one_voice():
    linked = {"links": 10, "linkers": 1}
    ctx = context(boost__backlinks__enabled=True, boost__backlinks__count="notes")

    assert factor(ctx, **linked) == 1.1


def test_on_a_log_scale_the_first_links_say_most_and_the_cap_the_same():
    ctx = context(boost__backlinks__enabled=True, boost__backlinks__scale="log")

    assert factor(ctx, links=10) == pytest.approx(2.0)
    assert factor(ctx, links=1) > 1.1


@pytest.mark.parametrize(
    ("days", "times"),
    [
        (0, 1.2),
        (13.99, 1.2),
        (14, 1.1),
        (59.99, 1.1),
        (60, 1.0),
        (179.99, 1.0),
        (180, 0.95),
        (9999, 0.95),
        (-3, 1.2),
    ],
)
def test_tiers_that_end_before_their_day(days, times):
    assert factor(context("ragtriever"), days=days) == pytest.approx(times)


@pytest.mark.parametrize(
    ("days", "times"), [(0, 1.2), (7, 1.2), (7.01, 1.1), (30, 1.1), (30.01, 1.0), (9999, 1.0)]
)
def test_tiers_that_end_with_their_day(days, times):
    ctx = context("ragdocs", boost__community__enabled=False)

    assert factor(ctx, days=days) == pytest.approx(times)


@pytest.mark.parametrize(("bias", "times"), [(0.0, 1.0), (0.3, 1.12), (0.5, 1.2), (0.8, 1.32)])
def test_bias_scales_a_tier(bias, times):
    assert factor(context("ragdocs", boost__recency__bias=bias), days=3) == pytest.approx(times)


def test_a_note_without_a_date_is_neither_new_nor_old():
    assert factor(context("ragtriever")) == 1.0


def test_the_date_that_counts_is_named():
    edited = NOW - 200 * DAY  # by its frontmatter or git: the file itself was written today
    facts = note(date=Date(NOW - 400 * DAY, "frontmatter"), modified=edited, file_time=NOW)
    by_file = boost([candidate(of=facts, score=1.0)], context("ragtriever"))
    by_note = boost(
        [candidate(of=facts, score=1.0)], context("ragtriever", boost__recency__date="note")
    )

    assert (by_file[0].score, by_note[0].score) == pytest.approx((1.2, 0.95))
    assert by_file[0].steps[0].terms[0].why == "0 days old by its file time"
    assert by_note[0].steps[0].terms[0].why == "400 days old by its frontmatter date"


def test_the_company_of_the_top_note_is_boosted_and_the_top_note_is_not():
    ctx = context(boost__community__enabled=True)
    pool = [
        candidate("auth", of=note("auth", community=3), score=1.0),
        candidate("login", of=note("login", community=3), score=0.5),
        candidate("other", of=note("other", community=4), score=0.4),
        candidate("alone", of=note("alone"), score=0.3),
    ]

    assert [c.score for c in boost(pool, ctx)] == pytest.approx([1.0, 0.55, 0.4, 0.3])


def test_so_many_of_the_top_notes_have_company():
    pool = [
        candidate("first", of=note("first", community=1), score=1.0),
        candidate("second", of=note("second", community=2), score=0.9),
        candidate("friend", of=note("friend", community=2), score=0.5),
    ]

    def factors(top):
        found = boost(pool, context(boost__community__enabled=True, boost__community__top=top))
        before = {each.id: each.score for each in pool}
        return {each.note.title: each.score / before[each.id] for each in found}

    assert factors(1) == pytest.approx({"first": 1.0, "second": 1.0, "friend": 1.0})
    assert factors(2) == pytest.approx({"first": 1.0, "second": 1.0, "friend": 1.1})
    assert factors(3) == pytest.approx({"first": 1.0, "second": 1.1, "friend": 1.1})


def test_notes_without_a_community_share_none():
    pool = [candidate("a", score=1.0), candidate("b", score=0.5)]

    assert boost(pool, context(boost__community__enabled=True)).kept == tuple(pool)


def test_importance_is_worth_ten_ranks():
    bonus = factor(context("recollection"), importance="high") - 1

    assert bonus == pytest.approx(1 / 61 - 1 / 71)
    assert bonus == pytest.approx(0.0023, abs=5e-5)


def test_access_is_a_share_of_the_most_opened():
    ctx = context(boost__access__enabled=True)
    pool = [candidate("a", of=note("a", access=4), score=1.0), candidate("b", score=1.0)]

    assert [c.score for c in boost(pool, ctx)] == pytest.approx([1.1, 1.02])


def test_a_hub_passes_sixty_ranks_of_a_flat_list_where_nothing_holds_it():
    """The trap of the seed: 2 / (60 + 61) is more than 1 / (60 + 1)."""
    pool = [candidate(f"n{at:02}", score=1 / (60 + at)) for at in range(1, 61)]
    hub = candidate("hub", of=note("hub", links=10, linkers=10), score=1 / (60 + 61))

    assert names(boost([*pool, hub], context("ragtriever")))[0] == "hub"
    shown = names(boost([*pool, hub], context("default")))
    assert shown.index("hub") > 40, "it comes nowhere near the ten that are shown"


def lineage():
    """A note, the one that replaced it, and the one that replaced that; the oldest fits best."""
    new = candidate("new", of=note("new", id=1), score=0.3)
    old = [
        candidate("old", of=note("old", id=2, superseded_by=(1,)), ordinal=i, score=0.9 - i / 10)
        for i in (0, 1)
    ]
    older = candidate("older", of=note("older", id=3, superseded_by=(2,)), score=1.0)
    return [older, *old, new]


def test_a_note_takes_the_place_of_the_one_that_it_replaces():
    between, last = candidate("between", score=0.5), candidate("last", score=0.1)

    found = boost([*lineage(), between, last], context("default"))

    assert names(found) == ["new", "old", "older", "old", "between", "last"]
    assert found[0].score == 1.0
    assert found[0].steps[-1].terms[-1].why == "replaces old and takes its place"


def test_a_note_that_was_replaced_keeps_its_place_where_its_successor_was_not_found():
    old = candidate("old", of=note("old", superseded_by=(77,)), score=0.9)

    assert names(boost([old, candidate("b", score=0.5)], context("default"))) == ["old", "b"]


def test_notes_that_replace_each_other_stay_as_they_are():
    one = candidate("one", of=note("one", id=1, superseded_by=(2,)), score=0.9)
    two = candidate("two", of=note("two", id=2, superseded_by=(1,)), score=0.5)

    assert names(boost([one, two], context("default"))) == ["one", "two"]


def test_what_was_asked_for_by_name_is_shown_though_it_was_replaced():
    new = candidate("new", of=note("new", id=1), score=0.3)
    old = candidate("old", of=note("old", id=2, superseded_by=(1,)), score=2.0, exact="title")

    assert names(boost([old, new], context("default"))) == ["old", "new"]


def test_no_note_inherits_a_place_before_an_exact_hit():
    new = candidate("new", of=note("new", id=1), score=0.3)
    old = candidate("old", of=note("old", id=2, superseded_by=(1,)), score=0.9)
    asked = candidate("wanted", of=note("wanted", id=9), score=0.5, exact="phrase")

    # By its path the new one would win a tie, and the old one was above from the start.
    assert names(boost([old, new, asked], context("default"))) == ["wanted", "new", "old"]


# Laws

STRONG = {
    "boost__backlinks__weight": 0.5,
    "boost__recency__bias": 1.0,
    "boost__community__factor": 3.0,
    "boost__access__enabled": True,
}


@given(pools(scored=True), st.floats(0, 1), st.integers(1, 5))
def test_bounded_boosts_lift_nothing_too_far_and_over_no_exact_hit(pool, most, wanted):
    ctx = replace(context("default", boost__max_rise=most, **STRONG), limit=wanted)
    scores = [each.score for each in best_first(pool) if not each.exact]
    spread = scores[0] - scores[min(wanted, len(scores)) - 1] if scores else 0.0
    found = boost(pool, ctx)
    was = {each.id: each.score for each in pool}
    before, after = ids(best_first(pool)), ids(found)
    exact = [each.id for each in pool if each.exact]

    for each in found:
        assert each.exact or each.score <= was[each.id] + most * spread + 1e-9
    for each in after:
        for hit in exact:
            if before.index(hit) < before.index(each):
                assert after.index(hit) < after.index(each)


@given(pools(scored=True), st.booleans())
def test_scores_are_the_order_and_their_terms_make_them(pool, bounded):
    found = boost(pool, context("default", boost__bounded=bounded, **STRONG))

    assert list(found) == best_first(found)
    for each in found:
        if each.steps:
            assert each.steps[-1].total == pytest.approx(each.score, abs=1e-9)


@given(st.floats(-5, 5), st.integers(0, 30), st.floats(0, 60))
def test_what_is_boosted_never_falls_and_what_is_damped_never_rises(score, links, days):
    up = {
        "boost__backlinks__enabled": True,
        "boost__backlinks__weight": 0.5,
        "boost__recency__enabled": True,
    }
    facts = note("Templates/a", links=links, days=days)

    (raised,) = boost([candidate(of=facts, score=score)], context(**up))
    (damped,) = boost([candidate(of=facts, score=score)], context(boost__templates__enabled=True))

    assert raised.score >= score >= damped.score
    for each in (raised, damped):
        assert all(step.total == pytest.approx(each.score, abs=1e-9) for step in each.steps)


def test_a_hub_below_zero_rises_and_a_template_falls():
    ctx = context("default", boost__bounded=False)
    hub = candidate("hub", of=note("hub", linkers=10), score=-0.101)
    form = candidate("x", of=note("Templates/x"), score=-0.099)

    found = boost([hub, candidate("plain", score=-0.1), form], ctx)
    assert names(found) == ["hub", "plain", "Templates/x"]


@few
@given(pools(scored=True))
def test_a_boost_within_the_bound_is_not_changed_by_it(pool):
    plain = [replace(each, exact="") for each in pool]
    ctx = replace(context("default", boost__max_rise=1.0), limit=len(plain))
    held, free = boost(plain, ctx), boost(plain, replace(ctx, settings=_unbounded(ctx.settings)))
    spread = max(c.score for c in plain) - min(c.score for c in plain) if plain else 0.0
    was = {each.id: each.score for each in plain}
    for each in free:
        if each.score - was[each.id] <= spread:
            assert each.score == next(c.score for c in held if c.id == each.id)


def _unbounded(settings):
    return replace(settings, boost=replace(settings.boost, bounded=False))


def test_boosts_do_not_shuffle_a_flat_list_more_than_a_steep_one():
    """What counts is the distance to the best, not the number of ranks."""

    def order(gap):
        pool = [candidate(f"n{at}", score=1.0 - at * gap) for at in range(9)]
        hub = candidate("hub", of=note("hub", links=10, linkers=10), score=1.0 - 9 * gap)
        return names(boost([*pool, hub], context("default"))).index("hub")

    assert order(0.0001) == order(0.001) >= 5
    assert order(0.05) >= 5


@pytest.mark.parametrize(
    ("path", "times"),
    [
        ("Templates/Meeting", 0.5),
        ("work/_templates/a", 0.5),
        ("Templates", 1.0),
        ("templates of old/a", 1.0),
    ],
)
def test_a_template_stands_back(path, times):
    ctx = context(boost__templates__enabled=True)
    (found,) = boost([candidate(of=note(path), score=1.0)], ctx)
    assert found.score == times


def test_a_template_asked_for_by_its_name_comes_first():
    ctx = context("default")
    asked = candidate("form", of=note("Templates/form"), score=2.0, exact="title")
    other = candidate("other", of=note("other"), score=0.9)
    assert names(boost([asked, other], ctx)) == ["Templates/form", "other"]


@given(pools(scored=True), st.dictionaries(st.integers(0, 4), st.integers(0, 4), max_size=3))
def test_succession_puts_no_old_note_first_and_nothing_before_an_exact_hit(pool, newer):
    """Successors have the greater number, so that no two replace each other."""
    after = {old: new for old, new in newer.items() if old < new}

    def told(each):
        by = after.get(each.note.id)
        facts = replace(each.note, superseded_by=(by,) if by else ())
        return replace(each, passage=replace(each.passage, note=facts))

    found = list(boost([told(each) for each in pool], context("default", boost__max_rise=0.0)))
    best = {each.note.id: at for at, each in reversed(list(enumerate(found)))}
    for at, each in enumerate(found):
        if not each.exact:
            assert at > best.get(after.get(each.note.id), -1)
        else:
            # All of them: right before an exact hit stands the old note, which was there already.
            assert all(other.exact or before(other, each, pool) for other in found[:at])


def before(one, other, pool):
    """Whether one stood before the other from the start."""
    order = ids(best_first(pool))
    return order.index(one.id) < order.index(other.id)
