"""Threads: a few that do work as it comes, and something else in each of them while none comes.

What a thread keeps open belongs to that thread, so nobody else can let go of it: `idle` is called
in each thread about every `every` seconds in which it had nothing to do. An error of it is told to
`failed`, and the thread goes on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

R = TypeVar("R")
Job = Callable[[], None]


class Threads(Executor):
    """As ThreadPoolExecutor is. The threads start with the first piece of work."""

    def __init__(
        self,
        count: int,
        name: str,
        idle: Callable[[], None],
        every: float,
        failed: Callable[[BaseException], None],
    ) -> None:
        self._idle, self._every, self._failed = idle, every, failed
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work, name=f"{name}_{number}", daemon=True)
            for number in range(count)
        ]
        self._lock = threading.Lock()
        self._is_ending = False

    def submit(self, work: Callable[..., R], /, *args: Any, **named: Any) -> Future[R]:
        future: Future[R] = Future()

        def job() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(work(*args, **named))
            except BaseException as error:
                future.set_exception(error)

        with self._lock:
            if self._is_ending:
                raise RuntimeError("no work is taken any more")
            if not any(thread.ident for thread in self._threads):
                for thread in self._threads:
                    thread.start()
            self._jobs.put(job)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more work, and end when what is there is done; nothing is cancelled."""
        with self._lock:
            started = [thread for thread in self._threads if thread.ident]
            if not self._is_ending:
                self._is_ending = True
                for _ in started:
                    self._jobs.put(None)
        for thread in started if wait else ():
            thread.join()

    def _work(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=self._every)
            except Empty:
                self._look_after()
                continue
            if job is None:
                return
            job()

    def _look_after(self) -> None:
        try:
            self._idle()
        except Exception as error:
            self._failed(error)
