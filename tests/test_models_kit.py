"""Models are opened once for everyone who asks for the same ones."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from ragvault.config import Models
from ragvault.errors import ModelUnknown
from ragvault.models.kit import Kit
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
