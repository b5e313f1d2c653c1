"""Operators and properties: `name:value` and `[name:value]` become conditions.

One entry of OPERATORS is one operator: how its value is read, and an example for error messages.
A property is in brackets:

    [status]                      the note has the property
    [status:draft]                it has this value (in any case), or its list contains it
    [status:draft OR published]   it is one of these
    [status:null]                 it is there and empty
    [rating:>3]  [due:<today]     numbers compare with numbers, dates with dates
    [rating:3..5]                 between, both included

Names and values with special characters are in quotes. This module knows values, not their place in
a query.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Literal, NamedTuple, cast

from ragvault.errors import UsageError
from ragvault.plan import (
    PARTS,
    Comparison,
    Dated,
    DateField,
    Filter,
    HasPart,
    HasTask,
    InLanguage,
    KeywordQuery,
    LinkedBy,
    LinksTo,
    MatchesWords,
    NameContains,
    NoteText,
    Or,
    Phrase,
    Property,
    Tagged,
    UnderHeading,
    Value,
    Words,
)
from ragvault.query.dates import NUMBERS, DateRange, moment, read_date_range
from ragvault.text.names import link_parts
from ragvault.text.spelling import nearest

DATE_FORMS = 'a date is 2024, 2024-03, 2024-03-01, today, yesterday, "last week" or "3 days ago"'
DATE_QUOTES = 'put a date of several words in quotes: since:"last week", modified:"3 days ago"'
SHORTENED = 40  # characters of what was typed: enough to recognise it
# The names of a language in fences; people label them by habit, and lang: finds them all.
LANGUAGES = tuple(
    tuple(names.split())
    for names in (
        "python py python3 py3 ipython",
        "javascript js mjs cjs node jsx",
        "typescript ts tsx",
        "bash sh shell zsh console shell-session",
        "powershell ps1 pwsh ps",
        "c++ cpp cxx cc hpp",
        "c# csharp cs",
        "f# fsharp fs",
        "go golang",
        "rust rs",
        "ruby rb",
        "kotlin kt",
        "haskell hs",
        "yaml yml",
        "markdown md",
        "latex tex",
        "html htm xhtml",
        "dockerfile docker",
        "makefile make mk",
        "objective-c objectivec objc",
        "perl pl",
        "r rlang",
        "text txt plain plaintext",
    )
)
_LANGUAGE_NAMES = {name: names for names in LANGUAGES for name in names}


@dataclass(frozen=True, slots=True)
class Condition:
    """The filter that an operator or a property means. Some also have words to search for."""

    filter: Filter
    text: str = ""
    query: KeywordQuery | None = None


@dataclass(frozen=True, slots=True)
class VaultName:
    """in:name, which chooses a vault and says nothing about its notes."""

    name: str


class OperatorValue(NamedTuple):
    """A value as it was typed."""

    text: str
    quoted: bool
    now: datetime


class Operator(NamedTuple):
    """How a value becomes a condition, and an example."""

    read: Callable[[OperatorValue], Condition | VaultName]
    example: str


def operator_condition(name: str, value: str, quoted: bool, now: datetime) -> Condition | VaultName:
    """The condition that `name:value` means. Raises UsageError for an impossible value."""
    operator = OPERATORS[name]
    if not value.strip() and not name.startswith("task"):
        raise UsageError(f"{name}: needs a value", fix=f"for example: {operator.example}")
    return operator.read(OperatorValue(value.strip(), quoted, now))


def shorten(text: str) -> str:
    """What was typed, short enough for a sentence."""
    line = " ".join(text.split())
    return line if len(line) <= SHORTENED else line[: SHORTENED - 1] + "…"


def _tag(value: OperatorValue) -> Condition:
    tag = value.text.lstrip("#").strip("/")
    if not tag or re.search(r"\s", tag):
        raise UsageError(
            f"“{shorten(value.text)}” cannot be a tag", fix="a tag has no spaces: tag:inbox/to-read"
        )
    return Condition(Tagged(tag))


def _named(where: NoteText, value: OperatorValue) -> Condition:
    return Condition(NameContains(where, value.text))


def _heading(value: OperatorValue) -> Condition:
    return Condition(UnderHeading(value.text.lstrip("#").strip() or value.text))


def _lang(value: OperatorValue) -> Condition:
    name = value.text.strip().casefold()
    return Condition(InLanguage(_LANGUAGE_NAMES.get(name, (name,))))


def _has(value: OperatorValue) -> Condition:
    if part := next((each for each in PARTS if each == value.text.lower()), None):
        return Condition(HasPart(part))
    meant = nearest(value.text, PARTS)
    *most, last = (f"has:{part}" for part in PARTS)
    raise UsageError(
        f"unknown filter has:{shorten(value.text)}",
        fix=f"did you mean has:{meant[0]}?" if meant else f"use {', '.join(most)} or {last}",
    )


def _linkto(value: OperatorValue) -> Condition:
    note, heading = _note(value)
    anchor = (part.strip() for part in re.split("#+", heading))
    return Condition(LinksTo(note, tuple(filter(None, anchor))))


def _linkedby(value: OperatorValue) -> Condition:
    return Condition(LinkedBy(_note(value)[0]))


def _note(value: OperatorValue) -> tuple[str, str]:
    note, heading = link_parts(value.text)
    if not note:
        raise UsageError(
            f"“{shorten(value.text)}” does not name a note", fix='for example: link:"My note"'
        )
    return note, heading


def _content(value: OperatorValue) -> Condition:
    query = _words_in(value, "body")
    return Condition(MatchesWords(query), value.text, query)


def _code(value: OperatorValue) -> Condition:
    return Condition(MatchesWords(_words_in(value, "code"), "code"), value.text, Words(value.text))


def _words_in(value: OperatorValue, field: str) -> Words | Phrase:
    return Phrase(value.text, field) if value.quoted else Words(value.text, field, every=True)


def _task(state: Literal["any", "todo", "done"], value: OperatorValue) -> Condition:
    query = Words(value.text) if value.text else None
    return Condition(HasTask(value.text, state), value.text, query)


def _in(value: OperatorValue) -> VaultName:
    return VaultName(value.text)


# --- Dates ---

_SIGN_AND_DATE = re.compile(r"(<=|>=|<|>|=)?\s*(.*)", re.DOTALL)


def _dated(field: DateField, value: OperatorValue) -> Condition:
    match = _SIGN_AND_DATE.fullmatch(value.text)
    sign, text = (match[1] or "", match[2]) if match else ("", value.text)
    if ".." in text and not sign:
        return _between(field, text, value.now)
    return _compared(field, sign, text, value.now)


def _bounded(sign: str, value: OperatorValue) -> Condition:
    return _compared("date", sign, value.text, value.now)


def _compared(field: DateField, sign: str, text: str, now: datetime) -> Condition:
    found = _date_range(text, now)
    first, last = moment(found.first, now), moment(found.last, now)
    since = {"": first, "=": first, ">=": first, ">": last}.get(sign)
    until = {"": last, "=": last, "<": first, "<=": last}.get(sign)
    return Condition(Dated(field, since, until))


def _between(field: DateField, text: str, now: datetime) -> Condition:
    """2024-01..2024-03; one of the two ends may be missing."""
    left, _, right = (part.strip() for part in text.partition(".."))
    if not left and not right:
        raise UsageError("a range needs a date", fix="for example: created:2024-01..2024-03")
    first = _date_range(left, now) if left else None
    last = _date_range(right, now) if right else None
    if first and last and first.first >= last.last:
        raise UsageError(
            f"“{shorten(text)}” ends before it begins", fix="write the earlier date first"
        )
    since = moment(first.first, now) if first else None
    return Condition(Dated(field, since, moment(last.last, now) if last else None))


def _date_range(text: str, now: datetime) -> DateRange:
    found = read_date_range(text, now)
    if found is None:
        # since:last week and since:3 days ago arrive without what is behind the space. A number of
        # four digits is a year that the calendar does not have.
        digits = text.isdigit() and len(text) < 4
        unfinished = digits or text.lower() in ("last", "this", "past", "a", "an", *NUMBERS)
        raise UsageError(
            f"“{shorten(text)}” is not a date", fix=DATE_QUOTES if unfinished else DATE_FORMS
        )
    return found


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
    "since": Operator(partial(_bounded, ">="), "since:2024-03-01"),
    "before": Operator(partial(_bounded, "<"), "before:yesterday"),
    "content": Operator(_content, "content:flour"),
    "code": Operator(_code, "code:getUserById"),
    "task": Operator(partial(_task, "any"), "task:call"),
    "task-todo": Operator(partial(_task, "todo"), 'task-todo:""'),
    "task-done": Operator(partial(_task, "done"), "task-done:call"),
    "in": Operator(_in, "in:notes"),
}

# How a query is written, for `ragvault help operators`. docs/searching.md has the same tables.
SYNTAX = r"""
Words and phrases
sourdough starter | about both; a passage with one of them can still be found
"cold start" | these words in this order, required. \" is a quote inside
-rye  -"cold start" | no passage with that word or phrase
rye OR spelt | one of the two; next to a condition (tag:recipe OR rye) one of them is required
(a OR b) c | parentheses group; a space binds more tightly than OR. AND may be written
`tag:x` | between backticks nothing is an operator

Operators about a note
tag:inbox  #inbox | with this tag or one below it: #inbox/to-read too, #myjob/inbox not
path:journal/2024 | with this in their path; path:/journal starts at the vault's root
file:meeting | with this in their file name
title:"sourdough starter" | with this in their title
alias:JFK | with this in an alias
link:Home  linkto:Home | that link to the note of that name, title, alias or path, also broken links
link:Home#Rules | that link to that heading of the note; link:Home#^id: to that block
linkedby:Home | that this note links to
[status] | that have the property
[status:draft] | in which it has this value, or its list contains it; [up:Home] also finds [[Home]]
[status:draft OR published] | in which it is one of these
[status:null] | in which it is there and empty
[rating:>3]  [rating:3..5] | in which it is so: < <= > >= or a range; numbers (also "4") or dates
[due:<today] | the same with a date; all forms below
created:2024-03 | created in that time, by their properties, else name, else git, else the file
modified:"last week" | changed in that time, by their properties, else git, else the file
date:2024-01..2024-03 | dated in that time, by their name, else properties, else git, else the file
since:2024-03-01 | dated then or later
before:yesterday | dated before that
in:notes | in the vault with that name; (in:notes OR in:work) bread searches both

Operators about a passage
heading:ingredients | under a heading with this in it, at any level
has:code | with code; also has:table, has:task, has:image
lang:python | with code in that language, by any of its names (py, python3)
code:getUserById | whose code contains these names
content:flour | whose own text contains these words, not only the title or the tags of their note
task:call | with a task that contains this
task-todo:"" | with an open task, whatever its text
task-done:call | with a finished task that contains this; any mark but a space counts as finished

Dates
2024  2024-03  2024-03-01  2024-03-01T09:30 | that year, month, day, minute
2024-W10  2024-Q1 | that week, that quarter
today  yesterday  monday  fri  march | the day; the latest Monday or Friday; the latest March
"last week"  "this month"  "last quarter" | the whole week, from Monday, month, quarter or year
"last monday"  "march 2024" | that day, that month
"feb 3"  "3 february 2024"  "february 3 2024" | that day; without a year, the latest such day
"3 days ago"  "two weeks ago"  "a week ago" | that one day; the seven days that began that long ago
"past 2 weeks"  7d  2w | from then until today
2024-01..2024-03  2024-01.. | from the beginning of the first to the end of the second
"""

# Operators of other programs, and what to type here. They are searched as text, with a warning.
FOREIGN: Mapping[str, str] = {
    "line": "passages are searched as a whole: write the words without line:",
    "block": "passages are searched as a whole: write the words without block:",
    "section": "write heading: for the heading, or the words without section:",
    "match-case": "case never matters",
    "ignore-case": "case never matters: leave it out",
    "after": "write since:",
    "until": "write before:",
    "filename": "write file:",
    "name": "write file: or title:",
    "folder": "write path:",
    "language": "write lang:",
    "tags": "write tag:",
}


# --- Properties ---

_QUOTED_NAME = re.compile(r'"((?:[^"\\]|\\.)*)"\s*(:?)', re.DOTALL)
# Brackets that are no property: a checkbox, footnote, callout, numbered reference, inline field.
_NO_PROPERTY = re.compile(r"\s*|[xX]|\^.*|!.*|[\d\W]*|[^:\"]*::.*", re.DOTALL)
_SIGN = re.compile(r"(<=|>=|<|>|=|!=)\s*(.*)", re.DOTALL)
# A sign without a colon before it: rating>3, due<=2024-03-01T09:30.
_WITHOUT_COLON = re.compile(r"([^:<>=!]*[^:<>=!\s])\s*(<=|>=|!=|==?|<|>)\s*(.*)", re.DOTALL)
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?", re.IGNORECASE | re.ASCII)
_ALTERNATIVES = re.compile(r'"(?:[^"\\]|\\.)*"|\s+OR\s+|.', re.DOTALL)


def may_be_property(inside: str) -> bool:
    """False for other things that people put in brackets: [x], [^1], [!note], [12]."""
    return _NO_PROPERTY.fullmatch(inside) is None


def property_filter(inside: str, now: datetime) -> Filter:
    """The filter for the text between the brackets. Raises UsageError."""
    name, value = _name_and_value(inside.strip())
    if value is None:
        return Property(name)
    tests = tuple(_property_test(name, each, now) for each in _alternatives(value))
    return tests[0] if len(tests) == 1 else Or(tests)


def _name_and_value(inside: str) -> tuple[str, str | None]:
    quoted = _QUOTED_NAME.match(inside)
    name, colon, value = inside.partition(":")
    if quoted:
        name, colon, value = unescape(quoted[1]), quoted[2], inside[quoted.end() :]
    if not name.strip() or (value and not colon):
        raise UsageError(
            f"[{shorten(inside)}] is not a property", fix="write [name] or [name:value]"
        )
    if not quoted and (sign := _WITHOUT_COLON.match(inside)) is not None:
        raise UsageError(f"[{shorten(inside)}] needs a colon", fix=_with_colon(*sign.groups()))
    return name.strip(), value.strip() if colon else None


def _with_colon(name: str, sign: str, value: str) -> str:
    name, value = shorten(name), shorten(value) or "…"
    if sign == "!=":
        return f"write -[{name}:{value}]"
    return f"write [{name}:{'' if sign in ('=', '==') else sign}{value}]"


def _alternatives(text: str) -> Iterator[str]:
    """The values between ORs outside quotes."""
    parts = [""]
    for piece in _ALTERNATIVES.findall(text):
        if piece.strip() == "OR" and piece != "OR":
            parts.append("")
        else:
            parts[-1] += piece
    return (part.strip() for part in parts)


def _property_test(name: str, text: str, now: datetime) -> Property:
    if not text:
        raise UsageError(
            f"[{shorten(name)}:] needs a value", fix=f"write [{shorten(name)}] for any value"
        )
    if text in ("null", '""'):
        return Property(name, "empty")
    if (sign := _SIGN.fullmatch(text)) is not None:
        return _comparison(name, sign[1], sign[2], now)
    if ".." in text and not text.startswith('"'):
        return _range(name, text, now)
    return Property(name, "=", _value(text, now))


def _comparison(name: str, sign: str, text: str, now: datetime) -> Property:
    if sign == "!=":
        raise UsageError(
            "there is no comparison !=", fix=f"write -[{shorten(name)}:{shorten(text)}]"
        )
    value = _value(text, now)
    if sign == "=":
        return Property(name, "=", value)
    return Property(name, cast(Comparison, sign), _ordered(name, value))


def _range(name: str, text: str, now: datetime) -> Property:
    left, _, right = (part.strip() for part in text.partition(".."))
    if not left and not right:
        return Property(name, "=", _value(text, now))
    if not left or not right:
        sign = ">=" if left else "<="
        return _comparison(name, sign, left or right, now)
    first, last = (_ordered(name, _value(end, now)) for end in (left, right))
    if _is_after(first, last):
        raise UsageError(
            f"“{shorten(text)}” ends before it begins", fix="write the smaller value first"
        )
    return Property(name, "..", first, last)


def _is_after(first: Value, last: Value) -> bool:
    """Whether nothing can lie between them: numbers compare with numbers, dates with dates."""
    if first.number is not None and last.number is not None:
        return first.number > last.number
    return bool(first.since and last.until and first.since.day >= last.until.day)


def _ordered(name: str, value: Value) -> Value:
    """The value, if it has an order: only numbers and dates have one here."""
    if value.number is None and value.since is None:
        raise UsageError(
            f"[{shorten(name)}]: “{shorten(value.text)}” is neither a number nor a date",
            fix=f"for example: [{shorten(name)}:>5] or [{shorten(name)}:<2024-03-01]",
        )
    return value


def _value(text: str, now: datetime) -> Value:
    quoted = len(text) > 1 and text[0] == text[-1] == '"'
    plain = unescape(text[1:-1]) if quoted else text
    number = float(plain) if _NUMBER.fullmatch(plain) else math.inf
    found = read_date_range(plain, now)
    return Value(
        plain,
        number if math.isfinite(number) else None,
        moment(found.first, now) if found else None,
        moment(found.last, now) if found else None,
    )


def unescape(text: str) -> str:
    r"""The text between quotes: \" is a quote and \\ a backslash."""
    return re.sub(r'\\(["\\])', r"\1", text)
