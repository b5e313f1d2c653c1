"""The config file that `ragvault config init` writes.

It is config.toml.example with every setting commented out: a file that repeated the defaults would
freeze them, and a later release could not improve any. The example itself is the one source of
truth; the wheel carries it inside the package, a checkout has it at the top.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from ragvault.errors import ConfigError

EXAMPLE = "config.toml.example"
_KEPT = re.compile(r"\s*(\[[\w.]+\]\s*)?(#.*)?")  # blank lines, comments, table headers


def example() -> str:
    """The text of config.toml.example."""
    package = Path(__file__).parent.parent
    inside = package / EXAMPLE
    return (inside if inside.is_file() else package.parent / EXAMPLE).read_text("utf-8")


def starter() -> str:
    """The example, setting nothing. `#key` is a setting to uncomment, `# Word` an explanation."""
    lines = example().splitlines()
    return "".join(f"{line if _KEPT.fullmatch(line) else '#' + line}\n" for line in lines)


def write_starter(path: Path, *, force: bool = False) -> Path | None:
    """Write the starter for the user alone to read; returns where an older file was kept."""
    target = path.resolve()  # a link to a file kept elsewhere stays a link
    try:
        _make_private(target.parent)
        if not force:
            _write_new(target, starter())
            return None
        kept = _set_aside(target)
        _write_new(target, starter())
    except FileExistsError as error:
        raise ConfigError(
            f"{path} is there already, and was not changed",
            fix="edit it, or replace it with: ragvault config init --force",
        ) from error
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be written: {error.strerror}",
            fix="check the rights of that folder, or name another file in RAGVAULT_CONFIG",
        ) from error
    return kept


def _make_private(folder: Path) -> None:
    """Make a folder and those above it that are missing, each for the user alone."""
    # mkdir(parents=True) gives its mode to the last folder only.
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)


def _set_aside(path: Path) -> Path | None:
    """Move a file that is in the way to the first free name: nothing a user wrote is lost."""
    if not path.exists():
        return None
    number = 1
    while (kept := path.with_name(f"{path.name}.{number}")).exists():
        number += 1
    return path.rename(kept)


def _write_new(path: Path, text: str) -> None:
    """Fails when the file exists, even when it came to be a moment ago."""
    binary = getattr(os, "O_BINARY", 0)  # Windows would write each newline twice
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | binary, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
