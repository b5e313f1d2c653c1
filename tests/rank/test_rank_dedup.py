"""Dedup: what counts as the same, which of them stays, and what is said about the others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rank_kit import candidate, context, few, ids, names, note, pools

from ragvault.candidate import Step, Term
from ragvault.rank.dedup import SimilarNgrams, dedup, jaccard, ngrams

ON = {"dedup__enabled": True}


def text(name, words, **more):
    return candidate(name, passage={"text": words}, **more)


def test_the_same_text_is_removed_and_named_after_the_one_that_stays():
    pool = [text("a", "Bread."), text("b", "Bread.\n"), text("c", "Cheese.")]
    found = dedup(pool, context(**ON))

    assert names(found) == ["a", "c"]
    (gone,) = found.removed
    assert (gone.candidate.note.title, gone.reason, gone.by.note.title) == (
        "b",
        "the same text",
        "a",
    )


def test_the_seeds_two_sentences_share_44_of_53_trigrams():
    a = ngrams("Configure the authentication settings in config.toml", 3)
    b = ngrams("Configure authentication settings in the config.toml file", 3)

    assert (len(a & b), len(a | b)) == (44, 53)
    # The seed counts 41 of 59, which is 0.69 and below its threshold; there are 46 and 51.
    assert jaccard(a, b) == pytest.approx(0.830, abs=5e-4)


def test_near_copies_are_removed_from_the_threshold_on():
    a = text("a", "Configure the authentication settings in config.toml")
    b = text("b", "Configure authentication settings in the config.toml file")
    same = 44 / 53

    near = context(**ON, dedup__jaccard=same)
    apart = context(**ON, dedup__jaccard=same + 1e-9)

    assert names(dedup([a, b], near)) == ["a"]
    assert names(dedup([a, b], apart)) == ["a", "b"]


def test_texts_too_short_for_an_n_gram_are_left_to_the_hash():
    pool = [text("a", "ab"), text("b", "ab")]

    assert SimilarNgrams(3, 0.7)(pool) == {}


def test_nearly_the_same_vector_is_the_same():
    vectors = {1: np.array([1.0, 0.0]), 2: np.array([0.96, 0.28]), 3: np.array([0.0, 1.0])}
    pool = [candidate(name, id=at) for at, name in enumerate("abcd", 1)]
    found = dedup(pool, context(**ON, dedup__jaccard=1.0, vectors=vectors))

    assert names(found) == ["a", "c", "d"]
    assert found.removed[0].reason == "cosine 0.960"


def test_the_newest_copy_takes_the_place_of_the_best():
    old = text("old", "Bread.", of=note("old", days=90), score=0.9)
    new = text("new", "Bread.", of=note("new", days=1), score=0.2)
    other = text("other", "Cheese.", of=note("other", days=0), score=0.5)
    ctx = context(**ON, dedup__keep="newest")
    found = dedup([old, other, new], ctx)

    assert [(c.note.title, c.score) for c in found] == [("new", 0.9), ("other", 0.5)]
    assert found[0].steps[-1].terms[0].why == "in place of an older copy in old.md"


def test_what_was_asked_for_by_its_very_name_gives_way_to_no_copy():
    lift = Step("fuse", 0.0, 0.9, (Term("exact", 0.9),))
    old = text("asked", "Bread.", of=note("asked", days=90), score=0.9, exact="title")
    new = text("new", "Bread.", of=note("new", days=1), score=0.2)
    ctx = context(**ON, dedup__keep="newest")

    assert names(dedup([replace(old, steps=(lift,)), new], ctx)) == ["asked"]


@pytest.mark.parametrize("keep", ["best", "newest"])
def test_all_that_were_asked_for_by_their_very_name_stay(keep):
    lift = Step("fuse", 0.0, 0.9, (Term("exact", 0.9),))
    pool = [
        replace(text(name, "Bread.", score=1 - at / 10, exact="title"), steps=(lift,))
        for at, name in enumerate("ab")
    ]
    pool.append(text("c", "Bread.", score=0.2))
    ctx = context(**ON, dedup__keep=keep)

    assert names(dedup(pool, ctx)) == ["a", "b"]


def test_the_newest_copy_is_as_sure_as_the_one_it_stands_for():
    old = text("old", "Bread.", of=note("old", days=90), score=0.9)
    new = text("new", "Bread.", of=note("new", days=1), score=0.2)
    pool = [replace(old, confidence=0.8, band="good"), replace(new, confidence=0.1, band="noise")]
    (found,) = dedup(pool, context(**ON, dedup__keep="newest"))

    assert (found.note.title, found.confidence, found.band) == ("new", 0.8, "good")


def test_copies_are_sought_until_enough_are_left():
    pool = [text(f"n{at}", "same" if at < 4 else f"other {at}") for at in range(9)] + [
        text("z", "other 4")
    ]
    ctx = context(**ON, dedup__reach=1, limit=3)

    assert names(dedup(pool, ctx)) == ["n0", "n4", "n5", "n6", "n7", "n8", "z"]


words = st.lists(
    st.sampled_from(["abc", "abd", "xyz", "hello ", "w\u00f6rld", "\U0001f600"]), max_size=30
)


@given(st.lists(words.map("".join), min_size=2, max_size=8), st.floats(0.05, 1))
def test_no_pair_above_the_threshold_is_missed(texts, threshold):
    pairs = {(i, j) for i, a in enumerate(texts) for j, b in enumerate(texts[:i])
             if jaccard(ngrams(a, 3), ngrams(b, 3)) >= threshold}  # fmt: skip

    found = SimilarNgrams(3, threshold)([text(str(at), each) for at, each in enumerate(texts)])
    assert {(i, j) for i, before in found.items() for j in before} == pairs


@given(st.lists(words.map("".join), min_size=2, max_size=8), st.floats(0.05, 1), st.data())
def test_what_was_compared_before_changes_no_answer(texts, threshold, data):
    pool = [text(str(at), each) for at, each in enumerate(texts)]
    first = data.draw(st.integers(0, len(pool)))
    same = SimilarNgrams(3, threshold)
    copies = same(pool[:first])
    left = [each for at, each in enumerate(pool) if at not in copies]

    assert same(left) == SimilarNgrams(3, threshold)(left)


@few
@pytest.mark.parametrize("keep", ["best", "newest"])
@pytest.mark.parametrize("reach", [0, 1])
@given(pool=pools(scored=True))
def test_dedup_twice_is_dedup_once(keep, reach, pool):
    pool.sort(key=lambda each: -each.score)
    vectors = {each.id: np.array([each.scores["vector"], 1.0]) / 2**0.5 for each in pool}
    ctx = context("ragdocs", dedup__keep=keep, dedup__reach=reach, limit=3, vectors=vectors)
    once = dedup(pool, ctx)

    assert dedup(once, ctx).kept == once.kept
    assert sorted(ids(once) + [r.candidate.id for r in once.removed]) == sorted(ids(pool))


def test_texts_that_could_not_be_read_are_no_copies_of_each_other():
    gone = [text("a", "", score=0.9), text("b", "", score=0.8)]
    assert len(dedup(gone, context(**ON)).kept) == 2
