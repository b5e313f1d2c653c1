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

from ragvault.cli.start import Caller, this_caller
from ragvault.config.folders import runtime_folder
from ragvault.models.load import ModelPool
from ragvault.service.protocol import WatcherUnavailable, ask_watcher
from ragvault.service.vault_watcher import VaultWatcher
from ragvault.service.watcher import Watcher
from ragvault.vault import Vault
from tests.write_kit import Heard

SAMPLE = Path(__file__).parent.parent / "sample_vault"
# Far more than it takes: two busy cores say nothing about whether it happens.
DEADLINE = 60.0
SMALL = {
    "RAGVAULT_MODELS__EMBEDDER": "fake",
    "RAGVAULT_MODELS__STATIC": "fake",
    "RAGVAULT_WATCH__DEBOUNCE": "0.05",
    "RAGVAULT_SEARCH__UPDATE": "off",  # changes are the watcher's work here
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


class Home:
    """A vault, a home, and the processes that use them."""

    def __init__(self) -> None:
        self.folder = short_home()
        self.root = self.folder / "notes"
        shutil.copytree(SAMPLE, self.root)
        self.env = environ(self.folder / "home")

    @property
    def run(self) -> str:
        return runtime_folder(self.env)

    def search(self, *args: str, **more: str) -> subprocess.CompletedProcess[bytes]:
        return ragvault({**self.env, **more}, "search", *args, cwd=self.root)

    def asked(self, *args: str, **more: str) -> dict[str, object]:
        """The watcher's own answer, or WatcherUnavailable; `more` are variables."""
        around = self.around()._asdict()
        around["environ"] |= more
        return ask_watcher(self.run, {"op": "search", "args": ["search", *args], "around": around})

    def answers(self, *args: str) -> bool:
        """Whether the watcher answers with something; on busy cores it may need several tries."""
        try:
            return bool(self.asked(*args)["out"])
        except WatcherUnavailable:
            return False

    def vault(self) -> Vault:
        return Vault.open(self.root, environ=self.env)

    def status(self) -> dict[str, object]:
        """What the watcher tells of the one vault."""
        return dict(ask_watcher(self.run, {"op": "status"})["vaults"][0])

    def around(self) -> Caller:
        kept = ("RAGVAULT_", "XDG_", "HOME")
        ours = {name: value for name, value in self.env.items() if name.startswith(kept)}
        return this_caller()._replace(cwd=str(self.root), environ=ours)
