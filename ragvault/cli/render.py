"""The only formatting: everything a person or a program reads is written here.

    out       data, to stdout
    talk      a line about what is going on, to stderr; silent with --quiet
    detail    the same, only with --verbose
    error     what went wrong and the cure, to stderr

The other functions turn a value into text or JSON for `out`. They compute nothing and ask nothing.
Every command imports this file, so what only one of them needs is imported inside its function.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import typer

from ragvault.errors import RagvaultError

if TYPE_CHECKING:
    from ragvault.config.load import Loaded
    from ragvault.config.settings import Config

_BREAKING = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_STEERING = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\r(?!\n)")
# 0 with --quiet, 2 with --verbose; a thread that answers somebody else has its own
_volume: ContextVar[int] = ContextVar("volume", default=1)


def reset() -> None:
    """As loud as usual; stdout never fails on a name that its encoding cannot say."""
    _volume.set(1)
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure:
        reconfigure(errors="backslashreplace")


def be_quiet() -> None:
    _volume.set(0)


def be_verbose() -> None:
    _volume.set(2)


def is_quiet() -> bool:
    return _volume.get() < 1


def is_verbose() -> bool:
    return _volume.get() > 1


def out(text: str) -> None:
    if text:
        typer.echo(text)


def talk(text: str) -> None:
    if _volume.get() >= 1:
        typer.echo(printable(text), err=True)


def detail(text: str) -> None:
    if _volume.get() >= 2:
        typer.echo(printable(text), err=True)


def error(error: RagvaultError) -> None:
    """Two lines for each problem; with RAGVAULT_DEBUG=1 the traceback above them."""
    _traceback()
    for line in error_lines(error):
        typer.echo(line, err=True)


def error_lines(error: RagvaultError) -> Iterator[str]:
    """What `error` writes."""
    for each in getattr(error, "problems", (error,)):
        yield from _two_lines(str(each), each.fix)


def misuse(error: Any) -> None:
    """A command line that Typer refused."""
    words = " ".join(error.format_message().split()).rstrip(".")
    path = error.ctx.command_path if error.ctx else "ragvault"
    for line in _two_lines(words[:1].lower() + words[1:], f"{path} --help"):
        typer.echo(line, err=True)


def unexpected(error: Exception) -> None:
    """A mistake of ours: asks to report it."""
    _traceback()
    said = " ".join(str(error).split())
    fix = "please report this with what RAGVAULT_DEBUG=1 shows; nothing in your vault was changed"
    for line in _two_lines(f"unexpected {type(error).__name__}: {said}", fix):
        typer.echo(line, err=True)


def as_json(value: Any) -> str:
    """One line. Not msgspec: a file name may hold what is not Unicode, and must still be told."""
    import msgspec

    return json.dumps(msgspec.to_builtins(value, enc_hook=os.fspath), ensure_ascii=False)


def settings_toml(loaded: Loaded, about: Mapping[str, str]) -> str:
    """Every setting with its origin, as a TOML file that means the same."""
    from ragvault.config import toml

    lines = [f"# {name}: {printable(text)}" for name, text in about.items()]
    table = ""
    for key, value in _settings(loaded).items():
        above, _, name = key.rpartition(".")
        if above != table:
            table = above
            lines += ["", f"[{table}]"]
        lines.append(f"{name} = {toml.literal(value)}  # {printable(loaded.origin[key])}")
    return "\n".join(lines)


def settings_json(loaded: Loaded, about: Mapping[str, str]) -> str:
    """The same for programs."""
    settings = {
        key: {"value": value, "origin": loaded.origin[key]}
        for key, value in _settings(loaded).items()
    }
    return as_json({"settings": settings, "files": [str(path) for path in loaded.files], **about})


def mistakes_json(error: RagvaultError) -> str:
    """What `config check` found wrong, for programs."""
    every = getattr(error, "problems", (error,))
    return as_json({"files": [], "problems": [{"said": str(e), "fix": e.fix} for e in every]})


def notes(config: Config) -> list[str]:
    """Settings that are right and have no effect, or not everywhere."""
    keyword, default = config.keyword, type(config.keyword)()
    if keyword.engine == "whoosh" or (keyword.k1, keyword.b) == (default.k1, default.b):
        return []
    where = "and keyword.engine is tantivy" if keyword.engine == "tantivy" else "not with tantivy"
    return [f"keyword.k1 and keyword.b hold with Whoosh only, {where} (k1 = 1.2, b = 0.75)"]


def verdict(loaded: Loaded) -> str:
    """What `config check` found right."""
    count = sum(origin != "default" for origin in loaded.origin.values())
    lines = [f"{printable(str(path))}: all is well" for path in loaded.files]
    lines.append(f"settings with a value of their own: {count}; the others have their defaults")
    lines += [f"note: {note}" for note in notes(loaded.config)]
    return "\n".join(lines)


def count(number: int) -> str:
    return f"{number:,}"


def counted(number: int, what: str) -> str:
    """1 file, 2 files."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def size(number: int) -> str:
    """Bytes, as people say them."""
    for unit, of in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= of:
            return f"{number / of:.1f} {unit}"
    return f"{number} bytes"


def printable_lines(text: str) -> str:
    """The same for a text of several lines."""
    return "\n".join(printable(line) for line in text.split("\n"))


def harmless(text: str) -> str:
    """A text as it is, but for characters that steer a terminal or turn its writing around."""
    return _STEERING.sub(_escaped, text)


def one_line(text: str) -> str:
    """A name as it is, but for characters that would end its line."""
    return _BREAKING.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def printable(text: str) -> str:
    """Text of unknown origin on one line, with nothing in it that steers a terminal."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def _settings(loaded: Loaded) -> dict[str, Any]:
    """Dotted key -> plain value, in the order of the tables."""
    import msgspec

    from ragvault.config.schema import settings

    plain: dict[str, Any] = {}
    for path, setting in settings().items():
        value: Any = loaded.config
        for name in path:
            value = getattr(value, name)
        plain[setting.key] = msgspec.to_builtins(value)
    return plain


def _two_lines(message: str, fix: str) -> Iterator[str]:
    yield f"ragvault: {printable(message)}"
    if fix:
        yield f"     fix: {printable(fix)}"


def _traceback() -> None:
    if os.environ.get("RAGVAULT_DEBUG") == "1":
        import traceback

        traceback.print_exc()
