"""Logs: what a watcher did, in a file of bounded size, without a query and without a note's text.

    2026-11-16 21:04:12 notes: 3 changed, 0.2 s

Names of vaults and paths stand in it, so it is as private as an index.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Mapping
from logging.handlers import RotatingFileHandler
from pathlib import Path

from ragvault.config import folders
from ragvault.models.progress import SilentReporter
from ragvault.store.private import make_file, make_folder

NAME = "watch.log"
OLDER = 3  # files kept beside the newest


def log_file(environ: Mapping[str, str] | None = None) -> Path:
    """Where the watcher writes what it does."""
    return folders.cache_dir(environ) / NAME


class Log(SilentReporter):
    """A Reporter that writes to the log, and on stderr where somebody is looking."""

    def __init__(self, path: Path, max_bytes: int, *, aloud: bool) -> None:
        make_folder(path.parent)
        make_file(path)
        self._handler = _Private(path, maxBytes=max_bytes, backupCount=OLDER, encoding="utf-8")
        self._handler.setFormatter(
            logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%d %H:%M:%S")
        )
        self._aloud = aloud

    def info(self, line: str) -> None:
        plain = "".join(char if char.isprintable() else "?" for char in line)
        self._handler.handle(logging.makeLogRecord({"msg": plain}))
        if self._aloud and sys.stderr:
            try:
                sys.stderr.write(f"{plain}\n")
                sys.stderr.flush()
            except OSError:
                self._aloud = False  # nobody reads it any more; the log goes on

    def end(self) -> None:
        """Close the file. `close` is a Reporter's: nothing more for now."""
        self._handler.close()


def unexpected(error: BaseException) -> str:
    """A mistake of ours: its kind and its place, not its words, which may quote a note."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    place = "".join(f" at {Path(frame.filename).name}:{frame.lineno}" for frame in last)
    return f"unexpected {type(error).__name__}{place}; please report this"


class _Private(RotatingFileHandler):
    """The file that a rotation begins is as private as the first."""

    def doRollover(self) -> None:  # noqa: N802 - the name is logging's
        super().doRollover()
        make_file(Path(self.baseFilename))
