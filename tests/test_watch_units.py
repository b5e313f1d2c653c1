"""What starts a watcher at every login, and its log."""

from __future__ import annotations

import plistlib
import shlex
import sys
from pathlib import Path

import pytest

from ragvault.service.logs import OLDER, Log, unexpected
from ragvault.service.units import launchd, systemd

ODD = [Path("/home/me/my notes"), Path('/home/me/100% "quoted" $HOME')]


@pytest.fixture(autouse=True)
def _home(monkeypatch):
    monkeypatch.setenv("RAGVAULT_HOME", "/home/me/rag vault & more")


def test_the_plist_is_one_and_holds_every_path_as_it_is():
    found = plistlib.loads(launchd(ODD).encode())

    command = [sys.executable, "-m", "ragvault", "watch", "--quiet", *map(str, ODD)]
    assert found["ProgramArguments"] == command
    assert found["EnvironmentVariables"]["RAGVAULT_HOME"] == "/home/me/rag vault & more"


def test_the_unit_starts_the_watcher_with_every_path_quoted():
    lines = dict(
        line.split("=", 1) for line in systemd(ODD).splitlines() if "=" in line and line[0] != "#"
    )

    # systemd unquotes as a shell does, and then halves % and $.
    command = [
        part.replace("%%", "%").replace("$$", "$") for part in shlex.split(lines["ExecStart"])
    ]
    assert command == [sys.executable, "-m", "ragvault", "watch", "--quiet", *map(str, ODD)]
    assert shlex.split(lines["Environment"]) == ["RAGVAULT_HOME=/home/me/rag vault & more"]


def test_a_dollar_is_doubled_in_the_command_and_nowhere_else(monkeypatch):
    """systemd puts variables into commands, and into no other line."""
    monkeypatch.setenv("RAGVAULT_HOME", "/home/me/100% $HOME")

    assert 'Environment="RAGVAULT_HOME=/home/me/100%% $HOME"' in systemd(ODD)


def test_the_places_that_folders_depend_on_are_told(monkeypatch):
    monkeypatch.delenv("RAGVAULT_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", "/data/me")
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1")

    assert "Environment=XDG_DATA_HOME=/data/me" in systemd(ODD)
    assert "XDG_RUNTIME_DIR" not in systemd(ODD)
    found = plistlib.loads(launchd(ODD).encode())
    assert found["EnvironmentVariables"]["XDG_DATA_HOME"] == "/data/me"


def test_a_home_named_from_the_current_folder_is_named_in_full(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAGVAULT_HOME", "home")

    assert f"RAGVAULT_HOME={tmp_path}/home" in systemd(ODD)


def test_a_reader_that_left_does_not_end_the_watcher(tmp_path, monkeypatch):
    class Gone:
        def write(self, _):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Gone())
    log = Log(tmp_path / "watch.log", 1000, aloud=True)
    log.info("one")
    log.info("two")
    log.end()

    assert (tmp_path / "watch.log").read_text().count("\n") == 2


def test_a_log_stays_small_and_private(tmp_path):
    path = tmp_path / "logs" / "watch.log"
    log = Log(path, 1000, aloud=False)
    for number in range(200):
        log.info(f"line {number}")

    files = sorted(path.parent.iterdir())
    assert len(files) == OLDER + 1
    assert all(file.stat().st_size <= 1000 for file in files)
    assert all(file.stat().st_mode & 0o077 == 0 for file in files)
    assert "line 199" in path.read_text()
    log.end()


def test_nothing_in_a_log_steers_a_terminal(tmp_path):
    log = Log(tmp_path / "watch.log", 1000, aloud=False)
    log.info("a note \x1b[31mred\nsecond line")
    log.end()

    assert (tmp_path / "watch.log").read_text().count("\n") == 1
    assert "\x1b" not in (tmp_path / "watch.log").read_text()


def test_an_error_is_logged_by_its_kind_and_place_only():
    try:
        int("the text of a note")
    except ValueError as error:
        said = unexpected(error)

    assert "ValueError at test_watch_units.py:" in said
    assert "text of a note" not in said
