"""Profiles: named rankings, each a TOML file of settings and nothing else.

    flag  >  environment  >  <vault>/.ragvault.toml  >  tuned.toml  >  config.toml  >  profile

`search.profile`, from any of the places above it, names the profile. A profile may say what it
`extends`; one whose name begins with an underscore is only there to be extended. No other code asks
which profile is in use: after `load` there are settings, and where each came from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, reduce
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ragvault.config import schema, toml
from ragvault.config.load import Loaded, combine, config_of, load_settings
from ragvault.config.schema import Source
from ragvault.config.settings import Config
from ragvault.config.toml import KeyPath
from ragvault.errors import ConfigError

_HERE = Path(__file__).parent / "profiles"
BASE = "extends"


def names() -> tuple[str, ...]:
    """Every profile there is, ours first."""
    found = sorted(each.stem for each in _HERE.glob("[!_]*.toml"))
    return ("default", *(name for name in found if name != "default"))


def summary(name: str) -> str:
    """What a profile is, in the words at its top."""
    lines = []
    for line in _text(name).splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.removeprefix("#").strip())
    return " ".join(lines)


def load(
    vault: Path | None = None,
    *,
    tuned: Callable[[str], Path] | None = None,
    flags: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
) -> Loaded:
    """The settings for a vault, with the profile it names under them. Raises ConfigError only.

    `tuned` names the file of what was tuned for a profile: weights of one mean nothing to another.
    """
    chosen = load_settings(vault, flags=flags, environ=environ)
    name = chosen.config.search.profile
    if tuned is not None and (path := tuned(name)).exists():
        chosen = load_settings(vault, tuned=path, flags=flags, environ=environ)
    return under(chosen, name)


def config(name: str) -> Config:
    """A profile over the defaults, and nothing else."""
    return _profile(_known(name)).config


def under(chosen: Loaded, name: str) -> Loaded:
    """What was chosen, and the profile's value for every setting that nobody chose."""
    profile = _profile(_known(name))
    values: dict[KeyPath, Any] = {}
    origin = dict(chosen.origin)
    for path, setting in schema.settings().items():
        free = chosen.origin[setting.key] == "default"
        values[path] = reduce(getattr, path, (profile if free else chosen).config)
        if free:
            origin[setting.key] = profile.origin[setting.key]
    return Loaded(config_of(values), MappingProxyType(origin), chosen.files)


@cache
def _profile(name: str) -> Loaded:
    tree = _tree(name)
    source = Source("user file", [((), tree)], lambda path: name)
    loaded = combine([source])
    return Loaded(loaded.config, {key: _origin(at, name) for key, at in loaded.origin.items()})


def _origin(origin: str, name: str) -> str:
    return origin if origin == "default" else f"profile {name}"


def _tree(name: str) -> dict[str, Any]:
    tree = toml.parse(_text(name))
    base = tree.pop(BASE, None)
    return _over(_tree(base), tree) if base else tree


def _over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """One tree over another, key by key."""
    merged = dict(below)
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _over(merged[key], value) if both else value
    return merged


def _text(name: str) -> str:
    return (_HERE / f"{name}.toml").read_text("utf-8")


def _known(name: str) -> str:
    if name in names():
        return name
    from ragvault.text.spelling import nearest  # only a mistake needs it

    near = nearest(name, names())
    meant = f"did you mean {near[0]}? " if near else ""
    raise ConfigError(
        f"search.profile = {toml.literal(name)}: there is no profile of that name",
        fix=f"{meant}the profiles are: {', '.join(names())}",
    )
