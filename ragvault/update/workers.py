"""Workers: processes that run jobs, so that a crash or a hang costs one job and not the run.

    run_jobs    results of a few or many jobs, in their order, from one or several workers
    run_job     the result of one job
    cpu_limit   in a worker: interrupts code that computes for too long

A vault may come from anyone, and a parser may crash, hang or use up the memory. A worker that dies
or gives no result in time is killed and replaced. The job is tried once more, because the worker
may have died of something else, and then it counts as failed. Where processes cannot be started,
jobs run in this process.

One idle worker stays, because starting one takes a tenth of a second: a watcher needs it after
every edit.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")

MANY = 400  # jobs: for fewer, starting several processes takes longer than they save
BATCH = 32  # jobs a worker gets at a time
AHEAD = 3  # batches a worker may be ahead of the caller, so that memory stays bounded
TRIES = 2  # workers that a job may cost
PATIENCE = 120.0  # seconds for one job: several times its CPU limit, for a busy machine
MAX_MEMORY = 4 << 30  # bytes of a worker's address space; a note of 5 MB takes 0.3 GB at most


@dataclass(frozen=True, slots=True)
class Failure:
    """A job that has no result, and why."""

    reason: str


class Overrun(BaseException):
    """A job has used more CPU time than `cpu_limit` allows. No `except Exception` catches it."""


class _WorkerFailed(Exception):
    """A worker died or gave no result in time; the message completes "reading it …"."""


# --- Jobs ---


def run_job(job: Callable[[], T], patience: float = PATIENCE, tries: int = TRIES) -> T | Failure:
    """Run one job in a worker. A job has to be picklable, and so has its result."""
    return _Run(patience, tries).results([job])[0]


def run_jobs(jobs: Sequence[Callable[[], T]]) -> Iterator[T | Failure]:
    """Run jobs in workers; yields results in the order of the jobs."""
    if not jobs:
        return
    from concurrent.futures import ThreadPoolExecutor

    batches = [jobs[i : i + BATCH] for i in range(0, len(jobs), BATCH)]
    workers = 1 if len(jobs) < MANY else min(os.cpu_count() or 1, 8)
    run = _Run(PATIENCE, TRIES)
    under_way: deque[Future[list[Any]]] = deque()
    # Each thread sends jobs to one worker and takes its results, while the caller stores others.
    threads = ThreadPoolExecutor(workers, "worker")
    try:
        for done in range(len(batches)):
            for batch in batches[done + len(under_way) : done + workers * AHEAD]:
                under_way.append(threads.submit(run.results, batch))
            yield from under_way.popleft().result()
    finally:
        run.stop()
        threads.shutdown(wait=True, cancel_futures=True)
        while len(idle_workers) > 1:
            idle_workers.pop().end()


class _Run:
    """Jobs of one caller, and the workers that run them now."""

    def __init__(self, patience: float, tries: int) -> None:
        self.patience, self.tries = patience, tries
        self._busy: set[Worker] = set()
        self._lock, self._stopped = Lock(), False

    def results(self, jobs: Sequence[Callable[[], T]]) -> list[T | Failure]:
        """The results of some jobs; a job that ends its workers is a Failure."""
        done: list[T | Failure] = []
        tries = 0
        while len(done) < len(jobs) and not self._stopped:
            rest, before = jobs[len(done) :], len(done)
            worker = _take_idle_worker() or start_worker()
            if worker is None:
                return [*done, *map(_result, rest)]
            try:
                with self._while_busy(worker):
                    worker.send(rest)
                    for _ in rest:  # those before one that fails must stay
                        done.append(worker.receive(self.patience))  # noqa: PERF401
            except _WorkerFailed as failed:
                tries = tries + 1 if len(done) == before else 1
                if tries == self.tries:
                    done.append(Failure(str(failed)))
                    tries = 0
        return done

    @contextmanager
    def _while_busy(self, worker: Worker) -> Iterator[None]:
        with self._lock:
            self._busy.add(worker)
            if self._stopped:
                worker.process.kill()
        try:
            yield
        except BaseException:
            worker.end()
            raise
        else:
            idle_workers.append(worker)
        finally:
            with self._lock:
                self._busy.discard(worker)

    def stop(self) -> None:
        """Kill the workers that are busy: nobody waits for their results any more."""
        with self._lock:
            self._stopped = True
            for worker in self._busy:
                worker.process.kill()


# --- Workers, seen from the process that starts them ---


class Worker:
    """A process that runs jobs one after the other. Raises OSError if it cannot be started."""

    def __init__(self) -> None:
        from multiprocessing import get_context

        context = get_context("spawn")
        self.connection, there = context.Pipe()
        self.process = context.Process(target=serve_jobs, args=(there,), daemon=True)
        try:
            with starting_processes():
                self.process.start()
        except BaseException:
            self.connection.close()
            raise
        finally:
            there.close()

    def send(self, jobs: Sequence[Callable[[], object]]) -> None:
        """Start jobs; `receive` has the result of each, in their order."""
        try:
            self.connection.send(jobs)
        except OSError:
            raise _WorkerFailed(self._death()) from None

    def receive(self, patience: float) -> Any:
        """The next message of the process. Raises _WorkerFailed if it dies or takes too long."""
        try:
            if self.connection.poll(patience):
                return self.connection.recv()
        except (EOFError, OSError):
            raise _WorkerFailed(self._death()) from None
        raise _WorkerFailed(f"took longer than {patience:g} s")

    def _death(self) -> str:
        self.process.join(1)
        code = self.process.exitcode
        how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
        return f"ended the process that read it ({how})"

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


idle_workers: list[Worker] = []


def _take_idle_worker() -> Worker | None:
    with suppress(IndexError):  # another thread has taken the last one
        while True:
            worker = idle_workers.pop()
            if worker.process.is_alive():
                return worker
            worker.end()
    return None


def start_worker() -> Worker | None:
    """A new worker that is ready; None where processes cannot be started."""
    try:
        worker = Worker()
    except (OSError, ImportError):
        return None
    try:
        worker.receive(PATIENCE)
    except _WorkerFailed:
        worker.end()
        return None
    return worker


# --- Workers, seen from inside ---


def serve_jobs(connection: Connection) -> None:
    """Run every job that comes through the connection, until the parent closes it."""
    end_with_parent()
    _limit_memory()
    if hasattr(signal, "setitimer"):  # not on Windows
        signal.signal(signal.SIGPROF, _overrun)
    with suppress(EOFError, OSError, MemoryError):
        connection.send("ready")
        while True:
            for job in connection.recv():
                connection.send(_result(job))


def _result(job: Callable[[], T]) -> T | Failure:
    try:
        return job()
    except Exception as error:
        return Failure(f"failed: {error or type(error).__name__}")


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
    try:
        import resource
    except ImportError:  # on Windows
        return
    with suppress(OSError, ValueError):  # macOS may refuse it
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        most = MAX_MEMORY if hard == resource.RLIM_INFINITY else min(MAX_MEMORY, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))


# --- Child processes ---


@contextmanager
def starting_processes() -> Iterator[None]:
    """Start processes in here: they ignore Ctrl-C and do not import the program's own script."""
    with _starting, _ignoring_ctrl_c(), _without_main():
        yield


_starting = Lock()  # two threads that change `__main__` would not both restore it


@contextmanager
def _ignoring_ctrl_c() -> Iterator[None]:
    """A process started in here ignores Ctrl-C from its first instruction on.

    Until it has imported what it needs it could not ignore one itself, and would die of it with a
    traceback. This process receives the Ctrl-C when the block ends.
    """
    if not hasattr(signal, "pthread_sigmask"):  # on Windows
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # starting it would end the blocking
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _without_main() -> Iterator[None]:
    """Start processes that do not import the program's own script, of which they need nothing.

    A script that indexes a vault in its first lines would otherwise begin again in each of them.
    """
    main = sys.modules["__main__"]
    hidden = {name: getattr(main, name, None) for name in ("__file__", "__spec__")}
    for name in hidden:
        setattr(main, name, None)
    try:
        yield
    finally:
        for name, value in hidden.items():
            setattr(main, name, value)


def end_with_parent() -> None:
    """Call first in a child process: ignore Ctrl-C, and end when the parent process does.

    A killed parent could not stop its children, and a pool's processes hold both ends of their
    queue, so they do not notice by themselves.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_wait_for_parent, name="end with parent", daemon=True).start()


def _wait_for_parent() -> None:
    from multiprocessing import parent_process

    parent = parent_process()
    if parent:
        parent.join()
        os._exit(1)
