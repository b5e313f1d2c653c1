"""The number of pending files is the same, whether it comes from events or from a walk."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragvault.models.load import ModelPool
from ragvault.service.events import NativeEvents
from ragvault.service.vault_watcher import PendingCounter, VaultWatcher
from ragvault.update.freshness import waiting
from ragvault.vault import Vault
from tests.watch_kit import DEADLINE, SMALL, soon
from tests.write_kit import Heard


@pytest.fixture
def watched(tmp_path: Path, monkeypatch) -> Iterator[VaultWatcher]:
    """A vault of three notes that is indexed, and listened to."""
    for name, value in {**SMALL, "RAGVAULT_HOME": str(tmp_path / "home")}.items():
        monkeypatch.setenv(name, value)
    root = tmp_path / "vault"
    root.mkdir()
    for name in ("one", "two", "three"):
        (root / f"{name}.md").write_text(f"{name}\n")
    found = VaultWatcher(Vault.open(root), Heard(), ModelPool())
    found.listen()
    found.update(lambda: False)
    yield found
    found.stop_listening()


@pytest.fixture
def unwalked(monkeypatch) -> None:
    """A walk is a mistake."""

    def walk(*_: object) -> None:
        raise AssertionError("the vault was walked")

    monkeypatch.setattr("ragvault.notes.walk.walk", walk)


def take_in(watched: VaultWatcher) -> None:
    """What was told is taken in; an event on its way would only bring another run."""
    assert not watched._events.is_lossless or watched._events.is_drained(DEADLINE)
    watched.update(lambda: False)


def counted(pending: PendingCounter, vault: Vault) -> int:
    with vault.corpus() as index:
        return pending(vault, index)


def test_a_vault_that_is_up_to_date_is_not_walked(watched, unwalked):
    if not watched._events.is_lossless:
        pytest.skip("this system may pass over events")
    assert counted(PendingCounter([watched]), watched.vault) == 0


def test_a_change_counts_from_the_moment_it_is_made(watched):
    """No event may still be on its way when the answer is given."""
    pending = PendingCounter([watched])
    for number in range(30):
        (watched.root / f"new {number}.md").write_text("new\n")
        assert counted(pending, watched.vault) == number + 1


def test_it_is_the_number_that_a_walk_gives(watched):
    pending, vault = PendingCounter([watched]), watched.vault
    (watched.root / "one.md").write_text("another text\n")
    (watched.root / "two.md").unlink()
    (watched.root / "three.md").rename(watched.root / "four.md")
    with vault.catalogue() as catalogue:
        by_walk = sum(waiting(vault.root, catalogue, vault.settings.config))

    assert counted(pending, vault) == by_walk == 4
    take_in(watched)
    assert counted(pending, vault) == 0


def test_a_time_that_only_changed_waits_until_it_was_taken_over(watched):
    """Which makes no other revision of the catalogue."""
    import os

    pending = PendingCounter([watched])
    os.utime(watched.root / "one.md", ns=(1, 1))
    assert counted(pending, watched.vault) == 1
    take_in(watched)

    assert counted(pending, watched.vault) == 0


def test_a_folder_that_obsidian_excludes_no_more_counts_is_taken_in_and_is_heard(watched):
    """Nobody hears of Obsidian's settings: a count finds out, and wakes whoever indexes."""
    if not watched._events.is_lossless:
        pytest.skip("this system may pass over events")
    exclude(watched.root, "Archive/")
    (watched.root / "Archive").mkdir()
    (watched.root / "Archive" / "old.md").write_text("old\n")
    watched.listen()
    take_in(watched)
    pending = PendingCounter([watched])
    assert counted(pending, watched.vault) == 0

    exclude(watched.root)
    assert counted(pending, watched.vault) == 1
    assert watched.batch.waiting
    (watched.root / "Archive" / "more.md").write_text("more\n")
    assert counted(pending, watched.vault) == 2
    take_in(watched)
    assert counted(pending, watched.vault) == 0
    assert not watched.batch.waiting
    (watched.root / "Archive" / "old.md").write_text("edited\n")
    assert soon(lambda: watched.batch.waiting)


def test_a_folder_that_cannot_be_listened_to_is_listened_for_once(watched, monkeypatch):
    if not watched._events.is_lossless:
        pytest.skip("this system may pass over events")
    (watched.root / "deaf").mkdir()
    (watched.root / "deaf" / "note.md").write_text("x\n")
    monkeypatch.setattr(
        NativeEvents, "watched_folders", property(lambda _: lambda: frozenset({""}))
    )
    watched.listen()
    listened: list[int] = []
    listen = watched.listen
    monkeypatch.setattr(watched, "listen", lambda: (listened.append(1), listen()))
    for number in range(4):
        take_in(watched)
        (watched.root / "deaf" / "note.md").write_text("x" * number)
        assert counted(PendingCounter([watched]), watched.vault) == 1

    assert len(listened) == 1


def exclude(root: Path, *folders: str) -> None:
    (root / ".obsidian").mkdir(exist_ok=True)
    (root / ".obsidian" / "app.json").write_text(json.dumps({"userIgnoreFilters": folders}))


def test_other_settings_count_by_a_walk_of_their_own(watched):
    (watched.root / "list.org").write_text("x\n")
    other = Vault.open(watched.root, flags=['walk.extensions=[".md", ".org"]'])

    assert counted(PendingCounter([watched]), other) == 1


def test_a_vault_that_nobody_watches_is_walked_and_its_changes_are_taken_in(watched):
    (watched.root / "new.md").write_text("x\n")
    off, on = (Vault.open(watched.root, flags=[f"search.update={each}"]) for each in ("off", "5s"))

    assert counted(PendingCounter([]), off) == 1
    assert counted(PendingCounter([]), on) == 0
    assert counted(PendingCounter([]), off) == 0


def test_several_threads_count_what_a_walk_counts_whenever_nothing_moves(watched):
    """They count while files change and the index follows; at each standstill it must be true."""
    pending, still = PendingCounter([watched]), threading.Barrier(4, timeout=60)
    moving, over = threading.Event(), threading.Event()
    said: list[int] = []

    def count() -> None:
        with watched.vault.corpus() as index:
            while True:
                while moving.is_set():
                    index.refresh()
                    pending(watched.vault, index)
                still.wait()
                if over.is_set():
                    return
                index.refresh()
                said.append(pending(watched.vault, index))
                still.wait()  # what was said is compared
                still.wait()  # and something moves again

    moving.set()
    threads = [threading.Thread(target=count) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(10):
        for name in ("taken in", "waiting")[: 1 + number % 2]:
            (watched.root / f"{name} {number}.md").write_text("new\n")
            if name == "taken in":
                take_in(watched)
        moving.clear()
        still.wait()
        still.wait()
        with watched.vault.catalogue() as catalogue:
            by_walk = sum(waiting(watched.root, catalogue, watched.vault.settings.config))
        assert said == [by_walk] * 3 == [number % 2] * 3
        said.clear()
        moving.set()
        still.wait()
    over.set()
    moving.clear()
    still.wait()
    for thread in threads:
        thread.join()
