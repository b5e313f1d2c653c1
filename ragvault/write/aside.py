"""Aside: embedding goes on in a thread of its own while words are indexed.

    with aside(folder, work) as result:
        …                       the caller's own work, which writes nothing to the catalogue
        result()                waits, and raises what the work raised

The two share no connection, since one belongs to the thread that opened it. Indexing words is
Python from end to end and keeps one core busy; a static model's tokenizer and its sums are not, and
use the other.
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
Stop = Callable[[], None]


class Stopped(Exception):
    """The caller has gone: end here. What was stored is kept."""


@contextmanager
def aside(folder: Path, work: Callable[[Catalogue, Stop], T]) -> Iterator[Callable[[], T]]:
    """Run `work` in a thread with a catalogue of its own; it calls what it is given now and then.

    When the caller ends early, so does the work, the next time it calls. It is not waited for:
    a download may take as long as it likes, and whoever was interrupted wants to leave.
    """
    result: Future[T] = Future()
    leaving = threading.Event()

    def stop() -> None:
        if leaving.is_set():
            raise Stopped

    def run() -> None:
        try:
            with Catalogue.open(folder, write=True) as catalogue:
                result.set_result(work(catalogue, stop))
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=run, name="aside", daemon=True).start()
    try:
        yield result.result
    finally:
        leaving.set()
