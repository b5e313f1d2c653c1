"""Setting up clients: the entry for ragvault in the settings file of an MCP client.

    entry(…)          what every client needs to know: the command and its arguments
    change(client, …) the settings file as it is and as it would be

Only our own entry changes; everything else in the file stays as it is. A file that is not JSON is
never written.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Any, NamedTuple

from ragvault.errors import UsageError

CLIENTS = ("claude-code", "claude-desktop", "cursor")
SERVERS = "mcpServers"
NAME = "ragvault"
MAX_BYTES = 50_000_000  # of a settings file


class Change(NamedTuple):
    """A settings file, its text now (None if there is no file) and with our entry."""

    path: Path
    before: str | None
    after: str

    @property
    def needed(self) -> bool:
        return self.before != self.after

    def diff(self) -> str:
        """The lines that change."""
        lines = unified_diff(
            (self.before or "").splitlines(), self.after.splitlines(), lineterm="", n=2
        )
        return "\n".join(list(lines)[2:])


def entry(vaults: Sequence[str] = (), environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """How a client starts the server. The command is a whole path: a desktop app has no PATH."""
    given = os.environ if environ is None else environ
    args = ["mcp", *(f"--vault={name}" for name in vaults)]
    command = shutil.which("ragvault", path=str(Path(sys.executable).parent)) or ""
    found: dict[str, Any] = {"command": command, "args": args}
    if not command:  # run from a folder, without an installed program
        found = {"command": sys.executable, "args": ["-m", "ragvault", *args]}
    places = ("RAGVAULT_HOME", "RAGVAULT_CONFIG")
    own = {name: str(Path(given[name]).absolute()) for name in places if given.get(name)}
    return found | ({"env": own} if own else {})


def settings_file(client: str, environ: Mapping[str, str] | None = None) -> Path:
    """Where a client has its settings, for the current user."""
    given = os.environ if environ is None else environ
    home = Path(given.get("HOME") or Path.home())
    if client == "claude-code":
        return home / ".claude.json"
    if client == "cursor":
        return home / ".cursor" / "mcp.json"
    if client == "claude-desktop":
        return _desktop_folder(home, given) / "Claude" / "claude_desktop_config.json"
    raise UsageError(
        f"no client is called {client}",
        fix=f"use {', '.join(CLIENTS)}; for any other: ragvault mcp install --print",
    )


def _desktop_folder(home: Path, environ: Mapping[str, str]) -> Path:
    if sys.platform == "darwin":
        return home / "Library" / "Application Support"
    if sys.platform == "win32":
        return Path(environ.get("APPDATA") or home / "AppData" / "Roaming")
    return Path(environ.get("XDG_CONFIG_HOME") or home / ".config")


def change(
    client: str, ours: Mapping[str, Any], environ: Mapping[str, str] | None = None
) -> Change:
    """What would be written. Raises UsageError if the file cannot be kept as it is."""
    path = settings_file(client, environ)
    try:
        before = path.read_text("utf-8") if path.exists() else None
    except (OSError, ValueError) as error:
        raise _unusable(path, str(error)) from None
    try:
        settings = json.loads(before) if before and before.strip() else {}
    except ValueError as error:
        raise _unusable(path, f"it is not plain JSON ({error})") from None
    if not isinstance(settings, dict) or not isinstance(settings.get(SERVERS, {}), dict):
        raise _unusable(path, f"{SERVERS} in it is not an object")
    typed = {"type": "stdio"} if client == "claude-code" else {}
    servers = {**settings.get(SERVERS, {}), NAME: {**typed, **ours}}
    after = json.dumps({**settings, SERVERS: servers}, indent=_indent(before), ensure_ascii=False)
    ended = "\n" if before is None or before.endswith("\n") else ""
    return Change(path, before, after + ended)


def _indent(text: str | None) -> int:
    """How far the file indents its first line."""
    for line in (text or "").splitlines()[1:]:
        if line.strip():
            return len(line) - len(line.lstrip(" ")) or 2
    return 2


def _unusable(path: Path, why: str) -> UsageError:
    return UsageError(
        f"{path} cannot be changed: {why}",
        fix="add the entry yourself: ragvault mcp install --print shows it",
    )


def write(found: Change) -> None:
    """Replace the settings file in one step; a link to it stays one. Raises IndexUnusable."""
    from ragvault.store.files import replace_file

    target = found.path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
    replace_file(target, found.after.encode("utf-8"))
    target.chmod(mode)
