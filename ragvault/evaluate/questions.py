"""Judged questions, read from the two layouts they come in.

    read_questions   JSON lines of the contract: {"id", "query", "kind", "relevant": [...]}
    read_beir        a folder with corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv

A file that is not sound is refused with the line that is not: a question that was dropped in
silence would make every number after it a little better. Knows no vault and no search.
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
    """One note that answers, how well (3 best), and below which heading where that was said."""

    note: Text
    grade: Annotated[int, Meta(ge=0, le=10)]
    heading: str = ""


class Question(Struct, frozen=True):
    """One question. With nothing in `relevant`, nothing in the vault answers it.

    `without` are notes that are left out of the answer before it is scored: the note a question
    was taken from is no find.
    """

    id: Text
    query: Text
    relevant: tuple[Judged, ...]
    kind: str = ""
    without: tuple[str, ...] = ()

    @property
    def grades(self) -> dict[str, int]:
        """Note -> grade; of a note judged below several headings, its best."""
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
        """Title and text, as both are searched."""
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
    """The questions of a JSON-lines file. Raises UsageError, with file and line."""
    questions = _unique(path, _entries(path, Question))
    if not questions:
        raise UsageError(f"{path} has no question in it", fix=_SHAPE)
    return questions


def write_questions(path: Path, questions: Sequence[Question]) -> None:
    """Keep questions as JSON lines that `read_questions` reads. Raises UsageError."""
    lines = b"".join(msgspec.json.encode(_brief(each)) + b"\n" for each in questions)
    try:
        path.write_bytes(lines)
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(f"{path} cannot be written: {why}", fix="check the path") from error


def _brief(question: Question) -> dict[str, object]:
    """Without what is empty, as a person would write it."""
    plain: dict[str, object] = msgspec.to_builtins(question)
    plain["relevant"] = [
        {name: value for name, value in judged.items() if value != ""}
        for judged in msgspec.to_builtins(question.relevant)
    ]
    return {name: value for name, value in plain.items() if value or name == "relevant"}


def read_beir(folder: Path, split: str = "test") -> Collection:
    """A collection in BEIR layout. Raises UsageError, with file and line.

    A judgement of an unknown question is an error; one of an unknown document is kept, since
    pools are often published without all they were judged from.
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
    """The entries; two of one id would be counted twice."""
    seen: dict[str, int] = {}
    kept = []
    for number, entry in entries:
        id_: str = entry.id  # type: ignore[attr-defined]
        if id_ in seen:
            raise _broken(path, number, f"the id {id_!r} is on line {seen[id_]} already")
        seen[id_] = number
        kept.append(entry)
    return kept


def _qrels(path: Path, asked: set[str]) -> Mapping[str, tuple[Judged, ...]]:
    """Question -> what was judged. The first line is a heading where its grade is no number."""
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
        raise _broken(path, number, "this is not question, tab, document, tab, grade")
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
    return UsageError(f"{path}:{number}: {why}", fix=f"mend that line; {shape or _SHAPE}")
