"""Dates: when a note is from, and how we know.

    name          a date in its path: a daily note, or a name that contains a date
    frontmatter   date, created or updated
    git           the last commit that touched it
    mtime         the file system, which sync tools rewrite

The first one that is there wins. A date without a zone is taken as UTC, so that one vault has the
same dates on every machine; a filter compares it with the user's local time. A value that is not a
date, or outside the years 1 to 9999, is skipped: a note can be without a date.

One run of `git log` gives the commits of a whole vault. A vault may be somebody else's repository,
and a repository can name programs for git to run; so git only reads commits and trees here. Its
options forbid every hook, pager, monitor, signature or diff program, fetching, locking and
prompting. It never compares the working tree, because that runs the repository's own filters.
Which owners to trust (safe.directory) stays the user's decision.

So a note with changes that are not committed has the date of its last commit. A caller that saw
its content change while `head` stayed the same knows better, and should prefer the file's own time.
In a shallow clone the dates of what is older than the clone are those of its oldest commit.
"""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from functools import lru_cache
from pathlib import Path
from typing import IO, Any
from unicodedata import normalize

from ragvault.notes.read import digest_of, read_obsidian_settings, read_small
from ragvault.text.dates import MONTH_NAME, ORDINAL, in_calendar, month_number, utc_offset
from ragvault.types import Date

CLOCK = (
    r"(?:[T\s,]+(?:at\s+)?(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,]\d+)?)?"
    r"\s*(?P<half>[ap]m)?\s*(?P<zone>Z|UTC|GMT|[+-]\d\d:?(?:\d\d)?)?(?:\s*\([\w ]+\))?)?"
)
WEEKDAY = r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?\s+)?"
FORMS = [
    re.compile(WEEKDAY + form + CLOCK, re.IGNORECASE)
    for form in (
        r"(?P<y>\d{4})(?P<sep>[-/._])(?P<m>\d{1,2})(?P=sep)(?P<d>\d{1,2})",
        r"(?P<d>\d{1,2})\.\s?(?P<m>\d{1,2})\.\s?(?P<y>\d{4})",
        rf"(?P<d>\d{{1,2}}){ORDINAL}[\s.-]+(?P<month>{MONTH_NAME})\.?[\s,-]+(?P<y>\d{{4}})",
        rf"(?P<month>{MONTH_NAME})\.?\s+(?P<d>\d{{1,2}}){ORDINAL},?\s+(?P<y>\d{{4}})",
        r"(?P<y>\d{4})-(?P<m>\d\d)",
    )
]
COMPACT = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T?(\d\d)(\d\d)(\d\d)?)?Z?")
SLASHED = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})" + CLOCK, re.IGNORECASE)
# With separators anywhere in a name; bare digits only at its start, as notes numbered by time have.
NAMED = re.compile(
    r"(?<!\d)(\d{4})([-_])(\d\d)\2(\d\d)(?!\d)|^(\d{4})(\d\d)(\d\d)(?:\d{4}|\d{6})?(?!\d)"
)
YEARS = range(1900, 2101)  # other digits in a name are more likely a number
MAX_WRITTEN = 100  # characters; a longer property is no date, and long runs of spaces take minutes
MAX_FORMAT = 200  # characters of a format
MAX_TOKENS = 16  # of a format; each of one or two digits doubles the ways to read a name

_WORD = r"[^\W\d_]+(?![^\W\d_])"  # a whole word, so that two words have one way to match

# What each token of a moment.js format matches; those with a name say something about the day.
TOKENS = {
    "YYYY": r"(?P<YYYY>\d{4})",
    "YY": r"(?P<YY>\d\d)",
    "MMMM": rf"(?P<MMMM>{_WORD})",
    "MMM": rf"(?P<MMM>{_WORD})\.?",
    "MM": r"(?P<MM>\d\d)",
    "Mo": r"(?P<M>\d{1,2})(?:st|nd|rd|th)",
    "M": r"(?P<M>\d{1,2})",
    "DDDD": r"(?P<DDDD>\d{3})",
    "DDD": r"(?P<DDDD>\d{1,3})",
    "DD": r"(?P<DD>\d\d)",
    "Do": r"(?P<D>\d{1,2})(?:st|nd|rd|th|\.)?",
    "D": r"(?P<D>\d{1,2})",
    "dddd": _WORD,
    "ddd": rf"{_WORD}\.?",
    "dd": rf"{_WORD}\.?",
    **dict.fromkeys(("gggg", "GGGG"), r"\d{4}"),
    **dict.fromkeys(("w", "ww", "W", "WW", "gg", "GG", "d", "e", "E", "Q"), r"\d{1,2}"),
    **dict.fromkeys(("H", "HH", "h", "hh", "k", "kk", "m", "mm", "s", "ss"), r"\d{1,2}"),
    **dict.fromkeys(("A", "a"), r"[AaPp]\.?[Mm]\.?"),
}
FORMAT = re.compile(
    r"\[([^\]]*)\]|(" + "|".join(sorted(TOKENS, key=len, reverse=True)) + r")|(.)", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Daily:
    """Where Obsidian keeps daily notes, and their names as a moment.js format (may contain `/`)."""

    folder: str = ""
    format: str = "YYYY-MM-DD"


DAILY = Daily()  # Obsidian's own default


def read_daily_notes(root: str | Path) -> tuple[Daily, list[str]]:
    """Where Obsidian keeps the daily notes of this vault, and what could not be read."""
    settings, warnings = read_obsidian_settings(root, "daily-notes.json")
    folder, form = settings.get("folder"), settings.get("format")
    return Daily(
        folder.strip("/") if isinstance(folder, str) else "",
        form if isinstance(form, str) and form.strip() else DAILY.format,
    ), warnings


def date_of(
    path: str,
    properties: Mapping[str, Any],
    *,
    mtime_ns: int,
    git: float | None = None,
    daily: Daily = DAILY,
) -> Date | None:
    """When a note is from, by the first source that knows."""
    if (named := named_date(path, daily)) is not None:
        return Date(named, "name")
    if (written := property_date(properties, ("date", "created", "updated"))) is not None:
        return Date(written, "frontmatter")
    if git is not None:
        return Date(git, "git")
    at = in_calendar(mtime_ns / 1e9)
    return None if at is None else Date(at, "mtime")


def created_of(
    path: str,
    properties: Mapping[str, Any],
    *,
    mtime_ns: int,
    git: float | None = None,
    daily: Daily = DAILY,
) -> float | None:
    """For `created:`; `git` is the first commit. A note about a day need not be from that day, so
    here the property comes before the name."""
    written = property_date(properties, ("created", "date"))
    return _first(written, named_date(path, daily), git, mtime_ns / 1e9)


def modified_of(
    properties: Mapping[str, Any], *, mtime_ns: int, git: float | None = None
) -> float | None:
    """For `modified:`. The name says nothing here; `git` is the last commit."""
    return _first(property_date(properties, ("updated", "modified")), git, mtime_ns / 1e9)


def _first(*known: float | None) -> float | None:
    return next((at for at in known if in_calendar(at) is not None), None)


def property_date(properties: Mapping[str, Any], names: Iterable[str]) -> float | None:
    """The first of these properties that contains a date; names in any case."""
    values = {str(name).casefold(): value for name, value in properties.items()}
    found = (moment_of(values.get(name)) for name in names)
    return next((at for at in found if at is not None), None)


def moment_of(value: object) -> float | None:
    """Seconds since 1970 for a property's value, or None where it is no date."""
    if isinstance(value, list | tuple):
        value = value[0] if value else None
    try:
        if isinstance(value, datetime):
            return in_calendar(_seconds(value))
        if isinstance(value, date):
            return _seconds(datetime(value.year, value.month, value.day))
        if isinstance(value, str | int) and not isinstance(value, bool):
            return in_calendar(_read(str(value).strip().strip("[]\"' ")))
    except (ValueError, OverflowError):
        pass
    return None


def _seconds(moment: datetime) -> float:
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return (moment - datetime(1970, 1, 1, tzinfo=timezone.utc)).total_seconds()


def _read(text: str) -> float | None:
    """A date as people and programs write it. Raises ValueError for a day that does not exist."""
    if len(text) > MAX_WRITTEN:
        return None
    if text.isascii() and text.isdigit() and len(text) in (10, 13):
        return int(text) / (1 if len(text) == 10 else 1000)  # Dendron, Joplin: since 1970
    if compact := COMPACT.fullmatch(text):
        return _seconds(datetime(*(int(part) for part in compact.groups() if part)))  # type: ignore[arg-type]
    if slashed := SLASHED.fullmatch(text):
        return _slashed(slashed)
    for form in FORMS:
        if found := form.fullmatch(text):
            part = found.groupdict()
            month = part.get("m") or month_number(part["month"])
            return _seconds(_at(int(part["y"]), int(month), int(part.get("d") or 1), part))
    return None


def _slashed(found: re.Match[str]) -> float | None:
    """31/12/2024 and 12/31/2024 are one day each; 03/04/2024 is two, and we do not guess."""
    first, second, year = (int(part) for part in found.groups()[:3])
    if first <= 12 and second <= 12 and first != second:
        return None
    day, month = max(first, second), min(first, second)
    return _seconds(_at(year, month, day, found.groupdict()))


def _at(year: int, month: int, day: int, clock: Mapping[str, str | None]) -> datetime:
    hour, minute, second = (int(clock[part] or 0) for part in ("hour", "minute", "second"))
    if half := clock["half"]:
        if not 1 <= hour <= 12:
            raise ValueError(f"no such hour: {hour} {half}")
        hour = hour % 12 + (12 if half.lower() == "pm" else 0)
    return datetime(year, month, day, hour, minute, second, tzinfo=utc_offset(clock["zone"] or ""))


def named_date(path: str, daily: Daily) -> float | None:
    """The date in a note's path, or None."""
    stem = path.rpartition(".")[0] or path
    return next(filter(lambda at: at is not None, _named(stem, daily)), None)


def _named(stem: str, daily: Daily) -> Iterator[float | None]:
    prefix = f"{daily.folder}/" if daily.folder else ""
    if stem.startswith(prefix) and (found := matcher(daily.format).fullmatch(stem[len(prefix) :])):
        yield day_of(found.groupdict())
    if found := NAMED.search(stem.rpartition("/")[2]):
        year, month, day = (int(found[i] or found[j]) for i, j in ((1, 5), (3, 6), (4, 7)))
        yield _day(year, month, day) if year in YEARS else None


@lru_cache(maxsize=16)
def matcher(form: str) -> re.Pattern[str]:
    """A moment.js format as an expression. A token that comes twice has to match the same text.

    A vault may come from anyone: a format that could take long matches no name.
    """
    found = FORMAT.findall(form[: MAX_FORMAT + 1])
    if len(form) > MAX_FORMAT or sum(bool(token) for _, token, _ in found) > MAX_TOKENS:
        return re.compile("(?!)")
    parts: list[str] = []
    seen: set[str] = set()
    for literal, token, other in found:
        regex = TOKENS.get(token) or re.escape(literal or other)
        name = regex[4 : regex.index(">")] if regex.startswith("(?P<") else ""
        parts.append(f"(?P={name})" if name in seen else regex)
        seen |= {name} - {""}
    return re.compile("".join(parts), re.IGNORECASE)


def day_of(found: Mapping[str, str]) -> float | None:
    """The day that the tokens of a format name together; None where they do not name one."""
    year = found.get("YYYY") or (f"20{found['YY']}" if "YY" in found else "")
    if not year:
        return None
    if ordinal := found.get("DDDD"):
        start = _day(int(year), 1, 1)
        return None if start is None else in_calendar(start + (int(ordinal) - 1) * 86400.0)
    name = found.get("MMMM") or found.get("MMM") or ""
    month = found.get("MM") or found.get("M") or month_number(name)
    return _day(int(year), int(month), int(found.get("DD") or found.get("D") or 0))


def _day(year: int, month: int, day: int) -> float | None:
    try:
        return _seconds(datetime(year, month, day))
    except ValueError:
        return None


# --- Commits ---

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
