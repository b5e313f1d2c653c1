"""Faults of a machine at any point of any operation that writes an index.

`Machine` is a process without threads that forks a fresh process for every step: so a step may be
killed, may meet a full disk, or may have another clock, and the next one knows nothing of it. Where
mounting is allowed, the indexes are on a small file system of their own, which can be filled and
made read-only.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

COUNT = 8  # notes
FILE_SYSTEM = "mount -t tmpfs -o size=24m none {home} && exec {python} {script} {work} mounted"
DAY = 86_400
# Where each fault strikes, in turn: the n-th commit, free bytes, bytes of a file, or days.
FAULTS: dict[str, tuple[int, ...]] = {
    "killed at a commit": (1, 2, 4, 8, 16),
    "full disk": (0, 30_000, 300_000),
    "read-only folder": (0,),
    "long files are refused": (0, 5_000, 60_000),
    "write errors from a commit on": (1, 3, 9),
    "clock jumps": (-400, 400),
}
OPERATIONS = ("index", "rebuild", "forget", "watcher", "engine", "model", "full tier")
MOUNTED = ("full disk", "read-only folder")  # these need a file system of their own


# --- the side of the tests ---


def may_mount() -> bool:
    try:
        return subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode == 0
    except OSError:
        return False


class Machine:
    """`with Machine(folder) as machine: machine(fault, operation)` gives a list of complaints."""

    def __init__(self, work: Path) -> None:
        self.work, self.mounted = work, may_mount()

    def __enter__(self) -> Machine:
        here = Path(__file__).parent
        (self.work / "home").mkdir()
        command = [sys.executable, __file__, str(self.work), "plain"]
        if self.mounted:
            mount = FILE_SYSTEM.format(
                home=self.work / "home", python=sys.executable, script=__file__, work=self.work
            )
            command = ["unshare", "-rm", "sh", "-c", mount]
        path = os.pathsep.join([str(here), str(here.parent)])
        self._server = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._server.stdin
        assert self._server.stdout
        self._server.stdin.close()
        assert self._server.wait(60) == 0
        self._server.stdout.close()

    def __call__(self, fault: str, operation: str) -> dict[str, Any]:
        """How often the fault struck, and what was wrong afterwards."""
        assert self._server.stdin
        assert self._server.stdout
        self._server.stdin.write(json.dumps([fault, operation]) + "\n")
        self._server.stdin.flush()
        result: dict[str, Any] = json.loads(self._server.stdout.readline())
        return result


# --- the machine ---


def serve(work: Path) -> None:
    for name in ("write_kit", "faiss", "networkx", "numpy.ma", "pyromark", "Stemmer"):
        import_module(name)
    for name in ("graph", "vector", "keyword", "keyword.whoosh"):
        import_module(f"ragvault.index.{name}")
    import_module("ragvault.service.vault_watcher")
    for number, line in enumerate(sys.stdin):
        fault, operation = json.loads(line)
        case = Case(work, f"{number}", operation)
        try:
            print(json.dumps(case.run(fault)), flush=True)
        finally:
            case.remove()


class Case:
    """One operation, on an index that is set up once and copied for every fault."""

    def __init__(self, work: Path, name: str, operation: str) -> None:
        self.operation = operation
        self.root = work / f"vault{name}"
        self.disk = work / "home"
        self.before, self.clean = work / f"before{name}", work / f"clean{name}"
        self.home = self.disk / name
        self.flags = {
            "engine": ["keyword.engine=tantivy"],
            "model": ["keyword.engine=whoosh", "models.embedder=better"],
        }.get(operation, ["keyword.engine=whoosh"])

    def remove(self) -> None:
        for folder in (self.root, self.before, self.clean, self.home):
            shutil.rmtree(folder, ignore_errors=True)

    def run(self, fault: str) -> dict[str, Any]:
        struck, wrong = 0, []
        done = in_child(self.set_up)
        wanted = in_child(self.answers_of_a_fresh_index)
        assert done["ended"] == wanted["ended"] == "done", (done, wanted)
        for point in FAULTS[fault]:
            shutil.rmtree(self.home, ignore_errors=True)
            shutil.copytree(self.before, self.home)
            with around(fault, point, self.disk):
                first = in_child(lambda point=point: self.operate(fault, point))
            after = in_child(self.answer)
            stored = in_child(self.stored)
            second = in_child(self.recover)
            struck += first["ended"] in ("killed", "refused") or fault == "clock jumps"
            said = {"first": first, "search": after, "stored": stored, "second": second}
            wrong += [
                (point, step, each["ended"])
                for step, each in said.items()
                if each["ended"] not in ("done", *(["killed", "refused"] * (step == "first")))
            ]
            if stored["value"] is not None and second["value"] is not None:
                held = {tuple(each) for each in stored["value"]}
                twice = [each for each in second["embedded"] if tuple(each) in held]
                wrong += [(point, "embedded again", each) for each in twice]
                if second["value"] != wanted["value"]:
                    wrong.append((point, "answers", differing(second["value"], wanted["value"])))
        return {"struck": struck, "wrong": wrong}

    # --- steps, each in a process of its own ---

    def set_up(self) -> None:
        from write_kit import notes, opened, write

        write(self.root, notes(COUNT))
        tier = "static" if self.operation == "full tier" else "full"
        opened(self.root, self.before, "keyword.engine=whoosh").index(tier)
        self.change()

    def change(self) -> None:
        """What happens to the vault before the operation."""
        from write_kit import note, write

        if self.operation in ("index", "watcher"):
            write(self.root, {f"{number:04}.md": note(number, version=1) for number in (0, 3)})
            write(self.root, {"new.md": note(50)})
            (self.root / "0001.md").rename(self.root / "renamed.md")
        if self.operation in ("index", "watcher", "forget"):
            (self.root / "0002.md").unlink()

    def answers_of_a_fresh_index(self) -> Any:
        from write_kit import answers, opened

        vault = opened(self.root, self.clean, *self.flags)
        vault.index("full")
        return comparable(answers(vault))

    def operate(self, fault: str, point: int) -> None:
        from write_kit import opened

        strike(fault, point)
        vault = opened(self.root, self.home, *self.flags)
        if self.operation == "forget":
            vault.forget("0002.md")
        elif self.operation == "watcher":
            self.watch()
        else:
            engines = vault.engines(slab=4)
            # A vault that was indexed with a tier keeps it until another one is asked for.
            vault.index("full", rebuild=self.operation == "rebuild", engines=engines)

    def watch(self) -> None:
        """One update of a watcher, which would report an error and try again later."""
        from write_kit import MODELS

        from ragvault.models.load import ModelPool
        from ragvault.ports import Progress
        from ragvault.service.vault_watcher import VaultWatcher
        from ragvault.vault import Vault

        # It opens the vault again before every update, with the settings of its own process.
        os.environ["RAGVAULT_HOME"] = str(self.home)
        for flag in (*MODELS, *self.flags):
            name, _, value = flag.partition("=")
            os.environ[f"RAGVAULT_{name.replace('.', '__').upper()}"] = value
        failed: list[Exception] = []
        watcher = VaultWatcher(Vault.open(self.root), Progress(), ModelPool())
        watcher._report_error = failed.append  # type: ignore[method-assign]
        try:
            for step in (watcher.update, watcher.finish):
                step(lambda: False)
        finally:
            watcher.stop_listening()
        if failed:
            raise failed[0]

    def answer(self) -> None:
        from write_kit import opened

        assert opened(self.root, self.home, *self.flags).search("bread and flour").results

    def stored(self) -> Any:
        from write_kit import opened, stored_vectors

        vault = opened(self.root, self.home, *self.flags)
        return [(model, key.hex()) for model, key in stored_vectors(vault)]

    def recover(self) -> Any:
        from write_kit import answers, opened

        vault = opened(self.root, self.home, *self.flags)
        vault.index("full")
        vault.forget(None)  # compacts
        return comparable(answers(vault))


def comparable(found: Any) -> Any:
    return {name: repr(value) for name, value in found.items()}


def differing(found: dict[str, str], wanted: dict[str, str]) -> list[str]:
    return [name for name in {**found, **wanted} if found.get(name) != wanted.get(name)]


# --- faults ---


@contextlib.contextmanager
def around(fault: str, point: int, disk: Path):
    """Faults of the file system, which outlive a process."""
    filler = disk / "filler"
    if fault == "full disk":
        with filler.open("wb") as file:
            free = shutil.disk_usage(disk).free - point
            os.posix_fallocate(file.fileno(), 0, max(1, free))
    if fault == "read-only folder":
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    try:
        yield
    finally:
        if fault == "read-only folder":
            subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
        filler.unlink(missing_ok=True)


def strike(fault: str, point: int) -> None:
    """Faults of this process."""
    if fault == "killed at a commit":
        at_commit(point, lambda: os.kill(os.getpid(), signal.SIGKILL))
    elif fault == "long files are refused":
        refuse_writes(point)
    elif fault == "write errors from a commit on":
        at_commit(point, lambda: refuse_writes(0))
    elif fault == "clock jumps":
        jump = itertools.chain([0, 0], itertools.repeat(point * DAY))
        clock, clock_ns = time.time, time.time_ns
        time.time = lambda: clock() + next(jump)
        time.time_ns = lambda: clock_ns() + next(jump) * 10**9


def refuse_writes(beyond: int) -> None:
    """Let the kernel refuse every write of this process beyond this place of a file."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (beyond, beyond))


def at_commit(point: int, act: Callable[[], None]) -> None:
    """Act right before the n-th transaction of this process ends."""
    commits = itertools.count(1)

    class Counting(sqlite3.Connection):
        def __exit__(self, *error: Any) -> Any:
            if error[0] is None and self.in_transaction and next(commits) == point:
                act()
            return super().__exit__(*error)

    connect = sqlite3.connect
    sqlite3.connect = lambda *args, **named: connect(*args, **named, factory=Counting)  # type: ignore[assignment]


# --- processes ---


def in_child(step: Callable[[], Any]) -> dict[str, Any]:
    """Run a step in a process of its own: how it ended, what it returned, what it embedded."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        run_step(step, writing)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file if line.endswith("\n")]
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    embedded = [line[1:] for line in lines if line[0] == "embedded"]
    last = lines[-1] if lines and lines[-1][0] == "ended" else ["ended", f"exit {status}", None]
    ended = "killed" if status == -signal.SIGKILL else last[1]
    return {"ended": ended, "value": last[2], "embedded": embedded}


def run_step(step: Callable[[], Any], pipe: int) -> None:
    from write_kit import Counting

    from ragvault.engines import Engines
    from ragvault.errors import RagvaultError
    from ragvault.update import notes
    from ragvault.update.prepare import text_key

    notes.COMMIT_EVERY = 3

    # Through a pipe: a file might meet the fault.
    file = os.fdopen(pipe, "w", encoding="utf-8")

    class Logging(Counting):
        def embed(self, texts: Any, kind: Any) -> Any:
            for text in texts:
                line = ["embedded", self.name, text_key(text).hex()]
                file.write(json.dumps(line) + "\n")
            file.flush()
            return super().embed(texts, kind)

    Engines.embedder = lambda self, name, offline=False: Logging(name.partition("@")[0])  # type: ignore
    ended: tuple[str, Any] = ("done", None)
    try:
        ended = ("done", step())
    except RagvaultError as error:
        ended = ("refused" if error.fix else f"no fix: {error}", None)
    except BaseException:
        ended = (traceback.format_exc()[-1500:], None)
    file.write(json.dumps(["ended", *ended]) + "\n")
    file.flush()
    os._exit(0)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
