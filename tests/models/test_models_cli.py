"""ragvault models: what it prints, where, and how it ends."""

from __future__ import annotations

import json
import sys
import threading

import pytest
from model_kit import FILES, hub_source, make_model

from ragvault.cli import console
from ragvault.cli.console import BarProgress, LineProgress, Pace, duration, progress
from ragvault.cli.main import main
from ragvault.cli.start import report_if_slow
from ragvault.models import registry
from ragvault.ports import Progress


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home of our own and a registry of one model that is called as the default embedder is."""
    monkeypatch.setenv("RAGVAULT_HOME", str(tmp_path / "home"))
    models = {"tiny": make_model(hub_source())}
    monkeypatch.setattr(registry, "known_models", lambda: models)
    return tmp_path / "home" / "models"


@pytest.fixture
def stick(tmp_path):
    """A folder with the files of the model."""
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def test_list_shows_licence_origin_and_what_is_not_here(home, capsys):
    assert main(["models", "list"]) == 0
    shown = capsys.readouterr().out
    assert "tiny  (embedder, onnx)" in shown
    assert "made by nobody, licence MIT\n" in shown
    assert "fetched from hub owner/name; hash pinned" in shown
    assert "not installed" in shown


def test_list_as_json_says_all_of_it(home, stick, capsys):
    main(["models", "pull", "tiny", "--from", str(stick), "--offline"])
    capsys.readouterr()
    assert main(["models", "list", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    (row,) = told["models"]
    assert told["folder"] == str(home)
    assert row["installed"]
    assert row["full_name"].startswith("tiny@")
    assert (row["licence"], row["origin"], row["sources"]) == ("MIT", "nobody", ["hub owner/name"])


def test_the_real_registry_can_be_listed(capsys):
    assert main(["models", "list"]) == 0
    assert "bge-small-en-v1.5  (embedder, onnx)" in capsys.readouterr().out


def test_pull_prints_the_folder_and_reports_on_stderr(home, stick, capsys):
    assert main(["models", "pull", "tiny", "--from", str(stick), "--offline"]) == 0
    said = capsys.readouterr()
    folder = said.out.strip()
    assert (home / "tiny").exists()
    assert folder.startswith(str(home))
    assert "installed tiny in" in said.err


def test_a_quiet_pull_prints_only_the_folder(home, stick, capsys):
    assert main(["models", "pull", "tiny", "--from", str(stick), "-q"]) == 0
    assert capsys.readouterr().err == ""


def test_pull_offline_without_the_files_ends_with_4_and_the_cure(home, capsys):
    assert main(["models", "pull", "tiny", "--offline"]) == 4
    said = capsys.readouterr()
    assert said.out == ""
    assert "offline: nothing was downloaded" in said.err
    assert "fix: ragvault models pull tiny; without a network" in said.err


def test_an_unknown_model_ends_with_2_and_the_nearest_name(home, capsys):
    assert main(["models", "pull", "tinny"]) == 2
    assert "did you mean tiny?" in capsys.readouterr().err


def test_verify_finds_a_changed_byte_and_pull_mends_it(home, stick, capsys):
    main(["models", "pull", "tiny", "--from", str(stick), "--offline"])
    assert main(["models", "verify"]) == 0
    (build,) = registry.known_models()["tiny"].builds()
    (registry.build_folder(build, home) / "model.onnx").write_bytes(b"changed")

    assert main(["models", "verify", "tiny"]) == 4
    assert "fix: ragvault models pull tiny" in capsys.readouterr().err
    assert main(["models", "pull", "tiny", "--from", str(stick), "--offline"]) == 0
    assert main(["models", "verify", "tiny"]) == 0
    assert "tiny: verified" in capsys.readouterr().out


def test_verify_and_path_of_what_is_not_here_end_with_4(home, capsys):
    assert main(["models", "verify", "tiny"]) == 4
    assert main(["models", "path", "tiny"]) == 4
    assert main(["models", "path", "owner/name"]) == 4
    assert main(["models", "verify"]) == 0  # nothing here, so nothing is wrong
    assert capsys.readouterr().out == ""


def test_path_prints_the_folder_and_nothing_else(home, stick, capsys):
    main(["models", "pull", "tiny", "--from", str(stick), "-q"])
    pulled = capsys.readouterr().out
    assert main(["models", "path", "tiny"]) == 0
    assert capsys.readouterr().out == pulled


def test_a_pipe_gets_lines_and_a_terminal_a_bar(monkeypatch):
    def shown():
        with progress() as each:
            return type(each)

    assert shown() is LineProgress
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert shown() is BarProgress
    monkeypatch.setattr(console, "is_quiet", lambda: True)
    assert shown() is Progress


def test_a_message_is_shown_while_there_are_bars(capsys):
    with BarProgress() as bars:
        bars.step("looking for notes")
        bars.step("reading notes", 3, 12)
        bars.download(1, 10)
        bars.download(5, 10)
        bars.info("done with that")
        bars.download(1, 0)
        bars.download_ended()
        bars.download_ended()
    assert "done with that\n" in capsys.readouterr().err


def test_a_step_without_an_end_vanishes_when_the_next_begins():
    with BarProgress() as bars:
        bars.step("looking for notes")
        bars.step("reading notes", 3, 12)
        bars.step("indexing keywords", 1, 2)
        assert list(bars._tasks) == ["reading notes", "indexing keywords"]


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test sets."""
    now = [0.0]
    monkeypatch.setattr("ragvault.cli.console.time.monotonic", lambda: now[0])
    return now


def test_a_log_gets_a_line_about_a_long_step_every_half_minute(clock, capsys):
    shown = LineProgress()
    for clock[0], done in ((0.0, 64), (20.0, 500), (32.0, 1024), (40.0, 2048)):
        shown.step("embedding", done, 4427)
    clock[0] = 63.0
    shown.step("resolving links")

    lines = ["embedding: 1,024 of 4,427 (30/s, 2 min left)", "resolving links …"]
    assert capsys.readouterr().err.splitlines() == lines


def test_the_pace_is_of_what_this_run_did(clock):
    pace = Pace(1000)
    assert (pace.rate(1000), pace.left(1000, 2000)) == (0.0, "")
    clock[0] = 10.0
    assert (pace.rate(1050), pace.left(1050, 2000)) == (5.0, "3 min left")
    assert pace.left(2000, 2000) == ""


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "1 s"), (59, "59 s"), (90, "2 min"), (3600, "1 h"), (7500, "2 h 5 min")],
)
def test_a_duration_in_words(seconds, words):
    assert duration(seconds) == words


def test_ctrl_c_says_what_was_kept(capsys):
    with pytest.raises(KeyboardInterrupt), progress("your settings are unchanged"):
        raise KeyboardInterrupt
    assert capsys.readouterr().err == "stopped; your settings are unchanged\n"


def test_waiting_is_shown_on_a_terminal_and_wiped(monkeypatch, capsys):
    monkeypatch.setattr("ragvault.cli.start.PATIENCE", 0.0)
    with report_if_slow("searching"):
        pass
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    shown = threading.Event()
    write = sys.stderr.write
    monkeypatch.setattr(sys.stderr, "write", lambda text: (write(text), shown.set())[0])
    with report_if_slow("searching"):
        assert shown.wait(30)
    assert capsys.readouterr().err == "searching …\r\x1b[2K"
