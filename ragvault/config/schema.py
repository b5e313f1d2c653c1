"""What a table of settings is, which settings there are, and how TOML is read and written.

A table is a struct (settings.py declares them all). Beside its fields it declares:

    vault       may a vault's own .ragvault.toml set this table? No, unless the table says yes
    closed      why it may not; completes "because"
    user_only   on one key: never from a vault, and why
    rules       pairs of keys of this table that must be in order

`settings` and `tables` list what is declared, so a new field is known here at once.
"""

from __future__ import annotations

import operator
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin

from msgspec import Meta, Struct
from msgspec.structs import fields

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KeyPath = tuple[str, ...]

# Every number has bounds within which an index is made and a search ends: a vault may come from
# anyone, and a search may ask a process that others use, too.
Rule = tuple[str, Literal["<", "<="], str]
_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {"<": operator.lt, "<=": operator.le}


def whole(least: int, most: int) -> Meta:
    """The bounds of a whole number."""
    return Meta(ge=least, le=most, description=f"a whole number from {least:,} to {most:,}")


Count = Annotated[int, whole(0, 1000)]
Positive = Annotated[int, whole(1, 1000)]
Characters = Annotated[int, whole(100, 20_000)]
Size = Annotated[int, whole(1, 10**9)]
Seconds = Annotated[float, Meta(gt=0, le=3600, description="seconds: above 0, at most 3,600")]
LegSeconds = Annotated[float, Meta(gt=0, le=60, description="seconds: above 0, at most 60")]
Share = Annotated[float, Meta(gt=0, le=1, description="a share: above 0, at most 1")]
Above0 = Annotated[float, Meta(gt=0, le=1e9, description="a number above 0, at most 1e9")]
AtLeast0 = Annotated[float, Meta(ge=0, le=1e6, description="a number from 0 to 1e6")]
From0To1 = Annotated[float, Meta(ge=0, le=1, description="a number from 0 to 1")]
Factor = Annotated[float, Meta(gt=0, le=1e6, description="a factor above 0, at most 1e6")]
DateOf = Literal["note", "modified"]

# "10m", "0.5s": with a unit, so that nobody has to guess it.
_DURATION = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)(ms|s|m|h)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
A_DAY = 86_400.0  # seconds: the longest duration


def duration_seconds(text: str) -> float | None:
    """The seconds of a duration such as "10m", "0.5s" or "off", which is 0; None if it is none."""
    if text == "off":
        return 0.0
    found = _DURATION.fullmatch(text)
    seconds = float(found[1]) * _UNITS[found[2]] if found else 0.0
    return seconds if 0 < seconds <= A_DAY else None


def checked(what: str, fits: Callable[[Any], bool]) -> Meta:
    """Describe one key; `fits` checks a value that has the right type."""
    return Meta(description=what, extra={"fits": fits})


Duration = Annotated[
    str,
    checked(
        '"off", or a time of at most a day: "500ms", "0.5s", "10m", "1h"',
        lambda text: duration_seconds(text) is not None,
    ),
]


def user_only(reason: str) -> Meta:
    """Mark one key of a table that vaults may otherwise set; `reason` completes "because"."""
    return Meta(extra={"user_only": reason})


class Table(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of settings: unknown keys are errors, never silence.

    A vault may have been written by someone else, so what its file may set is an allow-list:
    nothing that names a path, a command, an address or a model, or that records what is read.
    """

    vault: ClassVar[bool] = False
    closed: ClassVar[str] = "it is not about how notes are read or searched"
    rules: ClassVar[tuple[Rule, ...]] = ()

    def __post_init__(self) -> None:
        """Raises ValueError with the name of a key, and what is wrong where one contradicts it."""
        for name, fits in _checks(type(self)):
            if not fits(getattr(self, name)):
                raise ValueError(name)
        for low, sign, high in self.rules:
            lower, higher = getattr(self, low), getattr(self, high)
            if not _ORDERS[sign](lower, higher):
                verb = "is more than" if sign == "<=" else "is not less than"
                raise ValueError(low, high, f"{low} = {lower} {verb} {high} = {higher}")


class Open(Table, frozen=True):
    """A table that a vault's own file may set: how its notes rank is its own affair."""

    vault: ClassVar[bool] = True


# --- Which settings there are ---


@dataclass(frozen=True, slots=True)
class Setting:
    """One key. `refusal` says why a vault's file may not set it; empty when it may."""

    path: KeyPath
    type: Any
    default: Any
    refusal: str

    @property
    def key(self) -> str:
        return ".".join(self.path)

    @property
    def variable(self) -> str:
        return "RAGVAULT_" + "__".join(self.path).upper()


@cache
def settings(root: type[Table] | None = None) -> dict[KeyPath, Setting]:
    """Every setting by its path, in the order of the tables."""
    found: dict[KeyPath, Setting] = {}
    for path, table in tables(root).items():
        for each in fields(table):
            if not _is_table(each.type):
                here = (*path, each.name)
                default = getattr(table(), each.name)
                found[here] = Setting(here, each.type, default, _refusal(table, each.type))
    return found


@cache
def tables(root: type[Table] | None = None) -> dict[KeyPath, type[Table]]:
    """Every table by its path, the root being the empty one."""
    from ragvault.config.settings import Config  # imports this file

    top = root or Config
    found: dict[KeyPath, type[Table]] = {(): top}
    for each in fields(top):
        if _is_table(each.type):
            below = tables(each.type)
            found |= {(each.name, *path): table for path, table in below.items()}
    return found


def is_text(type_: Any) -> bool:
    """Whether values of this type are texts, so that typed text needs no quotes."""
    bare = _bare(type_)
    return bare is str or get_origin(bare) is Literal


_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text in quotes"}
_ITEMS = {int: "whole numbers", float: "numbers", str: "texts in quotes"}


def wanted(type_: Any) -> str:
    """What a value of this type looks like, for the sentence `X is not …`."""
    for meta in _metas(type_):
        if meta.description:
            return meta.description
    bare = _bare(type_)
    if get_origin(bare) is Literal:
        return "one of " + _names(bare)
    if get_origin(bare) is list:
        item = _bare(get_args(bare)[0])
        named = get_origin(item) is Literal
        return "a list of " + (f"any of {_names(item)}" if named else _ITEMS.get(item, "tables"))
    return _WORDS.get(bare, f"of the type {bare}")


@cache
def _checks(table: type[Table]) -> tuple[tuple[str, Callable[[Any], bool]], ...]:
    return tuple(
        (each.name, meta.extra["fits"])
        for each in fields(table)
        for meta in _metas(each.type)
        if meta.extra and "fits" in meta.extra
    )


def _names(type_: Any) -> str:
    return ", ".join(map(literal, get_args(type_)))


def _refusal(table: type[Table], type_: Any) -> str:
    for meta in _metas(type_):
        if meta.extra and "user_only" in meta.extra:
            return str(meta.extra["user_only"])
    return "" if table.vault else table.closed


def _metas(type_: Any) -> list[Meta]:
    parts = get_args(type_)[1:] if get_origin(type_) is Annotated else ()
    return [part for part in parts if isinstance(part, Meta)]


def _bare(type_: Any) -> Any:
    return get_args(type_)[0] if get_origin(type_) is Annotated else type_


def _is_table(type_: Any) -> bool:
    return isinstance(type_, type) and issubclass(type_, Table)


# --- TOML ---

MAX_PARTS = 20  # of a dotted key; the deepest setting has four
# The parser takes time with the square of the number of parts: 44 s for a vault's file.
_DEEP_KEY = re.compile(
    r"(?:^|[\[{,])[ \t]*(?:(?:[\w-]+|\"[^\"\n]*\"|'[^'\n]*')[ \t]*\.[ \t]*)"
    rf"{{{MAX_PARTS}}}",
    re.M,
)
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text. Raises ValueError, and nothing else."""
    if _DEEP_KEY.search(text):
        raise ValueError(f"a key has more than {MAX_PARTS} parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def literal(value: Any) -> str:
    """One value as TOML on one line, with every character that does not print escaped."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + "".join(map(_escaped, value)) + '"'
    if isinstance(value, Mapping):
        pairs = (f"{dotted(str(name))} = {literal(item)}" for name, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(literal, value)) + "]"
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return str(value)


def dotted(*path: str) -> str:
    """A dotted key, quoted where it must be."""
    return ".".join(part if _BARE_KEY.fullmatch(part) else literal(part) for part in path)


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"
