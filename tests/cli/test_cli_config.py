"""The program's frame: how commands are found, how they fail, and what `config` does to files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.main import get_command

from ragvault.cli import config, console, main
from ragvault.cli.main import COMMANDS
from ragvault.errors import RagvaultError


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "deep" / "home"
    monkeypatch.setenv("RAGVAULT_HOME", str(folder))
    return folder


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch):
    """Makes `ragvault config check` end with an exception."""

    def fail_with(error: BaseException) -> int:
        def fail(*args, **named):
            raise error

        monkeypatch.setattr(config, "load_settings", fail)
        return main.main(["config", "check"])

    return fail_with


def ragvault(*args: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """The program in a process of its own."""
    command = [sys.executable, "-m", "ragvault", *args]
    variables = os.environ | environ
    return subprocess.run(command, capture_output=True, text=True, env=variables, check=False)


# The frame


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_in_the_help_is_the_first_line_of_the_command(name, capsys):
    assert main.main([name, "--help"]) == 0

    assert COMMANDS[name] in " ".join(capsys.readouterr().out.split())


def test_help_imports_no_command_and_nothing_heavy():
    script = (
        "import sys; from ragvault.cli.main import main; main(['--help']);"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    loaded = set(done.stderr.split())
    heavy = {"msgspec", "pydantic", "rich", "yaml", "numpy", "faiss", "whoosh", "networkx"}
    assert not loaded & (heavy | {f"ragvault.cli.{name}" for name in COMMANDS})


def test_an_error_is_one_line_and_its_cure(failing, capsys):
    class BrokenError(RagvaultError):
        exit_code = 3

    assert failing(BrokenError("the message", fix="the cure")) == 3
    assert capsys.readouterr().err == "ragvault: the message\n     fix: the cure\n"


def test_an_error_cannot_steer_the_terminal(failing, capsys):
    failing(RagvaultError("a\x1b[31mb\nc", fix="d\re"))

    assert capsys.readouterr().err == "ragvault: a\\x1b[31mb\\nc\n     fix: d\\re\n"


def test_an_unexpected_error_asks_to_be_reported_and_shows_no_traceback(failing, capsys):
    assert failing(ZeroDivisionError("division by zero")) == 4

    said = capsys.readouterr().err
    assert said.startswith("ragvault: unexpected ZeroDivisionError: division by zero\n     fix: ")
    assert "RAGVAULT_DEBUG=1" in said
    assert "Traceback" not in said


def test_debug_shows_the_traceback_above_the_error(failing, capsys, monkeypatch):
    monkeypatch.setenv("RAGVAULT_DEBUG", "1")
    failing(RagvaultError("the message", fix="the cure"))

    said = capsys.readouterr().err
    assert said.startswith("Traceback")
    assert said.endswith("ragvault: the message\n     fix: the cure\n")


def test_a_folder_that_may_not_be_read_is_no_bug(failing, capsys):
    assert failing(PermissionError(13, "Permission denied", "/srv/home/vaults")) == 4

    first, second = capsys.readouterr().err.splitlines()
    assert first == "ragvault: /srv/home/vaults cannot be used: Permission denied"
    assert "RAGVAULT_HOME" in second


@pytest.mark.parametrize(
    ("error", "code"),
    [(KeyboardInterrupt(), 130), (typer.Abort(), 130), (typer.Exit(1), 1), (typer.Exit(), 0)],
)
def test_a_command_that_is_ended_says_so_in_its_exit_code_only(error, code, failing, capsys):
    assert failing(error) == code
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("args", "message", "fix"),
    [
        (
            ["confg", "init", "--force"],
            "there is no command “confg”",
            "did you mean ragvault config? To search for it: ragvault search -- confg init --force",
        ),
        (
            ["--versoin"],
            "there is no option --versoin",
            "did you mean --version? To search for it: ragvault search -- --versoin",
        ),
        (["-V"], "there is no option -V", "ragvault --help"),
        (["links"], "missing argument 'NOTE'", "ragvault links --help"),
        (
            ["config", "show", "x"],
            "got unexpected extra argument",
            "ragvault config show --help; to search for these words: ragvault search config show x",
        ),
    ],
)
def test_a_command_that_was_called_wrongly_exits_with_2(args, message, fix, capsys):
    assert main.main(args) == 2

    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(f"ragvault: {message}")
    assert second == f"     fix: {fix}"


def test_without_a_command_the_help_is_shown(capsys):
    assert main.main([]) == 0

    assert "config" in capsys.readouterr().out


def test_quiet_and_verbose_count_before_and_after_the_command(home, capsys):
    def heard(*args: str) -> str:
        main.main(args)
        console.report("talk")
        console.detail("detail")
        return capsys.readouterr().err

    assert heard("config", "check") == "talk\n"
    assert heard("-q", "config", "check") == heard("config", "check", "-q") == ""
    assert heard("-v", "config", "check") == "talk\ndetail\n"


def test_a_reader_that_leaves_is_no_failure():
    command = f"'{sys.executable}' -m ragvault config show --json | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)

    assert (done.stdout, done.stderr) == ("0\n", "")


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("config show >&-", 0, ""),
        ("index . --no-vectors 2>&-", 0, ""),
        ("config show >/dev/full", 4, "there is no space left"),
        ("config show --nonsense 2>/dev/full", 4, ""),
    ],
)
def test_a_stream_that_is_closed_or_full_ends_in_no_traceback(home, tmp_path, command, code, said):
    if "full" in command and not Path("/dev/full").exists():
        pytest.skip("this system has no full device")
    vault = tmp_path / "vault"
    (vault / ".obsidian").mkdir(parents=True)
    (vault / "a.md").write_text("# A\n")
    done = subprocess.run(
        ["bash", "-c", f"'{sys.executable}' -m ragvault {command}"],
        capture_output=True,
        text=True,
        cwd=vault,
        check=False,
    )

    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert "report this" not in done.stderr


def test_the_module_is_the_program_and_a_pipe_gets_plain_lines():
    done = ragvault("config", "--help", FORCE_COLOR="1")

    assert done.returncode == 0
    assert done.stdout.startswith("Usage: ragvault config")
    assert done.stdout.isascii()


# config


def test_init_makes_a_file_and_folders_for_the_user_alone(home, capsys):
    assert main.main(["config", "init"]) == 0

    path = home / "config.toml"
    assert capsys.readouterr().out == f"{path}\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert {each.stat().st_mode & 0o777 for each in (home, home.parent)} == {0o700}


def test_init_never_loses_what_was_there(home, capsys):
    main.main(["config", "init"])
    path = home / "config.toml"
    path.write_text("chunk.overlap = 7")

    assert main.main(["config", "init"]) == 2
    assert path.read_text() == "chunk.overlap = 7"
    assert "--force" in capsys.readouterr().err

    assert main.main(["config", "init", "--force"]) == 0
    assert main.main(["config", "init", "--force"]) == 0
    assert (home / "config.toml.1").read_text() == "chunk.overlap = 7"
    assert (home / "config.toml.2").exists()
    assert path.stat().st_mode & 0o777 == 0o600


def test_init_writes_through_a_link(home, tmp_path):
    home.mkdir(parents=True)
    (home / "config.toml").symlink_to(tmp_path / "dotfiles.toml")

    assert main.main(["config", "init", "--force"]) == 0
    assert (home / "config.toml").is_symlink()
    assert "[chunk]" in (tmp_path / "dotfiles.toml").read_text()


def test_init_that_cannot_write_says_why(home, capsys):
    home.parent.mkdir()
    home.write_text("a file where the folder should be")

    assert main.main(["config", "init"]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_show_tells_programs_the_same_as_people(home, tmp_path, capsys):
    (tmp_path / ".ragvault.toml").write_text("chunk.overlap = 7")

    main.main(
        ["config", "show", "--vault", str(tmp_path), "--json", "--set", "chunk.child_max=999"]
    )

    shown = json.loads(capsys.readouterr().out)
    origin = f"vault file {tmp_path / '.ragvault.toml'}"
    assert shown["settings"]["chunk.overlap"] == {"value": 7, "origin": origin}
    assert shown["settings"]["chunk.child_max"] == {"value": 999, "origin": "flag"}
    assert shown["files"] == [str(tmp_path / ".ragvault.toml")]
    assert shown["data_folder"] == str(home)


def test_a_file_name_that_is_not_unicode_can_be_shown(home):
    done = ragvault("config", "show", "--json", RAGVAULT_HOME="/tmp/caf\udce9")

    assert done.returncode == 0
    assert json.loads(done.stdout)["data_folder"] == "/tmp/caf\udce9"


def test_check_of_a_file_and_a_vault_at_once_is_refused(home, tmp_path):
    assert main.main(["config", "check", "some.toml", "--vault", str(tmp_path)]) == 2


def test_the_commands_of_config_are_those_of_the_contract():
    assert list(get_command(config.app).commands) == ["init", "show", "check"]


def test_check_refuses_a_language_that_the_chosen_engine_cannot_stem(tmp_path):
    settings = tmp_path / "config.toml"
    chosen = '[keyword]\nstemming = "basque"\n'
    settings.write_text(chosen, "utf-8")
    assert ragvault("config", "check", str(settings)).returncode == 0
    settings.write_text(f'{chosen}engine = "tantivy"\n', "utf-8")
    said = ragvault("config", "check", str(settings))
    assert said.returncode == 2
    assert 'keyword.stemming = "basque" is no language that tantivy can stem' in said.stderr
