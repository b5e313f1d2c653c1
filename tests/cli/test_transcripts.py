"""Transcripts: what a person types, and what they see.

    # A comment.
    $ ragvault config check --vault sample_vault
    sample_vault/.ragvault.toml: no problems found      stdout
    ! ragvault: the message                       stderr, after stdout
    (exit 2)                                      when it is not 0

Each file in tests/transcripts runs in a folder of its own, with a copy of sample_vault in it and
RAGVAULT_HOME beside it; `<here>` and `<home>` stand for the two. Notes were written on 1 February
2026, and it is 1 March for a plain command; times that were measured are `<n>`. A line of output
that could be mistaken for something else is shown behind `| `. Lines that are not a plain ragvault
command go to the shell. `pytest --update-transcripts` rewrites the files with what is printed now.

In a file whose name ends in `-terminal` commands run on a wide terminal, in colour and with the
real clock: how lines are wrapped would depend on the length of paths. What stands there at the end
is shown, both streams in one: a bar that was drawn and wiped away is not. A line `> y` under such a
command is typed when it asks. `-80x24` at the end of a name is the same on a terminal of that size.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from multiprocessing import resource_tracker
from pathlib import Path

import pytest

from ragvault import __version__
from ragvault.cli.main import main

FOLDER = Path(__file__).parents[1] / "transcripts"
SAMPLE = Path(__file__).parents[2] / "sample_vault"
MARKS = ("$ ", "# ", "! ", "| ", "> ", "(exit ")
SHELL = set("|<>;&`*") | {"$("}
WRITTEN, NOW = (datetime(2026, month, 1, tzinfo=timezone.utc).timestamp() for month in (2, 3))
MEASURED = re.compile(r"\(([0-9.]+) s\)|( *[0-9.]+ to +[0-9.]+) ms|\(([0-9.]+ [kM]B) in ")
MARK = re.compile(r"(vaults/[a-z0-9-]+-)[0-9a-f]{8}")  # made of the vault's path
RUNS = (  # what else differs between two runs of the same commands
    (r"\d{4}-\d\d-\d\d \d\d:\d\d, \d+\.\d s", "<time>, <n> s"),
    (r'"(seconds|ended|took_ms)": [0-9.e+-]+', r'"\1": <n>'),
    (r" *\b\d+(\.\d)? (kB|MB|GB|bytes)\b", " <size>"),
    (r'("bytes": )(\d+|\{[^}]*\})', r"\1<n>"),
)
TERMINAL = "-terminal"
AGE = re.compile(r"(?<=, )(\d+ \w+ ago|yesterday|today)$", re.MULTILINE)
SIZE = re.compile(r"-(\d+)x(\d+)$")
CURSOR = re.compile(r"\x1b\[(\?25[hl]|2K|\d*A)|\r")
Run = Callable[[str, "Room", str], tuple[str, str, int]]


@dataclass(frozen=True)
class Room:
    """Where a transcript runs."""

    here: Path
    home: Path

    @property
    def environ(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("LANG", "TMPDIR", "CI") if name in os.environ}
        scripts = str(Path(sys.executable).parent)
        path = os.pathsep.join([scripts, os.environ.get("PATH", os.defpath)])
        fixed = {"COLUMNS": "100", "TZ": "UTC", "NO_COLOR": "1", "HOME": str(self.here.parent)}
        return kept | fixed | {"PATH": path, "RAGVAULT_HOME": str(self.home)}

    def normal(self, text: str) -> str:
        """The same on every machine and for every release."""
        for found, name in ((self.here, "<here>"), (self.home, "<home>")):
            text = text.replace(str(found), name)
        text = MEASURED.sub(lambda found: found[0].replace(found[found.lastindex], "<n>"), text)
        text = MARK.sub(r"\1<mark>", text)
        for pattern, name in RUNS:
            text = re.sub(pattern, name, text)
        return text.replace(f"ragvault {__version__}", "ragvault <version>")


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Room:
    room = Room(tmp_path / "here", tmp_path / "home")
    room.here.mkdir()
    shutil.copytree(SAMPLE, room.here / "sample_vault")
    for note in room.here.rglob("*.md"):
        os.utime(note, (WRITTEN, WRITTEN))
    monkeypatch.setattr("ragvault.cli.start.clock", lambda: NOW)
    monkeypatch.chdir(room.here)
    for name, value in room.environ.items():
        monkeypatch.setenv(name, value)
    return room


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.txt")), ids=lambda path: path.stem)
def test_transcript(path: Path, room: Room, request: pytest.FixtureRequest) -> None:
    expected = path.read_text("utf-8")
    size = SIZE.search(path.stem)
    on = on_a_terminal if path.stem.endswith(TERMINAL) else run
    if size:
        on = partial(on_a_terminal, columns=int(size[1]), lines=int(size[2]))

    actual = "".join(f"{line}\n" for line in replay(expected, room, on))

    if request.config.getoption("--update-transcripts"):
        path.write_text(actual, "utf-8")
    else:
        assert actual == expected


def replay(transcript: str, room: Room, on: Run | None = None) -> Iterator[str]:
    """The transcript again, with the output that its commands have now."""
    lines = transcript.splitlines()
    for at, line in enumerate(lines):
        if line.startswith("$ "):
            typed = [each for each in lines[at + 1 : at + 2] if each.startswith("> ")]
            yield from (line, *typed)
            yield from shown(*(on or run)(line[2:], room, "".join(typed)[2:]), room)
        elif line.startswith("# ") or not line:
            yield line


def shown(out: str, err: str, code: int, room: Room) -> Iterator[str]:
    for line in room.normal(out).splitlines():
        yield f"| {line}".rstrip() if not line or line.startswith(MARKS) else line
    for line in room.normal(err).splitlines():
        yield f"! {line}".rstrip()
    if code:
        yield f"(exit {code})"


def run(command: str, room: Room, typed: str = "") -> tuple[str, str, int]:
    """Run a plain ragvault command in this process, which is quick; the rest in a shell.

    Of `ragvault … | filter` the first part is run here and the filter in a shell.
    """
    first, pipe, filters = command.partition(" | ")
    args = plain(first)
    if args is None:
        done = in_a_shell(command, room)
        return done.stdout, done.stderr, done.returncode
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(args)
    if not pipe:
        return out.getvalue(), err.getvalue(), code
    done = in_a_shell(filters, room, out.getvalue())
    return done.stdout, err.getvalue() + done.stderr, done.returncode


def plain(command: str) -> list[str] | None:
    """The arguments of a ragvault command that needs no shell."""
    if not command.startswith("ragvault ") or any(mark in command for mark in SHELL):
        return None
    try:
        return shlex.split(command)[1:]
    except ValueError:  # the pipe was within quotes
        return None


def in_a_shell(command: str, room: Room, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        shell=True,
        input=stdin,
        capture_output=True,
        text=True,
        env=room.environ,
        check=False,
    )


def on_a_terminal(
    command: str, room: Room, typed: str = "", columns: int = 300, lines: int = 50
) -> tuple[str, str, int]:
    """Run a command whose three streams are one terminal: a plain one here, others in a shell."""
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    environ = {**room.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    environ["COLUMNS"] = str(columns)
    colourless = "NO_COLOR=1 "
    if not command.startswith(colourless):
        del environ["NO_COLOR"]
    command = command.removeprefix(colourless)
    with ThreadPoolExecutor(1) as reader:
        reading = reader.submit(read_terminal, ours, typed)
        try:
            args = plain(command)
            if args is None:
                streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
                code = subprocess.call(command, shell=True, env=environ, **streams)
            else:
                code = main_on(theirs, args, environ)
        finally:
            os.close(theirs)
        said = reading.result()
    os.close(ours)
    return AGE.sub("<age>", at_the_end(said.replace("\r\n", "\n"))), "", code


def read_terminal(ours: int, typed: str) -> str:
    """Everything written to a terminal until it is closed; `typed` answers its first question."""
    said = b""
    with suppress(OSError):  # how Linux tells that the other end is closed
        while piece := os.read(ours, 65536):
            said += piece
            if typed and said.endswith(b": "):
                os.write(ours, f"{typed}\n".encode())
                typed = ""
    return said.decode()


def main_on(terminal: int, args: list[str], environ: dict[str, str]) -> int:
    """Run a command line in this process, as if it had been started on this terminal."""
    # It lives as long as this process, with the stderr there is when it starts: the end of this
    # terminal would never come.
    resource_tracker.ensure_running()
    with ExitStack() as undo:
        patch = undo.enter_context(pytest.MonkeyPatch.context())
        patch.delenv("NO_COLOR")
        for name, value in environ.items():
            patch.setenv(name, value)
        for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
            end = os.fdopen(os.dup(terminal), mode, encoding="utf-8", buffering=1)
            patch.setattr(sys, name, undo.enter_context(end))
        patch.setattr("ragvault.cli.start.clock", time.time)
        return main(args)


def at_the_end(said: str) -> str:
    """What stands on a terminal when everything was written, drawn over and wiped away."""
    lines, row = [""], 0
    for part in re.split(r"(\n|" + CURSOR.pattern.replace("(", "(?:") + ")", said):
        if part == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif part.endswith("A") and CURSOR.fullmatch(part):
            row = max(row - int(part[2:-1] or 1), 0)
        elif part.endswith("2K"):
            lines[row] = ""
        elif not CURSOR.fullmatch(part):
            lines[row] += part
    return "\n".join(lines).rstrip("\n")


NARROW = [
    "ragvault status -v",
    "ragvault related Steam -n 3",
    "ragvault search rye -n 2 --explain",
    "ragvault list properties -n 5",
    "ragvault search rye --vault a-vault-that-nobody-has-ever-heard-of",
    "ragvault search rye --set boost.recency.tiers=[[60,1.1],[14,1.2]]",
]


def test_no_word_is_cut_on_a_narrow_terminal(room):
    run("ragvault index sample_vault --no-vectors -q", room)
    for command in NARROW:
        wide, narrow = (
            re.sub(r"\x1b(\[[0-9;]*m|\]8;;[^\x1b]*\x1b\\)| +[0-9.]+ to +[0-9.]+ ms", "", text)
            for text in (on_a_terminal(command, room, columns=each)[0] for each in (300, 60))
        )
        whole = iter(wide.split())  # a snippet has three lines, so fewer words on a narrow one
        assert all(word in whole for word in narrow.split() if word != "…"), command
        long = [line for line in narrow.split("\n") if len(line) > 60]
        # A path is never cut, and neither is the line with a title.
        assert all(re.search(r"/pytest-|^ ?\d+  ", line) for line in long), long


def test_a_transcript_notices_when_the_output_changes(room):
    wrong = "$ ragvault --version\nragvault 0\n"

    assert list(replay(wrong, room)) == ["$ ragvault --version", "ragvault <version>"]


def test_output_that_looks_like_a_transcript_is_marked(room):
    command = "$ printf '# a\\n\\n$ b\\n(exit 9)\\n'; echo oops >&2; exit 3"

    lines = list(replay(command, room))[1:]

    assert lines == ["| # a", "|", "| $ b", "| (exit 9)", "! oops", "(exit 3)"]
    assert list(replay("\n".join([command, *lines]), room)) == [command, *lines]
