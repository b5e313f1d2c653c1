"""Indexes that a watcher keeps open between searches."""

from __future__ import annotations

import pytest
from vault_kit import vault

from ragvault.errors import IndexUnusable
from ragvault.models.kit import Kit
from ragvault.opened import Opened
from ragvault.service.openings import Openings
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
    openings, opened = Openings(Kit()), Vault.open(vault)
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

    openings, opened = Openings(Kit()), Vault.open(vault)
    with openings(opened) as first:
        pass
    monkeypatch.setattr(Opened, "refresh", refuse)
    with openings(opened) as second:
        pass

    assert closed == [first]
    second.close()
