"""Completion in real shells: a note's name, title or alias is text to them, whatever it holds."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from vault_kit import FAKE

WAIT = 60  # seconds: a busy machine is slow, and a passing test waits for nothing
PROMPT = "ready> "
STARTS = {
    "bash": ["--noprofile", "--norc", "-i"],
    "zsh": ["-f", "-i"],
    "fish": ["--no-config", "-i", "-C", f"function fish_prompt; echo -n '{PROMPT}'; end"],
}
LOADS = {
    "bash": "source ./script",
    "zsh": "autoload -U compinit; compinit -D -u; source ./script",
    "fish": "source ./script",
}
# Each begins as "Quux safe" does, the only name that may be offered. None needs a slash.
HOSTILE = (
    "Quux $(touch pwned)",
    r"Quux \$(touch pwned)",
    r"Quux \\$(touch pwned)",
    "Quux `touch pwned`",
    r"Quux \`touch pwned\`",
    "Quux ';touch pwned;'",
    "Quux ''$(touch pwned)''",
    'Quux ";touch pwned;"',
    'Quux "";touch pwned;""',
    "Quux (touch pwned)",
    "Quux <(touch pwned)",
    "Quux =(touch pwned)",
    "Quux ;touch pwned",
    "Quux & touch pwned",
    "Quux | touch pwned",
    "Quux > pwned",
    "Quux:$(touch pwned)",
    "Quux))'; touch pwned; : '((",
    "Quux ${(e):-$(touch pwned)}",
    "Quux *(e:touch pwned:)",
    "Quux\ttouch pwned",
    "Quux\x1b]0;pwned\x07",
    "Quux\n$(touch pwned)",
    "Quux\r touch pwned\r",
)
SHELLS = [
    pytest.param(
        shell,
        marks=pytest.mark.skipif(
            shutil.which(shell) is None and os.environ.get("CI") != "true",
            reason=f"{shell} is not installed",
        ),
    )
    for shell in STARTS
]


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shells")
    notes = folder / "notes"
    notes.mkdir()
    for number, name in enumerate(HOSTILE):
        (notes / f"{name}.md").write_text("As a file name.\n")
        typed = "".join(f"\\x{ord(char):02x}" for char in name)
        (notes / f"title{number}.md").write_text(f'---\ntitle: "{typed}"\n---\nText.\n')
        (notes / f"alias{number}.md").write_text(f'---\naliases: ["{typed}"]\n---\nText.\n')
    (notes / "-Quux.md").write_text("No option.\n")
    (notes / "safe.md").write_text("---\ntitle: Quux safe\n---\nThe crust sings.\n")
    program = folder / "bin" / "ragvault"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ragvault "$@"\n')
    program.chmod(0o755)
    subprocess.run([program, "index", notes, "-q"], env=environ(folder), check=True)
    return folder


def environ(folder: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("LANG", "LC_ALL", "TMPDIR") if name in os.environ}
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    own = {"HOME": str(folder), "RAGVAULT_HOME": str(folder / "home"), "CI": "true", "PATH": path}
    return kept | own | FAKE | {"TERM": "dumb", "PS1": PROMPT, "COLUMNS": "200"}


class Typed:
    """A shell in a terminal of its own."""

    def __init__(self, shell: str, folder: Path) -> None:
        self.screen, self.terminal = "", 0
        child, self.terminal = pty.fork()
        if child == 0:
            try:
                os.chdir(folder / "notes")
                os.execvpe(shell, [shell, *STARTS[shell]], environ(folder))
            finally:
                os._exit(127)
        self.child = child

    def type(self, keys: str, until: str) -> None:
        """Type these keys and wait for what the shell or the program then shows."""
        self.screen = ""
        os.write(self.terminal, keys.encode())
        end = time.monotonic() + WAIT
        while until not in self.screen:
            assert time.monotonic() < end, self.screen
            if select.select([self.terminal], [], [], 0.2)[0]:
                shown = os.read(self.terminal, 65536).decode("utf-8", "replace")
                self.screen += re.sub(r"\x1b(\[[\d;?>]*.|[()].|[=>])|[\x08\r]", "", shown)

    def close(self) -> None:
        os.close(self.terminal)  # the shell is told that its terminal has gone
        os.kill(self.child, 9)
        os.waitpid(self.child, 0)


@pytest.fixture
def typed(shell: str, vault: Path) -> Iterator[Typed]:
    how = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    script = subprocess.run(
        ["ragvault", "--show-completion", shell],
        env=environ(vault) | how,
        capture_output=True,
        check=True,
    )
    (vault / "notes" / "script").write_bytes(script.stdout)
    made = Typed(shell, vault)
    yield made
    made.close()


@pytest.mark.parametrize("shell", SHELLS)
def test_tab_runs_nothing_that_a_note_says_and_completes_a_safe_name(shell, typed, vault):
    typed.type("", PROMPT)
    typed.type(f"{LOADS[shell]}; echo loa''ded\r", "loaded")
    typed.type("ragvault read Quu\t", r"Quux\ safe")
    typed.type("\r", "The crust sings.")

    assert not (vault / "notes" / "pwned").exists()
