"""ragvault mcp: the server for agents, and its entry in the settings of their programs."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from ragvault.cli import options
from ragvault.cli.render import console
from ragvault.errors import EngineMissing, UsageError

if TYPE_CHECKING:
    from ragvault.api.tools import Search

app = typer.Typer(invoke_without_command=True)

PORT = 8765
TOKEN = "RAGVAULT_MCP_TOKEN"
TOKEN_FILE = "mcp-token"

Vaults = Annotated[
    Optional[list[str]],  # noqa: UP045
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
    try:
        from ragvault.api.mcp import HOST, serve_http, serve_stdio
    except ImportError as error:
        raise EngineMissing("ragvault mcp", "ragvault[mcp]", str(error)) from None
    from ragvault.api.tools import Tools

    tools = Tools(search_for_tools(resident=resident), vaults or ())
    if vaults:
        tools.vaults()  # a wrong name is reported at once
    if not http:
        serve_stdio(tools)
        return
    token, place = http_token()

    def started(port: int) -> None:
        console.report(f"serving on http://{HOST}:{port}/mcp; token: {place}; stop with Ctrl-C")

    try:
        serve_http(tools, port, token, started)
    except OSError as error:
        raise UsageError(
            f"port {port} of {HOST} cannot be used: {error.strerror or error}",
            fix="choose another one with --port",
        ) from None


@app.command()
def install(
    client: Annotated[
        Optional[str],  # noqa: UP045
        typer.Argument(metavar="CLIENT", help="claude-code, claude-desktop or cursor."),
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
    import json

    from ragvault.api import clients

    ours = clients.entry(vaults or ())
    if print_ or client is None:
        if not print_:
            names = ", ".join(clients.CLIENTS)
            raise UsageError("name a client", fix=f"{names}; for any other one use --print")
        text = json.dumps({clients.SERVERS: {clients.NAME: ours}}, indent=2, ensure_ascii=False)
        console.out(text)
        return
    found = clients.change(client, ours)
    if not found.needed:
        console.report(f"{found.path} has this entry already")
        return
    console.report(f"{found.path}:")
    console.out(found.diff())
    if not yes and not console.agree("Write this?", fix="add --yes, or use --print"):
        raise typer.Exit(1)
    clients.write(found)
    console.report(f"done; restart {client} to use it")


# --- how a search is answered ---


def search_for_tools(*, resident: bool) -> Search:
    """Searches in the resident process, or in this one if there is none."""
    from ragvault.api.tools import SearchReply
    from ragvault.cli.ask import search_function

    answer = search_function(resident=resident)
    return lambda args: SearchReply(*answer(args))


def http_token() -> tuple[str, str]:
    """The token of the HTTP server, and where it comes from. Made once, and private."""
    from ragvault.store.files import make_folder, replace_file
    from ragvault.vault import data_folder

    if given := os.environ.get(TOKEN):
        return given, f"that of {TOKEN}"
    file: Path = data_folder() / TOKEN_FILE
    if not file.exists():
        make_folder(file.parent)
        replace_file(file, secrets.token_urlsafe(32).encode())
    return file.read_text("ascii").strip(), f"in {file}"
