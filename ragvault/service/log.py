"""The watcher's log: a file of limited size, without queries and without the text of notes.

    2026-11-16 21:04:12 notes: 3 changed, 0.2 s

It contains names of vaults and paths, so it is as private as an index.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Mapping
from logging.handlers import RotatingFileHandler
from pathlib import Path

from ragvault.config import folders
from ragvault.ports import NoProgress
from ragvault.store.files import make_file, make_folder

LOG_FILE = "watch.log"
LOG_BYTES = 1_000_000  # of one file
OLDER_FILES = 3  # kept beside the current one


def watch_log_path(environ: Mapping[str, str] | None = None) -> Path:
    """Where the watcher writes its log."""
    return folders.cache_dir(environ) / LOG_FILE


class WatchLog(NoProgress):
    """Writes messages to the log, and with `echo` also to stderr."""

    def __init__(self, path: Path, *, echo: bool) -> None:
        make_folder(path.parent)
        make_file(path)
        self._handler = _PrivateHandler(
            path, maxBytes=LOG_BYTES, backupCount=OLDER_FILES, encoding="utf-8"
        )
        self._handler.setFormatter(
            logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%d %H:%M:%S")
        )
        self._echo = echo

    def info(self, text: str) -> None:
        plain = "".join(char if char.isprintable() else "?" for char in text)
        self._handler.handle(logging.makeLogRecord({"msg": plain}))
        if self._echo and sys.stderr:
            try:
                sys.stderr.write(f"{plain}\n")
                sys.stderr.flush()
            except OSError:
                self._echo = False  # nobody reads stderr any more; the log goes on

    def close_file(self) -> None:
        """Close the log."""
        self._handler.close()


def describe_unexpected(error: BaseException) -> str:
    """The type and place of an error. Not its message, which may quote a note."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    place = "".join(f" at {Path(frame.filename).name}:{frame.lineno}" for frame in last)
    return f"unexpected {type(error).__name__}{place}; please report this"


class _PrivateHandler(RotatingFileHandler):
    """Gives the file that a rotation starts the same private mode."""

    def doRollover(self) -> None:  # noqa: N802 - the name is logging's
        super().doRollover()
        make_file(Path(self.baseFilename))
