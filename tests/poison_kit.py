"""Workers whose parser dies, hangs or raises when a note has one of a few words."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from ragvault.notes.parse import parse
from ragvault.update import prepare, workers

LOG = "POISON_LOG"  # the environment variable that names the file of what was parsed


class Panic(BaseException):
    """What a parser in Rust raises."""


def poisoned_parse(path: str, text: str, *args: Any, **more: Any) -> Any:
    log = Path(os.environ[LOG])
    before = tried(log)
    with log.open("a") as lines:
        lines.write(f"{path}\n")
    if "CRASH" in text or ("ONCE" in text and path not in before):
        os.kill(os.getpid(), signal.SIGKILL)
    if "HANG" in text:
        time.sleep(1000)
    while "SPIN" in text:
        pass
    if "MEMORY" in text:
        bytearray(workers.MAX_MEMORY)
    if "PANIC" in text:
        raise Panic("index out of bounds")
    return parse(path, text, *args, **more)


def tried(log: Path) -> list[str]:
    return log.read_text().split()


def serve_poisoned(connection: Connection) -> None:
    """What a worker does, with that parser."""
    prepare.parse, prepare.NOTE_SECONDS = poisoned_parse, 0.3  # type: ignore[assignment]
    workers.serve_jobs(connection)


@contextmanager
def poisoned_workers(log: Path, patience: float = 60.0) -> Iterator[Path]:
    """Workers started in here have that parser. Yields the log of what they parsed."""
    log.touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(LOG, str(log))
        patch.setattr(workers, "serve_jobs", serve_poisoned)
        patch.setattr(workers, "idle_workers", [])
        patch.setattr(workers, "PATIENCE", patience)
        patch.setattr(prepare, "SEARCH_PATIENCE", patience)
        try:
            yield log
        finally:
            for worker in workers.idle_workers:
                worker.end()
