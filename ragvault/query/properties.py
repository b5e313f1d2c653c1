"""Properties: what stands between brackets becomes a condition.

    [status]                      has the property
    [status:draft]                is that, whatever the case; one of them where it is a list
    [status:draft OR published]   is one of these
    [status:null]                 is there and empty
    [rating:>3]  [due:<today]     compares, a number with numbers and a date with dates
    [rating:3..5]                 lies between, both included

Names and values with special characters stand in quotes, and then mean themselves.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from datetime import datetime
from typing import cast

from ragvault.plan import Comparison, Either, Filter, Property, Value
from ragvault.query.dates import moment, read
from ragvault.query.mistakes import shown, wrong

_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"\s*(:?)', re.DOTALL)
# Not these: a checkbox, a footnote, a callout, a numbered reference, an inline field.
_TEXT = re.compile(r"\s*|[xX]|\^.*|!.*|[\d\W]*|[^:\"]*::.*", re.DOTALL)
_SIGN = re.compile(r"(<=|>=|<|>|=|!=)\s*(.*)", re.DOTALL)
# A sign before the colon, or without one: rating>3, due<=2024-03-01T09:30.
_COMPARED = re.compile(r"([^:<>=!]*[^:<>=!\s])\s*(<=|>=|!=|==?|<|>)\s*(.*)", re.DOTALL)
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?", re.IGNORECASE | re.ASCII)
_ALTERNATIVES = re.compile(r'"(?:[^"\\]|\\.)*"|\s+OR\s+|.', re.DOTALL)


def is_text(inside: str) -> bool:
    """Are these brackets something else that people put in brackets?"""
    return _TEXT.fullmatch(inside) is not None


def build(inside: str, now: datetime) -> Filter:
    """The condition for what stood between the brackets. Raises UsageError."""
    name, value = _name_and_value(inside.strip())
    if value is None:
        return Property(name)
    tests = tuple(_test(name, each, now) for each in _alternatives(value))
    return tests[0] if len(tests) == 1 else Either(tests)


def _name_and_value(inside: str) -> tuple[str, str | None]:
    quoted = _QUOTED.match(inside)
    name, colon, value = inside.partition(":")
    if quoted:
        name, colon, value = unescaped(quoted[1]), quoted[2], inside[quoted.end() :]
    if not name.strip() or (value and not colon):
        raise wrong(f"[{shown(inside)}] is not a property", "write [name] or [name:value]")
    if not quoted and (sign := _COMPARED.match(inside)) is not None:
        raise wrong(f"[{shown(inside)}] compares without a colon", _with_colon(*sign.groups()))
    return name.strip(), value.strip() if colon else None


def _with_colon(name: str, sign: str, value: str) -> str:
    name, value = shown(name), shown(value) or "…"
    if sign == "!=":
        return f"write -[{name}:{value}]"
    return f"write [{name}:{'' if sign in ('=', '==') else sign}{value}]"


def _alternatives(text: str) -> Iterator[str]:
    """The values between ORs that stand in no quotes."""
    parts = [""]
    for piece in _ALTERNATIVES.findall(text):
        if piece.strip() == "OR" and piece != "OR":
            parts.append("")
        else:
            parts[-1] += piece
    return (part.strip() for part in parts)


def _test(name: str, text: str, now: datetime) -> Property:
    if not text:
        raise wrong(f"[{shown(name)}:] needs a value", f"write [{shown(name)}] for any value")
    if text in ("null", '""'):
        return Property(name, "empty")
    if (sign := _SIGN.fullmatch(text)) is not None:
        return _comparison(name, sign[1], sign[2], now)
    if ".." in text and not text.startswith('"'):
        return _range(name, text, now)
    return Property(name, "=", _value(text, now))


def _comparison(name: str, sign: str, text: str, now: datetime) -> Property:
    if sign == "!=":
        raise wrong("there is no comparison !=", f"write -[{shown(name)}:{shown(text)}]")
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
        raise wrong(f"“{shown(text)}” ends before it begins", "write the smaller value first")
    return Property(name, "..", first, last)


def _is_after(first: Value, last: Value) -> bool:
    """Can nothing lie between them? Numbers are compared with numbers, dates with dates."""
    if first.number is not None and last.number is not None:
        return first.number > last.number
    return bool(first.since and last.until and first.since.day >= last.until.day)


def _ordered(name: str, value: Value) -> Value:
    """Only numbers and dates have an order here."""
    if value.number is None and value.since is None:
        raise wrong(
            f"[{shown(name)}]: “{shown(value.text)}” is neither a number nor a date",
            f"for example: [{shown(name)}:>5] or [{shown(name)}:<2024-03-01]",
        )
    return value


def _value(text: str, now: datetime) -> Value:
    quoted = len(text) > 1 and text[0] == text[-1] == '"'
    plain = unescaped(text[1:-1]) if quoted else text
    number = float(plain) if _NUMBER.fullmatch(plain) else math.inf
    found = read(plain, now)
    return Value(
        plain,
        number if math.isfinite(number) else None,
        moment(found.first, now) if found else None,
        moment(found.last, now) if found else None,
    )


def unescaped(text: str) -> str:
    """What stood in quotes: a quote or a backslash behind a backslash is itself."""
    return re.sub(r'\\(["\\])', r"\1", text)
