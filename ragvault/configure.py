"""Settings in effect, and where each one came from.

    flag  >  environment  >  <vault>/.ragvault.toml  >  tuned.toml  >  config.toml  >  default

config.toml is the user's, for every vault; tuned.toml is what `ragvault tune` found for one vault
and profile, beside the index.

`load` reads the sources, lays them over each other key by key, and returns a valid Config with
the origin of every key, or raises one ConfigError that holds every problem found. msgspec
and schema decide whether a value fits; this file only says which key it was and what would fit. A
setting whose type is a list or a mapping is one value: a higher source replaces it whole.

config.py declares the settings, schema.py names them, sources.py reads the places, and
mistakes.py has the sentences.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from ragvault import folders, mistakes, schema, toml
from ragvault.config import Config
from ragvault.errors import ConfigError
from ragvault.sources import (
    VAULT_FILE,
    FileKind,
    Raw,
    Source,
    from_environment,
    from_file,
    from_flags,
)
from ragvault.toml import KeyPath

_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {"<": operator.lt, "<=": operator.le}


@dataclass(frozen=True, slots=True)
class Loaded:
    """A valid Config. `origin` has every dotted key; `files` are those that were read."""

    config: Config
    origin: Mapping[str, str]
    files: tuple[Path, ...] = ()


def load(
    vault: Path | None = None,
    *,
    tuned: Path | None = None,
    flags: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
) -> Loaded:
    """The settings for a vault, or for no vault in particular. Raises ConfigError only."""
    environ = os.environ if environ is None else environ
    files = list(_files(vault, tuned, environ))
    sources = [
        *(_attempt(from_file, path, kind) for path, kind in files),
        _attempt(from_environment, environ),
        _attempt(from_flags, flags),
    ]
    read = tuple(path for path, _ in files)
    return lay(sources, files=read, user_file=folders.user_file(environ))


def check_file(path: Path, *, environ: Mapping[str, str] | None = None) -> Loaded:
    """One file over the defaults and nothing else; a .ragvault.toml is held to a vault's limits."""
    kind: FileKind = "vault file" if path.name == VAULT_FILE else "user file"
    source = _attempt(from_file, path, kind)
    return lay([source], files=(path,), user_file=folders.user_file(environ))


def lay(
    sources: Iterable[Source | ConfigError],
    *,
    files: tuple[Path, ...] = (),
    user_file: Path | None = None,
) -> Loaded:
    """Lay sources over the defaults, each over those before it.

    An error stands for a source that could not be read: the others may hold mistakes as well, and
    all of them are told at once. `user_file` is where a cure sends what a vault may not set.
    """
    sheet = _Sheet(user_file or folders.user_file())
    for source in sources:
        if isinstance(source, ConfigError):
            sheet.problems.append(source)
        else:
            sheet.lay(source)
    sheet.check_rules()
    if sheet.problems:
        raise mistakes.together(sheet.problems)
    return Loaded(sheet.config(), MappingProxyType(sheet.origins()), files)


def _files(
    vault: Path | None, tuned: Path | None, environ: Mapping[str, str]
) -> Iterator[tuple[Path, FileKind]]:
    user_file = folders.user_file(environ)
    # A file that was named must be there; a broken link is a file that somebody meant to be there.
    if environ.get("RAGVAULT_CONFIG") or os.path.lexists(user_file):
        yield user_file, "user file"
    if tuned is not None and tuned.exists():
        yield tuned, "tuned file"
    if vault is not None and os.path.lexists(vault / VAULT_FILE):
        yield vault / VAULT_FILE, "vault file"


def _attempt(read: Callable[..., Source], *args: Any) -> Source | ConfigError:
    try:
        return read(*args)
    except ConfigError as error:
        return error


@dataclass(frozen=True, slots=True)
class _Entry:
    value: Any
    origin: str
    place: str


class _Sheet:
    """What the sources set so far, and what was wrong with them."""

    def __init__(self, user_file: Path) -> None:
        self.problems: list[ConfigError] = []
        self._user_file = user_file
        self._set: dict[KeyPath, _Entry] = {}
        self._spoilt: set[KeyPath] = set()

    def lay(self, source: Source) -> None:
        for path, value in source.entries:
            self._add(source, path, value)

    def check_rules(self) -> None:
        """Pairs of settings that contradict each other, whichever sources they came from."""
        for table_path, table in schema.tables().items():
            for low, sign, high in table.rules:
                pair = self._entry((*table_path, low)), self._entry((*table_path, high))
                spoilt = {(*table_path, low), (*table_path, high)} & self._spoilt
                if not spoilt and not _ORDERS[sign](pair[0].value, pair[1].value):
                    self.problems.append(mistakes.contradiction(table_path, low, sign, high, pair))

    def config(self) -> Config:
        tree: dict[str, Any] = {}
        for path, entry in self._set.items():
            table = tree
            for part in path[:-1]:
                table = table.setdefault(part, {})
            table[path[-1]] = entry.value
        return msgspec.convert(tree, Config)

    def origins(self) -> dict[str, str]:
        return {each.key: self._entry(path).origin for path, each in schema.settings().items()}

    def _entry(self, path: KeyPath) -> _Entry:
        return self._set.get(path) or _Entry(schema.settings()[path].default, "default", "")

    def _add(self, source: Source, path: KeyPath, value: Any) -> None:
        if path in schema.settings():
            self._add_setting(source, schema.settings()[path], value)
        elif path in schema.tables():
            self._add_table(source, path, value)
        else:
            self.problems.append(mistakes.unknown(source, path, value))

    def _add_table(self, source: Source, path: KeyPath, value: Any) -> None:
        table = next(_readings(value))
        if not isinstance(table, Mapping):
            self.problems.append(mistakes.not_a_table(source, path, table))
            return
        for name, item in table.items():
            self._add(source, (*path, str(name)), item)

    def _add_setting(self, source: Source, setting: schema.Setting, value: Any) -> None:
        if source.kind == "vault file" and setting.refusal:
            self.problems.append(mistakes.not_from_a_vault(source, setting, self._user_file))
            return
        readings = list(_readings(value))
        said = [_objection(reading, setting.type) for reading in readings]
        if "" in said:
            place, origin = source.place(setting.path), source.origin(setting.path)
            self._set[setting.path] = _Entry(readings[said.index("")], origin, place)
        else:
            self._spoilt.add(setting.path)
            self.problems.append(mistakes.unfit(source, setting, readings[0], said[0]))


def _objection(value: Any, type_: Any) -> str:
    """What is to be said against this value for this type; nothing when it fits."""
    try:
        fits = schema.fits(msgspec.convert(value, type_), type_)
    # ValueError: a lone surrogate, which an environment may hold and UTF-8 may not.
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        return str(error) or type(error).__name__
    return "" if fits else "it does not fit"


def _readings(value: Any) -> Iterator[Any]:
    """What a value may mean: typed text is a TOML value first, and otherwise itself."""
    if isinstance(value, Raw):
        with suppress(toml.TomlError):
            yield toml.value(value)
        yield str(value)
    else:
        yield value
