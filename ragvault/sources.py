"""The places settings come from, each read into one Source: files, environment, flags.

A source is what was written there, with a way to say where each key stands. Whether a
key exists or a value fits is not asked here; only that the place can be read at all. Values from
the environment and from flags are kept as Raw text, because what `2024` means depends on the
setting: a number for one, a folder's name for another.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ragvault import toml
from ragvault.errors import ConfigError
from ragvault.toml import KeyPath

FileKind = Literal["user file", "tuned file", "vault file"]
Kind = Literal["user file", "tuned file", "vault file", "environment", "flag"]

VAULT_FILE = ".ragvault.toml"
MAX_BYTES = 1_000_000  # a thousand times what a config needs; a vault's file may be anything
PREFIX = "RAGVAULT_"


class Raw(str):
    """A value as it was typed, not yet read as TOML."""

    __slots__ = ()


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


def from_file(path: Path, kind: FileKind) -> Source:
    """A config file. Raises ConfigError when it cannot be read or is not TOML."""
    text = _text(path)
    try:
        tree = toml.parse(text)
    except toml.TomlError as error:
        place = f"{path}:{error.line}" if error.line else str(path)
        raise ConfigError(
            f"{place}: this is not TOML: {error}",
            fix='mend that line; a setting is written as key = value, text in "quotes"',
        ) from error
    return Source(kind, [((), tree)], _line_of(path, text))


def from_environment(environ: Mapping[str, str]) -> Source:
    """Every RAGVAULT_<TABLE>__<KEY>. RAGVAULT_HOME and its like have no `__`: no settings."""
    names = {
        tuple(name[len(PREFIX) :].lower().split("__")): name
        for name in sorted(environ)
        if name.startswith(PREFIX) and "__" in name
    }
    entries = [(path, Raw(environ[name])) for path, name in names.items()]
    return Source("environment", entries, lambda path: _longest(path, names))


def from_flags(flags: Sequence[str]) -> Source:
    """Each `table.key=value` of --set; of two for one key, the later."""
    entries = []
    for flag in flags:
        name, equals, value = flag.partition("=")
        path = tuple(part.strip() for part in name.split("."))
        if not equals or not all(path):
            raise ConfigError(
                f"--set {toml.literal(flag)} is not of the form table.key=value",
                fix="for example: --set chunk.overlap=50",
            )
        entries.append((path, Raw(value.strip())))
    return Source("flag", entries, lambda path: f"--set {toml.key(*path)}")


def _text(path: Path) -> str:
    try:
        found = path.stat()
        # A pipe would block for ever, and a folder has no text.
        if not stat.S_ISREG(found.st_mode):
            raise ConfigError(f"{path} is not a file", fix="put a TOML file there, or remove it")
        if found.st_size > MAX_BYTES:
            raise ConfigError(
                f"{path} has {found.st_size:,} bytes; a config file has at most {MAX_BYTES:,}",
                fix="check that this is the file you mean",
            )
        return _decoded(path, path.read_bytes())
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"{path} cannot be read: {reason}",
            fix="check that the file is there and that you may read it",
        ) from error


def _decoded(path: Path, content: bytes) -> str:
    if content.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        raise ConfigError(
            f"{path} begins with a byte order mark, which TOML does not have",
            fix="save the file as UTF-8 without BOM",
        )
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{path}:{line}: this is not UTF-8 text", fix="save the file as UTF-8"
        ) from error


def _line_of(path: Path, text: str) -> Callable[[KeyPath], str]:
    found = toml.lines(text)

    def place(key: KeyPath) -> str:
        while key and key not in found:
            key = key[:-1]
        return f"{path}:{found[key]}" if key else os.fspath(path)

    return place


def _longest(path: KeyPath, names: Mapping[KeyPath, str]) -> str:
    """The variable that set this key, or the table the key is in."""
    while path and path not in names:
        path = path[:-1]
    return names.get(path, PREFIX)
