"""The commands: all documented, with examples that work, quick to ask for help, completed."""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import pytest
from vault_kit import FAKE, SAMPLE, indexed_sample, ragvault, sample, vault

from ragvault.cli import main
from ragvault.config import profiles
from ragvault.query.operators import OPERATORS

__all__ = ["indexed_sample", "sample", "vault"]
PAGE = (Path(__file__).parents[2] / "docs" / "commands.md").read_text("utf-8")


def options(command: Any) -> set[str]:
    found = [each for each in command.params if each.param_type_name == "option"]
    return {name for each in found for name in (*each.opts, *each.secondary_opts)}


def commands() -> Iterator[tuple[str, Any]]:
    """Every command of the program that can be called, with its parameters."""
    for name in main.COMMANDS:
        command = main._imported(name)
        inner = getattr(command, "commands", None)
        if inner is None or options(command):  # some groups do something by themselves
            yield name, command
        if inner is not None:
            yield from ((f"{name} {each}", below) for each, below in inner.items())


PROGRAM = dict(commands())


@pytest.mark.parametrize("name", PROGRAM)
def test_every_command_and_option_is_documented(name):
    below = PAGE.split(f"\n## ragvault {name.split()[0]}\n")[1].split("\n## ")[0]

    if " " in name:
        assert f"`ragvault {name}" in below
    for option in options(PROGRAM[name]):
        assert re.search(rf"`{re.escape(option)}[` ]", below), option


@pytest.mark.parametrize("name", PROGRAM)
def test_every_option_is_explained_and_the_help_has_an_example(name):
    said = ragvault(*name.split(), "--help")

    assert said.code == 0
    assert f"\n  ragvault {name}" in said.out
    for each in PROGRAM[name].params:
        assert getattr(each, "help", "") or each.param_type_name == "argument", each.name


def test_help_names_every_operator_and_explains_them_offline():
    listed, explained = ragvault("search", "--help").out, ragvault("help", "operators").out

    for name in OPERATORS:
        assert re.search(rf"\s{name}:\s", listed), name
        assert f" {name}:" in explained, name
    assert "ragvault help operators" in " ".join(listed.split())


# They wait for events, fetch from the network, or take long; their own tests run them.
ELSEWHERE = (
    "watch",
    "doctor",
    "models pull",
    "models path",
    "eval",
    "tune",
    "open",
    "mcp",
    "mcp install",
)
DELETING = ("forget", "vaults remove", "purge")


def examples(names: Iterable[str]) -> list[str]:
    """The example lines of the help of these commands."""
    pages = [ragvault(*name.split(), "--help").out for name in names]
    return [line for page in pages for line in re.findall(r"(?m)^  (ragvault .+)$", page)]


def test_the_examples_of_the_help_work_on_the_sample_vault(tmp_path, monkeypatch):
    shutil.copytree(SAMPLE, tmp_path / "sample_vault")
    monkeypatch.chdir(tmp_path)
    for name, value in {**FAKE, "RAGVAULT_HOME": str(tmp_path / "home")}.items():
        monkeypatch.setenv(name, value)
    assert ragvault("index", "sample_vault", "-q").code == 0
    harmless = (name for name in PROGRAM if name not in (*ELSEWHERE, *DELETING))
    for line in [*examples(harmless), *examples(name for name in DELETING if name in PROGRAM)]:
        words = shlex.split(line.partition(" | ")[0])[1:]
        asks = words[0] == "purge" or words[:2] == ["vaults", "remove"]

        said = ragvault(*words, *(["--yes"] if asks else ()))

        assert (said.code, "Traceback" in said.err) in ((0, False), (1, False)), (line, said)


def test_help_loads_nothing_heavy():
    script = (
        "import sys; from ragvault.cli.main import main\n"
        "for name in sys.argv[1:]: assert main([*name.split(), '--help']) == 0\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    command = [sys.executable, "-c", script, "", *main.COMMANDS]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    heavy = {
        "numpy",
        "faiss",
        "whoosh",
        "networkx",
        "onnxruntime",
        "tokenizers",
        "torch",
        "rich",
        "mcp",
    }
    assert not set(done.stderr.split()) & heavy


def test_plain_output_never_imports_rich(sample):
    script = (
        "import sys; from ragvault.cli.main import main\n"
        "for line in sys.argv[1:]: main(line.split())\n"
        "print('rich' in sys.modules, file=sys.stderr)"
    )
    lines = ["index -q", "search bread -q", "status", "links Steam", "related Steam", "models list"]
    done = subprocess.run(
        [sys.executable, "-c", script, *lines], capture_output=True, text=True, cwd=sample
    )

    assert done.stderr.splitlines()[-1] == "False"
    assert "\x1b" not in done.stdout + done.stderr


def test_a_leg_that_hangs_does_not_keep_the_command_from_ending(sample):
    script = (
        "import threading; from ragvault.cli.start import run\n"
        "from ragvault.retrieve.gather import SEARCHES\n"
        "SEARCHES['code'] = lambda *asked: threading.Event().wait()\n"
        "run()"
    )
    line = ["search", "bread", "--set", "retrieve.seconds=0.2", "--format", "paths"]
    command = [sys.executable, "-c", script, *line]
    done = subprocess.run(command, capture_output=True, text=True, cwd=sample, timeout=60)

    assert done.returncode == 0
    assert done.stdout.splitlines()
    assert "code did not answer: no answer within 0.2 s" in done.stderr


# Completion


def completed(line: str, shell: str = "bash") -> list[str]:
    """What a shell would offer at the end of a line."""
    words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    out = asked_by(shell, words)
    return out.split("\n")[:-1] if out.strip() else []


def asked_by(shell: str, how: dict[str, str]) -> str:
    """What the program writes for the script of a shell, which asks through the environment.

    In this process; test_completion.py has real shells.
    """
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        for name, value in {**how, "_RAGVAULT_COMPLETE": f"complete_{shell}"}.items():
            patch.setenv(name, value)
        with suppress(SystemExit):
            main.main([])
    assert err.getvalue() == ""
    return out.getvalue()


def test_a_shell_completes_commands_and_options():
    assert completed("ragvault st") == ["status"]
    assert completed("ragvault config ch") == ["check"]
    assert completed("ragvault index --reb") == ["--rebuild"]


def test_a_shell_completes_the_names_of_vaults(sample):
    assert completed("ragvault status --vault ") == ["vault"]
    assert completed("ragvault status --vault va") == ["vault"]
    assert completed("ragvault status --vault x") == []


def test_a_shell_completes_notes_and_models(sample):
    assert completed("ragvault links Tech")[:2] == [
        "Technique/Autolyse.md",
        r"Technique/Bulk\ Fermentation.md",
    ]
    assert completed("ragvault models verify ms") == ["ms-marco-MiniLM-L-12-v2"]
    assert completed("ragvault search --profile qu") == [
        name for name in profiles.names() if name.startswith("qu")
    ]


def test_a_shell_completes_file_names_titles_and_aliases(sample):
    assert completed("ragvault related Stea") == ["Steam"]
    assert completed("ragvault related Ray") == [r"Raymond\ Calvel"]
    assert completed("ragvault links Steam --path Bread") == [r"Bread\ Notebook", r"Bread\ doctor"]


def test_a_mistake_in_the_settings_does_not_disturb_completion(tmp_path, monkeypatch):
    monkeypatch.setenv("RAGVAULT_HOME", str(tmp_path))
    (tmp_path / "config.toml").write_text("nonsense")

    assert completed("ragvault status --vault ") == []
    assert completed("ragvault links ") == []


@pytest.mark.parametrize(
    ("shell", "file", "line"),
    [
        ("bash", ".bash_completions/ragvault.sh", "complete -o default -F _ragvault_completion"),
        ("zsh", ".zfunc/_ragvault", "compdef _ragvault_completion ragvault"),
        ("fish", ".config/fish/completions/ragvault.fish", "complete --command ragvault"),
    ],
)
def test_what_is_installed_for_a_shell_asks_ragvault(tmp_path, shell, file, line):
    # The shell is told and not detected: a test has none around it.
    how = {"HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    command = [sys.executable, "-m", "ragvault", "--install-completion", shell]
    subprocess.run(command, capture_output=True, check=True, env=os.environ | how)
    script = (tmp_path / file).read_text()

    assert line in script
    assert f"_RAGVAULT_COMPLETE=complete_{shell}" in script


def offered(shell: str, line: str) -> str:
    """What zsh or fish is told to offer at the end of a line, asked as its script asks."""
    how = {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    return asked_by(shell, how).strip()


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_complete_commands_options_and_names(shell, sample):
    assert "status" in offered(shell, "ragvault st")
    assert "search" not in offered(shell, "ragvault st")
    assert "--rebuild" in offered(shell, "ragvault index --reb")
    assert "vault" in offered(shell, "ragvault status --vault va")


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["status", "--vault", "vault"], 0),
        (["links", "Steam"], 0),
        (["vaults", "remove", "nowhere"], 2),
    ],
)
def test_a_command_works_from_a_folder_that_was_deleted(sample, tmp_path, monkeypatch, args, code):
    (tmp_path / "deleted").mkdir()
    monkeypatch.chdir(tmp_path / "deleted")
    (tmp_path / "deleted").rmdir()

    assert ragvault(*args).code == code


@pytest.mark.parametrize(
    "args", [["vaults", "remove", "~no-such-user"], ["links", "~no-such-user"]]
)
def test_a_name_with_a_tilde_that_means_nobody_is_a_mistake_and_not_ours(sample, args):
    said = ragvault(*args)

    assert said.code == 2
    assert "unexpected" not in said.err


def test_an_empty_name_is_not_the_current_folder(sample, monkeypatch):
    monkeypatch.chdir(sample / "Technique")

    assert ragvault("forget", "").code == 2


# Obeyed by some terminals, or changes the order of what is shown: a C1 control, line separators,
# bidi controls.
CONTROLS = "\x85\x9b\u061c\u200f\u2028\u2029\u202e\u2066"


SAYING = (
    ["status"],
    ["links", "odd"],
    ["related", "plain"],
    ["links", "odd", "--path", "plain"],
    ["search", "gnu"],
    ["search", "gnu", "--format", "jsonl"],
    ["forget", "plain"],
)


def test_no_control_character_of_a_note_reaches_json(tmp_path, monkeypatch):
    for name, value in {**FAKE, "RAGVAULT_HOME": str(tmp_path / "home")}.items():
        monkeypatch.setenv(name, value)
    root = tmp_path / "notes"
    odd = root / f"a{CONTROLS}b"
    odd.mkdir(parents=True)
    (odd / "odd.md").write_text(f"# Odd {CONTROLS}\n\nA gnu. [[plain]] [[no{CONTROLS}where]]\n")
    (root / "plain.md").write_text("# Plain\n\nA gnu. [[odd]]\n")
    assert ragvault("index", root, "-q").code == 0

    for command in SAYING:
        found = ragvault(*command, *(() if "--format" in command else ("--json",)))
        assert found.code == 0, command
        assert not set(found.out) & set(CONTROLS), command
        if command != ["forget", "plain"]:
            assert "\\u009b" in found.out, command
            assert "\\u202e" in found.out, command


LONG = ("x" * 300, "/".join(["y" * 250] * 30))


def calls_with_text() -> Iterator[list[str]]:
    """Each command with a place for each argument and each option that takes text."""
    for name, command in PROGRAM.items():
        first = ["notes"] if name == "list" else []
        for each in command.params:
            kind = type(each.type).__name__
            if kind not in ("StringParamType", "TyperPath") or each.name in ("write", "plot"):
                continue
            call = [*name.split(), *first]
            if each.param_type_name == "option":
                required = [other for other in command.params if other.required]
                call += [*(["plain"] * len(required)), each.opts[0]]
            yield call


@pytest.fixture(scope="module")
def indexed_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A vault of one note, which no command with such a name changes."""
    root = tmp_path_factory.mktemp("long") / "vault"
    root.mkdir()
    (root / "plain.md").write_text("# Plain\n\nBread.\n")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**FAKE, "RAGVAULT_HOME": str(root.parent / "home")}.items():
            patch.setenv(name, value)
        assert ragvault("index", root, "-q").code == 0
        yield root


@pytest.mark.parametrize("long", LONG, ids=["name", "path"])
@pytest.mark.parametrize("call", [*calls_with_text()], ids=" ".join)
def test_a_name_that_no_file_can_have_is_no_bug(indexed_once, monkeypatch, call, long):
    monkeypatch.chdir(indexed_once)
    said = ragvault(*call, long)

    assert said.code <= 4
    assert "unexpected" not in said.err
