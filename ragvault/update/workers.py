"""Workers: processes that run jobs, so that a crash or a hang costs one job and not the run.

    run_jobs    results of a few or many jobs, in their order, from one or several workers
    run_job     the result of one job
    cpu_limit   in a worker: interrupts code that computes for too long

A vault may come from anyone, and a parser may crash, hang or use up the memory. Workers get jobs in
batches. One that dies or gives no result in time is killed, and its jobs are tried once more, each
by itself: the one that ends its worker again counts as failed. Where processes cannot be started,
jobs run in this process.

One idle worker stays, because starting one takes a tenth of a second: a watcher needs it after
every edit.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from multiprocessing.connection import Connection
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")

MANY = 400  # jobs: for fewer, starting several processes takes longer than they save
BATCH = 32  # jobs a worker gets at a time
AHEAD = 3  # batches a worker may be ahead of the caller, so that memory stays bounded
PATIENCE = 120.0  # seconds for a batch or a job: many times what it takes, for a busy machine
MAX_MEMORY = 4 << 30  # bytes of a worker's address space; a note of 5 MB takes 0.3 GB at most


class Failure(Exception):
    """A job has no result; the message completes "reading it …"."""


class Overrun(BaseException):
    """A job has used more CPU time than `cpu_limit` allows. No `except Exception` catches it."""


# --- Jobs ---


def run_job(
    job: Callable[[], T], patience: float, meanwhile: Callable[[], None] = lambda: None
) -> T | Failure:
    """Run one job in a worker, once. A job has to be picklable, and so has its result.

    `meanwhile` is called now and then, and may raise.
    """
    try:
        return _in_worker([job], patience, meanwhile)[0]
    except Failure as failed:
        return failed


def run_jobs(jobs: Sequence[Callable[[], T]]) -> Iterator[T | Failure]:
    """Run jobs in workers; yields results in the order of the jobs."""
    if not jobs:
        return
    from concurrent.futures import ThreadPoolExecutor

    stopped = Event()
    batches = [jobs[i : i + BATCH] for i in range(0, len(jobs), BATCH)]
    workers = 1 if len(jobs) < MANY else min(os.cpu_count() or 1, 8)
    under_way: deque[Future[list[Any]]] = deque()
    # Each thread sends batches to one worker and takes its results, while the caller stores others.
    threads = ThreadPoolExecutor(workers, "worker")
    try:
        for done in range(len(batches)):
            for batch in batches[done + len(under_way) : done + workers * AHEAD]:
                under_way.append(threads.submit(_run_batch, batch, stopped))
            yield from under_way.popleft().result()
    finally:
        stopped.set()
        threads.shutdown(wait=True, cancel_futures=True)
        end_idle_workers(but=1)


def _run_batch(jobs: Sequence[Callable[[], T]], stopped: Event) -> list[T | Failure]:
    """The results of some jobs, until nobody waits for them any more."""

    def meanwhile() -> None:
        if stopped.is_set():
            raise Failure("was stopped")

    try:
        return _in_worker(jobs, PATIENCE, meanwhile)
    except Failure:
        return [run_job(job, PATIENCE, meanwhile) for job in jobs]


def _in_worker(
    jobs: Sequence[Callable[[], T]], patience: float, meanwhile: Callable[[], None]
) -> list[T | Failure]:
    meanwhile()
    worker = _worker()
    if worker is None:
        return list(map(_result, jobs))
    found = worker.run(jobs, patience, meanwhile)
    idle_workers.append(worker)
    return found


# --- Workers, seen from the process that starts them ---


class Worker:
    """A process that runs jobs. Raises OSError, ImportError or Failure if it cannot start."""

    def __init__(self) -> None:
        from multiprocessing import get_context

        context = get_context("spawn")
        self._connection, there = context.Pipe()
        self.process = context.Process(target=serve_jobs, args=(there,), daemon=True)
        with starting_processes():
            self.process.start()
        there.close()
        self.run([], PATIENCE, lambda: None)  # starting takes none of the first job's time

    def run(
        self, jobs: Sequence[Callable[[], T]], patience: float, meanwhile: Callable[[], None]
    ) -> list[T | Failure]:
        """The results of jobs. Raises Failure if the process dies or takes too long.

        It is over with a worker that did not get to the end of its jobs.
        """
        until = time.monotonic() + patience
        is_done = False
        try:
            self._connection.send(jobs)
            while not self._connection.poll(min(0.1, patience)):
                meanwhile()
                if time.monotonic() > until:
                    raise Failure(f"took longer than {patience:g} s")
            found: list[T | Failure] = self._connection.recv()
            is_done = True
            return found
        except (EOFError, OSError):
            self.process.join(1)
            code = self.process.exitcode
            how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
            raise Failure(f"ended the process that read it ({how})") from None
        finally:
            if not is_done:
                self.end()

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self._connection.close()


idle_workers: list[Worker] = []


def end_idle_workers(but: int = 0) -> None:
    """End the workers that have nothing to do, except so many."""
    while len(idle_workers) > but:
        with suppress(IndexError):  # another thread has taken the last one
            idle_workers.pop().end()


def _worker() -> Worker | None:
    """An idle worker, else a new one; None where processes cannot be started."""
    with suppress(IndexError):  # there is none, or another thread has taken the last one
        while True:
            worker = idle_workers.pop()
            if worker.process.is_alive():
                return worker
            worker.end()
    try:
        return Worker()
    except (OSError, ImportError, Failure):
        return None


# --- Workers, seen from inside ---


def serve_jobs(connection: Connection) -> None:
    """Run every batch that comes through the connection, until the parent closes it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A killed parent cannot stop its workers, and one that computes would not notice by itself.
    Thread(target=_wait_for_parent, name="end with parent", daemon=True).start()
    _limit_memory()
    if hasattr(signal, "setitimer"):  # not on Windows
        signal.signal(signal.SIGPROF, _overrun)
    with suppress(EOFError, OSError, MemoryError):
        while True:
            connection.send([_result(job) for job in connection.recv()])


def _result(job: Callable[[], T]) -> T | Failure:
    try:
        return job()
    except Exception as error:
        return Failure(f"failed: {str(error) or type(error).__name__}")


def _overrun(*_: object) -> None:
    raise Overrun


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Raise Overrun in here after so many seconds of CPU time.

    Outside of a worker, and on Windows, nothing is limited: a signal interrupts the main thread
    only, and belongs to the program. A worker that cannot be interrupted is killed in the end.
    """
    if not hasattr(signal, "setitimer") or signal.getsignal(signal.SIGPROF) is not _overrun:
        yield
        return
    # Again each second: code that Python calls when it frees an object swallows exceptions.
    signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _limit_memory() -> None:
    """A note that needs too much memory gets a MemoryError and not the machine into trouble."""
    with suppress(ImportError, OSError, ValueError):  # Windows has no limits; macOS may refuse
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        most = MAX_MEMORY if hard == resource.RLIM_INFINITY else min(MAX_MEMORY, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))


# --- Child processes ---

_starting = Lock()  # two threads that change `__main__` would not both restore it


@contextmanager
def starting_processes() -> Iterator[None]:
    """Start processes in here: they ignore Ctrl-C and do not import the program's own script.

    A script that indexes a vault in its first lines would otherwise begin again in each of them.
    Until a process has imported what it needs it cannot ignore Ctrl-C, and would die of it with a
    traceback; this process receives the Ctrl-C when the block ends.
    """
    main = sys.modules["__main__"]
    hidden = {name: getattr(main, name, None) for name in ("__file__", "__spec__")}
    with _starting, _without_ctrl_c() if hasattr(signal, "pthread_sigmask") else nullcontext():
        try:
            for name in hidden:
                setattr(main, name, None)
            yield
        finally:
            for name, value in hidden.items():
                setattr(main, name, value)


@contextmanager
def _without_ctrl_c() -> Iterator[None]:
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # starting it would end the blocking
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _wait_for_parent() -> None:
    from multiprocessing import parent_process

    parent = parent_process()
    if parent:
        parent.join()
        os._exit(1)
