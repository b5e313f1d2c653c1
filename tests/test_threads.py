"""A few threads that answer, and what each of them does while nobody asks."""

from __future__ import annotations

import threading
from concurrent.futures import wait

import pytest

from ragvault.service.threads import Threads
from tests.watch_kit import soon


def fail(error: BaseException) -> None:
    raise AssertionError(error)


def test_work_is_done_and_its_error_is_the_callers():
    threads = Threads(2, "test", lambda: None, 10.0, fail)

    assert threads.submit(sum, [1, 2]).result() == 3
    with pytest.raises(ZeroDivisionError):
        threads.submit(lambda: 1 / 0).result()
    assert threads.submit(sum, [3]).result() == 3
    threads.shutdown()


def test_each_thread_that_has_nothing_to_do_says_so():
    idle: set[int] = set()
    threads = Threads(3, "test", lambda: idle.add(threading.get_ident()), 0.01, fail)
    barrier = threading.Barrier(3)
    busy = [threads.submit(barrier.wait) for _ in range(3)]
    wait(busy)

    assert soon(lambda: len(idle) == 3)
    threads.shutdown()


def test_a_thread_outlives_an_error_of_what_it_does_while_nobody_asks():
    failed: list[BaseException] = []
    threads = Threads(1, "test", lambda: 1 / 0, 0.01, failed.append)
    threads.submit(sum, [1]).result()

    assert soon(lambda: len(failed) > 1)
    assert {type(error) for error in failed} == {ZeroDivisionError}
    assert threads.submit(sum, [1, 2]).result(60) == 3
    threads.shutdown()


def test_what_was_handed_over_before_the_end_is_done_and_nothing_after_it():
    threads = Threads(1, "test", lambda: None, 10.0, fail)
    last = threads.submit(sum, [1])
    threads.shutdown()

    assert last.result() == 1
    with pytest.raises(RuntimeError):
        threads.submit(sum, [1])
