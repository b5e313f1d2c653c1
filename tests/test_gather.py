"""Gathering: a leg that hangs costs its own answer and nothing else."""

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from ragvault.candidate import Hit
from ragvault.config_query import Retrieve
from ragvault.retrieve.fill import fill
from ragvault.retrieve.gather import gather
from ragvault.retrieve.legs import Found

LEGS = ("vector", "keyword", "code")


class Leg:
    """Finds one passage; hangs while `stuck` is set to an event that nobody has set."""

    def __init__(self, name, stuck=None):
        self.name, self._stuck = name, stuck

    def search(self, plan, limit, allowed):
        if self._stuck:
            self._stuck.wait()
        hits = (Hit(1 + LEGS.index(self.name), 1, 1.0),)
        return Found(hits, score_of=lambda ids: Found(tuple(Hit(each, 0, 0.5) for each in ids)))


class Library:
    def candidates(self, ids, soon):
        return {}

    def notes_of(self, ids):
        return {}


@pytest.fixture
def stuck():
    event = threading.Event()
    yield event
    event.set()


def test_searches_go_on_when_a_hanging_leg_holds_every_thread(stuck):
    legs = [Leg("vector"), Leg("keyword"), Leg("code", stuck)]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(6):
            gathered = gather(
                SimpleNamespace(phrases=()),
                legs,
                Library(),
                Retrieve(legs=list(LEGS)),
                allowed=dict.fromkeys([*LEGS, "graph"]),
                depth=1,
                pool=pool,
                seconds=0.05,
            )
            assert "no answer within" in {run.leg: run.failed for run in gathered.runs}["code"]
        stuck.set()


def test_scores_that_do_not_come_are_told_and_left_out(stuck):
    found = {leg: Leg(leg).search(None, 1, None) for leg in LEGS}

    def never(ids):
        stuck.wait()

    found["keyword"] = Found(found["keyword"].hits, score_of=never)
    trouble = {}
    with ThreadPoolExecutor(3) as pool:
        fill(found, "score", trouble, pool, 0.05)
        stuck.set()
    assert trouble == {"keyword": "no scores of what other legs found within 0.05 s"}
    assert [hit.chunk for hit in found["vector"].more] == [2, 3]
    assert found["keyword"].more == ()
