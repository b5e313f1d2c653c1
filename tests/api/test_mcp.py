"""MCP as clients meet it: in memory, over stdio and over HTTP, in the new protocol and the old."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from vault_kit import FAKE, indexed_sample, sample

from ragvault import __version__
from ragvault.api.mcp import server
from ragvault.api.tools import Tools
from ragvault.cli.search import search_function
from ragvault.errors import RagvaultError
from ragvault.service.process import running_watcher, stop_watcher
from tests.watch_kit import Home, remove

__all__ = ["indexed_sample", "sample"]

MODES = ("auto", "legacy")  # 2026-07-28, and the handshake before it
TOKEN = "the-token-of-this-test"
TRANSCRIPT = Path(__file__).parent / "mcp-transcript.txt"
COMMAND = [sys.executable, "-m", "ragvault", "mcp"]


def environment(home: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return kept | FAKE | {"RAGVAULT_HOME": str(home), "CI": "true", "RAGVAULT_MCP_TOKEN": TOKEN}


async def exchange(client: Client) -> dict[str, object]:
    """Everything a client does, once."""
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    searched = await client.call_tool("search", {"query": "steam in the oven", "limit": 2})
    listed = await client.call_tool("list", {"what": "tags", "limit": 2})
    wrong = await client.call_tool("search", {"query": "x", "limit": 999})
    read = await client.read_resource("ragvault://vault/Technique/Steam.md#Safety")
    templates = await client.list_resource_templates()
    prompt = await client.get_prompt("ask", {"question": "why steam?"})
    return {
        "version": client.protocol_version,
        "instructions": client.instructions,
        "tools": tools,
        "searched": searched,
        "listed": listed,
        "wrong": wrong,
        "read": read.contents[0].text,
        "templates": [each.uri_template for each in templates.resource_templates],
        "resources": (await client.list_resources()).resources,
        "prompts": [each.name for each in (await client.list_prompts()).prompts],
        "prompt": prompt.messages[0].content.text,
    }


def check(found: dict[str, object], mode: str) -> None:
    assert found["version"] == ("2026-07-28" if mode == "auto" else "2025-11-25")
    assert "vault" in found["instructions"]
    assert len(found["instructions"]) <= 500
    assert list(found["tools"]) == [
        "search", "search_with_hypothesis", "read", "related", "links", "list", "status"
    ]  # fmt: skip
    for tool in found["tools"].values():
        assert tool.annotations.read_only_hint is True
        assert tool.annotations.open_world_hint is False
    searched, listed, wrong = found["searched"], found["listed"], found["wrong"]
    assert "[1] vault/" in searched.content[0].text
    assert searched.structured_content is None
    assert json.loads(listed.content[0].text) == listed.structured_content
    assert wrong.is_error
    assert wrong.content[0].text == (
        "limit cannot be 999\nfix: limit is a whole number from 1 to 30"
    )
    assert "\n> ## Safety\n" in found["read"]
    assert found["templates"] == ["ragvault://{vault}/{+path}"]
    assert (found["resources"], found["prompts"]) == ([], ["ask"])
    assert "why steam?" in found["prompt"]


def talk(target, mode: str) -> dict[str, object]:
    async def run():
        async with Client(target, mode=mode) as client:
            return await exchange(client)

    return anyio.run(run)


# --- in memory ---


@pytest.mark.parametrize("mode", MODES)
def test_in_memory(sample, mode):
    check(talk(server(Tools(search_function(resident=False))), mode), mode)


def test_all_tools_together_are_described_in_9000_characters(sample):
    found = talk(server(Tools(search_function(resident=False))), "auto")
    described = [
        tool.model_dump_json(by_alias=True, exclude_none=True) for tool in found["tools"].values()
    ]
    assert sum(map(len, described)) <= 9000
    assert all(len(tool.description) <= 1000 for tool in found["tools"].values())


def test_tools_are_listed_before_anything_is_opened(sample, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a vault was opened")

    monkeypatch.setattr("ragvault.vault.Vault.open", refuse)
    monkeypatch.setattr("ragvault.store.catalogue.Catalogue.open", refuse)

    async def run():
        async with Client(server(Tools(refuse)), mode="auto") as client:
            await client.list_prompts()
            return len((await client.list_tools()).tools)

    assert anyio.run(run) == 7


def test_an_error_of_a_resource_or_prompt_has_its_fix(sample):
    async def run():
        async with Client(server(Tools(search_function(resident=False)))) as client:
            errors = []
            for act in (
                client.read_resource("ragvault://vault/../../etc/passwd"),
                client.get_prompt("ask", {}),
            ):
                with pytest.raises(MCPError) as error:
                    await act
                errors.append(error.value.error.message)
            return errors

    assert all("fix:" in message for message in anyio.run(run))


def test_a_tool_that_breaks_is_an_answer_and_the_next_call_works(sample):
    replies = iter([ZeroDivisionError("boom"), RagvaultError("bad", fix="x")])

    def search(request):
        raise next(replies)

    async def run():
        async with Client(server(Tools(search))) as client:
            return [(await client.call_tool("search", {"query": "a"})) for _ in range(2)]

    first, second = anyio.run(run)
    assert first.is_error
    assert "ZeroDivisionError: boom" in first.content[0].text
    assert second.content[0].text == "bad\nfix: x"


def test_a_long_call_does_not_hold_up_the_others(sample):
    go = threading.Event()

    def search(request):
        go.wait(60)
        raise RagvaultError("slow", fix="x")

    async def run():
        async with Client(server(Tools(search))) as client, anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "search", {"query": "a"})
            await anyio.sleep(0.05)
            listed = len((await client.list_tools()).tools)
            go.set()
            return listed

    assert anyio.run(run) == 7


# --- stdio ---


@pytest.mark.parametrize("mode", MODES)
def test_over_stdio(indexed_sample, mode):
    made = StdioServerParameters(
        command=COMMAND[0],
        args=[*COMMAND[1:], "--no-resident"],
        env=environment(indexed_sample / "home"),
    )
    check(talk(made, mode), mode)


def test_the_raw_messages_are_those_of_the_transcript(indexed_sample, request):
    """`-> request` and `<- answer`, one JSON-RPC message a line; --update-transcripts rewrites."""
    lines = TRANSCRIPT.read_text("utf-8").splitlines()
    sent = [line.removeprefix("-> ") for line in lines if line.startswith("-> ")]
    with subprocess.Popen(
        [*COMMAND, "--no-resident"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(indexed_sample / "home"),
        text=True,
    ) as process:
        made = []
        for message in sent:
            process.stdin.write(message + "\n")
            process.stdin.flush()
            made.append(f"-> {message}")
            if "id" in json.loads(message):
                made.append(f"<- {_normal(process.stdout.readline().strip())}")
        process.stdin.close()
        assert process.wait(60) == 0
        assert process.stderr.read() == ""
    comments = [line for line in lines if line.startswith("#")]
    if request.config.getoption("--update-transcripts"):
        TRANSCRIPT.write_text("\n".join([*comments, *made]) + "\n", "utf-8")
    assert [*comments, *made] == TRANSCRIPT.read_text("utf-8").splitlines()


HALVES = (r"\ud83c", r"\uDF5E bread", r"\ud83c\udf5e", r"\\ud83c")


def test_half_a_character_in_an_argument_is_answered(indexed_sample):
    called = '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%s}'
    params = ['{"name":"search","arguments":{"query":"' + text + '"}}' for text in HALVES]
    calls = [called % call for call in enumerate(params, start=100)]
    sent = [line[3:] for line in TRANSCRIPT.read_text("utf-8").splitlines() if line[:3] == "-> "]
    with subprocess.Popen(
        [*COMMAND, "--no-resident"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(indexed_sample / "home"),
        text=True,
    ) as process:
        greeting = next(line for line in sent if '"initialize"' in line)
        answers = []
        for message in (greeting, *calls):
            process.stdin.write(f"{message}\n")
            process.stdin.flush()
            answers.append(json.loads(process.stdout.readline()))
        process.communicate(timeout=60)
    assert [each["id"] for each in answers[1:]] == [100, 101, 102, 103]
    assert all("result" in each for each in answers)


def _normal(line: str) -> str:
    answer = json.loads(line)
    for tool in answer.get("result", {}).get("tools", ()):
        tool["inputSchema"] = "…"
        tool["description"] = "…"
    return json.dumps(answer, sort_keys=True, ensure_ascii=False).replace(__version__, "<version>")


# --- HTTP ---


@pytest.fixture(scope="module")
def port(indexed_sample):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number = free.getsockname()[1]
    process = subprocess.Popen(
        [*COMMAND, "--http", "--port", str(number), "--no-resident"],
        env=environment(indexed_sample / "home"),
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert f"http://127.0.0.1:{number}/mcp" in process.stderr.readline()
        _wait_for(number)
        yield number
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def _wait_for(port: int) -> None:
    for _ in range(200):
        try:
            httpx2.get(f"http://127.0.0.1:{port}/", timeout=5)
            return
        except httpx2.TransportError:  # noqa: PERF203
            time.sleep(0.1)
    raise AssertionError("the server does not answer")


@pytest.mark.parametrize("mode", MODES)
def test_over_http(port, mode):
    async def run():
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            transport = streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=http)
            async with Client(transport, mode=mode) as client:
                return await exchange(client)

    check(anyio.run(run), mode)


@pytest.mark.parametrize(
    ("headers", "status", "said"),
    [
        ({}, 401, "needs its token"),
        ({"Authorization": "Bearer wrong"}, 401, "needs its token"),
        ({"Authorization": f"Bearer {TOKEN}", "Host": "evil.example"}, 421, "Host"),
        ({"Authorization": f"Bearer {TOKEN}", "Host": "127.0.0.1:1"}, 421, "Host"),
        ({"Authorization": f"Bearer {TOKEN}", "Host": "localhost:80@evil.example"}, 421, "Host"),
        ({"Authorization": f"Bearer {TOKEN}", "Origin": "https://evil.example"}, 403, "Origin"),
        (
            {"Authorization": f"Bearer {TOKEN}", "Origin": "http://127.0.0.1:80.evil.example"},
            403,
            "Origin",
        ),
    ],
)
def test_http_refuses_strangers_with_a_reason(port, headers, status, said):
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accept = {"Accept": "application/json, text/event-stream"}
    answer = httpx2.post(f"http://127.0.0.1:{port}/mcp", json=message, headers=accept | headers)
    assert answer.status_code == status
    assert said in answer.text
    assert "search_with_hypothesis" not in answer.text


def test_a_port_that_is_taken_is_an_error_with_a_fix(port, indexed_sample):
    env = environment(indexed_sample / "home")
    found = subprocess.run(
        [*COMMAND, "--http", "--port", str(port)], env=env, capture_output=True, text=True
    )
    assert found.returncode == 2
    assert "choose another one with --port" in found.stderr


# --- the resident process ---


@pytest.fixture
def home():
    made = Home()
    made.env.pop("CI", None)
    made.vault().index()
    try:
        yield made
    finally:
        if found := running_watcher(made.env):
            stop_watcher(found, made.env)
        remove(made.folder)


def test_agents_share_the_resident_process_load_no_model_and_survive_its_death(home, monkeypatch):
    for name, value in home.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("CI", raising=False)
    program = (
        "import sys\n"
        "from ragvault.api.tools import Tools\n"
        "from ragvault.cli.search import search_function\n"
        "print(Tools(search_function(resident=True)).call('search', {'query': 'steam'}).text)\n"
        "print({'onnxruntime', 'faiss', 'tokenizers', 'ragvault.models.fake'} & set(sys.modules))\n"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "[1] notes/" in found.stdout, found.stderr
    assert found.stdout.splitlines()[-1] == "set()"
    first = running_watcher(home.env)
    assert first is not None

    tools = Tools(search_function(resident=True))
    with ThreadPoolExecutor(20) as clients:
        answers = list(
            clients.map(lambda n: tools.call("search", {"query": f"steam {n}"}).text, range(20))
        )
    assert all("[1] notes/" in answer for answer in answers)
    assert running_watcher(home.env).pid == first.pid

    refusals = []
    for resident in (True, False):
        with pytest.raises(RagvaultError) as refused:
            Tools(search_function(resident=resident)).call("search", {"query": "steam in:nowhere"})
        refusals.append((str(refused.value), refused.value.fix, refused.value.exit_code))
    assert refusals[0] == refusals[1]

    os.kill(first.pid, signal.SIGKILL)
    assert "[1] notes/" in tools.call("search", {"query": "steam"}).text
    assert running_watcher(home.env).pid != first.pid


@pytest.mark.parametrize("args", [["mcp"], ["mcp", "install", "cursor", "--yes"]])
def test_without_the_package_the_command_says_what_to_install(tmp_path, args):
    program = f"import sys; sys.modules['mcp'] = None; sys.argv = {['ragvault', *args]!r}\n"
    program += "from ragvault.cli.start import run; run()"
    environ = {**os.environ, "HOME": str(tmp_path)}
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environ
    )
    assert (found.returncode, found.stdout) == (4, "")
    assert 'fix: pip install "ragvault-search[mcp]"' in found.stderr
    assert not list(tmp_path.iterdir()), "no entry for a server that cannot start"
