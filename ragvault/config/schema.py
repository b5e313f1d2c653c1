"""What a table of settings is, which settings there are, and the errors about unusable ones.

A table is a struct (settings.py and ranking.py declare them all). Beside its fields it declares:

    vault       may a vault's own .ragvault.toml set this table? No, unless the table says yes
    closed      why it may not; completes "because"
    user_only   on one key: never from a vault, and why
    checked     on one key: which values fit, in words, and a check that the type cannot express
    rules       pairs of keys of this table that must be in order

`settings` and `tables` list what is declared, so a new field is known here at once. An error shows
a name as its source spells it, so that the fix can be typed where the mistake was made.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Protocol, get_args, get_origin

from msgspec import Meta, Struct
from msgspec.structs import fields

from ragvault.config import toml
from ragvault.config.toml import KeyPath, literal
from ragvault.errors import ConfigError

# Every number has bounds within which an index is made and a search ends: a vault may come from
# anyone, and a search may ask a process that others use, too.
Rule = tuple[str, Literal["<", "<="], str]


def whole(least: int, most: int) -> Meta:
    """The bounds of a whole number."""
    return Meta(ge=least, le=most, description=f"a whole number from {least:,} to {most:,}")


Count = Annotated[int, whole(0, 1000)]
Positive = Annotated[int, whole(1, 1000)]
Characters = Annotated[int, whole(100, 20_000)]
Threads = Annotated[int, whole(1, 64)]
Size = Annotated[int, whole(1, 10**9)]
Seconds = Annotated[float, Meta(gt=0, le=3600, description="seconds: above 0, at most 3,600")]
LegSeconds = Annotated[float, Meta(gt=0, le=60, description="seconds: above 0, at most 60")]
Share = Annotated[float, Meta(gt=0, le=1, description="a share: above 0, at most 1")]
Above0 = Annotated[float, Meta(gt=0, le=1e9, description="a number above 0, at most 1e9")]
AtLeast0 = Annotated[float, Meta(ge=0, le=1e6, description="a number from 0 to 1e6")]
From0To1 = Annotated[float, Meta(ge=0, le=1, description="a number from 0 to 1")]
Factor = Annotated[float, Meta(gt=0, le=1e6, description="a factor above 0, at most 1e6")]

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


Duration = Annotated[
    str,
    Meta(
        description='"off", or a time of at most a day: "500ms", "0.5s", "10m", "1h"',
        extra={"fits": lambda text: duration_seconds(text) is not None},
    ),
]

How = Literal["multiply", "add"]
DateOf = Literal["note", "modified"]


def user_only(reason: str) -> Meta:
    """Mark one key of a table that vaults may otherwise set; `reason` completes "because"."""
    return Meta(extra={"user_only": reason})


def checked(what: str, fits: Callable[[Any], bool]) -> Meta:
    """Describe one key; `fits` checks a value that has the right type."""
    return Meta(description=what, extra={"fits": fits})


class Table(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of settings: unknown keys are errors, never silence.

    A vault may have been written by someone else, so what its file may set is an allow-list:
    nothing that names a path, a command, an address or a model, or that records what is read.
    """

    vault: ClassVar[bool] = False
    closed: ClassVar[str] = "it is not about how notes are read or searched"
    rules: ClassVar[tuple[Rule, ...]] = ()


class Open(Table, frozen=True):
    """A table that a vault's own file may set: how its notes rank is its own affair."""

    vault: ClassVar[bool] = True


# --- Which settings there are ---

FileKind = Literal["user file", "tuned file", "vault file"]
Kind = Literal["user file", "tuned file", "vault file", "environment", "flag"]

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
def settings(root: type[Table] | None = None) -> dict[KeyPath, Setting]:
    """Every key by its path, in the order of the structs; without a root, of Config."""
    found = {}
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


def _meant(path: KeyPath, known: Iterable[KeyPath]) -> KeyPath | None:
    """The known path that was probably meant: near in spelling, or right in another table."""
    from ragvault.text.spelling import nearest  # only a mistake needs it

    dotted = {".".join(each): each for each in known}
    alike = [each for each in dotted.values() if each[-1:] == path[-1:]]
    if len(alike) == 1:
        return alike[0]
    return next((dotted[near] for near in nearest(".".join(path), dotted, least=0.7)), None)


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
    """Whether a value passes the checks declared beside its type."""
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


# --- Sources, and what is wrong with what they say ---

SHOWN = 60  # characters of a value: enough to recognise it, and the line stays one line


@dataclass(frozen=True, slots=True)
class Source:
    """One place. `entries` are values with the path they are for: a whole file is one, at ().

    `place` names one key of it: `config.toml:12`, `RAGVAULT_CHUNK__OVERLAP`.
    """

    kind: Kind
    entries: Sequence[tuple[KeyPath, Any]]
    place: Callable[[KeyPath], str]

    def origin(self, path: KeyPath) -> str:
        return "flag" if self.kind == "flag" else f"{self.kind} {self.place(path)}"


class CombinedConfigError(ConfigError):
    """Several settings that cannot be used; `problems` has each one with its own cure."""

    def __init__(self, problems: Sequence[ConfigError]) -> None:
        super().__init__(
            "; ".join(str(each) for each in problems),
            fix="; ".join(each.fix for each in problems if each.fix),
        )
        self.problems = tuple(problems)


class Placed(Protocol):
    """A value in effect: `origin` says who set it, `place` is empty for a default."""

    @property
    def value(self) -> Any: ...
    @property
    def origin(self) -> str: ...
    @property
    def place(self) -> str: ...


def combined_error(problems: Sequence[ConfigError], more: int = 0) -> ConfigError:
    """One error for all of them; `more` counts those that are not listed."""
    if more:
        rest = ConfigError(f"{more:,} more problems are not shown", fix="first fix those above")
        problems = [*problems, rest]
    return problems[0] if len(problems) == 1 else CombinedConfigError(problems)


def unknown(source: Source, path: KeyPath, value: Any) -> ConfigError:
    """A key or a table that does not exist."""
    if isinstance(value, Mapping):
        what, known = f"table [{toml.key(*path)}]", list(tables())[1:]
    else:
        what, known = f"setting {toml.key(*path)}", list(settings())
    meant = _meant(path, known)
    return ConfigError(
        f"{source.place(path)}: there is no {what}",
        fix=f"did you mean {_spelt(source.kind, meant)}?" if meant else _choice(path[:-1]),
    )


def not_a_table(source: Source, path: KeyPath, value: Any) -> ConfigError:
    """A value where a table should be; `[[chunk]]` is such a value."""
    name = toml.key(*path)
    keys = [each for each in settings().values() if each.path[: len(path)] == path]
    same = (replace(each, default=value) for each in keys if type(each.default) is type(value))
    key = next(same, keys[0])
    return ConfigError(
        f"{source.place(path)}: {name} is a table, not {_shown(value)}",
        fix=f"set one of its keys, for example: {_assigned(source.kind, key)}",
    )


def unfit(source: Source, setting: Setting, value: Any, said: str) -> ConfigError:
    """A value of the wrong type or out of range; `said` is the message of msgspec."""
    inside = f" ({said})" if " - at " in said else ""  # only msgspec names the item of a list
    form = wanted(setting.type)
    return ConfigError(
        f"{source.place(setting.path)}: {setting.key} = {_shown(value)} is not {form}{inside}",
        fix=f"the default is: {_assigned(source.kind, setting)}",
    )


def not_from_a_vault(source: Source, setting: Setting, user_file: Path) -> ConfigError:
    """A vault's file reaching for what only the user may decide."""
    return ConfigError(
        f"{source.place(setting.path)}: a vault may not set {setting.key}, "
        f"because {setting.refusal}",
        fix=f"remove it there; if you want it, set it in {user_file}",
    )


def contradiction(
    table: KeyPath, low: str, sign: str, high: str, pair: tuple[Placed, Placed]
) -> ConfigError:
    """Two settings that are fine alone and impossible together."""
    names = toml.key(*table, low), toml.key(*table, high)
    blamed = pair[0] if pair[0].place else pair[1]
    words = [
        f"{name} = {_shown(each.value)}" + ("" if each is blamed else f" ({each.origin})")
        for name, each in zip(names, pair, strict=True)
    ]
    verb = "is more than" if sign == "<=" else "is not less than"
    return ConfigError(
        f"{blamed.place}: {words[0]} {verb} {words[1]}", fix=f"lower {names[0]} or raise {names[1]}"
    )


def _choice(table: KeyPath) -> str:
    """What there is instead, where no name is near."""
    keys = [path[-1] for path in settings() if path[:-1] == table]
    if keys:
        return f"the keys of [{toml.key(*table)}] are: {', '.join(keys)}"
    names = [path[0] for path in tables() if len(path) == 1]
    return f"the tables are: {', '.join(names)}; ragvault config show lists every setting"


def _spelt(kind: Kind, path: KeyPath) -> str:
    """A name as one would type it into this source."""
    setting = settings().get(path)
    if kind == "environment" and setting:
        return setting.variable
    return toml.key(*path) if setting else f"[{toml.key(*path)}]"


def _assigned(kind: Kind, setting: Setting) -> str:
    """A setting with its default, as one would type it into this source."""
    value = toml.literal(setting.default)
    if kind == "environment":
        return f"{setting.variable}={shlex.quote(value)}"
    return (
        f"--set {setting.key}={shlex.quote(value)}"
        if kind == "flag"
        else f"{setting.key} = {value}"
    )


def _shown(value: Any) -> str:
    text = toml.literal(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
