"""What `ragvault config` prints: settings with their origin, and what a check found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragvault.answer.json_output import encode
from ragvault.cli.render.text import counted
from ragvault.config.load import Loaded
from ragvault.config.settings import Config
from ragvault.errors import RagvaultError
from ragvault.text.printable import printable


def settings_toml(loaded: Loaded, about: Mapping[str, str]) -> str:
    """Every setting with its origin, as a TOML file with the same meaning."""
    from ragvault.config import toml

    lines = [f"# {name}: {printable(text)}" for name, text in about.items()]
    table = ""
    for key, value in _values(loaded).items():
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
        for key, value in _values(loaded).items()
    }
    return encode({"settings": settings, "files": [str(path) for path in loaded.files], **about})


def problems_json(error: RagvaultError) -> str:
    """The problems that `config check` found, for programs."""
    every = getattr(error, "problems", (error,))
    return encode({"files": [], "problems": [{"said": str(e), "fix": e.fix} for e in every]})


def settings_without_effect(config: Config) -> list[str]:
    """Settings that are valid and have no effect, or not with every engine."""
    keyword, default = config.keyword, type(config.keyword)()
    if keyword.engine == "whoosh" or (keyword.k1, keyword.b) == (default.k1, default.b):
        return []
    where = "and keyword.engine is tantivy" if keyword.engine == "tantivy" else "not with tantivy"
    return [f"keyword.k1 and keyword.b work with Whoosh only, {where} (k1 = 1.2, b = 0.75)"]


def no_problems(loaded: Loaded) -> str:
    """What `config check` prints if it found no problem."""
    changed = sum(origin != "default" for origin in loaded.origin.values())
    lines = [f"{printable(str(path))}: no problems found" for path in loaded.files]
    values = (
        f"{counted(changed, 'setting')} changed from" if changed else "no settings changed from"
    )
    lines.append(f"{values} {'its default' if changed == 1 else 'their defaults'}")
    lines += [f"note: {note}" for note in settings_without_effect(loaded.config)]
    return "\n".join(lines)


def _values(loaded: Loaded) -> dict[str, Any]:
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
