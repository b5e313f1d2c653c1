"""MCP: the tools as a server of the Model Context Protocol, over stdio or HTTP.

    server(tools)               the SDK's server with our tools, resources and one prompt
    serve_stdio(tools)          until the client hangs up
    serve_http(tools, …)        on 127.0.0.1, for clients that know the token

The SDK speaks the protocol of 2026 (no handshake, every request by itself) and those before it.
Tools run in threads, so a long search does not hold up another one or a discovery. What goes wrong
is the answer of a tool, with its fix, because a model can act on that.
"""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import anyio
import anyio.to_thread
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError

from ragvault import __version__
from ragvault.api.schemas import TOOLS, Tool
from ragvault.api.tools import PROMPT, SCHEME, Tools
from ragvault.errors import RagvaultError, UsageError
from ragvault.text.printable import harmless, one_line, valid_unicode

HOST = "127.0.0.1"
THREADS = 40  # calls at a time; each of them mostly waits for the resident process
ASK = types.Prompt(
    name="ask",
    title="Ask my notes",
    description="Answer a question from the notes, with citations, or say that it is not there.",
    arguments=[types.PromptArgument(name="question", description="The question", required=True)],
)
TEMPLATE = types.ResourceTemplate(
    uri_template=f"{SCHEME}://{{vault}}/{{+path}}",
    name="note",
    title="A note",
    description="A note of a vault by its path, or one section of it: add #heading.",
    mime_type="text/markdown",
)


def server(tools: Tools) -> Server[Any]:
    """The server, ready to be run by any transport. Opens no vault."""
    limiter = anyio.CapacityLimiter(THREADS)

    async def list_tools(_: Any, __: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(tool) for tool in TOOLS])

    async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        def call() -> types.CallToolResult:
            return _called(tools, params.name, params.arguments)

        return await anyio.to_thread.run_sync(call, limiter=limiter)

    async def list_resources(_: Any, __: Any) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[])  # thousands: search finds them

    async def list_templates(_: Any, __: Any) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=[TEMPLATE])

    async def read_resource(
        _: Any, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        try:
            text = await anyio.to_thread.run_sync(tools.resource, params.uri, limiter=limiter)
        except RagvaultError as error:
            raise MCPError(types.INVALID_PARAMS, error_text(error)) from None
        content = types.TextResourceContents(uri=params.uri, mime_type="text/markdown", text=text)
        return types.ReadResourceResult(contents=[content])

    async def list_prompts(_: Any, __: Any) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[ASK])

    async def get_prompt(_: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        question = (params.arguments or {}).get("question", "")
        if params.name != ASK.name or not question.strip():
            wanted = UsageError("the prompt “ask” needs a question", fix="pass question")
            raise MCPError(types.INVALID_PARAMS, error_text(wanted))
        content = types.TextContent(text=PROMPT.format(question=question.strip()))
        message = types.PromptMessage(role="user", content=content)
        return types.GetPromptResult(description=ASK.description, messages=[message])

    return Server(
        "ragvault",
        version=__version__,
        title="ragvault",
        instructions=tools.instructions(),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )


def _described(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.schema,
        annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
    )


def _called(tools: Tools, name: str, arguments: dict[str, Any] | None) -> types.CallToolResult:
    """The answer of a tool, or its error as text."""
    try:
        answer = tools.call(name, arguments)
    except Exception as error:  # nothing may end the server
        content = types.TextContent(text=error_text(error, name))
        return types.CallToolResult(content=[content], is_error=True)
    content = types.TextContent(text=answer.text)
    return types.CallToolResult(content=[content], structured_content=answer.data)


def error_text(error: Exception, name: str = "") -> str:
    """What is wrong, and how to fix it, as the command line says it."""
    if not isinstance(error, RagvaultError):
        why = one_line(f"{type(error).__name__}: {error}")
        return f"{name} failed: {why}\nfix: ragvault doctor"
    what = harmless(str(error))
    return f"{what}\nfix: {one_line(error.fix)}" if error.fix else what


# --- Transports ---


def serve_stdio(tools: Tools) -> None:
    """Serve one client over stdin and stdout until it hangs up."""
    from mcp.server.stdio import stdio_server

    stdin = os.fdopen(os.dup(0), encoding="utf-8", errors="replace")
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)  # no child reads what the client says

    async def lines() -> AsyncIterator[str]:
        async for line in anyio.wrap_file(stdin):
            yield with_whole_characters(line)

    async def run() -> None:
        async with stdio_server(cast("anyio.AsyncFile[str]", lines())) as (read, write):
            made = server(tools)
            await made.run(read, write, made.create_initialization_options())

    anyio.run(run)


def with_whole_characters(message: str) -> str:
    """A message without half a character (a lone surrogate): the SDK would never answer it."""
    if "\\ud" not in message.lower():
        return message
    try:
        value = json.loads(message)
    except (ValueError, RecursionError):
        return message
    return valid_unicode(json.dumps(value, ensure_ascii=False))


def http_app(tools: Tools, token: str, port: int) -> Any:
    """The ASGI application. The SDK checks Host and Origin; the token is checked first."""
    hosts = [f"{host}:{port}" for host in (HOST, "localhost")]  # whole: a prefix is a stranger's
    known = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=hosts,
        allowed_origins=[f"http://{host}" for host in hosts],
    )
    app = server(tools).streamable_http_app(host=HOST, transport_security=known)
    app.add_middleware(_token_required, token=token)
    return app


def serve_http(tools: Tools, port: int, token: str, started: Callable[[int], None]) -> None:
    """Serve on 127.0.0.1 until interrupted. Raises OSError if the port is taken."""
    import socket

    import uvicorn

    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        port = listener.getsockname()[1]
        started(port)
        config = uvicorn.Config(http_app(tools, token, port), log_level="warning", lifespan="on")
        uvicorn.Server(config).run(sockets=[listener])


Scope = dict[str, Any]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Answer = Callable[[Scope, Any, Send], Awaitable[None]]


def _token_required(app: Answer, token: str) -> Answer:
    """Refuses a request without the token, before anything else looks at it."""
    wanted = f"Bearer {token}".encode()

    async def answer(scope: Scope, receive: Any, send: Send) -> None:
        given = dict(scope.get("headers", ())).get(b"authorization", b"")
        if scope["type"] == "http" and not hmac.compare_digest(given, wanted):
            await _refuse(send)
        else:
            await app(scope, receive, send)

    return answer


async def _refuse(send: Send) -> None:
    body = (
        b'{"error": "this server needs its token", '
        b'"fix": "send the header Authorization: Bearer TOKEN; '
        b'ragvault mcp --http shows where it is"}'
    )
    headers = [(b"content-type", b"application/json"), (b"www-authenticate", b"Bearer")]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": body})
