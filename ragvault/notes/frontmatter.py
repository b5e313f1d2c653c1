"""Properties of a note: the YAML block it may begin with, and Dataview fields in its text.

YAML is read with its types and without surprises: `yes` is a word, `12:30` is text, a date is a
date. Nothing in it is ever run, and nothing in it can cost the note: broken YAML, or YAML beyond
the limits, leaves the text where it is and a warning beside it.
"""

from __future__ import annotations

import datetime as dt
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ragvault.notes.read import plain
from ragvault.text.dates import utc_offset
from ragvault.text.markup import WIKILINK
from ragvault.text.printable import valid_unicode

MAX_CHARS = 64_000  # longer than this is a file that begins with a rule, not frontmatter
MAX_VALUES = 10_000  # YAML aliases can name one list a billion times
MAX_DEPTH = 20

_OPEN = re.compile(r"---[ \t]*\n")
_KEY = re.compile(
    r"^[ \t]*(?:\"[^\"\n]+\"|'[^'\n]+')[ \t]*:(?:[ \t]|$)|^[ \t]*[^\s#:][^:\n]*:(?:[ \t]|$)", re.M
)
_CLOSE = re.compile(r"^(?:---|\.\.\.)[ \t]*$", re.M)


@dataclass(frozen=True, slots=True)
class Front:
    """What stood before the body: its values, where the body begins, and what was wrong."""

    properties: Mapping[str, Any] = field(default_factory=dict)
    body: int = 0
    warnings: tuple[str, ...] = ()


def split(text: str) -> Front:
    """Read the frontmatter of a note; a note without any has its body at 0."""
    opening = _OPEN.match(text)
    closing = opening and _CLOSE.search(text, opening.end())
    if not opening or not closing or closing.end() > MAX_CHARS:
        return Front()
    source = text[opening.end() : closing.start()]
    if source.strip() and not _KEY.search(source) and source.lstrip()[0] not in "-[{!":
        return Front()  # prose between two rules
    body = min(closing.end() + 1, len(text))
    try:
        return Front(_values(source), body)
    except ValueError as problem:
        return Front({}, body, (f"frontmatter ignored: {problem}",))


def _values(source: str) -> dict[str, Any]:
    import yaml

    try:
        loaded = _Reader(source).read()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        said = getattr(error, "problem", None) or getattr(error, "context", None) or str(error)
        said = said.splitlines()[0]
        raise ValueError(_at_line(source, mark.line, said) if mark else said) from error
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise ValueError("it is not a list of `key: value` lines")
    return loaded


def _at_line(source: str, line: int, said: str) -> str:
    """What is wrong in a line; templates write {{…}}, which YAML reads as a mapping."""
    number = line + 2  # from 1, below the opening rule
    if "{{" in "".join(source.splitlines()[line : line + 1]):
        return f"line {number} has an unquoted {{{{…}}}}"
    return f"line {number}: {said}"


class _Reader:
    """Builds values from the YAML parser's events, within limits of depth and number.

    The events come from a state machine, so nothing here recurses deeper than MAX_DEPTH, and an
    alias counts as many values as what it names. Merge keys (`<<`) are ordinary keys: a few nested
    ones can ask for billions of values.
    """

    def __init__(self, source: str) -> None:
        import yaml

        self._yaml = yaml
        loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self._events: Iterator[Any] = iter(yaml.parse(source, Loader=loader))
        self._source = source
        self._left = MAX_VALUES
        self._anchors: dict[str, tuple[Any, int, int]] = {}  # value, number of values, depth

    def read(self) -> Any:
        """The first document, or None when there is none."""
        for event in self._events:
            if isinstance(event, self._yaml.DocumentStartEvent):
                return self._value(next(self._events), 0)[0]
        return None

    def _value(self, event: Any, depth: int) -> tuple[Any, int]:
        """A value, and the depth of its content."""
        if isinstance(event, self._yaml.AliasEvent):
            if event.anchor not in self._anchors:
                raise ValueError(f"the alias *{event.anchor} names nothing before it")
            value, count, below = self._anchors[event.anchor]
            self._spend(count, depth + below)
            return value, below
        before = self._left
        self._spend(1, depth)
        if event.tag and event.tag not in _TAGS:
            raise ValueError(f"the tag {event.tag} is not one of a plain value")
        if isinstance(event, self._yaml.ScalarEvent):
            is_plain = event.implicit[0] and event.tag is None
            # An escape may name half a character, or NUL, which no text of a note has.
            value, below = (_scalar if is_plain else plain)(valid_unicode(event.value)), 0
        elif isinstance(event, self._yaml.SequenceStartEvent):
            value, below = self._sequence(depth)
        else:
            value, below = self._mapping(depth)
        if event.anchor:
            self._anchors[event.anchor] = value, before - self._left, below
        return value, below

    def _sequence(self, depth: int) -> tuple[list[Any], int]:
        values: list[Any] = []
        deepest = 0
        while not isinstance(event := next(self._events), self._yaml.SequenceEndEvent):
            value, below = self._value(event, depth + 1)
            values.append(value)
            deepest = max(deepest, below + 1)
        return values, deepest

    def _mapping(self, depth: int) -> tuple[dict[str, Any], int]:
        values: dict[str, Any] = {}
        deepest = 0
        while not isinstance(event := next(self._events), self._yaml.MappingEndEvent):
            key, _ = self._value(event, depth + 1)
            if isinstance(key, (dict, list)):
                line = event.start_mark.line
                raise ValueError(_at_line(self._source, line, "a key is not plain text"))
            value, below = self._value(next(self._events), depth + 1)
            values[str(key)] = value
            deepest = max(deepest, below + 1)
        return values, deepest

    def _spend(self, values: int, depth: int) -> None:
        self._left -= values
        if self._left < 0:
            raise ValueError(f"it holds too many values (more than {MAX_VALUES:,})")
        if depth > MAX_DEPTH:
            raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep")


def _scalar(text: str) -> Any:
    """An unquoted value as YAML 1.2 reads it, which is what note-takers expect."""
    for read, pattern in _SCALARS:
        if pattern.fullmatch(text):
            return read(text)
    return text


_TIMESTAMP = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})"
    r"(?:(?:[Tt]|[ \t]+)(\d{1,2}):(\d{2})(?::(\d{2}))?(?:\.(\d*))?"
    r"[ \t]*(Z|[-+]\d{1,2}(?::?\d{2})?)?)?$"
)


def _timestamp(raw: str) -> Any:
    """A date or a moment; the text itself where there is no such day, like 2024-02-31."""
    found = _TIMESTAMP.match(raw)
    if not found:
        return raw
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    try:
        if hour is None:
            return dt.date(int(year), int(month), int(day))
        micro = int((fraction or "").ljust(6, "0")[:6])
        numbers = (int(year), int(month), int(day), int(hour), int(minute), int(second or 0))
        return dt.datetime(*numbers, micro, tzinfo=utc_offset(zone) if zone else None)
    except ValueError:
        return raw


_SCALARS: tuple[tuple[Callable[[str], Any], re.Pattern[str]], ...] = (
    (lambda text: None, re.compile(r"(?:~|null|Null|NULL|)")),
    (lambda text: text[0] in "tT", re.compile(r"true|True|TRUE|false|False|FALSE")),
    # A leading zero is a telephone number or a postcode, and eighteen digits are enough to count.
    (int, re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")),
    (float, re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")),
    (lambda text: float(text.replace(".", "")), re.compile(r"[-+]?\.(?:inf|Inf)|\.(?:nan|NaN)")),
    (_timestamp, re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt \t].*)?")),
)
# Explicit tags that change nothing a reader of a note would notice; all others are refused.
_TAGS = frozenset(
    f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "float", "bool", "null", "timestamp")
)


def text_of(value: Any) -> str:
    """A property as one line of text; nothing for what is not a scalar."""
    if value is None or isinstance(value, (dict, list)):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value).strip()


def words_of(properties: Mapping[str, Any], *keys: str, split_on: str = ",") -> tuple[str, ...]:
    """The values of a list property, whichever way it was written: list, or one scalar.

    `keys` are its names, the deprecated ones too, in any case. A scalar is split at any of the
    characters in `split_on`.
    """
    found: dict[str, None] = {}
    for key, value in properties.items():
        if key.lower() in keys:
            found.update(dict.fromkeys(_listed(value, split_on)))
    return tuple(found)


def _listed(value: Any, split_on: str) -> Iterable[str]:
    if isinstance(value, str):
        parts: Iterable[str] = re.split(f"[{re.escape(split_on)}\n]", value)
    elif isinstance(value, list):
        parts = (text_of(item) for item in value)
    else:
        parts = (text_of(value),)
    return (part.strip() for part in parts if part.strip())


# --- Dataview fields: `key:: value` on a line, `[key:: v]` and `(key:: v)` inside one ---

_FIELD_KEY = r"[^\W\d_][^:\[\](){}\n|`]{0,60}?"
_FIELD_MARKER = r"(?:(?:[-*+]|\d+[.)])[ \t]+(?:\[.\][ \t]+)?)?"  # of a list item, or a task
_FIELD_LINE = re.compile(
    rf"^[ \t>]*{_FIELD_MARKER}(?:\*\*|__|\*|_)?({_FIELD_KEY})(?:\*\*|__|\*|_)?"
    r"::(?=[ \t]|$)[ \t]*(.*)$",
    re.M,
)
_FIELD_INLINE = re.compile(rf"[\[(]({_FIELD_KEY})::[ \t]*((?:{WIKILINK}|[^\[\]()\n])*)[\])]")
_FIELD_NUMBER = re.compile(r"[-+]?\d{1,15}(?:\.\d{1,15})?")
_FIELD_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2})?)?")


def inline_fields(text: str) -> Iterator[tuple[str, Any]]:
    """Every field of a text as (key, value), the value typed."""
    if "::" not in text:
        return
    inline = list(_FIELD_INLINE.finditer(text))
    starts = [match.start() for match in inline]
    for match in _FIELD_LINE.finditer(text):
        before = bisect_left(starts, match.end(1)) - 1  # the last inline field that begins earlier
        if before < 0 or inline[before].end() <= match.end(1):
            yield match[1].strip(), _typed(match[2].strip())
    for match in inline:
        yield match[1].strip(), _typed(match[2].strip())


def with_fields(properties: dict[str, Any], text: str) -> dict[str, Any]:
    """The properties with the fields of the text added; a key met twice becomes a list."""
    merged = dict(properties)
    ours: set[str] = set()  # keys whose list was made here, and may grow
    for name, value in inline_fields(text):
        if name not in merged:
            merged[name] = value
        elif name in ours:
            merged[name].append(value)
        elif value != merged[name]:
            before = merged[name]
            merged[name] = [*before, value] if isinstance(before, list) else [before, value]
            ours.add(name)
    return merged


def _typed(value: str) -> Any:
    if _FIELD_NUMBER.fullmatch(value):
        return float(value) if "." in value else int(value)
    if value.lower() in ("true", "false"):
        return value.lower() == "true"
    return _timestamp(value) if _FIELD_DATE.fullmatch(value) else value
