"""Aside: embedding goes on in a thread of its own while words are indexed.

    with aside(folder, fetch, work) as result:
        …                       the caller's own work, which writes nothing to the catalogue
        result()                waits, and raises what the work raised

The two share no connection, since one belongs to the thread that opened it. Indexing words is
Python from end to end and keeps one core busy; a static model's sums and SQLite are not, and use
the other. Where there is much to embed, what is Python of it goes on in a process (elsewhere.py).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from ragvault.store.catalogue import Catalogue

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
