"""Judged collections in BEIR layout: corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ragvault.evaluate.questions import Judged, Question


class Document(NamedTuple):
    """One document."""

    id: str
    title: str
    text: str

    @property
    def whole(self) -> str:
        """Title and text."""
        return f"{self.title}\n{self.text}".strip()


class Collection(NamedTuple):
    """The documents of a collection, and the questions that have judgements."""

    documents: Sequence[Document]
    questions: Sequence[Question]


def read_beir(folder: Path, split: str = "test") -> Collection:
    """A collection. A judgement of an unknown document is kept: pools are often published without
    all judged documents. One of an unknown question ends the benchmark."""
    documents = [
        Document(row["_id"], row.get("title", ""), row["text"])
        for row in _rows(folder / "corpus.jsonl")
    ]
    queries = {row["_id"]: row["text"] for row in _rows(folder / "queries.jsonl")}
    judged: dict[str, list[Judged]] = {}
    for line in (folder / "qrels" / f"{split}.tsv").read_text("utf-8").splitlines():
        question, document, grade = line.split("\t")
        if grade.lstrip("-").isdigit():  # no heading
            judged.setdefault(question, []).append(Judged(document, int(grade)))
    if unknown := judged.keys() - queries.keys():
        raise SystemExit(f"{folder.name}: judgements of unknown questions: {sorted(unknown)[:3]}")
    asked = {id_: text for id_, text in queries.items() if id_ in judged}
    return Collection(
        documents, [Question(id_, text, tuple(judged[id_])) for id_, text in asked.items()]
    )


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as stream:
        yield from map(msgspec.json.decode, filter(bytes.strip, stream))
