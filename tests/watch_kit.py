"""For tests of the watcher: small models, short waits, and questions with a deadline."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ragvault.models.load import ModelPool
from ragvault.service.vault_watcher import VaultWatcher
from ragvault.service.watcher import Watcher
from ragvault.vault import Vault
from tests.write_kit import Heard

# Far more than it takes: two busy cores say nothing about whether it happens.
DEADLINE = 60.0
SMALL = {
    "RAGVAULT_MODELS__EMBEDDER": "fake",
    "RAGVAULT_MODELS__STATIC": "fake",
    "RAGVAULT_WATCH__DEBOUNCE": "0.05",
}


def soon(claim: Callable[[], object]) -> bool:
    """Whether it becomes true in time."""
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        if claim():
            return True
        time.sleep(0.02)
    return False


class Watched:
    """A vault with a watcher over it, in a thread of this process."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.heard = Heard()
        self.vault_watcher = VaultWatcher(
            Vault.open(root), self.heard, ModelPool(), lambda: self.watcher.wake()
        )
        self.watcher = Watcher([self.vault_watcher])
        self._thread = threading.Thread(target=self.watcher.run)

    def __enter__(self) -> Watched:
        self._thread.start()
        assert soon(self.is_done)
        return self

    def __exit__(self, *_: object) -> None:
        self.watcher.stop()
        self._thread.join(DEADLINE)
        assert not self._thread.is_alive()

    def is_done(self) -> bool:
        vault = self.vault_watcher
        busy = vault.batch.waiting or vault.unfinished or self.watcher.is_writing(vault)
        return bool(vault.last_change) and not busy

    def found(self, query: str) -> list[str]:
        """The notes that a search finds by this word."""
        results = Vault.open(self.root).search(f'"{query}"').results
        return sorted({each.note for each in results})

    def finds(self, query: str, *paths: str) -> bool:
        """Whether exactly these are found, in time."""
        return soon(lambda: self.found(query) == sorted(paths))


# --- a process of its own ---


def short_home() -> Path:
    """A RAGVAULT_HOME for a watcher that other processes ask."""
    return Path(tempfile.mkdtemp(prefix="ragvault-"))


def environ(home: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAGVAULT_")}
    return {**kept, **SMALL, "RAGVAULT_HOME": str(home), **more}


def ragvault(
    env: dict[str, str], *args: str, cwd: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """One command line, in a process of its own."""
    command = [sys.executable, "-m", "ragvault", *args]
    return subprocess.run(command, env=env, cwd=cwd, capture_output=True, timeout=DEADLINE)


@contextmanager
def daemon(root: Path, env: dict[str, str], *args: str) -> Iterator[subprocess.Popen[bytes]]:
    """A watcher that is ready; killed at the end, if it still runs."""
    from ragvault.service.process import running_watcher

    command = [sys.executable, "-m", "ragvault", "watch", str(root), *args]
    process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        assert soon(lambda: process.poll() is not None or running_watcher(env))
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stderr.close()


def remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
