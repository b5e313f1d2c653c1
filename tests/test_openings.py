"""Indexes that a watcher keeps open between searches."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from vault_kit import vault

from ragvault.errors import IndexUnusable
from ragvault.models.load import ModelPool
from ragvault.opened import Opened
from ragvault.service.openings import Declined, Openings
from ragvault.vault import Vault

__all__ = ["vault"]


@pytest.fixture
def closed(monkeypatch) -> list[Opened]:
    """Those that were closed."""
    found: list[Opened] = []
    close = Opened.close
    monkeypatch.setattr(Opened, "close", lambda self: (found.append(self), close(self))[1])
    return found


def test_an_index_is_opened_once_for_many_searches(vault, closed):
    openings, opened = Openings(ModelPool()), Vault.open(vault)
    with openings(opened) as first:
        pass
    with openings(opened) as second:
        pass

    assert first is second
    assert not closed
    first.close()


def test_one_that_cannot_be_brought_up_to_date_is_closed_and_opened_anew(
    vault, closed, monkeypatch
):
    def refuse(self: Opened) -> None:
        raise IndexUnusable(self.catalogue.folder, "it is damaged")

    openings, opened = Openings(ModelPool()), Vault.open(vault)
    with openings(opened) as first:
        pass
    monkeypatch.setattr(Opened, "refresh", refuse)
    with openings(opened) as second:
        pass

    assert closed == [first]
    second.close()


def test_a_thread_with_nothing_to_do_lets_go_of_an_index_that_was_removed(vault, closed):
    """An open file keeps its bytes on the disk, though its name is gone."""
    openings, opened = Openings(ModelPool()), Vault.open(vault)
    with openings(opened) as first:
        pass
    openings.tidy()
    assert not closed
    shutil.rmtree(opened.folder)
    openings.tidy()

    assert closed == [first]


def test_a_thread_with_nothing_to_do_lets_go_of_what_was_forgotten(vault):
    openings, opened = Openings(ModelPool()), Vault.open(vault)
    with openings(opened):
        pass
    before = deleted_files(opened.folder)
    assert not before
    opened.forget(next(iter(_paths(opened))))
    assert deleted_files(opened.folder)  # still open here
    openings.tidy()

    assert not deleted_files(opened.folder)
    with openings(opened) as index:
        index.close()


def _paths(vault: Vault) -> list[str]:
    with vault.catalogue() as catalogue:
        return sorted(catalogue.files())


def deleted_files(folder: Path) -> list[str]:
    """Files of an index that this process holds though they are gone."""
    here = Path("/proc/self")
    if not (here / "maps").exists():
        pytest.skip("this system does not tell which files are open")
    links = [str(each.readlink()) for each in (here / "fd").iterdir() if each.is_symlink()]
    lines = (here / "maps").read_text().splitlines()
    return [each for each in (*links, *lines) if str(folder) in each and "(deleted)" in each]


def test_a_vault_whose_settings_want_no_watcher_to_answer_is_left_to_others(vault):
    openings = Openings(ModelPool())
    declining = Vault.open(vault, flags=["watch.answer=false"])
    with pytest.raises(Declined), openings(declining):
        pass
