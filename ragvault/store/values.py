"""Values as the tables store them, and back without loss.

lists           JSON
properties      JSON; dates, sets and odd keys are wrapped as {"!": type, "is": …}
text            text; bytes where it has half of a surrogate pair (a broken file name, a
                careless escape in YAML), which SQLite refuses
a note's text   zlib
"""

from __future__ import annotations

import json
import math
import re
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime, timezone
from functools import lru_cache
from typing import Any

from ragvault.text.dates import in_calendar
from ragvault.text.fold import fold_case

Text = str | bytes
Field = tuple[Text | None, float | None, float | None]  # text, number, date

INT64 = 2**63 - 1
ZLIB_LEVEL = 4  # notes shrink to 1/2.05; 1/1.97 at level 1, 1/2.06 at level 6
DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?)?")


def to_sql(text: str) -> Text:
    """A string in a form that SQLite accepts."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def from_sql(value: Text) -> str:
    """The string that `to_sql` was given."""
    return value if isinstance(value, str) else value.decode("utf-8", "surrogatepass")


def clamped(number: int) -> int:
    """A number that SQLite can hold: file systems may claim times centuries away."""
    return max(-INT64, min(INT64, number))


def date_to_sql(at: float | None) -> float:
    """A date, or before all dates where there is none: the columns are sorted and compared."""
    return -math.inf if at is None else at


def date_from_sql(at: float) -> float | None:
    """The date that `date_to_sql` was given."""
    return in_calendar(at)


def compress(whole: str) -> bytes:
    """A note's text, compressed."""
    return zlib.compress(whole.encode("utf-8", "surrogatepass"), ZLIB_LEVEL)


def decompress(blob: bytes) -> str:
    """The text that `compress` was given."""
    return zlib.decompress(blob).decode("utf-8", "surrogatepass")


@lru_cache(maxsize=4096)  # the passages of a section share their headings
def to_json(parts: tuple[str, ...]) -> str:
    """A tuple of strings as JSON; `from_json` gives it back."""
    return json.dumps(parts) if parts else "[]"


@lru_cache(maxsize=4096)
def from_json(stored: str) -> tuple[str, ...]:
    """The tuple that `to_json` was given."""
    return tuple(json.loads(stored))


def to_spaced(names: Iterable[str]) -> Text:
    """Names without spaces as one text, with spaces between them."""
    return to_sql(" ".join(sorted(names)))


def from_spaced(stored: Text) -> tuple[str, ...]:
    """The names that `to_spaced` was given, sorted."""
    return tuple(from_sql(stored).split())


def value_to_json(value: Any) -> str:
    """Any value that YAML can give, as JSON."""
    return json.dumps(_wrapped(value))


def value_from_json(stored: str) -> Any:
    """The value that `value_to_json` was given."""
    return json.loads(stored, object_hook=_unwrapped)


def property_rows(properties: Mapping[str, Any]) -> Iterator[tuple[Text, Field]]:
    """Properties as filters compare them: folded, one row a value."""
    for name, value in properties.items():
        key = to_sql(fold_case(str(name)))
        for single in _singles(value):
            yield key, _field(single)


def _wrapped(value: Any) -> Any:
    if value is None or isinstance(value, (bool, float, str)):
        return value
    if isinstance(value, int):
        # Beyond 64 bits Python may refuse to spell a number in decimal.
        return value if abs(value) <= INT64 else {"!": "int", "is": hex(value)}
    if isinstance(value, list):
        return [_wrapped(part) for part in value]
    if isinstance(value, Mapping):
        return _wrapped_mapping(value)
    return _wrapped_other(value)


def _wrapped_mapping(value: Mapping[Any, Any]) -> dict[str, Any]:
    if "!" not in value and all(type(key) is str for key in value):
        return {key: _wrapped(part) for key, part in value.items()}
    return {"!": "dict", "is": [[_wrapped(key), _wrapped(part)] for key, part in value.items()]}


def _wrapped_other(value: Any) -> Any:
    if isinstance(value, (datetime, date)):  # a datetime is also a date
        return {"!": type(value).__name__, "is": value.isoformat()}
    if isinstance(value, (tuple, set, frozenset)):
        parts = value if isinstance(value, tuple) else sorted(value, key=repr)
        return {"!": type(value).__name__, "is": [_wrapped(part) for part in parts]}
    if isinstance(value, bytes):
        return {"!": "bytes", "is": b64encode(value).decode()}
    return str(value)


_UNWRAP: dict[str, Callable[[Any], Any]] = {
    "int": lambda value: int(value, 16),
    "dict": lambda pairs: {_hashable(key): part for key, part in pairs},
    "date": date.fromisoformat,
    "datetime": datetime.fromisoformat,
    "tuple": tuple,
    "set": lambda parts: {_hashable(part) for part in parts},
    "frozenset": frozenset,
    "bytes": b64decode,
}


def _unwrapped(stored: dict[str, Any]) -> Any:
    return _UNWRAP[stored["!"]](stored["is"]) if "!" in stored else stored


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _singles(value: Any) -> Iterator[Any]:
    """The values of a list one by one; None for an empty list."""
    if not isinstance(value, (list, tuple, set, frozenset)):
        yield value
    elif not value:
        yield None
    else:
        for part in value:
            yield from _singles(part)


def _field(value: Any) -> Field:
    if value is None or value == "":
        return None, None, None
    if isinstance(value, bool):
        return str(value).lower(), float(value), None
    if isinstance(value, (int, float)):
        return json.dumps(_wrapped(value)), float(value) if abs(value) <= INT64 else None, None
    if isinstance(value, date):
        return value.isoformat(), None, _timestamp(value.isoformat())
    if isinstance(value, str):
        at = _timestamp(value) if DATE.fullmatch(value) else None
        return to_sql(fold_case(value)), None, at
    return to_sql(fold_case(value_to_json(value))), None, None


def _timestamp(iso: str) -> float | None:
    """Seconds since 1970 of an ISO date; UTC where it names no zone."""
    try:
        at = datetime.fromisoformat(iso)
        return in_calendar((at if at.tzinfo else at.replace(tzinfo=timezone.utc)).timestamp())
    except (ValueError, OverflowError):
        return None
