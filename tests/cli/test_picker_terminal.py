"""The picker in a real terminal, and the recipe of the docs that does the same with fzf."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from vault_kit import FAKE, SAMPLE

TMUX = shutil.which("tmux")
PROGRAM = [sys.executable, "-m", "ragvault"]
SEARCHING = Path(__file__).parents[2] / "docs" / "searching.md"
NEWEST = "Technique/Steam.md"
WAIT = 60  # seconds: a busy machine is slow, and a passing test waits for nothing

pytestmark = pytest.mark.skipif(TMUX is None, reason="tmux is not installed")


class Terminal:
    """One tmux session with a server of its own."""

    def __init__(self, name: str) -> None:
        self.name = name

    def tmux(self, *args: str) -> str:
        done = subprocess.run(
            [str(TMUX), "-L", self.name, *args], capture_output=True, text=True, check=False
        )
        return done.stdout

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p")

    def keys(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)

    def wait(self, holds: Callable[[], bool]) -> None:
        until = time.monotonic() + WAIT
        while not holds():
            assert time.monotonic() < until, self.screen()
            time.sleep(0.05)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    made = Terminal(f"ragvault-{os.getpid()}-{tmp_path.name}")
    yield made
    made.tmux("kill-server")


@dataclass(frozen=True)
class Place:
    """An indexed copy of the sample vault, and an editor that only writes down its arguments."""

    vault: Path
    environ: dict[str, str]
    opened: Path

    def run(self, terminal: Terminal, *program: str) -> None:
        variables = map("=".join, self.environ.items())  # `tmux -e` does not set PATH
        size = ["-x", "120", "-y", "30"]
        start = ["new-session", "-d", *size, "-c", str(self.vault), "env", *variables]
        terminal.tmux(*start, *program)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    vault, home = Path(shutil.copytree(SAMPLE, tmp_path / "notes")), tmp_path / "home"
    opened, programs = tmp_path / "opened", tmp_path / "programs"
    programs.mkdir()
    editor = script(programs / "editor", f'echo "$@" >> {opened}')
    script(programs / "ragvault", f'exec {sys.executable} -m ragvault "$@"')
    environ = {**os.environ, "RAGVAULT_HOME": str(home), "EDITOR": editor, "CI": "true"}
    environ |= {**FAKE, "TERM": "xterm-256color", "VISUAL": "", "SHELL": "/bin/sh"}
    environ["PATH"] = f"{programs}:{environ['PATH']}"
    os.utime(vault / NEWEST, (2**31, 2**31))
    subprocess.run([*PROGRAM, "index", str(vault), "-q"], env=environ, check=True)
    return Place(vault, environ, opened)


def script(file: Path, line: str) -> str:
    file.write_text(f"#!/bin/sh\n{line}\n")
    file.chmod(0o700)
    return str(file)


def test_newest_notes_type_move_open_resize_and_leave(terminal: Terminal, place: Place) -> None:
    place.run(terminal, *PROGRAM)

    terminal.wait(lambda: "newest notes" in terminal.screen())
    assert NEWEST in terminal.screen().splitlines()[3], "the newest note has the first row"
    terminal.keys("steam oven")
    terminal.wait(lambda: "Steam" in terminal.screen() and "results" in terminal.screen())
    assert "│" in terminal.screen(), "the preview stands beside the list"
    terminal.keys("Down")
    terminal.keys("Enter")
    terminal.wait(place.opened.exists)
    assert place.opened.read_text().strip().endswith(".md")
    terminal.tmux("resize-window", "-x", "60", "-y", "24")
    terminal.wait(lambda: "│" not in terminal.screen() and "results" in terminal.screen())
    terminal.keys("Escape")
    terminal.wait(lambda: not terminal.tmux("list-sessions"))


@pytest.mark.skipif(shutil.which("fzf") is None, reason="fzf is not installed")
def test_the_fzf_recipe_of_the_docs_lists_searches_previews_and_opens(
    terminal: Terminal, place: Place
) -> None:
    recipe = re.search(r"^FZF_DEFAULT_COMMAND=.*?(?=^```)", SEARCHING.read_text(), re.M | re.S)
    assert recipe
    place.run(terminal, "sh", "-c", recipe[0])

    terminal.wait(lambda: f"> {NEWEST}:" in terminal.screen())
    terminal.keys("bread notebook")
    terminal.wait(lambda: "> Home.md:" in terminal.screen())
    terminal.wait(lambda: "TABLE hydration" in terminal.screen())
    terminal.keys("Enter")
    terminal.wait(place.opened.exists)
    assert re.fullmatch(r"Home\.md \+\d+", place.opened.read_text().strip())
