"""Vaults that are watched: removing one, and what a search says of changed files."""

from __future__ import annotations

from pathlib import Path

import pytest
from vault_kit import FAKE, ragvault

from ragvault.service.process import WatcherRecord


@pytest.fixture
def two(tmp_path, monkeypatch):
    for name, value in {**FAKE, "RAGVAULT_HOME": str(tmp_path / "home")}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("RAGVAULT_SEARCH__UPDATE", "off")
    roots = [tmp_path / "a", tmp_path / "b"]
    for root in roots:
        root.mkdir()
        (root / "note.md").write_text("# Note\n\nA gnu.\n")
    assert ragvault("index", *roots, "--no-vectors", "-q").code == 0
    return roots


@pytest.fixture
def watched(two, monkeypatch):
    """Both vaults are watched; a list of what was done to the watcher."""
    done: list[tuple[str, object]] = []
    record = WatcherRecord(4711, None, 0.0, "0", tuple(map(str, two)), "unix")

    def start(roots: list[Path]) -> WatcherRecord:
        done.append(("start", roots))
        return record

    monkeypatch.setattr("ragvault.service.process.watcher_of", lambda *of: record)
    monkeypatch.setattr(
        "ragvault.service.process.stop_watcher", lambda w: done.append(("stop", w.pid))
    )
    monkeypatch.setattr("ragvault.service.process.start_watcher", start)
    return done


def test_removing_a_watched_vault_asks_and_goes_on_watching_the_others(two, watched):
    said = ragvault("vaults", "remove", "a")
    assert (said.code, watched) == (2, [])

    said = ragvault("vaults", "remove", "a", "--yes")

    assert said.code == 0
    assert watched == [("stop", 4711), ("start", [two[1]])]
    assert "the watcher is still running (pid 4711" in said.err
    assert [line.split()[0] for line in ragvault("vaults").out.splitlines()] == ["b"]


def test_a_search_says_that_a_watcher_is_indexing_what_changed(two, watched):
    (two[0] / "new.md").write_text("# New\n")
    assert (
        "1 file has changed since the last index; indexing now"
        in ragvault("search", "gnu", "--vault", "a").err
    )


def test_all_vaults_are_searched_and_one_that_is_gone_is_named(two, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert ragvault("gnu", "--format", "paths").out.splitlines() == ["a/note.md", "b/note.md"]
    (tmp_path / "b").rename(tmp_path / "c")

    said = ragvault("gnu", "--format", "paths")

    assert said.out.splitlines() == ["a/note.md"]
    assert "b skipped: its folder or index is missing" in said.err


def test_a_default_vault_wins_over_all_vaults(two, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert ragvault("vaults", "default", "b").code == 0
    assert ragvault("gnu", "--format", "paths").out.splitlines() == ["b/note.md"]
    assert ragvault("gnu", "--vault", "a,b", "--format", "paths").out.count("\n") == 2


def test_a_vault_with_a_comma_in_its_name_is_one_vault(two, tmp_path):
    root = tmp_path / "x,y"
    root.mkdir()
    (root / "note.md").write_text("# Note\n\nA gnu.\n")
    assert ragvault("index", root, "--no-vectors", "-q").code == 0
    assert ragvault("search", "gnu", "--vault", "x,y", "--format", "paths").out.count("\n") == 1


@pytest.mark.parametrize("order", ["outer,inner", "inner,outer"])
def test_a_note_in_a_vault_inside_a_vault_is_found_once(two, tmp_path, order):
    outer, inner = tmp_path / "outer", tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    (inner / "one.md").write_text("# Okapi\n\nAn okapi, and one more okapi.\n")
    (inner / "two.md").write_text("# Okapi tracks\n\nAn okapi walked here.\n")
    (outer / "three.md").write_text("# Zoo\n\nIn the evening somebody saw an okapi again.\n")
    assert ragvault("index", outer, inner, "--no-vectors", "-q").code == 0

    def found(*how: str) -> list[str]:
        said = ragvault("search", *how, "--vault", order, "--json")
        return [Path(each["note"]).name for each in said.json["results"]]

    everything = found("okapi")
    assert sorted(everything) == ["one.md", "three.md", "two.md"]
    for n in (1, 2, 3):
        assert found("okapi", "-n", str(n)) == everything[:n]
    assert len(set(found("path:.md", "-n", "2"))) == 2
    assert "the newest 2 of 3" in ragvault("search", "path:.md", "--vault", order, "-n", "2").err


def test_one_vault_named_often_is_searched_once_and_very_many_are_refused(two):
    again = ragvault("search", "gnu", *["--vault", two[0]] * 3_000, "--format", "paths")
    assert len(again.out.splitlines()) == 1

    many = [part for times in range(200) for part in ("--vault", f"{two[0]}{'/' * times}")]
    said = ragvault("search", "gnu", *many)
    assert said.code == 2
    assert "200 vaults are too many to name in one search" in said.err
