"""Keyword search measured: both engines, their quality and what they cost.

    python -m benchmarks.keyword quality                nDCG@10 on judged collections and questions
    python -m benchmarks.keyword speed [--notes 1500]   writing, opening, searching, a small change
    python -m benchmarks.keyword settings               what each analyzer setting is worth

Notes are cut at blank lines into passages of about 500 characters, so that the figures do not
depend on ragvault's chunking. A note counts with its best passage. Times are process time.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import random
import re
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from benchmarks import data
from ragvault.config.settings import Keyword
from ragvault.index.keyword import open_index, open_writer
from ragvault.plan import KeywordNote, KeywordPassage, Phrase, Words
from ragvault.ports import KeywordIndex

ENGINES = ("whoosh", "tantivy")
PASSAGES = 100  # that are looked at for the best notes
COLLECTIONS = ("xquad-zh", "xquad-de", "xquad-en", "cranfield", "cacm", "med", "mtrag-fiqa-pool")
QUERIES = (
    "how to fetch data with javascript",
    "css grid layout columns",
    "array map filter reduce",
    "event listener click handler",
    "http headers caching",
    "promise async await error",
    "canvas drawing image",
    "what is the difference between let and const",
    "form validation input pattern",
    "service worker offline cache",
    "websocket connection close",
    "svg path animation",
    "string replace regular expression",
    "box sizing border width",
    "getElementById",
    "Content-Security-Policy",
    "Node.js",
    "accessibility aria label button",
    "web audio api gain node",
    "indexeddb transaction object store",
)

Corpus = tuple[list[KeywordNote], list[KeywordPassage], list[str]]


def cut(text: str, size: int = 500) -> Iterator[tuple[str, str]]:
    """(heading, passage): paragraphs joined up to a size."""
    heading = passage = ""
    for paragraph in text.split("\n\n"):
        if passage and len(passage) + len(paragraph) > size:
            yield heading, passage
            passage = ""
        found = re.findall(r"^#+ (.*)$", paragraph, re.MULTILINE)
        heading = found[-1] if found else heading
        passage = f"{passage}\n\n{paragraph}" if passage else paragraph
    yield heading, passage


def read_vault(folder: Path, limit: int = 0) -> Corpus:
    """The Markdown files of a folder as notes and passages, and the notes' names."""
    paths = sorted(folder.rglob("*.md"))
    random.Random(1).shuffle(paths)
    notes: list[KeywordNote] = []
    passages: list[KeywordPassage] = []
    names = []
    for number, path in enumerate(paths[: limit or None]):
        text = path.read_text("utf-8", errors="replace")
        title = re.search(r"^(?:title: |# )(.*)$", text, re.MULTILINE)
        titles = (title.group(1), path.stem) if title else (path.stem,)
        notes.append(KeywordNote(number, {"title": titles}))
        names.append(path.relative_to(folder).as_posix())
        for heading, body in cut(text):
            fields = {"headers": (heading,), "body": (body,)}
            passages.append(KeywordPassage(len(passages), number, fields))
    return notes, passages, names


def read_collection(folder: Path) -> Corpus:
    """A BEIR corpus: every text a note of one passage."""
    rows = [json.loads(line) for line in (folder / "corpus.jsonl").open(encoding="utf-8")]
    notes = [KeywordNote(at, {"title": (row["title"],)}) for at, row in enumerate(rows)]
    passages = [KeywordPassage(at, at, {"body": (row["text"],)}) for at, row in enumerate(rows)]
    return notes, passages, [row["_id"] for row in rows]


def read_judged(folder: Path) -> dict[str, dict[str, int]]:
    """Query text -> grades of a BEIR collection."""
    texts = {}
    for line in (folder / "queries.jsonl").open(encoding="utf-8"):
        row = json.loads(line)
        texts[row["_id"]] = row["text"]
    grades: dict[str, dict[str, int]] = defaultdict(dict)
    with (folder / "qrels" / "test.tsv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if row["query-id"] in texts:
                grades[texts[row["query-id"]]][row["corpus-id"]] = int(row["score"])
    return grades


def read_questions(path: Path) -> dict[str, dict[str, int]]:
    """Query text -> grades of our own questions; those without an answer are left out."""
    rows = (json.loads(line) for line in path.open(encoding="utf-8"))
    return {
        row["query"]: {one["note"]: one["grade"] for one in row["relevant"]}
        for row in rows
        if row["relevant"]
    }


def build(corpus: Corpus, folder: Path, settings: Keyword) -> KeywordIndex:
    writer = open_writer(folder, settings.engine, settings)
    writer.put(corpus[0], corpus[1])
    writer.commit()
    writer.close()
    return open_index(folder, settings.engine, settings)


def top(index: KeywordIndex, query: str, names: list[str], limit: int = 10) -> list[str]:
    hits = index.search(Words(query), limit=PASSAGES).hits
    notes = dict.fromkeys(hit.note for hit in hits)
    return [names[note] for note in notes][:limit]


def ndcg(found: list[str], grades: dict[str, int], at: int = 10) -> float:
    gains = [2 ** grades.get(name, 0) - 1 for name in found[:at]]
    ideal = sorted((2**grade - 1 for grade in grades.values()), reverse=True)[:at]
    return _discounted(gains) / (_discounted(ideal) or 1.0)


def _discounted(gains: Iterable[int]) -> float:
    return sum(gain / math.log2(rank + 2) for rank, gain in enumerate(gains))


def sets() -> Iterator[tuple[str, Corpus, dict[str, dict[str, int]]]]:
    """Everything that is judged: name, corpus, grades."""
    for name in COLLECTIONS:
        folder = data.folder("ir", name)
        if folder is not None:
            yield name, read_collection(folder), read_judged(folder)
    for name in ("obsidian-tasks", "jackyzha0-garden"):
        vault, questions = data.folder("vaults", name), data.folder("questions", f"{name}.jsonl")
        if vault is not None and questions is not None:
            yield name, read_vault(vault), read_questions(questions)


def quality() -> None:
    """nDCG@10 of both engines, and how many of their first ten they share."""
    print(f"{'set':18} {'queries':>7} {'whoosh':>8} {'tantivy':>8} {'shared top 10':>14}")
    for name, corpus, judged in sets():
        found: dict[str, list[list[str]]] = {}
        for engine in ENGINES:
            with tempfile.TemporaryDirectory() as folder:
                index = build(corpus, Path(folder), Keyword(engine=engine))
                found[engine] = [top(index, query, corpus[2]) for query in judged]
                index.close()
        scores = [_mean(map(ndcg, found[engine], judged.values())) for engine in ENGINES]
        pairs = zip(found["whoosh"], found["tantivy"], strict=True)
        shared = _mean(len(set(a) & set(b)) / max(len(a), 1) for a, b in pairs)
        print(f"{name:18} {len(judged):7} {scores[0]:8.3f} {scores[1]:8.3f} {shared:14.3f}")


def settings() -> None:
    """What each setting is worth: nDCG@10 on Whoosh, one change at a time."""
    base = Keyword(engine="whoosh")
    change = msgspec.structs.replace
    variants = {
        "default": base,
        "no stemming": change(base, stemming="none"),
        "no exact bonus": change(base, exact=0.0),
        "exact 0.5": change(base, exact=0.5),
        "b 0.4": change(base, b=0.4),
        "k1 0.9": change(base, k1=0.9),
        "k1 2.0": change(base, k1=2.0),
        "all boosts 1": change(
            base, boosts=change(base.boosts, **dict.fromkeys(base.boosts.__struct_fields__, 1.0))
        ),
    }
    found = list(sets())
    print(f"{'':16}" + "".join(f"{name[:12]:>13}" for name, _, _ in found))
    for variant, own in variants.items():
        row = []
        for _, corpus, judged in found:
            with tempfile.TemporaryDirectory() as folder:
                index = build(corpus, Path(folder), own)
                row.append(_mean(ndcg(top(index, q, corpus[2]), g) for q, g in judged.items()))
        print(f"{variant:16}" + "".join(f"{score:13.3f}" for score in row), flush=True)


def speed(notes: int) -> None:
    """What writing, opening, searching and one changed note cost."""
    where = data.scale()
    if where is None:
        return
    corpus = read_vault(where, notes)
    size = sum(len(passage.fields["body"][0]) for passage in corpus[1]) / 1e6
    print(f"{len(corpus[0])} notes, {len(corpus[1])} passages, {size:.1f} MB")
    for engine in ENGINES:
        with tempfile.TemporaryDirectory() as folder:
            _speed(engine, corpus, Path(folder))


def _speed(engine: str, corpus: Corpus, folder: Path) -> None:
    own = Keyword(engine=engine)  # type: ignore[arg-type]
    clock = time.process_time()
    build(corpus, folder, own).close()
    took = time.process_time() - clock
    print(
        f"{engine}: written in {took:.1f} s of process time, {len(corpus[1]) / took:.0f} a second"
    )
    print(f"  size {_bytes(folder) / 1e6:.1f} MB")
    clock = time.perf_counter()
    index = open_index(folder, engine, own)
    print(f"  opened in {1000 * (time.perf_counter() - clock):.0f} ms")
    for name in ("first", "again"):
        times = sorted(_time(index, Words(query)) for query in QUERIES)
        print(f"  {name}: p50 {times[len(times) // 2]:.1f} ms, p95 {times[-2]:.1f} ms")
    print(f"  phrase {_time(index, Phrase('the difference between')):.1f} ms")
    print(f"  misspelt {_time(index, Words('javascrpt clousure')):.1f} ms")
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    clock = time.process_time()
    writer = open_writer(folder, engine, own)
    writer.put([corpus[0][0]], [p for p in corpus[1] if p.note == 0])
    writer.commit()
    writer.close()
    took = 1000 * (time.process_time() - clock)
    fresh = [p for p in folder.rglob("*") if p.is_file() and before.get(p) != p.stat().st_mtime_ns]
    wrote = sum(path.stat().st_size for path in fresh) / 1e6
    print(f"  one changed note: {took:.0f} ms, {wrote:.2f} MB written")
    index.close()


def _time(index: KeywordIndex, query: Words | Phrase) -> float:
    clock = time.perf_counter()
    index.search(query, limit=50)
    return 1000 * (time.perf_counter() - clock)


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else 0.0


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", choices=["quality", "speed", "settings"])
    parser.add_argument("--notes", type=int, default=0)
    given = parser.parse_args(arguments or [])
    if given.what in (None, "quality"):
        quality()
    if given.what in (None, "speed"):
        speed(given.notes)
    if given.what == "settings":
        settings()


if __name__ == "__main__":
    main(sys.argv[1:])
