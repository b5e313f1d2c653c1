"""Several queries, one list: the laws of fusing them, and a search that asks them all."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rank_kit import candidate
from vault_kit import indexed_sample, ragvault, sample

import ragvault.search as read_path
from ragvault.errors import UsageError
from ragvault.rank.queries import fuse_queries
from ragvault.search import requests_of, search
from ragvault.types import SearchRequest
from ragvault.vault import Vault

__all__ = ["indexed_sample", "sample"]

NOW = datetime(2026, 3, 1, tzinfo=timezone.utc)
LISTS = st.lists(
    st.lists(st.tuples(st.sampled_from("abcdefgh"), st.floats(0, 1)), unique_by=lambda p: p[0]),
    min_size=1,
    max_size=4,
)


def made(names):
    return [replace(candidate(name), confidence=sure) for name, sure in names]


@given(LISTS)
def test_every_candidate_is_kept_once_with_all_queries_that_found_it(names):
    fused = fuse_queries([made(each) for each in names])

    found = {each.note.title: each.queries for each in fused}
    assert len(found) == len(fused)
    expected = {name for each in names for name, _ in each}
    assert set(found) == expected
    for name, queries in found.items():
        assert list(queries) == [at for at, each in enumerate(names) if name in dict(each)]


@given(LISTS)
def test_the_steps_add_up_to_the_score_that_orders_the_list(names):
    fused = fuse_queries([made(each) for each in names])

    assert [each.score for each in fused] == sorted((each.score for each in fused), reverse=True)
    assert all(each.steps[-1].total == pytest.approx(each.score) for each in fused)


@given(st.lists(st.sampled_from("abcdefgh"), unique=True), st.floats(0.01, 1))
def test_the_same_list_twice_stays_in_its_order(names, sure):
    once = made((name, sure) for name in names)

    assert [each.note.title for each in fuse_queries([once, once])] == names


def test_the_surest_of_two_finds_is_shown():
    weak, sure = made([("a", 0.3)]), made([("a", 0.8)])
    (fused,) = fuse_queries([weak, sure])
    assert (fused.confidence, fused.queries) == (0.8, (0, 1))


def test_a_query_that_finds_nothing_good_hardly_moves_the_first_one():
    good = made([("a", 0.9), ("b", 0.8), ("c", 0.7)])
    bad = made([("z", 0.05), ("y", 0.04)])
    assert [each.note.title for each in fuse_queries([good, bad])][:3] == ["a", "b", "c"]


# --- the whole search ---


def asked(*queries: str, **more):
    return SearchRequest(queries[0], NOW, more.pop("limit", 5), also=queries[1:], **more)


def test_several_queries_are_one_answer_without_duplicates(sample):
    with Vault.open(sample).corpus() as corpus:
        both = search(asked("steam oven", "rye flour"), corpus)
        alone = [search(asked(query), corpus) for query in ("steam oven", "rye flour")]

    sections = [each.passage.section for each in both.results]
    assert len(set(sections)) == len(sections) == 5
    assert {each.queries for each in both.results} >= {(0,), (1,)}
    assert both.results[0].id == alone[0].results[0].id
    pool = {each.id for each in (*alone[0].stage("rerank"), *alone[1].stage("rerank"))}
    assert {each.id for each in both.results} <= pool
    assert [plan.query for plan in both.plans] == ["steam oven", "rye flour"]


def test_the_legs_of_all_queries_are_started_before_one_is_waited_for(sample, monkeypatch):
    events = []
    start, wait = read_path.start_legs, read_path.retrieve
    monkeypatch.setattr(read_path, "start_legs", lambda *a: (events.append("start"), start(*a))[1])
    monkeypatch.setattr(read_path, "retrieve", lambda *a: (events.append("wait"), wait(*a))[1])
    with Vault.open(sample).corpus() as corpus:
        search(asked("steam", "rye", "water"), corpus)
    assert events == ["start"] * 3 + ["wait"] * 3


def test_the_same_query_twice_is_one_query(sample):
    (one, other), *_ = (requests_of(asked("a", "b", "a", hypothesis="text")),)
    assert (one.query, other.query, one.hypothesis, other.hypothesis) == ("a", "b", "text", None)


def test_too_many_queries_are_refused(sample):
    with pytest.raises(UsageError, match="9 queries"):
        requests_of(asked(*map(str, range(9))))


def test_a_filter_alone_may_be_one_of_the_queries(sample):
    found = ragvault("search", "steam", "--also", "tag:recipe", "--json").json
    assert found["queries"] == ["steam", "tag:recipe"]
    assert any("tag:recipe" in each["queries"] for each in found["results"])


def test_text_and_json_say_which_queries_found_a_result(sample):
    args = ("search", "steam oven", "--also", "vapour in the oven", "-n", "3")
    found = ragvault(*args, "--json").json
    assert found["queries"] == ["steam oven", "vapour in the oven"]
    assert all(set(each["queries"]) <= set(found["queries"]) for each in found["results"])
    assert "queries 1, 2" in ragvault(*args).out
    assert "queries" not in ragvault("search", "steam oven", "--json").json
    explained = ragvault(*args, "--explain").out
    assert explained.count("Understood as:") == 2
    assert "query 1 +" in explained


def test_a_hypothesis_may_be_combined(sample):
    args = ("search", "steam", "--also", "rye", "--hypothesis", "vapour keeps the crust soft")
    assert ragvault(*args, "--json").json["results"]


def test_a_mistake_in_any_query_is_an_error(sample):
    said = ragvault("search", "steam", "--also", "since:soon")
    assert said.code == 2
    assert "soon" in said.err
