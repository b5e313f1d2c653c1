"""Git dates: when each note was last and first committed.

One run of `git log` for a whole vault. A vault may be somebody else's repository, and a repository
can name programs for git to run; so git only reads commits and trees here. Its options forbid every
hook, pager, monitor, signature or diff program, fetching, locking and prompting. It never compares
the working tree, because that runs the repository's own filters. Which
owners to trust (safe.directory) stays the user's decision.

So a note with changes that are not committed has the date of its last commit. A caller that saw
its content change while `head` stayed the same knows better, and should prefer the file's own time.

No git, no repository, or not in time: no dates, and `reason` says why. In a shallow clone the dates
of what is older than the clone are those of its oldest commit.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from unicodedata import normalize

from ragvault.notes.read import digest_of, read_small
from ragvault.text.dates import in_calendar

TIMEOUT_S = 30.0
CHUNK = 1 << 16
MAX_BYTES = 50_000_000  # packed-refs of a repository with half a million branches
# Set here, so that nothing in the repository's own config can say otherwise.
SAFE_CONFIG = {
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.pager": "cat",
    "diff.external": "",
    "gpg.program": "false",
    "log.mailmap": "false",
    "log.showRoot": "true",
    "log.showSignature": "false",
    "protocol.allow": "never",
    "safe.bareRepository": "explicit",
}
SAFE_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "none",  # a partial clone would fetch what it lacks
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "false",
    "SSH_ASKPASS": "false",
    "LC_ALL": "C",
}
# The user's own choice of config files, which may set safe.directory.
KEPT_VARIABLES = frozenset(("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"))


@dataclass(frozen=True, slots=True)
class GitDates:
    """Seconds since 1970 by path (as in File.path); `reason` says why there are none."""

    last: dict[str, float] = field(default_factory=dict)
    first: dict[str, float] = field(default_factory=dict)
    reason: str = ""


def git_dates(root: Path, timeout_s: float = TIMEOUT_S) -> GitDates:
    """Commit dates of the files of a vault. Never raises and never asks."""
    if not head(root):
        return GitDates(reason="not in a git repository, or nothing is committed")
    mark = secrets.token_hex(16)  # no file name can pretend to be a commit
    try:
        process = subprocess.Popen(
            command(mark),
            cwd=root,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError as error:
        return GitDates(reason=f"git cannot be run: {error.strerror}")
    return collect(process, mark, timeout_s)


def command(mark: str) -> list[str]:
    config = [part for key, value in SAFE_CONFIG.items() for part in ("-c", f"{key}={value}")]
    log = ["log", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv"]
    quiet = ["--no-color", "--no-show-signature", "--no-notes", "--relative", f"-O{os.devnull}"]
    git = ["git", "--no-pager", "--no-replace-objects", "--literal-pathspecs"]
    return [*git, *config, *log, *quiet, f"--format=format:{mark}%ct", "HEAD", "--", "."]


def environment() -> dict[str, str]:
    """Ours without what points git elsewhere: a hook that runs us sets GIT_DIR, for one."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name in KEPT_VARIABLES
    }
    return kept | SAFE_ENVIRONMENT


def collect(process: subprocess.Popen[bytes], mark: str, timeout_s: float) -> GitDates:
    """Read the log as it comes; a run that is too long is ended and leaves no half of an answer."""
    late = threading.Event()

    def end() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(timeout_s, end)
    timer.start()
    last: dict[str, float] = {}
    first: dict[str, float] = {}
    try:
        with process:
            assert process.stdout is not None
            for path, at in commits(process.stdout, mark.encode()):
                last.setdefault(path, at)  # newest first
                first[path] = at
    finally:
        timer.cancel()
    if late.is_set():
        return GitDates(reason=f"git log took longer than {timeout_s:g} s")
    if process.returncode:
        return GitDates(reason="git log failed; is this folder yours, or in safe.directory?")
    return GitDates(last, first)


def commits(log: IO[bytes], mark: bytes) -> Iterator[tuple[str, float]]:
    """(path, seconds) for each file of each commit, in the order of the log.

    A commit with a date outside the calendar is skipped.
    """
    at: float | None = None
    for record in records(log):
        # A commit's line ends in a newline and is followed by the first of its files.
        before, found, rest = record.partition(mark)
        if found and not before.strip(b"\n"):
            seconds, _, record = rest.partition(b"\n")
            at = in_calendar(float(seconds))
        if record and at is not None:
            yield normalize("NFC", os.fsdecode(record)), at


def records(log: IO[bytes]) -> Iterator[bytes]:
    """The parts between NUL bytes."""
    left = b""
    while chunk := log.read(CHUNK):
        *whole, left = (left + chunk).split(b"\0")
        yield from whole
    yield left


def head(root: Path) -> str:
    """Names the commit that is checked out; empty where there is none. Runs nothing.

    As long as it stays the same, so do the dates.
    """
    try:
        folder = git_folder(Path(os.path.realpath(root)))
        return _head(folder) if folder else ""
    except (OSError, ValueError):
        return ""


def _head(folder: Path) -> str:
    text = _text(folder / "HEAD").strip()
    if not text.startswith("ref:"):
        return text
    ref = text[4:].strip()
    if not ref.startswith("refs/") or ".." in ref:
        return ""
    common = folder / _text(folder / "commondir").strip()
    if tables := _text(common / "reftable" / "tables.list"):
        return digest_of(tables.encode()).hex()  # its names change with every commit
    loose = _text(folder / ref) or _text(common / ref)
    return loose.strip() or _packed(_text(common / "packed-refs"), ref)


def _packed(text: str, ref: str) -> str:
    lines = (line.partition(" ") for line in text.splitlines())
    return next((name for name, _, packed in lines if packed == ref), "")


def _text(file: Path) -> str:
    return read_small(file, MAX_BYTES) or ""


def git_folder(top: Path) -> Path | None:
    """The .git of the repository that a folder is in; the vault may lie deep in it."""
    for folder in (top, *top.parents):
        found = folder / ".git"
        if found.is_dir():
            return found
        if found.is_file():
            # A worktree or a submodule: one line that says where.
            where = _text(found).partition("gitdir:")[2].strip()
            return folder / where if where else None
    return None
