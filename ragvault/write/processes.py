"""Processes: what is started beside this one to use the other cores, and ends with it.

They import none of the program that started them, leave the keyboard to it, and are gone when it
is: none of them could be told to stop by a program that was killed.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread


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
