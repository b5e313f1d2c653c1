"""The worker threads of the server, and the indexes that they keep open between searches."""

from __future__ import annotations

import shutil
import threading
import time
from concurrent.futures import wait
from pathlib import Path

import pytest
from vault_kit import vault

from ragvault.corpus import LocalCorpus
from ragvault.errors import IndexUnusable
from ragvault.models.load import ModelPool
from ragvault.service.server import WorkerThreads
from ragvault.service.watcher import ResidentIndexes
from ragvault.vault import Vault
from tests.watch_kit import soon

__all__ = ["vault"]


@pytest.fixture
def closed(monkeypatch) -> list[LocalCorpus]:
    """Those that were closed."""
    found: list[LocalCorpus] = []
    close = LocalCorpus.close
    monkeypatch.setattr(LocalCorpus, "close", lambda self: (found.append(self), close(self))[1])
    return found


def test_an_index_is_opened_once_for_many_searches(vault, closed):
    indexes, opened = ResidentIndexes(ModelPool()), Vault.open(vault)
    with indexes(opened) as first:
        pass
    with indexes(opened) as second:
        pass

    assert first is second
    assert not closed
    first.close()


def test_one_that_cannot_be_brought_up_to_date_is_closed_and_opened_anew(
    vault, closed, monkeypatch
):
    def refuse(self: LocalCorpus) -> None:
        raise IndexUnusable(self.catalogue.folder, "it is damaged")

    indexes, opened = ResidentIndexes(ModelPool()), Vault.open(vault)
    with indexes(opened) as first:
        pass
    monkeypatch.setattr(LocalCorpus, "refresh", refuse)
    with indexes(opened) as second:
        pass

    assert closed == [first]
    second.close()


def test_a_thread_with_nothing_to_do_lets_go_of_an_index_that_was_removed(vault, closed):
    """An open file keeps its bytes on the disk, though its name is gone."""
    indexes, opened = ResidentIndexes(ModelPool()), Vault.open(vault)
    with indexes(opened) as first:
        pass
    indexes.close_outdated()
    assert not closed
    shutil.rmtree(opened.folder)
    indexes.close_outdated()

    assert closed == [first]


def test_a_thread_with_nothing_to_do_lets_go_of_what_was_forgotten(vault):
    indexes, opened = ResidentIndexes(ModelPool()), Vault.open(vault)
    with indexes(opened):
        pass
    before = deleted_files(opened.folder)
    assert not before
    opened.forget(next(iter(_paths(opened))))
    assert deleted_files(opened.folder)  # still open here
    indexes.close_outdated()

    assert not deleted_files(opened.folder)
    with indexes(opened) as index:
        index.close()


def _paths(vault: Vault) -> list[str]:
    with vault.catalogue() as catalogue:
        return sorted(catalogue.files())


def deleted_files(folder: Path) -> list[str]:
    """Files of an index that this process holds though they are gone."""
    here = Path("/proc/self")
    if not (here / "maps").exists():
        pytest.skip("this system does not tell which files are open")
    links = [str(each.readlink()) for each in (here / "fd").iterdir() if each.is_symlink()]
    lines = (here / "maps").read_text().splitlines()
    return [each for each in (*links, *lines) if str(folder) in each and "(deleted)" in each]


def test_models_of_settings_that_searches_bring_do_not_pile_up(vault, closed):
    """Each has its weights; anybody who may search can send new settings."""
    indexes, usual = ResidentIndexes(ModelPool()), Vault.open(vault)
    for threads in (1, 2, 3):
        with indexes(usual) as first:
            pass
        with indexes(Vault.open(vault, flags=[f"models.threads={threads}"])):
            pass

    assert [each.engines.config.models.threads for each in closed] == [1, 2]
    with indexes(usual) as still:
        assert still is first


# --- worker threads ---


def fail(error: BaseException) -> None:
    raise AssertionError(error)


def test_work_is_done_and_its_error_is_the_callers():
    workers = WorkerThreads(2, lambda: None, 10.0, fail)

    assert workers.submit(sum, [1, 2]).result() == 3
    with pytest.raises(ZeroDivisionError):
        workers.submit(lambda: 1 / 0).result()
    assert workers.submit(sum, [3]).result() == 3
    workers.shutdown()


def test_each_thread_that_has_nothing_to_do_says_so():
    idle: set[int] = set()
    workers = WorkerThreads(3, lambda: idle.add(threading.get_ident()), 0.01, fail)
    barrier = threading.Barrier(3)
    busy = [workers.submit(barrier.wait) for _ in range(3)]
    wait(busy)

    assert soon(lambda: len(idle) == 3)
    workers.shutdown()


def test_a_thread_outlives_an_error_of_what_it_does_while_nobody_asks():
    failed: list[BaseException] = []
    workers = WorkerThreads(1, lambda: 1 / 0, 0.01, failed.append)
    workers.submit(sum, [1]).result()

    assert soon(lambda: len(failed) > 1)
    assert {type(error) for error in failed} == {ZeroDivisionError}
    assert workers.submit(sum, [1, 2]).result(60) == 3
    workers.shutdown()


def test_what_was_handed_over_before_the_end_is_done_and_nothing_after_it():
    workers = WorkerThreads(1, lambda: None, 10.0, fail)
    last = workers.submit(sum, [1])
    workers.shutdown()

    assert last.result() == 1
    with pytest.raises(RuntimeError):
        workers.submit(sum, [1])


def test_the_thread_that_worked_last_works_next():
    """It has the index open: another thread would have to open it once more."""
    workers = WorkerThreads(3, lambda: None, 10.0, fail)
    barrier = threading.Barrier(3)
    wait([workers.submit(barrier.wait) for _ in range(3)])
    assert soon(lambda: len(workers._free) == 3)
    used = set()
    for _ in range(20):
        used.add(workers.submit(threading.get_ident).result())
        assert soon(lambda: len(workers._free) == 3)

    assert len(used) == 1
    workers.shutdown()


def test_more_jobs_than_threads_are_all_done_by_no_more_threads():
    workers = WorkerThreads(3, lambda: None, 10.0, fail)
    done = [workers.submit(lambda: (time.sleep(0.001), threading.get_ident())) for _ in range(60)]

    assert len({future.result()[1] for future in done}) <= 3
    workers.shutdown()
