"""Dataview fields: `key:: value` on a line of its own, `[key:: v]` and `(key:: v)` inside one.

They are properties that stand in the text. Code and comments are blanked out by the caller.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from typing import Any

_KEY = r"[^\W\d_][^:\[\](){}\n|`]{0,60}?"
_MARKER = r"(?:(?:[-*+]|\d+[.)])[ \t]+(?:\[.\][ \t]+)?)?"  # of a list item, or a task
_LINE = re.compile(
    rf"^[ \t>]*{_MARKER}(?:\*\*|__|\*|_)?({_KEY})(?:\*\*|__|\*|_)?::(?=[ \t]|$)[ \t]*(.*)$", re.M
)
_INLINE = re.compile(rf"[\[(]({_KEY})::[ \t]*((?:\[\[[^\]\n]*\]\]|[^\[\]()\n])*)[\])]")
_NUMBER = re.compile(r"[-+]?\d{1,15}(?:\.\d{1,15})?")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2})?)?")


def find(text: str) -> Iterator[tuple[str, Any]]:
    """Every field of a text as (key, value), the value typed."""
    if "::" not in text:
        return
    inline = list(_INLINE.finditer(text))
    spans = [match.span() for match in inline]
    for match in _LINE.finditer(text):
        if not any(start < match.end(1) < end for start, end in spans):
            yield match[1].strip(), _typed(match[2].strip())
    for match in inline:
        yield match[1].strip(), _typed(match[2].strip())


def merge(properties: dict[str, Any], text: str) -> dict[str, Any]:
    """The properties with the fields of the text added; a key met twice becomes a list."""
    merged = dict(properties)
    for name, value in find(text):
        if name not in merged:
            merged[name] = value
        elif value != merged[name]:
            before = merged[name]
            merged[name] = [*before, value] if isinstance(before, list) else [before, value]
    return merged


def _typed(value: str) -> Any:
    if _NUMBER.fullmatch(value):
        return float(value) if "." in value else int(value)
    if value.lower() in ("true", "false"):
        return value.lower() == "true"
    if _DATE.fullmatch(value):
        try:
            return (
                dt.datetime.fromisoformat(value) if "T" in value else dt.date.fromisoformat(value)
            )
        except ValueError:
            return value
    return value
