"""Frontmatter: the YAML block a note may begin with, and the fields we know in it.

YAML is read with types kept and without surprises: `yes` is a word, `12:30` is text, a date is a
date. Nothing in it is ever run, and nothing in it can cost the note: broken YAML leaves the text
where it is and a warning beside it.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_CHARS = 64_000  # longer than this is a file that begins with a rule, not frontmatter
MAX_VALUES = 10_000  # YAML aliases can name one list a billion times

_OPEN = re.compile(r"---[ \t]*\n")
_KEY = re.compile(r"^[ \t]*(?:\"[^\"\n]+\"|'[^'\n]+'|[^\s#:][^:\n]*)[ \t]*:(?:[ \t]|$)", re.M)
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
        return Front({}, body, (f"frontmatter was not read: {problem}",))


def _values(source: str) -> dict[str, Any]:
    loaded = _load(source)
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise ValueError("it is not a list of `key: value` lines")
    budget = [MAX_VALUES]
    return {str(key): _plain(value, budget) for key, value in loaded.items()}


def _load(source: str) -> Any:
    import yaml

    try:
        return yaml.load(source, Loader=_loader())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 2}: " if mark else ""
        raise ValueError(f"{where}{error.problem or error.context}") from error
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError) as error:
        raise ValueError(str(error).splitlines()[0] or "it is nested too deeply") from error


def _plain(value: Any, budget: list[int], depth: int = 0) -> Any:
    """The value as text, numbers, dates, lists and mappings alone, within the budget."""
    budget[0] -= 1
    if budget[0] < 0 or depth > 20:
        raise ValueError("it holds too many values")
    if isinstance(value, dict):
        return {str(k): _plain(v, budget, depth + 1) for k, v in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [_plain(v, budget, depth + 1) for v in value]
    if value is None or isinstance(value, (str, int, float, bool, dt.date, dt.datetime)):
        return value
    return str(value)


_LOADER: Any = None


def _loader() -> Any:
    """A safe YAML loader that reads scalars as YAML 1.2 does, which is what note-takers expect."""
    global _LOADER
    if _LOADER is None:
        import yaml

        base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        _LOADER = type("NoteLoader", (base,), {"yaml_implicit_resolvers": {}})
        for tag, pattern, first in _SCALARS:
            _LOADER.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), first)
        # A note may hold 2024-02-31: then the text is the value, and the note is not lost.
        _LOADER.add_constructor("tag:yaml.org,2002:timestamp", _timestamp)
    return _LOADER


_SCALARS: tuple[tuple[str, str, list[str]], ...] = (
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    # A leading zero is a telephone number or a postcode, and eighteen digits are enough to count.
    ("int", r"^[-+]?(?:0|[1-9][0-9]{0,17})$", list("-+0123456789")),
    (
        "float",
        r"^(?:[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf)|\.(?:nan|NaN))$",
        list("-+0123456789."),
    ),
    ("merge", r"^<<$", ["<"]),
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    (
        "timestamp",
        r"^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
        r"(?:(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?(?:\.[0-9]*)?"
        r"(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::?[0-9]{2})?))?)?$",
        list("0123456789"),
    ),
)

_TIMESTAMP = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})"
    r"(?:(?:[Tt]|[ \t]+)(\d{1,2}):(\d{2})(?::(\d{2}))?(?:\.(\d*))?"
    r"[ \t]*(Z|[-+]\d{1,2}(?::?\d{2})?)?)?$"
)


def _timestamp(loader: Any, node: Any) -> Any:
    raw = str(node.value)
    found = _TIMESTAMP.match(raw)
    if not found:
        return raw
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    try:
        if hour is None:
            return dt.date(int(year), int(month), int(day))
        micro = int((fraction or "").ljust(6, "0")[:6])
        numbers = (int(year), int(month), int(day), int(hour), int(minute), int(second or 0))
        return dt.datetime(*numbers, micro, tzinfo=_zone(zone))
    except ValueError:
        return raw


def _zone(zone: str | None) -> dt.timezone | None:
    if not zone:
        return None
    if zone == "Z":
        return dt.timezone.utc
    digits = zone[1:].replace(":", "").ljust(2, "0")
    hours, minutes = (digits[:-2] or "0", digits[-2:]) if len(digits) > 2 else (digits, "0")
    offset = dt.timedelta(hours=int(hours), minutes=int(minutes))
    return dt.timezone(-offset if zone[0] == "-" else offset)


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
