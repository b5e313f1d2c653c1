"""For tests of the write path: a vault with two small models that count, and all its answers."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np
import pytest
from store_builders import passages as stored_passages

from ragvault.engines import Engines
from ragvault.errors import ModelUnavailable
from ragvault.models.fake import FakeEmbedder
from ragvault.plan import Words
from ragvault.ports import Progress
from ragvault.update import workers
from ragvault.update.prepare import text_key
from ragvault.vault import Vault

MODELS = ("models.static=rough", "models.embedder=fine")
WORDS = (
    *("bread", "flour", "water", "salt", "time", "oven", "starter", "crumb", "crust", "dough"),
    *("hour", "night", "table", "kitchen", "letter", "harbour", "winter", "window", "garden"),
    *("stone", "river", "engine", "ticket", "market", "lantern", "copper"),
)
QUERIES = ("bread and flour", "winter garden", "harbour lantern 3", "starter")
LONG_AGO = 1_600_000_000  # so that no file is as young as the clock's tick


class Counting(FakeEmbedder):
    """The fake under another name, which keeps what it was asked to embed."""

    def __init__(self, name: str) -> None:
        self.name = f"{name}@1"
        self.seen: list[str] = []

    def embed(self, texts, kind):
        if kind == "passage":
            self.seen += texts
        return super().embed(texts, kind)


class Models(dict[str, Counting]):
    """Every model there is, made when it is first asked for; those in `missing` are not here."""

    def __init__(self) -> None:
        super().__init__()
        self.missing: set[str] = set()

    def __missing__(self, name: str) -> Counting:
        self[name] = Counting(name)
        return self[name]

    def open(self, engines: Engines, name: str, *, offline: bool = False) -> Counting:
        short = name.partition("@")[0]
        if short in self.missing:
            raise ModelUnavailable(short, [("here", "it is not")])
        return self[short]

    @property
    def seen(self) -> list[str]:
        return [text for model in self.values() for text in model.seen]

    def forget(self) -> None:
        for model in self.values():
            model.seen.clear()


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Models:
    """Small models in place of large ones, whatever their name."""
    known = Models()
    monkeypatch.setattr(
        Engines, "embedder", lambda self, name, offline=False: known.open(self, name)
    )
    return known


def without_processes(patch: pytest.MonkeyPatch) -> None:
    """As on a machine that starts no process: everything is read in this one."""

    def refused() -> None:
        raise OSError("no process can be started")

    patch.setattr(workers, "Worker", refused)
    patch.setattr(workers, "idle_workers", [])


class Heard(Progress):
    """Keeps the messages of a run."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def info(self, text: str) -> None:
        self.lines.append(text)


class OnStep(Progress):
    """Calls a function with every step that a run reports: its name, done, total."""

    def __init__(self, act: Callable[[str, int, int], object]) -> None:
        self.act = act

    def step(self, name: str, done: int = 0, total: int = 0) -> None:
        self.act(name, done, total)


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        os.utime(path, (LONG_AGO + len(text), LONG_AGO + len(text)))


def prose(seed: object, sentences: int = 12) -> str:
    """Words in an order of their own for every seed."""
    chance = random.Random(str(seed))
    lines = (" ".join(chance.choices(WORDS, k=9)).capitalize() for _ in range(sentences))
    return ". ".join(lines) + "."


def note(number: int, version: int = 0, sentences: int = 12) -> str:
    said = prose((number, version), sentences)
    code = f"\n```python\ndef get_{WORDS[number % len(WORDS)]}_{number}(): ...\n```\n"
    return f"# Note {number}\n\n{said} [[{number // 2:04}]]\n\n## More\n\n{prose(number)}\n{code}"


def notes(count: int, version: int = 0) -> dict[str, str]:
    return {f"{number:04}.md": note(number, version) for number in range(count)}


def opened(root: Path, home: Path, *flags: str) -> Vault:
    root.mkdir(exist_ok=True)
    return Vault.open(root, flags=[*MODELS, *flags], environ={"RAGVAULT_HOME": str(home)})


def answers(vault: Vault, exact: bool = True) -> dict[str, object]:
    """Everything that can be asked of an index, without ids and revisions.

    tantivy's scores count what was removed until it is compacted: not `exact`.
    """
    engines = Engines(vault.folder, vault.settings)
    with vault.catalogue() as catalogue:
        paths = sorted(catalogue.files())
        passages = {path: stored_passages(catalogue, path) for path in paths}
        places = {
            passage.id: (path, at) for path in paths for at, passage in enumerate(passages[path])
        }
        found: dict[str, object] = {
            "notes": [catalogue.note(path) for path in paths],
            "passages": [[passage[2:] for passage in passages[path]] for path in paths],
            "places": [
                sorted(place[2:] for place in catalogue.places([p.id for p in passages[path]]))
                for path in paths
            ],
            "links": [catalogue.outgoing(path) for path in paths],
            "backlinks": {
                path: [s[:2] for s in catalogue.link_stats([catalogue.note_id(path)]).values()]
                for path in paths
            },
        }
        index = engines.keyword(catalogue)
        for field in ("", "code"):
            for query in (*QUERIES, "get_bread_0", "get"):
                hits = index.search(Words(query, field=field), limit=9999).hits
                scored = [(round(hit.score, 6) * exact, places[hit.passage]) for hit in hits]
                found[f"{field} {query}"] = sorted(scored)
        index.close()
        if answering := engines.answering(catalogue):
            _, model, dim = answering
            vectors = engines.vectors(model, dim, catalogue)
            for query in QUERIES:
                asked = FakeEmbedder().embed([query], "query")[0]
                ids, scores = vectors.search(asked, limit=9999)
                rows = zip(ids.tolist(), np.round(scores, 5).tolist(), strict=True)
                found[f"{model} {query}"] = sorted((score, places[id_]) for id_, score in rows)
            vectors.close()
    return found


def stored_vectors(vault: Vault) -> set[tuple[str, bytes]]:
    """(model, key of a text) of every vector that survived."""
    if not (vault.folder / "catalogue.sqlite").exists():
        return set()
    with vault.catalogue(write=True) as catalogue:
        vectors = "SELECT name, text_hash FROM vectors JOIN models ON models.id = vectors.model"
        rows = catalogue._db.execute(vectors).fetchall()
        model = catalogue.facts.vocabulary_model
        return set(rows) | {(model, text_key(term)) for term in catalogue.terms()}


def holders(folder: Path, needles: Iterable[bytes]) -> dict[str, list[bytes]]:
    """The files below a folder that hold one of these, and which."""
    needles = list(needles)
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            held = [needle for needle in needles if needle in data]
            if held:
                found[str(path.relative_to(folder))] = held
    return found
