"""Settings in effect, and where each one came from.

    flag > environment > <vault>/.ragvault.toml > tuned.toml > config.toml > dendron.yml > default

config.toml is the user's, for every vault; tuned.toml is what `ragvault tune` found for one vault
and profile, beside the index.

`load_settings` reads the sources, combines them key by key, and returns a valid Config with the
origin of every key, or raises one ConfigError with every problem found. A setting whose type
is a list or a mapping is one value: a higher source replaces it whole. schema.py knows which
settings there are and has the sentences about those that cannot be used.
"""

from __future__ import annotations

import operator
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from ragvault.config import folders, schema, toml
from ragvault.config.schema import FileKind, Source
from ragvault.config.settings import Config
from ragvault.config.toml import KeyPath
from ragvault.errors import ConfigError

VAULT_FILE = ".ragvault.toml"
MAX_BYTES: Mapping[FileKind, int] = {
    "user file": 1_000_000,
    "tuned file": 1_000_000,
    "vault file": 64_000,
}
MAX_PROBLEMS = 20  # that are listed; the others are counted
PREFIX = "RAGVAULT_"
_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {"<": operator.lt, "<=": operator.le}


class Raw(str):
    """A value as it was typed, not yet read as TOML."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Loaded:
    """A valid Config. `origin` has every dotted key; `files` are those that were read."""

    config: Config
    origin: Mapping[str, str]
    files: tuple[Path, ...] = ()


def load_settings(
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
        *([] if vault is None else marks(vault)),
        *(_attempt(from_file, path, kind) for path, kind in files),
        _attempt(from_environment, environ),
        _attempt(from_flags, flags),
    ]
    read = tuple(path for path, _ in files)
    return combine(sources, files=read, user_file=folders.user_file(environ))


def data_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Where indexes are. No vault may decide that, so its own settings are not read."""
    override = load_settings(environ=environ).config.paths.data
    return folders.data_dir(environ, override)


def check_file(path: Path, *, environ: Mapping[str, str] | None = None) -> Loaded:
    """One file over the defaults and nothing else; a .ragvault.toml is held to a vault's limits."""
    kind: FileKind = "vault file" if path.name == VAULT_FILE else "user file"
    source = _attempt(from_file, path, kind)
    return combine([source], files=(path,), user_file=folders.user_file(environ))


def combine(
    sources: Iterable[Source | ConfigError],
    *,
    files: tuple[Path, ...] = (),
    user_file: Path | None = None,
) -> Loaded:
    """Lay sources over the defaults, each over those before it.

    A ConfigError in `sources` is a source that could not be read. The other sources may have
    mistakes too, and all are reported at once. `user_file` is the file to which a fix refers if a
    vault may not set a key.
    """
    sheet = _Sheet(user_file or folders.user_file())
    for source in sources:
        if isinstance(source, ConfigError):
            sheet.problems.append(source)
        else:
            sheet.lay(source)
    sheet.check_rules()
    if sheet.problems:
        raise schema.combined_error(sheet.problems, sheet.more_problems)
    return Loaded(sheet.config(), MappingProxyType(sheet.origins()), files)


def config_of(values: Mapping[KeyPath, Any]) -> Config:
    """The Config with these values, which are known to fit; all others are defaults."""
    tree: dict[str, Any] = {}
    for path, value in values.items():
        table = tree
        for part in path[:-1]:
            table = table.setdefault(part, {})
        table[path[-1]] = value
    return msgspec.convert(tree, Config)


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


def marks(vault: Path) -> list[Source]:
    """What the files of another program say about a vault; a setting of any kind wins.

    Dendron writes [[label|note]]. Its file is in the workspace, which is the vault or around it.
    """
    for folder in (vault, vault.parent):
        # Not pathlib's, which raises in a folder that may not be read.
        if os.path.isfile(at := folder / "dendron.yml"):  # noqa: PTH113
            return [Source("vault file", [(("links", "order"), "label-first")], lambda _: str(at))]
    return []


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
        self.more_problems = 0
        self._user_file = user_file
        self._set: dict[KeyPath, _Entry] = {}
        self._spoilt: set[KeyPath] = set()

    def add_problem(self, describe: Callable[[], ConfigError]) -> None:
        """List a problem, or count it: describing 20,000 unknown keys would take minutes."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(describe())
        else:
            self.more_problems += 1

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
                    self.problems.append(schema.contradiction(table_path, low, sign, high, pair))

    def config(self) -> Config:
        return config_of({path: entry.value for path, entry in self._set.items()})

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
            self.add_problem(lambda: schema.unknown(source, path, value))

    def _add_table(self, source: Source, path: KeyPath, value: Any) -> None:
        table = next(_readings(value))
        if not isinstance(table, Mapping):
            self.add_problem(lambda: schema.not_a_table(source, path, table))
            return
        for name, item in table.items():
            self._add(source, (*path, str(name)), item)

    def _add_setting(self, source: Source, setting: schema.Setting, value: Any) -> None:
        if source.kind == "vault file" and setting.refusal:
            self.add_problem(lambda: schema.not_from_a_vault(source, setting, self._user_file))
            return
        readings = list(_readings(value))
        said = [_objection(reading, setting.type) for reading in readings]
        if "" in said:
            place, origin = source.place(setting.path), source.origin(setting.path)
            self._set[setting.path] = _Entry(readings[said.index("")], origin, place)
        else:
            self._spoilt.add(setting.path)
            self.add_problem(lambda: schema.unfit(source, setting, readings[0], said[0]))


def _objection(value: Any, type_: Any) -> str:
    """Why this value does not fit this type; empty if it fits."""
    try:
        fits = schema.fits(msgspec.convert(value, type_), type_)
    # ValueError: a lone surrogate, which an environment may contain and UTF-8 may not.
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


# --- Reading one source ---


def from_file(path: Path, kind: FileKind) -> Source:
    """A config file. Raises ConfigError when it cannot be read or is not TOML."""
    text = _text(path, MAX_BYTES[kind])
    try:
        tree = toml.parse(text)
    except toml.TomlError as error:
        place = f"{path}:{error.line}" if error.line else str(path)
        raise ConfigError(
            f"{place}: this is not TOML: {error}",
            fix='fix that line; a setting is written as key = value, text in "quotes"',
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


def _text(path: Path, most: int) -> str:
    try:
        found = path.stat()
        # A pipe would block for ever, and a folder has no text.
        if not stat.S_ISREG(found.st_mode):
            raise ConfigError(f"{path} is not a file", fix="put a TOML file there, or remove it")
        if found.st_size > most:
            raise ConfigError(
                f"{path} has {found.st_size:,} bytes; it may have at most {most:,}",
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
