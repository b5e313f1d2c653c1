"""One note can never stop the rest: it becomes plain text, or it is skipped with the reason."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from poison_kit import poisoned_workers, tried
from store_builders import passages
from watch_kit import SMALL, Watched
from write_kit import write

from ragvault.config.settings import Chunk, Config
from ragvault.errors import RagvaultError
from ragvault.ingest import update_catalogue
from ragvault.ports import Progress
from ragvault.store.catalogue import Catalogue
from ragvault.types import Skipped
from ragvault.update import workers
from ragvault.update.freshness import compare_note, waiting
from ragvault.update.notes import Report
from ragvault.vault import Vault

TRIES = 2  # with others, and then alone
KILLED = "reading it ended the process that read it (signal 9)"


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    return tmp_path / "vault"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "index"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


def index(root: Path, folder: Path, config: Config = Config()) -> Report:  # noqa: B008
    with Catalogue.open(folder, write=True) as catalogue:
        return update_catalogue(root, catalogue, config, Progress())


def paths(folder: Path) -> list[str]:
    with Catalogue.open(folder) as catalogue:
        return sorted(catalogue.files())


def good(count: int) -> dict[str, str]:
    return {f"good {number}.md": f"# Good {number}\n\nwords {number}\n" for number in range(count)}


# --- Crashes ---


def test_notes_that_kill_their_worker_are_skipped_and_the_others_indexed(vault, folder, log):
    write(vault, {**good(9), "good 3a.md": "CRASH", "good 3b.md": "CRASH"})
    with poisoned_workers(log):
        report = index(vault, folder)

    assert paths(folder) == sorted(good(9))
    assert report.skipped == (
        Skipped("good 3a.md", "failed", KILLED),
        Skipped("good 3b.md", "failed", KILLED),
    )


def test_workers_that_die_while_other_batches_are_under_way_cost_their_notes_alone(
    vault, folder, log, monkeypatch
):
    monkeypatch.setattr(workers, "MANY", 2)
    monkeypatch.setattr(workers, "BATCH", 4)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    bad = {f"good {number}x.md": "CRASH" for number in (0, 1, 2, 17)}
    write(vault, {**good(40), **bad})
    with poisoned_workers(log):
        report = index(vault, folder)

    assert paths(folder) == sorted(good(40))
    assert {skip.path for skip in report.skipped} == bad.keys()


def test_a_note_that_failed_is_not_tried_again_until_it_changes(vault, folder, log):
    write(vault, {**good(3), "bad.md": "CRASH"})
    with poisoned_workers(log):
        first = index(vault, folder)
        tries = tried(log).count("bad.md")
        again = index(vault, folder)
        assert tried(log).count("bad.md") == tries == TRIES
        assert again.skipped == first.skipped != ()

        write(vault, {"bad.md": "good at last"})
        changed = index(vault, folder)

    assert (changed.added, changed.skipped) == (1, ())


def test_a_worker_that_was_killed_by_something_else_costs_no_note(vault, folder, log):
    write(vault, {**good(3), "large.md": "ONCE"})
    with poisoned_workers(log):
        assert index(vault, folder).skipped == ()

    assert "large.md" in paths(folder)


def test_an_indexed_note_that_becomes_bad_stays_as_it_was(vault, folder, log):
    write(vault, {**good(3), "note.md": "the old words"})
    index(vault, folder)
    write(vault, {"note.md": "CRASH, the new words"})
    with poisoned_workers(log):
        runs = [index(vault, folder) for _ in range(2)]
        tries = tried(log).count("note.md")
        with Catalogue.open(folder) as catalogue:
            assert compare_note(vault, catalogue, Config(), "note.md") == "unreadable"
            assert waiting(vault, catalogue, Config()) == (0, 0, 0, 0)
            assert catalogue.note("note.md").text == "the old words"
        assert tried(log).count("note.md") == tries == TRIES

    assert {run.skipped for run in runs} == {(Skipped("note.md", "failed", KILLED),)}


def test_a_note_that_cannot_be_chunked_again_stays_as_it_was(vault, folder, log):
    write(vault, {**good(3), "bad.md": "CRASH"})
    index(vault, folder)
    with poisoned_workers(log):
        other = Config(chunk=Chunk(child_target=300))
        runs = [index(vault, folder, other) for _ in range(2)]
        assert tried(log).count("bad.md") == TRIES

    assert [run.recut for run in runs] == [3, 0]
    assert {run.skipped for run in runs} == {(Skipped("bad.md", "failed", KILLED),)}
    assert "bad.md" in paths(folder)


# --- Time and memory ---


def test_a_note_that_hangs_is_skipped_and_the_others_indexed(vault, folder, log):
    write(vault, {**good(9), "good 3a.md": "HANG"})
    with poisoned_workers(log, patience=1.5):
        report = index(vault, folder)

    assert paths(folder) == sorted(good(9))
    assert report.skipped == (Skipped("good 3a.md", "failed", "reading it took longer than 1.5 s"),)


@pytest.mark.parametrize(
    ("word", "problem"),
    [
        ("SPIN", "took longer than 0.3 s"),
        ("MEMORY", "failed: MemoryError"),
        ("PANIC", "failed: index out of bounds"),
    ],
)
def test_a_note_that_cannot_be_parsed_is_indexed_as_plain_text(vault, folder, log, word, problem):
    write(vault, {**good(2), "bad.md": f"# {word}\n\n[[good 1]]\n"})
    with poisoned_workers(log):
        report = index(vault, folder)

    assert (report.added, report.skipped) == (3, ())
    with Catalogue.open(folder) as catalogue:
        note = catalogue.note("bad.md")
        assert (note.title, note.headings, note.links) == ("bad", (), ())
        assert [p.text for p in passages(catalogue, "bad.md")] == [note.text]
        assert note.warnings == (f"indexed as plain text, because parsing it {problem}",)


# --- Searches ---


@pytest.mark.parametrize("word", ["CRASH", "HANG"])
def test_a_search_that_finds_a_note_that_became_bad_marks_it_as_stale(
    vault, tmp_path, log, monkeypatch, word
):
    for name, value in {**SMALL, "RAGVAULT_HOME": str(tmp_path / "home")}.items():
        monkeypatch.setenv(name, value)
    write(vault, {"good.md": "aardvark and badger", "bad.md": "aardvark and capybara"})
    Vault.open(vault).index("keyword")
    write(vault, {"bad.md": f"aardvark {word}"})
    with poisoned_workers(log, patience=1.5):
        response = Vault.open(vault).search("aardvark")

    stale = {each.note: each.stale for each in response.results}
    assert stale == {"good.md": False, "bad.md": True}


def test_a_search_does_not_read_a_large_note_again_that_has_changed(
    vault, tmp_path, log, monkeypatch
):
    for name, value in {**SMALL, "RAGVAULT_HOME": str(tmp_path / "home")}.items():
        monkeypatch.setenv(name, value)
    write(vault, {"good.md": "aardvark and badger", "large.md": "aardvark and capybara"})
    Vault.open(vault).index("keyword")
    write(vault, {"large.md": "aardvark\n" * 30_000})
    with poisoned_workers(log):
        response = Vault.open(vault).search("aardvark")

    assert tried(log) == []
    stale = {each.note: each.stale for each in response.results}
    assert stale == {"good.md": False, "large.md": True}


# --- Every known kind of poison ---

MERGES = "a: &a {x: 1}\n" + "".join(
    f"b{i}: &b{i}\n  <<: [{', '.join([f'*b{i - 1}' if i else '*a'] * 9)}]\n" for i in range(12)
)
POISON = {
    "deep.md": "---\na: " + "[" * 30_000 + "\n---\nzebra deep\n",
    "merges.md": f"---\n{MERGES}---\nzebra merges\n",
    "quotes.md": ">" * 50_000 + " zebra\n",
    "spaces.md": "zebra" + " " * 1_000_000 + "spaces\n",
    "headings.md": "zebra\n" + "# heading\n" * 50_000,
    "brackets.md": "zebra " + "[" * 50_000,
}


def test_a_vault_with_every_known_poison_serves_all_its_notes(vault, tmp_path, monkeypatch):
    for name, value in {**SMALL, "RAGVAULT_HOME": str(tmp_path / "home")}.items():
        monkeypatch.setenv(name, value)
    write(vault, {**POISON, **good(5)})
    (vault / ".obsidian").mkdir()
    filters = {"userIgnoreFilters": ["/(a+)+$/", "/(.*)*b/"]}
    (vault / ".obsidian" / "app.json").write_text(json.dumps(filters))

    with Watched(vault) as watched:
        assert watched.finds("words", *good(5))
        for name in ("deep.md", "merges.md", "quotes.md", "spaces.md", "brackets.md"):
            (vault / name).write_text(f"{POISON[name]}\n")
        (vault / "good 1.md").write_text("yak\n")
        assert watched.finds("yak", "good 1.md")
        assert watched.finds("words", *(path for path in good(5) if path != "good 1.md"))
        assert Vault.open(vault).index("keyword").skipped == ()


def test_a_setting_without_measure_is_refused_at_once_and_a_watcher_goes_on(
    vault, tmp_path, monkeypatch
):
    for name, value in {**SMALL, "RAGVAULT_HOME": str(tmp_path / "home")}.items():
        monkeypatch.setenv(name, value)
    write(vault, good(2))
    with Watched(vault) as watched:
        assert watched.finds("words", *good(2))
        search = Vault.open(vault)
        (vault / ".ragvault.toml").write_text("[graph]\ndepth = 1000000\n")
        (vault / "new.md").write_text("yak\n")
        with pytest.raises(RagvaultError, match=r"\.ragvault\.toml: graph\.depth"):
            Vault.open(vault)
        (vault / ".ragvault.toml").unlink()
        assert watched.finds("yak", "new.md")
        assert {each.note for each in search.search('"words"').results} == good(2).keys()
