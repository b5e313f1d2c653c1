"""Models are opened once for everyone who asks for the same ones."""

from __future__ import annotations

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from ragvault.config.settings import Models
from ragvault.errors import ModelUnknown
from ragvault.models import load
from ragvault.models.load import POOLED, ModelPool, load_options
from ragvault.ports import Progress

SETTINGS = Models(embedder="fake")
HOW = load_options(SETTINGS, Progress())


def test_many_threads_get_one_model():
    pool = ModelPool()
    with ThreadPoolExecutor(8) as threads:
        found = set(threads.map(lambda _: id(pool.embedder("fake", SETTINGS, HOW)), range(100)))

    assert len(found) == 1


def test_a_model_is_the_same_by_its_short_and_by_its_full_name():
    pool = ModelPool()
    short = pool.embedder("fake", SETTINGS, HOW)

    assert pool.embedder(short.name, SETTINGS, HOW) is short


def test_other_settings_are_another_model():
    pool = ModelPool()
    one = pool.embedder("fake", SETTINGS, HOW)

    assert pool.embedder("fake", Models(embedder="fake", threads=1), HOW) is not one


def test_an_embedder_and_a_reranker_of_one_name_are_two():
    pool = ModelPool()

    assert pool.embedder("fake", SETTINGS, HOW) is not pool.reranker("fake", SETTINGS, HOW)


def test_what_could_not_be_opened_is_not_kept():
    pool = ModelPool()
    for _ in range(2):
        with pytest.raises(ModelUnknown):
            pool.embedder("no-such-model", SETTINGS, HOW)


def test_a_model_that_takes_long_to_come_keeps_nobody_from_the_others(monkeypatch):
    pool = ModelPool()
    here = pool.embedder("fake", SETTINGS, HOW)
    began, may_end = threading.Event(), threading.Event()

    def download(name, how):
        began.set()
        assert may_end.wait(60)
        return here

    with ThreadPoolExecutor(2) as threads:
        monkeypatch.setattr(load, "open_embedder", download)
        coming = threads.submit(pool.embedder, "far-away", SETTINGS, HOW)
        assert began.wait(60)
        try:
            asked = threads.submit(pool.embedder, "fake", SETTINGS, HOW)
            assert asked.result(timeout=20) is here
            assert threads.submit(pool.reranker, "fake", SETTINGS, HOW).result(timeout=20)
        finally:
            may_end.set()
        assert coming.result() is here


def test_models_of_settings_that_nobody_uses_any_more_are_let_go():
    pool = ModelPool()
    mine = pool.embedder("fake", SETTINGS, HOW)
    first = weakref.ref(pool.embedder("fake", Models(embedder="fake", threads=1), HOW))
    for threads in range(2, 2 + POOLED):
        assert pool.embedder("fake", SETTINGS, HOW) is mine
        pool.embedder("fake", Models(embedder="fake", threads=threads), HOW)
    gc.collect()

    assert first() is None
