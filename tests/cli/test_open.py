"""Opening a note: what is started, and how it is told the line."""

from __future__ import annotations

from pathlib import Path

import pytest
from vault_kit import indexed_sample, ragvault, sample

from ragvault.cli.note import line_arguments
from ragvault.service.protocol import WatcherUnavailable

__all__ = ["indexed_sample", "sample"]


@pytest.fixture
def editor(tmp_path, monkeypatch):
    """An editor that writes down what it was started with."""
    script, log = tmp_path / "vim", tmp_path / "log"
    script.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {log}\n')
    script.chmod(0o700)
    monkeypatch.setenv("EDITOR", str(script))
    return log


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        ("/usr/bin/vim", ["+7", "a b.md"]),
        ("emacsclient", ["+7", "a b.md"]),
        ("code", ["--goto", "a b.md:7"]),
        ("hx", ["a b.md:7"]),
        ("kate", ["--line", "7", "a b.md"]),
        ("my-own-editor", ["a b.md"]),
    ],
)
def test_an_editor_is_told_the_line_in_its_own_way(program, arguments):
    assert line_arguments(program, Path("a b.md"), 7) == arguments


@pytest.mark.parametrize(
    ("named", "line"),
    [
        ("Technique/Steam.md:9", 9),
        ("Steam", 1),
        ("Sourdough Starter#Feeding", 28),
        ("Sourdough Starter > Feeding", 28),
    ],
)
def test_a_note_opens_at_its_line(sample, editor, named, line):
    assert ragvault("open", named, "--editor").code == 0
    assert editor.read_text().splitlines()[0] == f"+{line}"


def test_a_number_is_a_result_of_the_last_search(sample, editor, monkeypatch):
    def result(note: str, line: int) -> dict[str, object]:
        here = {"vault": "vault", "root": str(sample), "note": note, "title": "", "uri": ""}
        return {**here, "path": str(sample / note), "line": line}

    found = [result("Home.md", 3), result("Technique/Steam.md", 9)]
    monkeypatch.setattr(
        "ragvault.service.protocol.ask_watcher", lambda folder, request: {"results": found}
    )

    assert ragvault("open", "2", "--editor").code == 0
    assert editor.read_text().splitlines() == ["+9", str(sample / "Technique/Steam.md")]
    said = ragvault("open", "3", "-e")
    assert (said.code, "the last search found 2 results" in said.err) == (2, True)


def test_without_a_process_that_remembers_the_number_is_a_mistake(sample, monkeypatch):
    def unavailable(folder: Path, request: object) -> dict[str, object]:
        raise WatcherUnavailable

    monkeypatch.setattr("ragvault.service.protocol.ask_watcher", unavailable)
    said = ragvault("open", "1")
    assert (said.code, "no process remembers the last search" in said.err) == (2, True)


def test_an_editor_that_is_not_there_is_named(sample, monkeypatch):
    monkeypatch.setenv("EDITOR", "no-such-editor")
    said = ragvault("open", "Steam", "-e")
    assert (said.code, "no-such-editor cannot be started" in said.err) == (2, True)


def test_a_note_whose_file_is_gone_is_named(sample, editor):
    note = sample / "Technique" / "Steam.md"
    text = note.read_text()
    note.unlink()
    try:
        assert ragvault("open", "Steam").code == 4
    finally:
        note.write_text(text)


@pytest.mark.parametrize("name", ["run.desktop", "run.bat", "run.MD.sh"])
def test_the_system_launches_no_file_that_only_the_vault_calls_a_note(
    tmp_path, monkeypatch, editor, name
):
    monkeypatch.setenv("RAGVAULT_HOME", str(tmp_path / "home"))
    launched: list[str] = []
    monkeypatch.setattr("typer.launch", lambda target: launched.append(target) or 0)
    root = tmp_path / "vault"
    (root / ".obsidian").mkdir(parents=True)
    (root / ".ragvault.toml").write_text(
        '[walk]\nextensions = [".md", ".desktop", ".bat", ".sh"]\n'
    )
    (root / name).write_text("quagga\n")
    assert ragvault("index", root, "--no-vectors", "-q").code == 0

    assert ragvault("open", name, "--vault", root).code == 0
    assert editor.read_text().splitlines()[-1] == str(root / name)
    monkeypatch.delenv("EDITOR")
    refused = ragvault("open", name, "--vault", root)
    assert refused.code == 2
    assert "only an editor may open" in refused.err
    assert not launched
