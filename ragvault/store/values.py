"""Values: what a note holds, in the forms SQLite keeps, and back without a loss.

Lists are JSON; so are properties, whose dates, sets and odd keys JSON does not know and which are
therefore wrapped as {"!": type, "is": …}. Text is text, except where it holds half of a surrogate
pair (a broken file name, a careless escape in YAML), which SQLite refuses: that is kept as bytes.
"""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime, timezone
from functools import lru_cache
from typing import Any

from ragvault.store.keys import fold

Text = str | bytes
Field = tuple[Text | None, float | None, float | None]  # text, number, date

INT64 = 2**63 - 1
ZLIB_LEVEL = 4  # notes shrink to 1/2.05; 1/1.97 at level 1, 1/2.06 at level 6
DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?)?")


def sql(text: str) -> Text:
    """A string as SQLite takes it."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def text(value: Text) -> str:
    """The string `sql` was given."""
    return value if isinstance(value, str) else value.decode("utf-8", "surrogatepass")


def int64(number: int) -> int:
    """A number SQLite can hold: file systems may claim times some centuries away."""
    return max(-INT64, min(INT64, number))


def pack(whole: str) -> bytes:
    """A note's text, compressed."""
    return zlib.compress(whole.encode("utf-8", "surrogatepass"), ZLIB_LEVEL)


def unpack(blob: bytes) -> str:
    """The text `pack` was given."""
    return zlib.decompress(blob).decode("utf-8", "surrogatepass")


@lru_cache(maxsize=4096)  # the passages of a section share their headings
def words(parts: tuple[str, ...]) -> str:
    """A tuple of strings as JSON; `unwords` gives it back."""
    return json.dumps(parts) if parts else "[]"


@lru_cache(maxsize=4096)
def unwords(stored: str) -> tuple[str, ...]:
    """The tuple `words` was given."""
    return tuple(json.loads(stored))


def spaced(names: Iterable[str]) -> Text:
    """Names that have no space in them as one text, which is the name itself where there is one."""
    return sql(" ".join(sorted(names)))


def unspaced(stored: Text) -> tuple[str, ...]:
    """The names `spaced` was given."""
    return tuple(text(stored).split())


def dump(value: Any) -> str:
    """Any value YAML can give, as JSON."""
    return json.dumps(_wrapped(value))


def load(stored: str) -> Any:
    """The value `dump` was given."""
    return json.loads(stored, object_hook=_unwrapped)


def fields(properties: Mapping[str, Any]) -> Iterator[tuple[Text, Field]]:
    """Properties as filters ask for them: folded, one row a value."""
    for name, value in properties.items():
        key = sql(fold(str(name)))
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
    if isinstance(value, (datetime, date)):  # a datetime is a date too: the name tells them apart
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
    """The values of a list one by one; None for an empty one, which is there and says nothing."""
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
        return sql(fold(value)), None, at
    return sql(fold(dump(value))), None, None


def _timestamp(iso: str) -> float | None:
    """Seconds since 1970 of an ISO date; one without a zone is taken as UTC."""
    try:
        at = datetime.fromisoformat(iso)
        return (at if at.tzinfo else at.replace(tzinfo=timezone.utc)).timestamp()
    except (ValueError, OverflowError):
        return None
