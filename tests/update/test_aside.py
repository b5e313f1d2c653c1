"""Work beside the main work: it ends with it, and writes nothing afterwards."""

import threading
from contextlib import suppress

import pytest

from ragvault.store.catalogue import Catalogue
from ragvault.update.workers import aside


class Left(Exception):
    pass


@pytest.fixture
def folder(tmp_path):
    Catalogue.open(tmp_path / "index", write=True).close()
    return tmp_path / "index"


def test_what_the_work_returns_and_raises_reaches_the_caller(folder):
    with aside(folder, lambda: 2, lambda catalogue, two, stop: two + 1) as result:
        assert result() == 3

    with (
        pytest.raises(ZeroDivisionError),
        aside(folder, lambda: 0, lambda catalogue, none, stop: 1 // none) as result,
    ):
        result()


def test_work_that_writes_has_ended_when_the_caller_has_left(folder):
    begun, leaving, said = threading.Event(), threading.Event(), []

    def work(catalogue, _, stop):
        begun.set()
        leaving.wait()
        catalogue.set_git_head("word")
        said.append("written")
        stop()
        said.append("went on")

    with suppress(Left), aside(folder, lambda: None, work):
        begun.wait()
        threading.Timer(0.05, leaving.set).start()
        raise Left

    assert said == ["written"]
    with Catalogue.open(folder) as catalogue:
        assert catalogue.git_head == "word"


def test_what_is_still_fetched_is_not_waited_for_and_nothing_is_written_after_it(folder):
    fetching, fetched, said = threading.Event(), threading.Event(), []

    def fetch():
        fetching.set()
        fetched.wait()

    with suppress(Left), aside(folder, fetch, lambda *_: said.append("worked")):
        fetching.wait()
        raise Left

    fetched.set()
    for thread in threading.enumerate():
        if thread.name == "aside":
            thread.join()
    assert said == []
