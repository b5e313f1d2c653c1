"""Judged questions: JSON lines of the contract, {"id", "query", "kind", "relevant": [...]}.

A bad line is an error that names the line: silently dropping a question would make the numbers
look better. This module knows no vault and no search.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from ragvault.errors import UsageError

Text = Annotated[str, Meta(min_length=1)]
_SHAPE = (
    'one JSON object a line: {"id": "q1", "query": "…", "kind": "keyword", '
    '"relevant": [{"note": "a.md", "grade": 3}]}'
)


class Judged(Struct, frozen=True, omit_defaults=True):
    """One note that answers, how well (3 is best), and optionally below which heading."""

    note: Text
    grade: Annotated[int, Meta(ge=0, le=10)]
    heading: str = ""


class Question(Struct, frozen=True, omit_defaults=True):
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


def read_questions(path: Path) -> list[Question]:
    """The questions of a JSON-lines file. Raises UsageError naming file and line."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(f"{path} cannot be read: {why}", fix="check the path") from error
    questions, seen = [], dict[str, int]()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            question = msgspec.json.decode(line, type=Question)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise _broken(path, number, str(error)) from error
        if question.id in seen:  # it would count twice
            raise _broken(
                path, number, f"the id {question.id!r} is already on line {seen[question.id]}"
            )
        seen[question.id] = number
        questions.append(question)
    if not questions:
        raise UsageError(f"{path} has no questions", fix=_SHAPE)
    return questions


def _broken(path: Path, number: int, why: str) -> UsageError:
    return UsageError(f"{path}:{number}: {why}", fix=f"correct that line; {_SHAPE}")


def write_questions(path: Path, questions: Sequence[Question]) -> None:
    """Write questions as JSON lines that `read_questions` reads. Raises UsageError."""
    try:
        path.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in questions))
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(f"{path} cannot be written: {why}", fix="check the path") from error
