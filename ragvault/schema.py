"""What config.py declares, asked by name.

    settings   every key: its type, its default, and why a vault may not set it
    tables     every table: its struct
    nearest    the name somebody probably meant
    wanted     a type in the words of a person
    fits       whether a value of the right type is one that the type cannot rule out

Read from the structs themselves, so that a new setting is known here by being declared there.
Knows no file and no value but the defaults.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_origin

from msgspec import Meta
from msgspec.structs import fields

from ragvault.config import Config, Table
from ragvault.toml import KeyPath, literal

_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text in quotes"}
_ITEMS = {int: "whole numbers", float: "numbers", str: "texts in quotes"}


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
        """The environment variable that sets it."""
        return "RAGVAULT_" + "__".join(self.path).upper()


@cache
def settings(root: type[Table] = Config) -> dict[KeyPath, Setting]:
    """Every key by its path, in the order of the structs."""
    found = {}
    for path, table in tables(root).items():
        for each in fields(table):
            if not _is_table(each.type):
                here = (*path, each.name)
                default = getattr(table(), each.name)
                found[here] = Setting(here, each.type, default, _refusal(table, each.type))
    return found


@cache
def tables(root: type[Table] = Config) -> dict[KeyPath, type[Table]]:
    """Every table by its path, the root being the empty one."""
    found: dict[KeyPath, type[Table]] = {(): root}
    for each in fields(root):
        if _is_table(each.type):
            below = tables(each.type)
            found |= {(each.name, *path): table for path, table in below.items()}
    return found


def nearest(path: KeyPath, known: Iterable[KeyPath]) -> KeyPath | None:
    """The known path that was probably meant: near in spelling, or right in another table."""
    # Imported here: only a mistake needs it.
    from difflib import get_close_matches

    dotted = {".".join(each): each for each in known}
    alike = [each for each in dotted.values() if each[-1:] == path[-1:]]
    if len(alike) == 1:
        return alike[0]
    match = get_close_matches(".".join(path).lower(), dotted, n=1, cutoff=0.7)
    return dotted[match[0]] if match else None


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


def fits(value: Any, type_: Any) -> bool:
    """What was declared beside the type (config_table.told) holds for this value."""
    asked = [meta.extra for meta in _metas(type_) if meta.extra and "fits" in meta.extra]
    return all(extra["fits"](value) for extra in asked)


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
