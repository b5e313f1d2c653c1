"""ragvault purge: all of ours goes, and nothing of anybody else's."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from vault_kit import ragvault, vault

from ragvault.cli import remove as purging
from ragvault.service import LOCK_FILE, RECORD_FILE, SOCKET_FILE, process
from ragvault.service.watcher import LOG_FILE
from ragvault.store.files import WriterLock
from ragvault.vault import Vault

__all__ = ["vault"]


WATCHER = (
    *(f"cache/{LOG_FILE}", f"cache/{LOG_FILE}.1"),
    *(f"run/{name}" for name in (LOCK_FILE, RECORD_FILE, SOCKET_FILE, f".{RECORD_FILE}.x7f")),
)
STRANGE = (
    *("cache/photo.jpg", "config.toml.bak", "diary.txt", "models/mine.bin"),
    *("run/watch.md", "vaults/My Notes/n.md"),
)


@pytest.fixture
def home(vault, tmp_path) -> Path:
    """Everything that ragvault can have written, with a stranger's file in each folder."""
    home = tmp_path / "home"
    ragvault("config", "init")
    ragvault("vaults", "default", "vault")
    ragvault("config", "init", "--force", "-q")
    ours = ("models/potion-base-8M/x/file", "models/.locks/file", *WATCHER)
    for name in (*ours, *STRANGE):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("ours or mine")
    return home


def left(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def test_everything_of_ours_goes_and_nothing_else(home, vault):
    notes = left(vault)

    assert ragvault("purge", "--yes").code == 0

    assert left(home) == list(STRANGE)
    assert left(vault) == notes


def test_a_home_with_nothing_else_in_it_goes_too(vault, tmp_path):
    assert ragvault("purge", "--yes", "-q").code == 0

    assert not (tmp_path / "home").exists()
    assert ragvault("purge", "--yes").out == "Nothing to remove.\n"


def test_what_is_deleted_is_listed_first_with_its_size(home, vault):
    said = ragvault("purge", "--yes", "--json")

    removed = said.json["removed"]
    assert {each["what"] for each in removed} == {
        "index",
        "default",
        "models",
        "cache",
        "runtime",
        "settings",
    }
    assert all(each["bytes"] > 0 for each in removed)


def test_without_yes_and_without_a_terminal_nothing_is_deleted(home):
    before = left(home)

    said = ragvault("purge")

    assert (said.code, left(home)) == (2, before)
    assert "index" in said.out
    assert said.err.endswith("fix: ragvault purge --yes\n")


@pytest.mark.parametrize(("answer", "code", "gone"), [("n\n", 1, False), ("y\n", 0, True)])
def test_on_a_terminal_it_asks(answer, code, gone, home, monkeypatch):
    import io

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stdin", Terminal(answer))

    said = ragvault("purge")

    assert said.code == code
    assert ("nothing was removed" in said.err) != gone
    assert (home / "config.toml").exists() != gone


def test_the_list_it_asks_about_is_no_part_of_the_json(home):
    said = ragvault("purge", "--json")

    assert (said.code, said.out) == (2, "")
    assert "in total" in said.err


def test_nothing_is_deleted_while_an_index_is_written(home, vault):
    before = left(home)
    with WriterLock(Vault.open(vault).folder, "ragvault index"):
        said = ragvault("purge", "--yes")

    assert said.code == 4
    assert "is being written by" in said.err
    assert [path for path in left(home) if "writer" not in path] == [
        path for path in before if "writer" not in path
    ]


def test_a_vault_inside_what_would_go_stops_it(home):
    inside = home / "models" / "hub" / "vault"
    inside.mkdir(parents=True)
    (inside / "note.md").write_text("# N")
    ragvault("index", inside, "-q")

    said = ragvault("purge", "--yes")

    assert said.code == 2
    assert "nothing was deleted" in said.err
    assert (inside / "note.md").exists()


def test_a_config_file_of_your_own_stays(vault, tmp_path, monkeypatch):
    mine = tmp_path / "dotfiles.toml"
    mine.write_text("chunk.overlap = 7")
    monkeypatch.setenv("RAGVAULT_CONFIG", str(mine))

    ragvault("purge", "--yes")

    assert mine.exists()


def test_a_link_is_removed_and_not_what_it_leads_to(vault, tmp_path):
    outside = tmp_path / "dotfiles.toml"
    outside.write_text("chunk.overlap = 7")
    (tmp_path / "home" / "config.toml").symlink_to(outside)

    ragvault("purge", "--yes")

    assert outside.exists()
    assert not (tmp_path / "home").exists()


def test_of_a_linked_folder_of_models_only_the_link_goes(vault, tmp_path):
    elsewhere = tmp_path / "shared"
    (elsewhere / "potion-base-8M").mkdir(parents=True)
    (tmp_path / "home" / "models").symlink_to(elsewhere)

    said = ragvault("purge", "--yes")

    assert (elsewhere / "potion-base-8M").is_dir()
    assert f"the link is removed, {elsewhere} is kept" in said.err
    assert not (tmp_path / "home").exists()


def test_a_watcher_is_stopped_first(home, monkeypatch):
    stopped = []
    watcher = process.WatcherRecord(4711, None, 0.0, "0", (), "unix")
    monkeypatch.setattr(process, "running_watcher", lambda: watcher)
    monkeypatch.setattr(process, "stop_watcher", stopped.append)

    said = ragvault("purge", "--yes")

    assert stopped == [watcher]
    assert "stopping the watcher (pid 4711)" in said.err


def test_an_index_with_a_damaged_card_goes_too(vault, tmp_path):
    (Vault.open(vault).folder / "vault.json").write_text("{")

    assert [each.what for each in purging.written_items(tmp_path / "home")] == ["index"]
