"""Threads and processes that work beside an indexing run, and end with it.

Processes import none of the program that started them, ignore the keyboard, and end when their
parent does: a killed program could not tell them to stop. A thread (`aside`) has a catalogue of its
own, since a connection belongs to the thread that opened it:

    with aside(folder, fetch, work) as result:
        ...                     the caller's own work, which writes nothing to the catalogue
        result()                waits, and raises what the work raised
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import TypeVar

from ragvault.store.catalogue import Catalogue


@contextmanager
def starting() -> Iterator[None]:
    """Start processes in here: they leave the keyboard and the program's own script alone."""
    with _deaf(), _main_left_alone():
        yield


@contextmanager
def _deaf() -> Iterator[None]:
    """What is started in here does not hear Ctrl-C, from its first instruction on.

    Until it has imported what it needs it could not ignore one, and would die of it with a
    traceback. We hear of it when this is over.
    """
    if not hasattr(signal, "pthread_sigmask"):  # on Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _main_left_alone() -> Iterator[None]:
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


def live_with_the_parent() -> None:
    """Leave interrupts to it, and end with it: one that was killed would leave us waiting for ever.

    A pool's processes hold both ends of their queue, so they do not notice by themselves.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_the_parent, name="end with the parent", daemon=True).start()


def _end_with_the_parent() -> None:
    from multiprocessing import parent_process

    parent = parent_process()
    if parent:
        parent.join()
        os._exit(1)


# --- A thread with a catalogue of its own ---

T = TypeVar("T")
M = TypeVar("M")
Stop = Callable[[], None]


class Stopped(Exception):
    """The caller has gone: end here. What was stored is kept."""


@contextmanager
def aside(
    folder: Path, fetch: Callable[[], M], work: Callable[[Catalogue, M, Stop], T]
) -> Iterator[Callable[[], T]]:
    """Run `work` on what `fetch` brings, in a thread with a catalogue of its own.

    The work calls what it is given now and then: when the caller ends early, it ends there, and is
    waited for, since whoever holds the writer's lock gives it back next. What is still being
    fetched is not: a download may take as long as it likes, and no work begins after it.
    """
    result: Future[T] = Future()
    leaving, turn = threading.Event(), threading.Lock()
    writing = threading.Event()

    def stop() -> None:
        if leaving.is_set():
            raise Stopped

    def run() -> None:
        try:
            fetched = fetch()
            with turn:
                stop()
                writing.set()
            with Catalogue.open(folder, write=True) as catalogue:
                result.set_result(work(catalogue, fetched, stop))
        except BaseException as error:
            result.set_exception(error)

    thread = threading.Thread(target=run, name="aside", daemon=True)
    thread.start()
    try:
        yield result.result
    finally:
        with turn:
            leaving.set()
        if writing.is_set():
            thread.join()
