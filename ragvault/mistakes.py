"""The sentences about settings that cannot be used: what, where, and what to write instead.

Each function makes one ConfigError; none decides whether something is a mistake. A name is always
shown as its source spells it, so that the cure can be typed where the mistake was made.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from ragvault import schema, toml
from ragvault.errors import ConfigError
from ragvault.sources import Kind, Source
from ragvault.toml import KeyPath

SHOWN = 60  # characters of a value: enough to recognise it, and the line stays one line


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


def together(problems: Sequence[ConfigError]) -> ConfigError:
    """One error for all of them."""
    return problems[0] if len(problems) == 1 else CombinedConfigError(problems)


def unknown(source: Source, path: KeyPath, value: Any) -> ConfigError:
    """A key or a table that does not exist."""
    if isinstance(value, Mapping):
        what, known = f"table [{toml.key(*path)}]", list(schema.tables())[1:]
    else:
        what, known = f"setting {toml.key(*path)}", list(schema.settings())
    meant = schema.nearest(path, known)
    return ConfigError(
        f"{source.place(path)}: there is no {what}",
        fix=f"did you mean {_spelt(source.kind, meant)}?" if meant else _choice(path[:-1]),
    )


def not_a_table(source: Source, path: KeyPath, value: Any) -> ConfigError:
    """A value where a table should be; `[[chunk]]` is such a value."""
    name = toml.key(*path)
    key = next(each for each in schema.settings().values() if each.path[: len(path)] == path)
    return ConfigError(
        f"{source.place(path)}: {name} is a table, not {_shown(value)}",
        fix=f"set one of its keys, for example: {_assigned(source.kind, key)}",
    )


def unfit(source: Source, setting: schema.Setting, value: Any, said: str) -> ConfigError:
    """A value of the wrong type or out of range; `said` is msgspec's word on it."""
    # Which item it was, or that a count is beyond all counts: what `wanted` does not say.
    inside = f" ({said})" if " - at " in said or "`int` <=" in said else ""
    wanted = schema.wanted(setting.type)
    return ConfigError(
        f"{source.place(setting.path)}: {setting.key} = {_shown(value)} is not {wanted}{inside}",
        fix=f"the default is: {_assigned(source.kind, setting)}",
    )


def not_from_a_vault(source: Source, setting: schema.Setting, user_file: Path) -> ConfigError:
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
    keys = [path[-1] for path in schema.settings() if path[:-1] == table]
    if keys:
        return f"the keys of [{toml.key(*table)}] are: {', '.join(keys)}"
    names = [path[0] for path in schema.tables() if len(path) == 1]
    return f"the tables are: {', '.join(names)}; ragvault config show lists every setting"


def _spelt(kind: Kind, path: KeyPath) -> str:
    """A name as one would type it into this source."""
    setting = schema.settings().get(path)
    if kind == "environment" and setting:
        return setting.variable
    return toml.key(*path) if setting else f"[{toml.key(*path)}]"


def _assigned(kind: Kind, setting: schema.Setting) -> str:
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
