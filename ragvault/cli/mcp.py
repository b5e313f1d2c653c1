"""ragvault mcp: the server for agents, and its entry in the settings of their programs."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sys
from collections.abc import Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, NamedTuple

import typer

from ragvault.cli import console, options
from ragvault.errors import EngineMissing, UsageError, with_extra
from ragvault.store.files import make_folder, replace_file

app = typer.Typer(invoke_without_command=True)

PORT = 8765
TOKEN = "RAGVAULT_MCP_TOKEN"
TOKEN_FILE = "mcp-token"
CLIENTS = ("claude-code", "claude-desktop", "cursor")
SERVERS = "mcpServers"
SERVER_NAME = "ragvault"

Vaults = Annotated[
    list[str] | None,
    typer.Option(
        "--vault",
        metavar="NAME",
        autocompletion=options.vault_names,
        help="Serve only this vault; repeatable. Default: all known vaults.",
    ),
]


@app.callback()
def mcp(
    ctx: typer.Context,
    vaults: Vaults = None,
    http: Annotated[
        bool, typer.Option("--http", help="Serve over HTTP on 127.0.0.1 instead of stdio.")
    ] = False,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port of --http.")] = PORT,
    resident: Annotated[
        bool,
        typer.Option(
            "--resident/--no-resident",
            help="Let the resident process search, so that many agents share one model.",
        ),
    ] = True,
    quiet: options.Quiet = False,
) -> None:
    """Serve your notes to agents (MCP).

    The tools are search, search_with_hypothesis, read, related, links, list and status. None of
    them changes a note. Speaks over stdin and stdout, as agents start it; ragvault mcp install sets
    one up. With --http, serves on 127.0.0.1 for clients that have the token; where it is stored is
    shown at the start.

    ragvault mcp

    ragvault mcp --vault sample_vault

    ragvault mcp --http --port 8765
    """
    if ctx.invoked_subcommand is not None:
        return
    server = _server()
    from ragvault.api.tools import Tools
    from ragvault.cli.search import search_function
    from ragvault.cli.start import this_caller

    tools = Tools(
        search_function(resident=resident), vaults or (), now=lambda: this_caller().local_time()
    )
    if vaults:
        tools.vaults()  # a wrong name is reported at once
    if not http:
        server.serve_stdio(tools)
        return
    token, place = http_token()

    def started(port: int) -> None:
        address = f"http://{server.HOST}:{port}/mcp"
        console.report(f"serving on {address}; token: {place}; stop with Ctrl-C")

    try:
        server.serve_http(tools, port, token, started)
    except OSError as error:
        raise UsageError(
            f"port {port} of {server.HOST} cannot be used: {error.strerror or error}",
            fix="choose another one with --port",
        ) from None


def _server() -> ModuleType:
    """The server's module. Raises EngineMissing without the extra that it needs."""
    try:
        from ragvault.api import mcp as server
    except ImportError as error:
        raise EngineMissing("ragvault mcp", with_extra("mcp"), str(error)) from None
    return server


@app.command()
def install(
    client: Annotated[
        str | None, typer.Argument(metavar="CLIENT", help="claude-code, claude-desktop or cursor.")
    ] = None,
    vaults: Vaults = None,
    print_: Annotated[
        bool, typer.Option("--print", help="Print the entry, for any client, and change nothing.")
    ] = False,
    yes: options.Yes = False,
    quiet: options.Quiet = False,
) -> None:
    """Add ragvault to the settings of an MCP client.

    Shows the change and asks. Everything else in the file stays as it is.

    ragvault mcp install claude-code

    ragvault mcp install cursor --vault sample_vault

    ragvault mcp install --print
    """
    _server()  # an entry for a server that cannot start helps nobody
    ours = entry(vaults or ())
    if print_ or client is None:
        if not print_:
            names = ", ".join(CLIENTS)
            raise UsageError("name a client", fix=f"{names}; for any other one use --print")
        text = json.dumps({SERVERS: {SERVER_NAME: ours}}, indent=2, ensure_ascii=False)
        console.out(text)
        return
    found = change(client, ours)
    if not found.needed:
        console.report(f"{found.path} has this entry already")
        return
    console.report(f"{found.path}:")
    console.out(found.diff())
    if not yes and not _agreed():
        raise typer.Exit(1)
    write(found)
    console.report(f"done; restart {client} to use it")


def _agreed() -> bool:
    refusal = "cannot ask for confirmation: not a terminal"
    return console.confirm("Write this?", fix="add --yes, or use --print", refusal=refusal)


# --- the settings file of a client: only our own entry changes, and only in plain JSON ---


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
        settings = json.loads(before) if before and before.strip() else {}
    except (OSError, ValueError) as error:
        is_text = isinstance(error, json.JSONDecodeError)
        why = f"it is not plain JSON ({error})" if is_text else str(error)
        raise _unusable(path, why) from None
    if not isinstance(settings, dict) or not isinstance(settings.get(SERVERS, {}), dict):
        raise _unusable(path, f"{SERVERS} in it is not an object")
    typed = {"type": "stdio"} if client == "claude-code" else {}
    servers = {**settings.get(SERVERS, {}), SERVER_NAME: {**typed, **ours}}
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
    target = found.path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
    replace_file(target, found.after.encode("utf-8"))
    target.chmod(mode)


# --- HTTP ---


def http_token() -> tuple[str, str]:
    """The token of the HTTP server, and where it comes from. Made once, and private."""
    from ragvault.config.load import data_folder

    if given := os.environ.get(TOKEN):
        return given, f"that of {TOKEN}"
    file: Path = data_folder() / TOKEN_FILE
    if not file.exists():
        make_folder(file.parent)
        replace_file(file, secrets.token_urlsafe(32).encode())
    return file.read_text("ascii").strip(), f"in {file}"
