"""Operators: `name:value` becomes a condition.

One entry of OPERATORS is one operator: how it is read, and an example that a mistake is answered
with. Knows values, not where in a query they stand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Literal, NamedTuple

from ragvault.fences import languages
from ragvault.plan import (
    PARTS,
    Dated,
    DateField,
    Has,
    Holds,
    LinkedBy,
    LinksTo,
    Named,
    NoteText,
    Tagged,
    Task,
    Under,
    Written,
)
from ragvault.query.dates import Stretch, moment, stretch
from ragvault.query.mistakes import nearest, shown, wrong
from ragvault.query.tree import Condition, Vault
from ragvault.sought import Phrase, Words

COMPARED = re.compile(r"(<=|>=|<|>|=)?\s*(.*)", re.DOTALL)


class Typed(NamedTuple):
    """A value as it was typed."""

    text: str
    quoted: bool
    now: datetime


class Operator(NamedTuple):
    """How a value becomes a condition, and what to type."""

    read: Callable[[Typed], Condition | Vault]
    example: str


def build(name: str, value: str, quoted: bool, now: datetime) -> Condition | Vault:
    """The condition that `name:value` is. Raises UsageError for a value that cannot be meant."""
    operator = OPERATORS[name]
    if not value.strip() and not name.startswith("task"):
        raise wrong(f"{name}: needs a value", f"for example: {operator.example}")
    return operator.read(Typed(value.strip(), quoted, now))


def _tag(value: Typed) -> Condition:
    tag = value.text.lstrip("#").strip("/")
    if not tag or re.search(r"\s", tag):
        raise wrong(
            f"“{shown(value.text)}” cannot be a tag", "a tag has no spaces: tag:inbox/to-read"
        )
    return Condition(Tagged(tag))


def _named(where: NoteText, value: Typed) -> Condition:
    return Condition(Named(where, value.text))


def _heading(value: Typed) -> Condition:
    return Condition(Under(value.text.lstrip("#").strip() or value.text))


def _lang(value: Typed) -> Condition:
    return Condition(Written(languages(value.text)))


def _has(value: Typed) -> Condition:
    for part in PARTS:
        if value.text.lower() == part:
            return Condition(Has(part))
    meant = nearest(value.text, PARTS)
    choice = ", ".join(f"has:{part}" for part in PARTS)
    raise wrong(
        f"a passage cannot be asked for has:{shown(value.text)}",
        f"did you mean has:{meant}?" if meant else f"there are {choice}",
    )


def _linkto(value: Typed) -> Condition:
    note, *anchor = _note(value)
    return Condition(LinksTo(note, tuple(anchor)))


def _linkedby(value: Typed) -> Condition:
    return Condition(LinkedBy(_note(value)[0]))


def _note(value: Typed) -> list[str]:
    """The name of a note and the headings behind it, also as a link has them: [[Note#H|label]]."""
    inside = re.sub(r"^!?\[\[|\]\]$", "", value.text)
    if inside != value.text:
        parts = re.split("#+", inside.partition("|")[0])
    else:  # a title may hold the sign: C#, Issue #5
        parts = re.split(r"(?<=[^\s#])#(?=[^\s#])", inside)
    note, *anchor = (part.strip() for part in parts)
    if not note:
        raise wrong(f"“{shown(value.text)}” names no note", 'for example: link:"My note"')
    return [note, *filter(None, anchor)]


def _content(value: Typed) -> Condition:
    sought = _words(value, "body")
    return Condition(Holds(sought), value.text, sought)


def _code(value: Typed) -> Condition:
    return Condition(Holds(_words(value, "code"), "code"), value.text, Words(value.text))


def _words(value: Typed, field: str) -> Words | Phrase:
    return Phrase(value.text, field) if value.quoted else Words(value.text, field, every=True)


def _task(state: Literal["any", "todo", "done"], value: Typed) -> Condition:
    sought = Words(value.text) if value.text else None
    return Condition(Task(value.text, state), value.text, sought)


def _in(value: Typed) -> Vault:
    return Vault(value.text)


# --- Dates ---


def _dated(field: DateField, value: Typed) -> Condition:
    sign, text = _compared(value.text)
    if ".." in text and not sign:
        return _between(field, text, value.now)
    found = stretch(text, value.now)
    first, last = moment(found.first, value.now), moment(found.last, value.now)
    since = {"": first, "=": first, ">=": first, ">": last}.get(sign)
    until = {"": last, "=": last, "<": first, "<=": last}.get(sign)
    return Condition(Dated(field, since, until))


def _compared(text: str) -> tuple[str, str]:
    match = COMPARED.fullmatch(text)
    return (match[1] or "", match[2]) if match else ("", text)


def _between(field: DateField, text: str, now: datetime) -> Condition:
    left, right = ends(text, now)
    if left and right and left.first >= right.last:
        raise wrong(f"“{shown(text)}” ends before it begins", "write the earlier date first")
    since = moment(left.first, now) if left else None
    return Condition(Dated(field, since, moment(right.last, now) if right else None))


def ends(text: str, now: datetime) -> tuple[Stretch | None, Stretch | None]:
    """The two stretches of `2024-01..2024-03`; one of them may be left out."""
    left, _, right = (part.strip() for part in text.partition(".."))
    if not left and not right:
        raise wrong("a range needs a date", "for example: created:2024-01..2024-03")
    return (stretch(left, now) if left else None, stretch(right, now) if right else None)


def _since(value: Typed) -> Condition:
    found = stretch(value.text, value.now)
    return Condition(Dated("modified", moment(found.first, value.now)))


def _before(value: Typed) -> Condition:
    found = stretch(value.text, value.now)
    return Condition(Dated("modified", None, moment(found.first, value.now)))


OPERATORS: Mapping[str, Operator] = {
    "tag": Operator(_tag, "tag:inbox"),
    "path": Operator(partial(_named, "path"), "path:journal/2024"),
    "file": Operator(partial(_named, "file"), "file:meeting"),
    "title": Operator(partial(_named, "title"), 'title:"sourdough starter"'),
    "alias": Operator(partial(_named, "alias"), "alias:JFK"),
    "heading": Operator(_heading, "heading:ingredients"),
    "lang": Operator(_lang, "lang:python"),
    "has": Operator(_has, "has:code"),
    "link": Operator(_linkto, 'link:"My note"'),
    "linkto": Operator(_linkto, 'linkto:"My note"'),
    "linkedby": Operator(_linkedby, 'linkedby:"My note"'),
    "created": Operator(partial(_dated, "created"), "created:2024-03"),
    "modified": Operator(partial(_dated, "modified"), 'modified:"last week"'),
    "date": Operator(partial(_dated, "date"), "date:2024-01..2024-03"),
    "since": Operator(_since, "since:2024-03-01"),
    "before": Operator(_before, "before:yesterday"),
    "content": Operator(_content, "content:flour"),
    "code": Operator(_code, "code:getUserById"),
    "task": Operator(partial(_task, "any"), "task:call"),
    "task-todo": Operator(partial(_task, "todo"), 'task-todo:""'),
    "task-done": Operator(partial(_task, "done"), "task-done:call"),
    "in": Operator(_in, "in:notes"),
}

# Of other programs: what to type here. They are searched as text, and that is said.
FOREIGN: Mapping[str, str] = {
    "line": "passages are searched as a whole: write the words without line:",
    "block": "passages are searched as a whole: write the words without block:",
    "section": "write heading: for the heading, or the words without section:",
    "match-case": "case is never compared",
    "ignore-case": "case is never compared: leave it out",
    "after": "write since:",
    "until": "write before:",
    "filename": "write file:",
    "name": "write file: or title:",
    "folder": "write path:",
    "language": "write lang:",
    "tags": "write tag:",
}
