"""The picker in a real terminal: newest notes, type, move, open, resize, leave."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from vault_kit import FAKE, SAMPLE

TMUX = shutil.which("tmux")
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


def test_newest_notes_type_move_open_resize_and_leave(terminal: Terminal, tmp_path: Path) -> None:
    vault, home = Path(shutil.copytree(SAMPLE, tmp_path / "notes")), tmp_path / "home"
    opened, editor = tmp_path / "opened", tmp_path / "editor"
    editor.write_text(f'#!/bin/sh\necho "$@" >> {opened}\n')
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    environ = {**os.environ, "RAGVAULT_HOME": str(home), "EDITOR": str(editor), "CI": "true"}
    environ |= {**FAKE, "TERM": "xterm-256color", "VISUAL": ""}
    program = [sys.executable, "-m", "ragvault"]
    os.utime(vault / NEWEST, (2**31, 2**31))
    subprocess.run([*program, "index", str(vault), "-q"], env=environ, check=True)
    variables = [part for name in environ for part in ("-e", f"{name}={environ[name]}")]
    size = ["-x", "120", "-y", "30"]
    terminal.tmux("new-session", "-d", *size, "-c", str(vault), *variables, *program)

    terminal.wait(lambda: "newest notes" in terminal.screen())
    assert NEWEST in terminal.screen().splitlines()[3], "the newest note has the first row"
    terminal.keys("steam oven")
    terminal.wait(lambda: "Steam" in terminal.screen() and "results" in terminal.screen())
    assert "│" in terminal.screen(), "the preview stands beside the list"
    terminal.keys("Down")
    terminal.keys("Enter")
    terminal.wait(opened.exists)
    assert opened.read_text().strip().endswith(".md")
    terminal.tmux("resize-window", "-x", "60", "-y", "24")
    terminal.wait(lambda: "│" not in terminal.screen() and "results" in terminal.screen())
    terminal.keys("Escape")
    terminal.wait(lambda: not terminal.tmux("list-sessions"))
