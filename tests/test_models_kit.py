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
from ragvault.models.kit import KEPT, Kit
from ragvault.models.load import opening
from ragvault.models.talk import Quiet

SETTINGS = Models(embedder="fake")
HOW = opening(SETTINGS, Quiet())


def test_many_threads_get_one_model():
    kit = Kit()
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: id(kit.embedder("fake", SETTINGS, HOW)), range(100)))

    assert len(found) == 1


def test_a_model_is_the_same_by_its_short_and_by_its_full_name():
    kit = Kit()
    short = kit.embedder("fake", SETTINGS, HOW)

    assert kit.embedder(short.name, SETTINGS, HOW) is short


def test_other_settings_are_another_model():
    kit = Kit()
    one = kit.embedder("fake", SETTINGS, HOW)

    assert kit.embedder("fake", Models(embedder="fake", threads=1), HOW) is not one


def test_an_embedder_and_a_reranker_of_one_name_are_two():
    kit = Kit()

    assert kit.embedder("fake", SETTINGS, HOW) is not kit.reranker("fake", SETTINGS, HOW)


def test_what_could_not_be_opened_is_not_kept():
    kit = Kit()
    for _ in range(2):
        with pytest.raises(ModelUnknown):
            kit.embedder("no-such-model", SETTINGS, HOW)


def test_a_model_that_takes_long_to_come_keeps_nobody_from_the_others(monkeypatch):
    kit = Kit()
    here = kit.embedder("fake", SETTINGS, HOW)
    began, may_end = threading.Event(), threading.Event()

    def download(name, how):
        began.set()
        assert may_end.wait(60)
        return here

    with ThreadPoolExecutor(2) as pool:
        monkeypatch.setattr(load, "open_embedder", download)
        coming = pool.submit(kit.embedder, "far-away", SETTINGS, HOW)
        assert began.wait(60)
        try:
            asked = pool.submit(kit.embedder, "fake", SETTINGS, HOW)
            assert asked.result(timeout=20) is here
            assert pool.submit(kit.reranker, "fake", SETTINGS, HOW).result(timeout=20)
        finally:
            may_end.set()
        assert coming.result() is here


def test_models_of_settings_that_nobody_uses_any_more_are_let_go():
    kit = Kit()
    mine = kit.embedder("fake", SETTINGS, HOW)
    first = weakref.ref(kit.embedder("fake", Models(embedder="fake", threads=1), HOW))
    for threads in range(2, 2 + KEPT):
        kit.embedder("fake", Models(embedder="fake", threads=threads), HOW)
        assert kit.embedder("fake", SETTINGS, HOW) is mine
    gc.collect()

    assert first() is None
