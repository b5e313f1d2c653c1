"""The vocabulary: chosen the same way every time, near to a query."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from vector_shelf import vector_of, vectors_of

from ragvault.index.vocabulary import choose, concepts, expand, term_changes, usual_cosine

words = st.sampled_from(["rye", "oven", "crust", "salt", "flour", "steam"])


def test_concepts_are_words_of_letters_neither_short_nor_long_nor_stopped():
    tokens = ["the", "rye", "of", "v2", "1384", "snake_case", "~sauer", "käse", "x" * 31]
    counts = dict.fromkeys(tokens, 3)
    assert concepts(counts, stop_words={"the"}) == {"rye": 3, "käse": 3}


def test_pairs_of_unspaced_scripts_are_concepts_and_single_characters_are_not():
    tokens = ["黑豹", "豹", "日本", "안녕", "วั", "ab", "🎉", "🇩🇪", "黑a"]
    assert concepts(dict.fromkeys(tokens, 3)).keys() == {"黑豹", "日本", "안녕", "วั"}


def test_of_a_words_forms_the_commonest_stands_for_all():
    counts = {"oven": 4, "ovens": 9, "~oven": 11, "rye": 3, "ryes": 3}
    stem = {"oven": "~oven", "ovens": "~oven", "rye": "~rye", "ryes": "~rye"}
    assert concepts(counts, stem.__getitem__) == {"ovens": 11, "rye": 3}


def test_concepts_are_neither_rare_nor_everywhere():
    assert choose({"bread": 200, "sourdough": 20, "slip": 1, "other": 80}, 301) == ["sourdough"]


@pytest.mark.parametrize("passages", [0, 1, 2])
def test_words_of_removed_passages_are_no_concepts(passages):
    assert choose({"gone": 5, "slip": 3}, passages) == []


def test_the_score_prefers_what_is_used_again_and_again_in_a_part():
    counts = {"rare": 3, "middle": 100, "common": 999, "half": 5000}
    assert choose(counts, 10_000) == ["middle", "common", "rare"]
    assert choose(counts, 10_000, limit=1) == ["middle"]


@given(st.permutations([f"{a}{b}" for a in "abcde" for b in "vwxyz"]))
def test_the_choice_does_not_depend_on_the_order_of_counting(order):
    assert choose(dict.fromkeys(order, 5), 1000, limit=7) == sorted(order)[:7]


def test_only_new_terms_are_embedded_and_dropped_ones_forgotten():
    assert term_changes(["rye", "oven", "crust"], ["oven", "old"]) == term_changes(
        ["rye", "oven", "crust"], ["old", "oven"]
    )
    made = term_changes(["rye", "oven", "crust"], ["oven", "old"])
    assert made == (["rye", "crust"], ["old"])


@given(st.lists(words, unique=True), st.sets(words))
def test_following_a_plan_ends_with_the_chosen_terms(chosen, have):
    embed, forget = term_changes(chosen, have)
    assert (have | set(embed)) - set(forget) == set(chosen)
    assert not set(embed) & have


# --- Expansion ---

TERMS = ["crust", "crumb", "oven", "rye"]
MATRIX = vectors_of(["bread crust", "bread crumb", "oven", "rye"])


def test_the_nearest_terms_above_the_threshold_are_given_best_first():
    query = vector_of("bread crust")
    found = expand(query, TERMS, MATRIX, min_cosine=0.2)
    assert [term for term, _ in found[:2]] == ["crust", "crumb"]
    assert all(cosine >= 0.2 for _, cosine in found)
    assert len(expand(query, TERMS, MATRIX, top=1, min_cosine=-1)) == 1


def test_the_words_of_the_query_are_no_expansion_of_it():
    found = expand(vector_of("bread crust"), TERMS, MATRIX, min_cosine=0.2, own={"crust"})
    assert found[0][0] == "crumb"


def test_equal_terms_are_in_the_order_of_the_alphabet():
    same = np.stack([vector_of("rye")] * 3)
    assert [t for t, _ in expand(vector_of("rye"), ["c", "a", "b"], same)] == ["a", "b", "c"]


def test_an_empty_vocabulary_expands_nothing():
    assert expand(vector_of("rye"), [], np.empty((0, 16), np.float32)) == []
    assert usual_cosine(np.empty((0, 16), np.float32), 99) == 1.0


def test_a_percentile_of_the_models_own_cosines_shuts_out_what_is_merely_usual():
    """All terms of this model lie close together: a fixed 0.5 lets every pair through."""
    crowded = vectors_of(f"bread bread bread bread {i}" for i in range(1500))
    usual = usual_cosine(crowded, 99.9)
    query = crowded[0]
    assert len(expand(query, [str(i) for i in range(1500)], crowded, top=2000)) > 1000
    near = expand(query, [str(i) for i in range(1500)], crowded, top=2000, min_cosine=usual)
    assert 1 <= len(near) < 30
    assert usual == usual_cosine(crowded, 99.9)
