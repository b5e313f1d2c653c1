"""Background: start a watcher that outlives the terminal, and wait until it watches."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from ragvault.config.folders import settled
from ragvault.errors import RagvaultError
from ragvault.service.running import Running, running

STARTING = 30.0  # seconds: a cold disk reads a few hundred megabytes of libraries first


class NotStarted(RagvaultError):
    """The watcher ended before it watched anything."""


def start(vaults: Sequence[Path]) -> Running:
    """Start `ragvault watch` on its own and return when it is ready. Raises NotStarted."""
    command = [sys.executable, "-m", "ragvault", "watch", "--quiet", *map(str, vaults)]
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            start_new_session=True,
            env=settled(),
            cwd=Path.home() if Path.home().is_dir() else Path("/"),
        )
        found = _ready(process)
        if found is None:
            said.seek(0)
            raise _failure(said.read().decode(errors="replace"), process)
    process.returncode = 0  # it is not ours any more: no warning about it when we end
    return found


def _ready(process: subprocess.Popen[bytes]) -> Running | None:
    end = time.monotonic() + STARTING
    while time.monotonic() < end and process.poll() is None:
        found = running()
        if found is not None and found.pid == process.pid:
            return found
        time.sleep(0.02)
    return None


def _failure(said: str, process: subprocess.Popen[bytes]) -> NotStarted:
    """Its own words, without the name that this process puts before them again."""
    if process.poll() is None:
        process.terminate()
        process.wait()
        return NotStarted("the watcher did not start in time", fix="ragvault watch shows why")
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    message = next((line for line in lines if line.startswith("ragvault:")), "")
    fix = next((line for line in lines if line.startswith("fix:")), "")
    failure = NotStarted(
        message.removeprefix("ragvault: ") or f"the watcher ended with code {process.returncode}",
        fix=fix.removeprefix("fix: ") or "ragvault watch shows why",
    )
    failure.exit_code = process.returncode if process.returncode in (2, 3, 4) else 4
    return failure
