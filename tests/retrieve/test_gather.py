"""Gathering: a leg that hangs costs its own answer and nothing else."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from types import SimpleNamespace

import pytest
from msgspec.structs import replace
from rank_kit import DAY, NOW, candidate, names, note

from ragvault.candidate import Hit
from ragvault.config import profiles
from ragvault.ports import VaultFacts
from ragvault.retrieve.gather import LegHits, add_lists, fill, gather, start_legs
from ragvault.types import Date, SearchRequest

LEGS = ("vector", "keyword", "code")


def leg(name, stuck=None):
    """Finds one passage; hangs while `stuck` is an event that nobody has set."""

    def search(corpus, plan, limit, scope):
        if stuck:
            stuck.wait()
        hits = (Hit(1 + LEGS.index(name), 1, 1.0),)
        return LegHits(hits, score=lambda ids: LegHits(tuple(Hit(each, 0, 0.5) for each in ids)))

    return search


class Corpus:
    """Knows no passage and no link."""

    config = profiles.config("default")
    config = replace(config, retrieve=replace(config.retrieve, legs=list(LEGS)))
    facts = VaultFacts(searchable=frozenset({"vector", "keyword"}), passages=9)
    model_is_loaded = True

    def __init__(self, pool):
        self.pool = pool

    def scope(self, tree):
        return None

    def passages(self, passages, texts=()):
        return {}

    def neighbours(self, seeds, depth):
        return []


@pytest.fixture
def stuck():
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def pool(stuck):
    """Four threads, which are let go also where a test fails."""
    with ThreadPoolExecutor(4) as threads:
        yield threads
        stuck.set()


def test_searches_go_on_when_a_hanging_leg_holds_every_thread(stuck, pool, monkeypatch):
    monkeypatch.setattr(
        "ragvault.retrieve.gather.SEARCHES",
        {"vector": leg("vector"), "keyword": leg("keyword"), "code": leg("code", stuck)},
    )
    plan, corpus = SimpleNamespace(phrases=(), listing=False, filter=None), Corpus(pool)
    for _ in range(6):
        started = start_legs(plan, SearchRequest("q", datetime.now()), corpus)
        gathered = gather(plan, started, corpus, 0.05)
        assert {run.leg: run.failed for run in gathered.runs}["code"] == "no answer within 0.05 s"


def test_only_the_vector_leg_waits_for_its_model(stuck, pool, monkeypatch):
    monkeypatch.setattr("ragvault.retrieve.gather.MODEL_LOADING", 0.2)
    late = {"vector": leg("vector", stuck), "keyword": leg("keyword", stuck), "code": leg("code")}
    monkeypatch.setattr("ragvault.retrieve.gather.SEARCHES", late)
    plan, corpus = SimpleNamespace(phrases=(), listing=False, filter=None), Corpus(pool)
    corpus.model_is_loaded = False
    started = start_legs(plan, SearchRequest("q", datetime.now()), corpus)
    failed = {run.leg: run.failed for run in gather(plan, started, corpus, 0.05).runs}
    assert failed["keyword"] == "no answer within 0.05 s"
    assert failed["vector"] == "no answer within 0.25 s"


def test_scores_that_do_not_come_are_told_and_left_out(stuck, pool):
    found = {name: leg(name)(None, None, 1, None) for name in LEGS}

    def never(ids):
        stuck.wait()

    found["keyword"] = LegHits(found["keyword"].hits, score=never)
    trouble = {}
    found = fill(found, LEGS, trouble, pool, 0.05)
    assert trouble == {"keyword": "no scores of what other legs found within 0.05 s"}
    assert [hit.passage for hit in found["vector"].filled] == [2, 3]
    assert found["keyword"].filled == ()


# Filling


def both_lists():
    """Two lists of two hits each, which share none; the vector leg knows two cosines alike."""
    cosines, words = {1: 0.9, 2: 0.5, 3: 0.5, 4: 0.7}, {3: 9.0, 4: 5.0, 1: 2.0, 2: 0.0}

    def knows(scores):
        return lambda ids: LegHits(tuple(Hit(each, 0, scores[each]) for each in ids))

    return {
        "vector": LegHits((Hit(1, 1, 0.9), Hit(2, 2, 0.5)), score=knows(cosines)),
        "keyword": LegHits((Hit(3, 1, 9.0), Hit(4, 2, 5.0)), score=knows(words)),
    }


def filled(legs):
    found = both_lists()
    with ThreadPoolExecutor(1) as pool:
        return fill(found, legs, {}, pool, 5.0)


def test_a_leg_that_is_filled_by_rank_ranks_every_candidate_and_equal_scores_share_a_place():
    found = filled(["vector"])

    assert [(hit.passage, hit.rank) for hit in found["vector"].hits] == [
        (1, 1),
        (4, 2),
        (2, 3),
        (3, 3),
    ]


def test_a_list_that_is_not_filled_ends_where_it_ends():
    found = filled(["vector"])

    assert [(hit.passage, hit.rank) for hit in found["keyword"].hits] == [(3, 1), (4, 2)]
    assert found["keyword"].filled == ()


# Lists


def recency(*notes):
    return {each.note.title: each for each in add_lists(map(candidate_of, notes), ["recency"])}


def candidate_of(facts):
    return candidate(of=facts)


def test_notes_of_one_day_share_a_place_and_the_newest_day_comes_first():
    midnight = NOW // DAY * DAY
    found = recency(
        note("old", date=Date(midnight - 9 * DAY, "name")),
        note("evening", date=Date(midnight + DAY - 1, "mtime")),
        note("undated"),
        note("morning", date=Date(midnight + 1, "mtime")),
        note("yesterday", date=Date(midnight - 1, "mtime")),
        note("ancient", date=Date(-5 * DAY, "name")),
    )

    assert {name: each.ranks["recency"] for name, each in found.items()} == {
        "evening": 1,
        "morning": 1,
        "yesterday": 2,
        "old": 3,
        "ancient": 4,
        "undated": 5,
    }
    assert found["evening"].scores == {"recency": midnight}
    assert found["undated"].scores == {}


def test_notes_opened_equally_often_share_a_place():
    pool = [candidate(of=note(name, access=n)) for name, n in (("a", 0), ("b", 7), ("c", 0))]
    pool.append(candidate(of=note("d", access=2)))
    found = add_lists(pool, ["access"])

    assert names(found) == ["a", "b", "c", "d"]
    assert [each.ranks["access"] for each in found] == [3, 1, 3, 2]
