"""No command, format or tool hands over a character of a note that acts outside of it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from vault_kit import FAKE, ragvault

from ragvault.api.mcp import _called
from ragvault.api.tools import Tools
from ragvault.cli.search import search_function

ACTING = "\x1b[2J\x1b]0;pwned\x07\x9b2J\u202e\u2028\u2029\x0b\x0c\x85"
ACTS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ud800-\udfff]"
)
NAME = f"quagga {ACTING}"
FORMATS = ("text", "json", "jsonl", "paths", "grep", "markdown", "context")
COMMANDS = (
    *(("search", "quagga", "--format", each) for each in FORMATS),
    ("search", "quagga", "--explain"),
    ("search", f"tag:nowhere{ACTING}"),
    *(("list", what) for what in ("tags", "folders", "properties", "notes")),
    ("list", "notes", "--json"),
    ("read", NAME),
    ("read", NAME, "--json"),
    ("read", NAME, "--heading", f"none {ACTING}"),
    ("read", f"absent {ACTING}"),
    ("links", NAME),
    ("links", NAME, "--json"),
    ("links", NAME, "--path", "other"),
    ("related", NAME),
    ("related", NAME, "--json"),
    ("open", f"absent {ACTING}"),
    ("status", "-v"),
    ("status", "--json"),
    ("doctor",),
    ("vaults",),
    ("config", "show"),
    ("index", "."),
    ("forget", f"absent {ACTING}"),
    ("eval", "--explain", f"absent {ACTING}"),
)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("hostile") / f"vault {ACTING}"
    root.mkdir()
    typed = json.dumps(NAME)
    body = f"---\ntitle: {typed}\naliases: [{typed}]\ntags: [{typed}]\n{typed}: {typed}\n---\n"
    body += f"# {NAME}\n\nquagga {ACTING} [[gone {ACTING}]] [[other]] #t{ACTING}\n\n"
    (root / f"{NAME}.md").write_text(body)
    (root / "other.md").write_text(f"# Other\n\nquagga [[{NAME}]] [[quagga]]\n")
    (root / os.fsdecode(b"quagga \xff.md")).write_text("# Not indexed, but listed\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        for name, value in {**FAKE, "RAGVAULT_HOME": str(root.parent / "home")}.items():
            patch.setenv(name, value)
        assert ragvault("index", root, "-q").code == 0
        yield root


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_writes_a_character_that_acts(hostile, command):
    said = ragvault(*command)

    assert said.out + said.err
    assert not ACTS.search(said.out), said.out
    assert not ACTS.search(said.err), said.err


def test_only_json_and_paths_that_end_in_nul_name_the_file_as_it_is(hostile):
    names = ragvault("search", "quagga", "-0").out.split("\0")

    assert f"{NAME}.md" in names
    assert all((hostile / name).is_file() for name in names if name)
    assert f"{NAME}.md" not in ragvault("search", "quagga", "--format", "paths").out
    lines = ragvault("search", "quagga", "--format", "jsonl").out.splitlines()
    assert f"{NAME}.md" in [json.loads(line)["note"] for line in lines]


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield key
            yield from texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts(each)
    elif isinstance(value, str):
        yield value


CALLS = (
    ("search", {"query": "quagga"}),
    ("search", {"query": "quagga", "detail": "lines"}),
    ("read", {"note": NAME}),
    ("read", {"note": f"absent {ACTING}"}),
    ("related", {"note": NAME}),
    ("links", {"note": NAME}),
    *(("list", {"what": what}) for what in ("vaults", "notes", "tags", "folders", "properties")),
    ("status", {}),
)


@pytest.mark.parametrize(("tool", "arguments"), CALLS, ids=str)
def test_no_tool_answers_with_a_character_that_acts(hostile, tool, arguments):
    answer = _called(Tools(search_function(resident=False)), tool, arguments)

    said = [*texts(answer.structured_content), *(each.text for each in answer.content)]
    assert said
    assert not [each for each in said if ACTS.search(each)]
    answer.model_dump_json()


def test_a_resource_is_quoted_and_has_no_character_that_acts(hostile):
    tools = Tools(search_function(resident=False))
    vault = tools.vaults()[0].name
    text = tools.resource(f"ragvault://{quote(vault, safe='')}/{quote(NAME)}.md")

    assert not ACTS.search(text)
    assert all(line.startswith(">") for line in text.splitlines()[2:])
