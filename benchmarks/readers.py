"""Eight readers and one writer beside a watcher: errors, wrong results, late edits.

    python -m benchmarks.readers --minutes 3
    python -m benchmarks.readers --minutes 60 --notes 5000

The notes are generated in a temporary folder, and the embedder is the small fake one: this is about
what happens at the same time, not about models. Half of the readers ask the watcher, half open the
index by themselves for every search. The writer edits, deletes and writes notes again, in place and
by renaming, and asks after every edit until it is found. Every note names its version twice.

    errors   a search that failed, or a leg of one
    torn     a passage with two versions in it
    ghosts   a note that was deleted before the search began
    old      a version that was replaced before the search began
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

from benchmarks.process import environ_of, watcher
from ragvault.service.protocol import WatcherUnavailable, ask_watcher
from ragvault.vault import Vault

READERS = 8
TOPICS = 40
GONE = -1  # the version of a deleted note
PAUSE = 0.02  # seconds between two searches for an edit
PATIENCE = 60.0  # seconds in which an edit must be found at all
VERSION = re.compile(r"version(\d+)x")
FILLER = "Flour and water rest in the bowl until the crumb is open and the crust is brown. "
MODELS = {"RAGVAULT_MODELS__EMBEDDER": "fake", "RAGVAULT_MODELS__STATIC": "fake"}


class Write(NamedTuple):
    """One edit or deletion; times are those of time.monotonic()."""

    begun: float
    ended: float
    note: str
    version: int


class Search(NamedTuple):
    """One search: the versions that each note of its results shows, or what went wrong."""

    begun: float
    ended: float
    found: Sequence[tuple[str, Sequence[int]]] = ()
    error: str = ""


Find = Callable[[str], Sequence[tuple[str, str]]]  # a query to the notes and passages found


class Failed(Exception):
    """A search without a whole answer."""


# --- readers ---


def by_watcher(root: Path, environ: dict[str, str]) -> Find:
    ours = {name: value for name, value in environ.items() if name.startswith(("RAGVAULT", "HOME"))}
    folder = str(Path(environ["RAGVAULT_HOME"], "run"))

    def find(query: str) -> list[tuple[str, str]]:
        args = ["search", query, "--vault", str(root), "-n", "20", "--json"]
        around = {"cwd": str(root), "environ": ours, "now": time.time(), "zone": 0}
        answer = ask_watcher(folder, {"op": "search", "args": args, "around": around})
        if answer["code"] not in (0, 1):
            raise Failed(f"exit {answer['code']}: {answer.get('err', '')[:200]}")
        found = json.loads(answer["out"])
        if found["legs_failed"]:
            raise Failed(f"legs failed: {found['legs_failed']}")
        return [(each["note"], each["passage"]) for each in found["results"]]

    return find


def by_itself(root: Path, environ: dict[str, str]) -> Find:
    def find(query: str) -> list[tuple[str, str]]:
        response = Vault.open(root, environ=environ).search(query, limit=20)
        if response.failed:
            raise Failed(f"legs failed: {dict(response.failed)}")
        return [(each.note, each.passage) for each in response.results]

    return find


def read(number: int, root: Path, environ: dict[str, str], end: float, log: Path) -> None:
    """Search until the end, and write down what was found."""
    find = (by_watcher if number % 2 else by_itself)(root, environ)
    chance = random.Random(number)
    searches: list[Search] = []
    while time.monotonic() < end:
        begun = time.monotonic()
        try:
            found = find(f"flour topic{chance.randrange(TOPICS)}x")
        except Exception as error:
            name = type(error).__name__
            searches.append(Search(begun, time.monotonic(), error=f"{name}: {error}"))
        else:
            seen = [(note, versions(text)) for note, text in found]
            searches.append(Search(begun, time.monotonic(), seen))
    log.write_text(json.dumps(searches))


def versions(text: str) -> list[int]:
    return sorted({int(version) for version in VERSION.findall(text)})


# --- the writer ---


class Writer:
    """Changes notes, and remembers when."""

    def __init__(self, root: Path, notes: int) -> None:
        self.root, self.writes = root, list[Write]()
        self._names = [f"{number % 7}/{number:05}.md" for number in range(notes)]
        self._chance, self._version = random.Random(1), 0
        for name in self._names:
            self.edit(name)

    def edit(self, name: str) -> int:
        """Write a note, in place or by renaming; gives its version."""
        self._version += 1
        path, begun = self.root / name, time.monotonic()
        path.parent.mkdir(parents=True, exist_ok=True)
        mark = f"version{self._version}x"
        topic = f"topic{int(path.stem) % TOPICS}x"
        text = f"# Note {path.stem}\n\n{mark} {topic} {FILLER}{FILLER}{mark}\n"
        if self._version % 2:
            path.write_text(text)
        else:
            fresh = path.with_suffix(".new")
            fresh.write_text(text)
            fresh.replace(path)
        self.writes.append(Write(begun, time.monotonic(), name, self._version))
        return self._version

    def delete(self, name: str) -> None:
        begun = time.monotonic()
        (self.root / name).unlink(missing_ok=True)
        self.writes.append(Write(begun, time.monotonic(), name, GONE))

    def change(self) -> tuple[str, int]:
        """Delete one note and edit two; gives the second and its version."""
        gone, other, last = self._chance.sample(self._names, 3)
        self.delete(gone)
        self.edit(other)
        return last, self.edit(last)


def write_until(end: float, writer: Writer, find: Find) -> tuple[list[float], int]:
    """Seconds from each edit to the first answer that has it, and how many never had it."""
    late, lost = [], 0
    while time.monotonic() < end:
        name, version = writer.change()
        begun = time.monotonic()
        while not is_found(find, name, version):
            if time.monotonic() - begun > PATIENCE:
                lost += 1
                break
            time.sleep(PAUSE)
        else:
            late.append(time.monotonic() - begun)
        time.sleep(writer._chance.random())
    return late, lost


def is_found(find: Find, name: str, version: int) -> bool:
    try:
        return any(note == name for note, _ in find(f'"version{version}x"'))
    except (WatcherUnavailable, Failed):
        return False  # readers count these


# --- what was wrong ---


def judge(searches: Iterable[Search], writes: Iterable[Write]) -> dict[str, list[str]]:
    """Every error, torn, ghost and old result."""
    by_note: dict[str, list[Write]] = {}
    for write in writes:
        by_note.setdefault(write.note, []).append(write)
    wrong: dict[str, list[str]] = {"errors": [], "torn": [], "ghosts": [], "old": []}
    for search in searches:
        if search.error:
            wrong["errors"].append(search.error)
        for note, shown in search.found:
            about = f"{note} {shown} at {search.begun:.3f}"
            before = [each for each in by_note.get(note, ()) if each.ended < search.begun]
            during = [
                each
                for each in by_note.get(note, ())
                if each.ended >= search.begun and each.begun <= search.ended
            ]
            if len(shown) > 1:
                wrong["torn"].append(about)
            if during or not before:
                continue  # either is right
            if before[-1].version == GONE:
                wrong["ghosts"].append(about)
            elif shown and shown[-1] < before[-1].version:
                wrong["old"].append(about)
    return wrong


def run(root: Path, environ: dict[str, str], notes: int, minutes: float) -> None:
    writer = Writer(root, notes)
    Vault.open(root, environ=environ).index()
    with watcher(root, environ), tempfile.TemporaryDirectory() as logs:
        end = time.monotonic() + minutes * 60
        spawn = multiprocessing.get_context("spawn")
        logged = [Path(logs, f"{number}.json") for number in range(READERS)]
        readers = [
            spawn.Process(target=read, args=(number, root, environ, end, log))
            for number, log in enumerate(logged)
        ]
        for reader in readers:
            reader.start()
        late, lost = write_until(end, writer, by_watcher(root, environ))
        for reader in readers:
            reader.join()
        searches = [Search(*each) for log in logged for each in json.loads(log.read_text())]
    wrong = judge(searches, writer.writes)
    took = [1000 * (each.ended - each.begun) for each in searches]
    deleted = sum(write.version == GONE for write in writer.writes)
    print("| notes | searches | median ms | edits | deletions | " + " | ".join(wrong) + " |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    counts = " | ".join(str(len(each)) for each in wrong.values())
    edits = len(writer.writes) - deleted - notes
    print(f"| {notes} | {len(searches)} | {median(took):.0f} | {edits} | {deleted} | {counts} |")
    if len(late) > 1:
        last = quantiles(late, n=20)[-1]
        print(
            f"\nedit until found: median {median(late):.2f} s, 95 % within {last:.2f} s,", end=" "
        )
        print(f"worst {max(late):.2f} s; {len(late)} measured, {lost} never found")
    for name, each in wrong.items():
        for line in each[:5]:
            print(f"{name}: {line}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--notes", type=int, default=500)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rv") as folder:
        environ = {**environ_of(Path(folder, "home"), None), **MODELS}
        os.environ.update(MODELS)
        run(Path(folder, "notes"), environ, args.notes, args.minutes)


if __name__ == "__main__":
    main()
