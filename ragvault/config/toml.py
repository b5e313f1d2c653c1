"""TOML beyond the standard library: on which line a key is, and how to write a value.

    parse     text -> tables, or TomlError with a line
    value     the text of one value -> that value: true, 3, ["a"]
    lines     text -> the line of every key in it
    literal   value -> the text that parses back to it

Knows no setting and opens no file.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date, datetime, time
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KeyPath = tuple[str, ...]

MAX_PARTS = 20  # of a dotted key; the deepest setting has four
# The parser takes time with the square of the number of parts.
_DEEP_KEY = re.compile(
    r"(?:^|[\[{,])[ \t]*(?:(?:[\w-]+|\"[^\"\n]*\"|'[^'\n]*')[ \t]*\.[ \t]*)"
    rf"{{{MAX_PARTS}}}",
    re.M,
)
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r'"""(?:\\.|(?!""").)*"{3,5}'
    r"|'''(?:(?!''').)*'{3,5}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_SCALAR = re.compile(r"[^,\]}#\n]+")
_BLANK = re.compile(r"(?:\s|#[^\n]*)*")
_DOT = re.compile(r"[ \t]*\.[ \t]*")
_EQUALS = re.compile(r"[ \t]*=[ \t]*")
_HEADER = re.compile(r"\[\[?[ \t]*")
_HEADER_END = re.compile(r"[ \t]*\]\]?")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


class TomlError(ValueError):
    """The text is not TOML; `line` is None where the parser does not say."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def parse(text: str) -> dict[str, Any]:
    """The tables of a TOML text. Raises TomlError, and nothing else."""
    if deep := _DEEP_KEY.search(text):
        line = text.count("\n", 0, deep.end()) + 1
        raise TomlError(f"a key has more than {MAX_PARTS} parts", line)
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise TomlError("it is nested too deeply") from None
    # Not only TOMLDecodeError: a number of 5,000 digits is a plain ValueError.
    except ValueError as error:
        message, _, place = str(error).partition(" (at ")
        found = re.search(r"line (\d+)", place)
        raise TomlError(message, int(found[1]) if found else None) from error


def value(text: str) -> Any:
    """The one value that `text` writes. Raises TomlError when it is no TOML value, or several."""
    tables = parse(f"value = {text}")
    if set(tables) != {"value"}:
        raise TomlError("it is more than one value")
    return tables["value"]


def lines(text: str) -> dict[KeyPath, int]:
    """The line on which each key and each table of a valid TOML text first occurs."""
    scanner = _Scanner(text.replace("\r\n", "\n"))
    # A line is a courtesy: where the text is strange, the keys found so far will do.
    with suppress(ValueError, RecursionError):
        scanner.document()
    return scanner.found


def literal(value: Any) -> str:
    """One value as TOML on one line, with every character that does not print escaped."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + "".join(map(_escaped, value)) + '"'
    if isinstance(value, Mapping):
        pairs = (f"{key(str(name))} = {literal(item)}" for name, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list | tuple | set | frozenset):
        return "[" + ", ".join(map(literal, value)) + "]"
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return str(value)


def key(*path: str) -> str:
    """A dotted key, quoted where it must be."""
    return ".".join(part if BARE_KEY.fullmatch(part) else literal(part) for part in path)


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"


class _Scanner:
    """Reads keys and steps over values. The text is known to be TOML, so little is checked."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.found: dict[KeyPath, int] = {}
        self._line, self._counted = 1, 0  # newlines before `_counted` are in `_line`

    def document(self) -> None:
        table: KeyPath = ()
        self._take(_BLANK)
        while self.at < len(self.text):
            if self._peek("["):
                self._take(_HEADER)
                table = self._key(())
                self._take(_HEADER_END)
            else:
                self._pair(table)
            self._take(_BLANK)

    def _pair(self, table: KeyPath) -> None:
        path = self._key(table)
        self._take(_EQUALS)
        self._value(path)

    def _key(self, table: KeyPath) -> KeyPath:
        """A dotted key below `table`; the tables it passes through are on its line too."""
        path = (*table, self._part())
        self.found.setdefault(path, self._here())
        while _DOT.match(self.text, self.at):
            self._take(_DOT)
            path = (*path, self._part())
            self.found.setdefault(path, self._here())
        return path

    def _part(self) -> str:
        if self._peek('"', "'"):
            return next(iter(tomllib.loads(self._take(_STRING) + " = 0")))
        return self._take(BARE_KEY)

    def _value(self, path: KeyPath) -> None:
        if self._peek("{"):
            self._items("}", lambda: self._pair(path))
        elif self._peek("["):
            self._items("]", lambda: self._value(path))
        else:
            self._take(_STRING if self._peek('"', "'") else _SCALAR)

    def _items(self, closing: str, item: Callable[[], None]) -> None:
        """The items between two brackets, with commas, comments and newlines between them."""
        self.at += 1
        self._take(_BLANK)
        while not self._peek(closing):
            if self._peek(","):
                self.at += 1
            else:
                item()
            self._take(_BLANK)
        self.at += 1

    def _peek(self, *chars: str) -> bool:
        return self.text.startswith(chars, self.at)

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        if match is None:
            raise ValueError(f"not what TOML has at {self.at}")
        self.at = match.end()
        return match[0]

    def _here(self) -> int:
        self._line += self.text.count("\n", self._counted, self.at)
        self._counted = self.at
        return self._line
