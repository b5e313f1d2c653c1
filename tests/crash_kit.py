"""Processes that index a vault and can be killed at any moment.

One process imports everything and then forks a fresh indexer for every run, so that a run takes a
tenth of a second and not two. It is alone and has no threads, so that forking is safe. The models
write down what they embed before they hand it over.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from importlib import import_module
from pathlib import Path

# What a run imports where it is used: once here, and not once a run.
NEEDED = (
    *("write_kit", "faiss", "networkx", "numpy.ma", "pyromark", "Stemmer"),
    *("ragvault.index.graph", "ragvault.index.keyword.whoosh"),
    *("ragvault.index.keyword", "ragvault.index.vector"),
)
SILENT = 60.0  # seconds after which a run that says nothing is given up


class Indexer:
    """Runs `ragvault index` in processes of their own: `with Indexer(log) as run`."""

    def __init__(self, log: Path) -> None:
        self.log = log

    def __enter__(self) -> Indexer:
        here = Path(__file__).parent
        path = os.pathsep.join([str(here), str(here.parent), *filter(None, sys.path)])
        self._server = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._server.stdin
        self._server.stdin.close()
        assert self._server.wait(SILENT) == 0
        assert self._server.stdout
        self._server.stdout.close()

    def __call__(
        self, root: Path, home: Path, *flags: str, dies_after: float | None = None
    ) -> tuple[str, float]:
        """How a run ended ("done", "killed" or what went wrong), and how long it took."""
        asked = [str(root), str(home), flags, str(self.log), dies_after]
        assert self._server.stdin
        assert self._server.stdout
        self._server.stdin.write(json.dumps(asked) + "\n")
        self._server.stdin.flush()
        ended, seconds = json.loads(self._server.stdout.readline())
        return ended, seconds

    def embedded(self) -> list[tuple[str, str]]:
        """(model, text) of everything that was embedded since this was last asked."""
        said = self.log.read_text(encoding="utf-8") if self.log.exists() else ""
        self.log.unlink(missing_ok=True)
        # A line that a killed process did not finish was handed to nobody.
        return [tuple(json.loads(line)) for line in said.splitlines(True) if line.endswith("\n")]


def serve() -> None:
    for name in NEEDED:
        import_module(name)
    if sys.version_info >= (3, 11):
        import_module("ragvault.index.keyword.tantivy")
    for line in sys.stdin:
        root, home, flags, log, dies_after = json.loads(line)
        began = time.perf_counter()
        child = os.fork()
        if not child:
            _index(Path(root), Path(home), flags, Path(log))
        if dies_after is not None:
            time.sleep(dies_after)
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        ended = {0: "done", -signal.SIGKILL: "killed"}.get(status, f"exit {status}")
        print(json.dumps([ended, time.perf_counter() - began]), flush=True)


def _index(root: Path, home: Path, flags: list[str], log: Path) -> None:
    from write_kit import Counting, opened

    from ragvault.engines import Engines
    from ragvault.update import keyword, notes

    # So that a run may also die while words follow, with some of the notes read.
    keyword.EVERY, notes.COMMIT_EVERY = 0.01, 4

    class Logging(Counting):
        def embed(self, texts, kind):
            with log.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps([self.name, text]) + "\n" for text in texts)
            return super().embed(texts, kind)

    Engines.embedder = lambda self, name, offline=False: Logging(name.partition("@")[0])
    status = 1
    try:
        opened(root, home, *flags).index()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


if __name__ == "__main__":
    serve()
