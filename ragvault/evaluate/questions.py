"""Judged questions, read from two file formats.

    read_questions   JSON lines of the contract: {"id", "query", "kind", "relevant": [...]}
    read_beir        a folder with corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv

A bad line is an error that names the line: silently dropping a question would make the numbers
look better. This module knows no vault and no search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, Struct

from ragvault.errors import UsageError

Entry = TypeVar("Entry", bound=Struct)
Text = Annotated[str, Meta(min_length=1)]


class Judged(Struct, frozen=True):
    """One note that answers, how well (3 is best), and optionally below which heading."""

    note: Text
    grade: Annotated[int, Meta(ge=0, le=10)]
    heading: str = ""


class Question(Struct, frozen=True):
    """One question. An empty `relevant` means that nothing in the vault answers it.

    `without` are notes removed from the results before scoring: finding the note that a question
    was taken from proves nothing.
    """

    id: Text
    query: Text
    relevant: tuple[Judged, ...]
    kind: str = ""
    without: tuple[str, ...] = ()

    @property
    def grades(self) -> dict[str, int]:
        """Note -> grade; the best one for a note judged below several headings."""
        best: dict[str, int] = {}
        for each in self.relevant:
            best[each.note] = max(each.grade, best.get(each.note, 0))
        return best


class Document(Struct, frozen=True):
    """One document of a BEIR corpus."""

    id: str = msgspec.field(name="_id")
    text: str
    title: str = ""

    @property
    def whole(self) -> str:
        """Title and text."""
        return f"{self.title}\n{self.text}".strip()


class _Query(Struct, frozen=True):
    id: str = msgspec.field(name="_id")
    text: Text


@dataclass(frozen=True)
class Collection:
    """A judged collection: its documents, and the questions that have judgements."""

    documents: Sequence[Document]
    questions: Sequence[Question] = field(default=())


def read_questions(path: Path) -> list[Question]:
    """The questions of a JSON-lines file. Raises UsageError naming file and line."""
    questions = _unique(path, _entries(path, Question))
    if not questions:
        raise UsageError(f"{path} has no questions", fix=_SHAPE)
    return questions


def write_questions(path: Path, questions: Sequence[Question]) -> None:
    """Write questions as JSON lines that `read_questions` reads. Raises UsageError."""
    lines = b"".join(msgspec.json.encode(_brief(each)) + b"\n" for each in questions)
    try:
        path.write_bytes(lines)
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(f"{path} cannot be written: {why}", fix="check the path") from error


def _brief(question: Question) -> dict[str, object]:
    """Without empty fields, as a person would write it."""
    plain: dict[str, object] = msgspec.to_builtins(question)
    plain["relevant"] = [
        {name: value for name, value in judged.items() if value != ""}
        for judged in msgspec.to_builtins(question.relevant)
    ]
    return {name: value for name, value in plain.items() if value or name == "relevant"}


def read_beir(folder: Path, split: str = "test") -> Collection:
    """A collection in BEIR layout. Raises UsageError naming file and line.

    A judgement of an unknown question is an error; one of an unknown document is kept, since
    pools are often published without all judged documents.
    """
    documents = _unique(folder / "corpus.jsonl", _entries(folder / "corpus.jsonl", Document))
    asked = _unique(folder / "queries.jsonl", _entries(folder / "queries.jsonl", _Query))
    judged = _qrels(folder / "qrels" / f"{split}.tsv", {query.id for query in asked})
    return Collection(
        documents, [Question(q.id, q.text, judged[q.id]) for q in asked if q.id in judged]
    )


_SHAPE = (
    'one JSON object a line: {"id": "q1", "query": "…", "kind": "keyword", '
    '"relevant": [{"note": "a.md", "grade": 3}]}'
)


def _entries(path: Path, kind: type[Entry]) -> Iterator[tuple[int, Entry]]:
    """Every line that is not blank, with its number."""
    decode: Callable[[bytes], Entry] = msgspec.json.Decoder(kind).decode
    for number, line in enumerate(_lines(path), 1):
        if line.strip():
            try:
                yield number, decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                raise _broken(path, number, str(error)) from error


def _unique(path: Path, entries: Iterator[tuple[int, Entry]]) -> list[Entry]:
    """The entries. Raises UsageError for a repeated id, which would count twice."""
    seen: dict[str, int] = {}
    kept = []
    for number, entry in entries:
        id_: str = entry.id  # type: ignore[attr-defined]
        if id_ in seen:
            raise _broken(path, number, f"the id {id_!r} is already on line {seen[id_]}")
        seen[id_] = number
        kept.append(entry)
    return kept


def _qrels(path: Path, asked: set[str]) -> Mapping[str, tuple[Judged, ...]]:
    """Question -> judgements. The first line is a header if its grade is no number."""
    judged: dict[str, list[Judged]] = {}
    for number, line in enumerate(_lines(path), 1):
        cells = line.decode("utf-8", "replace").rstrip("\r\n").split("\t")
        if number == 1 and not cells[-1].lstrip("-").isdigit():
            continue
        question, entry = _judgement(path, number, cells)
        if question not in asked:
            raise _broken(path, number, f"there is no question {question!r} in queries.jsonl")
        judged.setdefault(question, []).append(entry)
    return {question: tuple(entries) for question, entries in judged.items()}


def _judgement(path: Path, number: int, cells: list[str]) -> tuple[str, Judged]:
    if len(cells) != 3 or not cells[2].lstrip("-").isdigit():
        raise _broken(path, number, "expected: question, tab, document, tab, grade")
    return cells[0], Judged(cells[1], int(cells[2]))


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as stream:
            yield from stream
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(f"{path} cannot be read: {why}", fix="check the path") from error


def _broken(path: Path, number: int, why: str) -> UsageError:
    shape = "question-id, document-id and grade, with tabs between" if ".tsv" in path.name else ""
    return UsageError(f"{path}:{number}: {why}", fix=f"correct that line; {shape or _SHAPE}")
