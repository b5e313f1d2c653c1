"""How many files wait is the same number whether it was heard or walked."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragvault import freshness
from ragvault.freshness import waiting
from ragvault.models.kit import Kit
from ragvault.service.kept import Kept
from ragvault.service.pending import Pending
from ragvault.vault import Vault
from tests.watch_kit import SMALL
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
    kept.catch_up(lambda: False)
    assert counted(pending, vault) == 0


def test_a_time_that_only_changed_waits_until_it_was_taken_over(kept):
    """Which makes no other revision of the catalogue."""
    import os

    pending = Pending([kept])
    os.utime(kept.root / "one.md", ns=(1, 1))
    assert counted(pending, kept.vault) == 1
    kept.catch_up(lambda: False)

    assert counted(pending, kept.vault) == 0


def test_other_settings_count_by_a_walk_of_their_own(kept):
    (kept.root / "list.txt").write_text("x\n")
    other = Vault.open(kept.root, flags=['walk.extensions=[".md", ".txt"]'])

    assert counted(Pending([kept]), other) == 1


def test_a_vault_that_nobody_watches_is_walked(kept):
    (kept.root / "new.md").write_text("x\n")

    assert counted(Pending([]), kept.vault) == 1


def test_several_threads_may_count_while_the_index_follows(kept):
    pending, wrong = Pending([kept]), []

    def count() -> None:
        with kept.vault.reading() as index:
            for _ in range(20):
                index.refresh()
                if not 0 <= pending(kept.vault, index) <= 10:
                    wrong.append(1)

    threads = [threading.Thread(target=count) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(10):
        (kept.root / f"new {number}.md").write_text("new\n")
        kept.catch_up(lambda: False)
    for thread in threads:
        thread.join()

    assert not wrong
    assert counted(pending, kept.vault) == 0
