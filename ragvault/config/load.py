"""Settings in effect, and where each one came from.

    flag > environment > <vault>/.ragvault.toml > tuned.toml > config.toml > dendron.yml > profile

config.toml is the user's, for every vault; tuned.toml is what `ragvault tune` found for one vault
and profile, beside the index. `search.profile`, from any place above it, names the profile.

`load_settings` lays the sources over each other, table by table, and converts the result once: a
valid Config with the origin of every key, or a ConfigError that names the file and the key. A list
is one value: a higher source replaces it whole.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from ragvault.config import folders, profiles
from ragvault.config.schema import (
    KeyPath,
    Setting,
    dotted,
    is_text,
    literal,
    parse_toml,
    settings,
    tables,
    wanted,
)
from ragvault.config.settings import Config
from ragvault.errors import ConfigError

VAULT_FILE = ".ragvault.toml"
MAX_BYTES = {"user file": 1_000_000, "tuned file": 1_000_000, "vault file": 64_000}
PREFIX = "RAGVAULT_"
SHOWN = 60  # characters of a value: enough to recognise it, and the line stays one line
Kind = Literal["profile", "user file", "tuned file", "vault file", "environment", "flag"]


@dataclass(frozen=True, slots=True)
class Source:
    """One place and what it sets. `place` is how an error names it: a file, a variable, a flag."""

    kind: Kind
    place: str
    values: Mapping[str, Any]

    @property
    def origin(self) -> str:
        return "flag" if self.kind == "flag" else f"{self.kind} {self.place}"


@dataclass(frozen=True, slots=True)
class Loaded:
    """A valid Config. `origin` has every dotted key; `files` are those that were read.

    `chosen` are the keys that somebody set, in any place but a profile.
    """

    config: Config
    origin: Mapping[str, str]
    files: tuple[Path, ...] = ()
    chosen: frozenset[str] = frozenset()


def load_settings(
    vault: Path | None = None,
    *,
    tuned: Callable[[str], Path] | None = None,
    flags: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
) -> Loaded:
    """The settings for a vault, or for no vault in particular. Raises ConfigError only.

    `tuned` names the file of what was tuned for a profile: weights of one mean nothing to another.
    """
    environ = os.environ if environ is None else environ
    user_file = folders.user_file(environ)
    dendron = [] if vault is None else marks(vault)
    # A file that was named must be there; a broken link is a file that somebody meant to be there.
    there = environ.get("RAGVAULT_CONFIG") or os.path.lexists(user_file)
    user = [from_file(user_file, "user file")] if there else []
    own = None if vault is None else vault / VAULT_FILE
    vaults = [from_file(own, "vault file")] if own is not None and os.path.lexists(own) else []
    typed = [*from_environment(environ), *from_flags(flags)]
    profile = _profile([*user, *vaults, *typed])
    found = tuned(profile) if tuned is not None else None
    weights = [from_file(found, "tuned file")] if found is not None and found.exists() else []
    files = tuple(Path(each.place) for each in (*user, *weights, *vaults))
    sources = [*dendron, *user, *weights, *vaults, *typed]
    return combine(sources, files=files, user_file=user_file)


def data_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Where indexes are. No vault may decide that, so its own settings are not read."""
    override = load_settings(environ=environ).config.paths.data
    return folders.data_dir(environ, override)


def check_file(path: Path, *, environ: Mapping[str, str] | None = None) -> Loaded:
    """One file over its profile and nothing else; a vault's file is held to a vault's limits."""
    kind: Kind = "vault file" if path.name == VAULT_FILE else "user file"
    return combine([from_file(path, kind)], files=(path,), user_file=folders.user_file(environ))


def combine(
    sources: Iterable[Source], *, files: tuple[Path, ...] = (), user_file: Path | None = None
) -> Loaded:
    """Lay sources over the profile that they name, each over those before it.

    `user_file` is the file to which a fix refers if a vault may not set a key.
    """
    chosen = list(sources)
    name = _profile(chosen)
    tree: dict[str, Any] = {}
    origins: dict[KeyPath, Source] = {}
    for source in [Source("profile", name, profiles.values(name)), *chosen]:
        if source.kind == "vault file":
            _check_vault(source, user_file or folders.user_file())
        _lay(tree, source.values, source, (), origins)
    try:
        config = msgspec.convert(tree, Config)
    except (msgspec.ValidationError, ValueError, OverflowError) as error:
        raise _problem(error, tree, origins) from error
    known = {each.key: origins.get(path) for path, each in settings().items()}
    return Loaded(
        config,
        MappingProxyType({key: at.origin if at else "default" for key, at in known.items()}),
        files,
        frozenset(key for key, at in known.items() if at and at.kind != "profile"),
    )


def _profile(sources: Iterable[Source]) -> str:
    """The profile that the highest of these sources names."""
    name = Config().search.profile
    for source in sources:
        table = source.values.get("search")
        named = table.get("profile") if isinstance(table, Mapping) else None
        name = named if isinstance(named, str) else name
    return name


def _lay(
    below: dict[str, Any],
    above: Mapping[str, Any],
    source: Source,
    at: KeyPath,
    origins: dict[KeyPath, Source],
) -> None:
    """One tree over another, key by key; `origins` learns who set what."""
    for name, value in above.items():
        origins[(*at, name)] = source
        if isinstance(value, Mapping):
            inner = below.get(name)
            if not isinstance(inner, dict):
                inner = below[name] = {}
            _lay(inner, value, source, (*at, name), origins)
        else:
            below[name] = value


def _check_vault(source: Source, user_file: Path) -> None:
    """Refuse a vault's file that reaches for what only the user may decide."""
    for path in _leaves(source.values, ()):
        setting = settings().get(path)
        if setting is not None and setting.refusal:
            raise ConfigError(
                f"{source.place}: a vault may not set {setting.key}, because {setting.refusal}",
                fix=f"remove it there; if you want it, set it in {user_file}",
            )


def _leaves(tree: Mapping[str, Any], at: KeyPath) -> Iterator[KeyPath]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, (*at, name))
        else:
            yield (*at, name)


# --- Reading one source ---


def marks(vault: Path) -> list[Source]:
    """What the files of another program say about a vault; a setting of any kind wins.

    Dendron writes [[label|note]]. Its file is in the workspace, which is the vault or around it.
    """
    for folder in (vault, vault.parent):
        # Not pathlib's, which raises in a folder that may not be read.
        if os.path.isfile(at := folder / "dendron.yml"):  # noqa: PTH113
            return [Source("vault file", str(at), {"links": {"order": "label-first"}})]
    return []


def from_file(path: Path, kind: Kind) -> Source:
    """A config file. Raises ConfigError when it cannot be read or is not TOML."""
    try:
        return Source(kind, os.fspath(path), parse_toml(_text(path, MAX_BYTES[kind])))
    except ValueError as error:
        raise ConfigError(
            f"{path}: this is not TOML: {error}",
            fix='fix that line; a setting is written as key = value, text in "quotes"',
        ) from error


def from_environment(environ: Mapping[str, str]) -> list[Source]:
    """Every RAGVAULT_<TABLE>__<KEY>. RAGVAULT_HOME and its like have no `__`: no settings."""
    return [
        Source("environment", name, _typed(name[len(PREFIX) :].lower().split("__"), environ[name]))
        for name in sorted(environ)
        if name.startswith(PREFIX) and "__" in name
    ]


def from_flags(flags: Sequence[str]) -> list[Source]:
    """Each `table.key=value` of --set; of two for one key, the later."""
    sources = []
    for flag in flags:
        name, equals, value = flag.partition("=")
        path = [part.strip() for part in name.split(".")]
        if not equals or not all(path):
            raise ConfigError(
                f"--set {literal(flag)} is not of the form table.key=value",
                fix="for example: --set chunk.overlap=50",
            )
        sources.append(Source("flag", f"--set {dotted(*path)}", _typed(path, value.strip())))
    return sources


def _typed(path: Sequence[str], text: str) -> dict[str, Any]:
    """A typed value where it belongs: it is a TOML value if it can be one, and otherwise itself."""
    setting = settings().get(tuple(path))
    # An environment may contain a lone surrogate, which UTF-8 may not.
    value: Any = text.encode("utf-8", "replace").decode()
    try:
        read = parse_toml(f"value = {value}")
    except ValueError:
        read = {}
    if set(read) == {"value"}:
        as_text = setting is not None and is_text(setting.type)
        value = value if as_text and not isinstance(read["value"], str) else read["value"]
    return reduce(lambda inner, name: {name: inner}, reversed(path), value)


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
        content = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"{path} cannot be read: {reason}",
            fix="check that the file is there and that you may read it",
        ) from error
    if content.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        raise ConfigError(
            f"{path} begins with a byte order mark, which TOML does not have",
            fix="save the file as UTF-8 without BOM",
        )
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path}: this is not UTF-8 text", fix="save the file as UTF-8"
        ) from error


# --- What is wrong, and the cure ---


def _problem(
    error: Exception, tree: Mapping[str, Any], origins: Mapping[KeyPath, Source]
) -> ConfigError:
    """The place, the key and the cure of what cannot be converted."""
    said, _, at = str(error).partition(" - at `$")
    path = tuple(part for part in re.sub(r"\[[^\]]*\]", "", at.rstrip("`")).split(".") if part)
    unknown = re.fullmatch(r"(?s)Object contains unknown field `(.*)`", said)
    if unknown:
        return _unknown((*path, unknown[1]), tree, origins)
    if isinstance(error.__cause__, ValueError):  # a check of the table itself
        *names, last = error.__cause__.args
        if names:
            return _contradiction(path, names, last, origins)
        path = (*path, last)
    source, value = _blamed(path, origins), _at(tree, path)
    setting = settings().get(path)
    if setting is None:
        example = next(each for each in settings().values() if each.path[: len(path)] == path)
        return ConfigError(
            f"{source.place}: {dotted(*path)} is a table, not {_shown(value)}",
            fix=f"set one of its keys, for example: {_assigned(source, example)}",
        )
    inside = f" ({said})" if "[" in at else ""  # msgspec names the item of a list
    return ConfigError(
        f"{source.place}: {setting.key} = {_shown(value)} is not {wanted(setting.type)}{inside}",
        fix=f"the default is: {_assigned(source, setting)}",
    )


def _unknown(
    path: KeyPath, tree: Mapping[str, Any], origins: Mapping[KeyPath, Source]
) -> ConfigError:
    """A key or a table that does not exist."""
    source = _blamed(path, origins)
    if isinstance(_at(tree, path), Mapping):
        what, known = f"table [{dotted(*path)}]", list(tables())[1:]
    else:
        what, known = f"setting {dotted(*path)}", list(settings())
    meant = _meant(path, known)
    return ConfigError(
        f"{source.place}: there is no {what}",
        fix=f"did you mean {_spelt(source, meant)}?" if meant else _choice(path[:-1]),
    )


def _contradiction(
    table: KeyPath, names: Sequence[str], said: str, origins: Mapping[KeyPath, Source]
) -> ConfigError:
    """Two settings that are fine alone and impossible together."""
    low, high = (dotted(*table, name) for name in names)
    sources = [source for name in names if (source := origins.get((*table, name)))]
    places = ", ".join(dict.fromkeys(source.place for source in sources))
    return ConfigError(f"{places}: [{dotted(*table)}] {said}", fix=f"lower {low} or raise {high}")


def _meant(path: KeyPath, known: Iterable[KeyPath]) -> KeyPath | None:
    """The known path that was probably meant: near in spelling, or right in another table."""
    from ragvault.text.spelling import nearest  # only a mistake needs it

    by_name = {".".join(each): each for each in known}
    alike = [each for each in by_name.values() if each[-1:] == path[-1:]]
    if len(alike) == 1:
        return alike[0]
    return next((by_name[near] for near in nearest(".".join(path), by_name, least=0.7)), None)


def _blamed(path: KeyPath, origins: Mapping[KeyPath, Source]) -> Source:
    """Who set this key, or the table it is in."""
    while path not in origins:
        path = path[:-1]
    return origins[path]


def _at(tree: Any, path: KeyPath) -> Any:
    return reduce(lambda table, name: table[name], path, tree)


def _choice(table: KeyPath) -> str:
    """What there is instead, where no name is near."""
    keys = [path[-1] for path in settings() if path[:-1] == table]
    if keys:
        return f"the keys of [{dotted(*table)}] are: {', '.join(keys)}"
    names = [path[0] for path in tables() if len(path) == 1]
    return f"the tables are: {', '.join(names)}; ragvault config show lists every setting"


def _spelt(source: Source, path: KeyPath) -> str:
    """A name as one would type it into this source."""
    setting = settings().get(path)
    if source.kind == "environment" and setting:
        return setting.variable
    return dotted(*path) if setting else f"[{dotted(*path)}]"


def _assigned(source: Source, setting: Setting) -> str:
    """A setting with its default, as one would type it into this source."""
    value = literal(reduce(getattr, setting.path, profiles.config("default")))
    if source.kind == "environment":
        return f"{setting.variable}={shlex.quote(value)}"
    if source.kind == "flag":
        return f"--set {setting.key}={shlex.quote(value)}"
    return f"{setting.key} = {value}"


def _shown(value: Any) -> str:
    text = literal(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
