"""Profiles: named rankings, each a TOML file of settings and nothing else.

`search.profile` names the one that all other sources are laid over (load.py). The defaults in
settings.py are the plain pipeline, and a file says what its design adds: `default` too, ours. No
other code asks which profile is in use.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from ragvault.config.schema import literal, parse_toml
from ragvault.config.settings import Config
from ragvault.errors import ConfigError

_HERE = Path(__file__).parent / "profiles"


def names() -> tuple[str, ...]:
    """Every profile there is, ours first."""
    found = sorted(each.stem for each in _HERE.glob("*.toml"))
    return ("default", *(name for name in found if name != "default"))


def summary(name: str) -> str:
    """What a profile is, in the words at its top."""
    lines = []
    for line in _text(name).splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.removeprefix("#").strip())
    return " ".join(lines)


def config(name: str) -> Config:
    """A profile over the defaults, and nothing else. Raises ConfigError for an unknown one."""
    return msgspec.convert(values(name), Config)


@cache
def values(name: str) -> dict[str, Any]:
    """What a profile sets, table by table. Raises ConfigError for an unknown one."""
    if name in names():
        return parse_toml(_text(name))
    from ragvault.text.spelling import nearest  # only a mistake needs it

    near = nearest(name, names())
    meant = f"did you mean {near[0]}? " if near else ""
    raise ConfigError(
        f"search.profile = {literal(name)}: there is no profile of that name",
        fix=f"{meant}the profiles are: {', '.join(names())}",
    )


def _text(name: str) -> str:
    return (_HERE / f"{name}.toml").read_text("utf-8")
