"""How many files wait is the same number whether it was heard or walked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragvault.answer import freshness
from ragvault.answer.freshness import waiting
from ragvault.models.kit import Kit
from ragvault.service.events import Native
from ragvault.service.kept import Kept
from ragvault.service.pending import Pending
from ragvault.vault import Vault
from tests.watch_kit import DEADLINE, SMALL, soon
from tests.write_kit import Heard


@pytest.fixture
def kept(tmp_path: Path, monkeypatch) -> Iterator[Kept]:
    """A vault of three notes that is indexed, and listened to."""
    for name, value in {**SMALL, "RAGVAULT_HOME": str(tmp_path / "home")}.items():
        monkeypatch.setenv(name, value)
    root = tmp_path / "vault"
    root.mkdir()
    for name in ("one", "two", "three"):
        (root / f"{name}.md").write_text(f"{name}\n")
    found = Kept(Vault.open(root), Heard(), Kit())
    found.listen()
    found.catch_up(lambda: False)
    yield found
    found.deafen()


@pytest.fixture
def unwalked(monkeypatch) -> None:
    """A walk is a mistake."""

    def walk(*_: object) -> None:
        raise AssertionError("the vault was walked")

    monkeypatch.setattr(freshness, "walk", walk)


def take_in(kept: Kept) -> None:
    """What was told is taken in; an event on its way would only bring another run."""
    assert not kept._native.misses_nothing or kept._native.has_told_all(DEADLINE)
    kept.catch_up(lambda: False)


def counted(pending: Pending, vault: Vault) -> int:
    with vault.reading() as index:
        return pending(vault, index)


def test_a_vault_that_is_up_to_date_is_not_walked(kept, unwalked):
    if not kept._native.misses_nothing:
        pytest.skip("this system may pass over events")
    assert counted(Pending([kept]), kept.vault) == 0


def test_a_change_counts_from_the_moment_it_is_made(kept):
    """No event may still be on its way when the answer is given."""
    pending = Pending([kept])
    for number in range(30):
        (kept.root / f"new {number}.md").write_text("new\n")
        assert counted(pending, kept.vault) == number + 1


def test_it_is_the_number_that_a_walk_gives(kept):
    pending, vault = Pending([kept]), kept.vault
    (kept.root / "one.md").write_text("another text\n")
    (kept.root / "two.md").unlink()
    (kept.root / "three.md").rename(kept.root / "four.md")
    with vault.catalogue() as catalogue:
        walked = sum(waiting(vault.root, catalogue, vault.settings.config))

    assert counted(pending, vault) == walked == 4
    take_in(kept)
    assert counted(pending, vault) == 0


def test_a_time_that_only_changed_waits_until_it_was_taken_over(kept):
    """Which makes no other revision of the catalogue."""
    import os

    pending = Pending([kept])
    os.utime(kept.root / "one.md", ns=(1, 1))
    assert counted(pending, kept.vault) == 1
    take_in(kept)

    assert counted(pending, kept.vault) == 0


def test_a_folder_that_obsidian_excludes_no_more_counts_is_taken_in_and_is_heard(kept):
    """Nobody hears of Obsidian's settings: a count finds out, and wakes whoever indexes."""
    if not kept._native.misses_nothing:
        pytest.skip("this system may pass over events")
    exclude(kept.root, "Archive/")
    (kept.root / "Archive").mkdir()
    (kept.root / "Archive" / "old.md").write_text("old\n")
    kept.listen()
    take_in(kept)
    pending = Pending([kept])
    assert counted(pending, kept.vault) == 0

    exclude(kept.root)
    assert counted(pending, kept.vault) == 1
    assert kept.batch.waiting
    (kept.root / "Archive" / "more.md").write_text("more\n")
    assert counted(pending, kept.vault) == 2
    take_in(kept)
    assert counted(pending, kept.vault) == 0
    assert not kept.batch.waiting
    (kept.root / "Archive" / "old.md").write_text("edited\n")
    assert soon(lambda: kept.batch.waiting)


def test_a_folder_that_cannot_be_listened_to_is_listened_for_once(kept, monkeypatch):
    if not kept._native.misses_nothing:
        pytest.skip("this system may pass over events")
    (kept.root / "deaf").mkdir()
    (kept.root / "deaf" / "note.md").write_text("x\n")
    monkeypatch.setattr(Native, "heard", property(lambda _: lambda: frozenset({""})))
    kept.listen()
    listened: list[int] = []
    listen = kept.listen
    monkeypatch.setattr(kept, "listen", lambda: (listened.append(1), listen()))
    for number in range(4):
        take_in(kept)
        (kept.root / "deaf" / "note.md").write_text("x" * number)
        assert counted(Pending([kept]), kept.vault) == 1

    assert len(listened) == 1


def exclude(root: Path, *folders: str) -> None:
    (root / ".obsidian").mkdir(exist_ok=True)
    (root / ".obsidian" / "app.json").write_text(json.dumps({"userIgnoreFilters": folders}))


def test_other_settings_count_by_a_walk_of_their_own(kept):
    (kept.root / "list.txt").write_text("x\n")
    other = Vault.open(kept.root, flags=['walk.extensions=[".md", ".txt"]'])

    assert counted(Pending([kept]), other) == 1


def test_a_vault_that_nobody_watches_is_walked(kept):
    (kept.root / "new.md").write_text("x\n")

    assert counted(Pending([]), kept.vault) == 1


def test_several_threads_count_what_a_walk_counts_whenever_nothing_moves(kept):
    """They count while files change and the index follows; at each standstill it must be true."""
    pending, still = Pending([kept]), threading.Barrier(4, timeout=60)
    moving, over = threading.Event(), threading.Event()
    said: list[int] = []

    def count() -> None:
        with kept.vault.reading() as index:
            while True:
                while moving.is_set():
                    index.refresh()
                    pending(kept.vault, index)
                still.wait()
                if over.is_set():
                    return
                index.refresh()
                said.append(pending(kept.vault, index))
                still.wait()  # what was said is compared
                still.wait()  # and something moves again

    moving.set()
    threads = [threading.Thread(target=count) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(10):
        for name in ("taken in", "waiting")[: 1 + number % 2]:
            (kept.root / f"{name} {number}.md").write_text("new\n")
            if name == "taken in":
                take_in(kept)
        moving.clear()
        still.wait()
        still.wait()
        with kept.vault.catalogue() as catalogue:
            walked = sum(waiting(kept.root, catalogue, kept.vault.settings.config))
        assert said == [walked] * 3 == [number % 2] * 3
        said.clear()
        moving.set()
        still.wait()
    over.set()
    moving.clear()
    still.wait()
    for thread in threads:
        thread.join()
