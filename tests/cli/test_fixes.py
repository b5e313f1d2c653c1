"""Fixes can be followed: every command, option and package that one names is the one meant."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import vault_kit
from test_commands import PROGRAM, options

import ragvault
from ragvault.cli.commands import OWN_OPTIONS
from ragvault.errors import (
    DISTRIBUTION,
    IndexBehind,
    IndexMissing,
    ModelUnavailable,
    ModelUnusable,
    RagvaultError,
    VaultEmptied,
    install_command,
    with_extra,
)
from ragvault.store.layout import KnownVault
from ragvault.vault import absence

PACKAGE = Path(ragvault.__file__).parent
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
COMMAND = re.compile(r"(?<!what )ragvault ((?:[a-z]+)(?: [a-z]+)?)((?: [^;,.()]*)?)")
EVERY = {name for command in PROGRAM.values() for name in options(command)} | set(OWN_OPTIONS)
# Options of other programs that fixes name.
FOREIGN = {"--force-reinstall", "--upgrade"}


def texts(node: ast.AST) -> Iterator[str]:
    """The literal texts in an expression; a value in the middle of one becomes X."""
    if isinstance(node, ast.JoinedStr):
        parts = (each.value if isinstance(each, ast.Constant) else "X" for each in node.values)
        yield "".join(map(str, parts))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    else:
        for child in ast.iter_child_nodes(node):
            yield from texts(child)


def fixes() -> Iterator[tuple[str, str]]:
    """Every fix in the source: keyword arguments, and names that end in FIX or hold a fix."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "fix":
                yield from ((path.name, text) for text in texts(node.value))
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Finding":
                yield from ((path.name, text) for each in node.args[3:] for text in texts(each))


FIXES = sorted(set(fixes()))


def test_there_are_many_fixes():
    assert len(FIXES) > 100


@pytest.mark.parametrize("option", sorted({o for _, text in FIXES for o in OPTION.findall(text)}))
def test_an_option_in_a_fix_exists(option):
    assert option in EVERY | FOREIGN


NAMED = [(text, *found) for _, text in FIXES for found in COMMAND.findall(text)]


@pytest.mark.parametrize(("text", "words", "rest"), NAMED)
def test_a_command_in_a_fix_exists_and_has_the_options_it_is_given(text, words, rest):
    first = words.split()[0]
    names = [name for name in (words, first) if name in PROGRAM]
    groups = {name.split()[0] for name in PROGRAM}
    assert names or first in groups, text
    if names:
        assert set(OPTION.findall(rest)) <= options(PROGRAM[names[0]]) | {"--help"}, text


# --- a shell takes them ---

AWKWARD = "My Notes (1) & Ann's"


def awkward_errors() -> list[RagvaultError]:
    """Every error whose fix has a path or a name in a command."""
    path = Path("/home/ann", AWKWARD)
    gone = KnownVault(AWKWARD, path, path, created="2026-11-19")
    return [
        IndexMissing(path),
        IndexBehind(path, "1 file has changed"),
        VaultEmptied(path, 3),
        ModelUnavailable(str(path), []),
        ModelUnusable(str(path), "it is damaged"),
        *filter(None, [absence(gone)]),
    ]


@pytest.mark.parametrize("error", awkward_errors(), ids=lambda error: type(error).__name__)
def test_a_command_in_a_fix_has_the_path_as_one_word(error):
    commands = re.findall(
        r"ragvault (?:index|vaults remove|models pull) [^;]*?(?=, or|;|$)", error.fix
    )

    assert commands
    for command in commands:
        assert AWKWARD in " ".join(each for each in shlex.split(command) if AWKWARD in each)


def test_a_vault_with_spaces_and_brackets_in_its_path_gets_a_fix_that_works(tmp_path, monkeypatch):
    monkeypatch.setenv("RAGVAULT_HOME", str(tmp_path / "home"))
    root = tmp_path / AWKWARD
    root.mkdir()
    (root / "a.md").write_text("# Rye\n")
    fix = vault_kit.ragvault("status", "--vault", root).err.partition("fix: ")[2]

    name, *args = shlex.split(fix)
    assert name == "ragvault"
    assert vault_kit.ragvault(*args, "--tier", "keyword", "-q").code == 0


# --- the name that pip knows ---

TOP = PACKAGE.parent
READ_BY_USERS = sorted(
    path
    for pattern in (
        "*.md",
        "docs/*.md",
        "skills/**/*.md",
        "config.toml.example",
        "ragvault/**/*.py",
    )
    for path in TOP.glob(pattern)
)
# A project of somebody else is called `ragvault` in the package index; ours is ragvault-search.
STRANGERS = re.compile(
    r"(?<![\w.-])ragvault\["
    r"|\b(?:pipx?|uv(?: tool| pip)?) (?:un)?install[^\n`#;]*?(?<![\w-])ragvault(?!-search)"
)
UNQUOTED = re.compile(r"""(?<!["'])ragvault-search\[|\binstall [^\n`]*(?<!["'])\.\[""")


@pytest.mark.parametrize("path", READ_BY_USERS, ids=lambda path: str(path.relative_to(TOP)))
def test_no_page_or_message_installs_the_project_of_a_stranger(path):
    text = path.read_text("utf-8")
    assert not STRANGERS.findall(text)
    assert not UNQUOTED.findall(text), "a shell reads the brackets as a pattern"


@pytest.mark.parametrize(
    "text",
    [
        "ragvault[mcp]",
        "pip install ragvault",
        "pipx uninstall ragvault  # the program",
        "uv tool install ragvault",
        "pip install --no-index --find-links wheels ragvault\n",
    ],
)
def test_the_name_of_the_strangers_project_is_noticed(text):
    assert STRANGERS.search(text)


def test_the_package_has_the_name_that_the_messages_give_it():
    project = (TOP / "pyproject.toml").read_text("utf-8")
    assert f'\nname = "{DISTRIBUTION}"' in project
    assert install_command(with_extra("mcp")) == 'pip install "ragvault-search[mcp]"'
