"""What is made again from the catalogue, whatever was removed from it and however it was lost."""

from __future__ import annotations

import os
import shutil
from collections import namedtuple

import pytest
from write_kit import Heard, answers, models, notes, opened, write

from ragvault.cli.vaults import vault_rows
from ragvault.errors import IndexLocked, IndexUnusable, VaultUnreadable
from ragvault.store import layout
from ragvault.store.files import WriterLock
from ragvault.update import freshness
from ragvault.vault import Vault
from tests.keyword_kit import ENGINES

pytestmark = pytest.mark.usefixtures("models")
__all__ = ["models"]


@pytest.fixture(params=ENGINES)
def vault(request, tmp_path):
    write(tmp_path / "vault", notes(6))
    return opened(tmp_path / "vault", tmp_path / "home", f"keyword.engine={request.param}")


# --- After something was removed for good, nobody remembers what ---


def forgotten(vault: Vault) -> None:
    name = sorted(path.name for path in vault.root.glob("*.md"))[0]
    (vault.root / name).unlink()
    vault.forget(name)


def deleted(vault: Vault) -> None:
    """Twice, so that the second run may forget what the first removed."""
    first, second, *_ = sorted(vault.root.glob("*.md"))
    for each in (first, second):
        each.unlink()
        vault.index()


def rebuilt(vault: Vault) -> None:
    vault.index(rebuild=True)


def damaged(vault: Vault) -> None:
    held = next((vault.folder / "caches").glob("keyword-*"))
    for path in [path for path in held.iterdir() if "lock" not in path.name.lower()]:
        path.unlink()  # written in place, it would end a process that still maps it (SIGBUS)
        path.write_bytes(b"boom")
    vault.index()


def lost(vault: Vault) -> None:
    shutil.rmtree(next((vault.folder / "caches").glob("keyword-*")))
    vault.index()


@pytest.mark.parametrize("again", [rebuilt, damaged, lost])
@pytest.mark.parametrize("removed", [forgotten, deleted])
def test_words_are_made_again_after_notes_were_removed_for_good(vault, models, removed, again):
    vault.index()
    removed(vault)
    before = answers(vault, exact=False)
    models.forget()

    again(vault)

    assert answers(vault, exact=False) == before
    assert models.seen == []
    assert not vault.search("walrus").failed


@pytest.mark.parametrize("removed", [forgotten, deleted])
def test_the_other_engine_takes_over_after_notes_were_removed_for_good(tmp_path, removed):
    pytest.importorskip("tantivy")
    write(tmp_path / "vault", notes(6))
    vault = opened(tmp_path / "vault", tmp_path / "home")
    vault.index()
    removed(vault)
    for engine in ("tantivy", "whoosh"):
        other = opened(vault.root, tmp_path / "home", f"keyword.engine={engine}")
        other.index()
        assert not other.search("walrus").failed


# --- A lower tier keeps what a better one made ---


@pytest.mark.parametrize("tier", ["keyword", "static"])
def test_a_rebuild_of_a_lower_tier_makes_the_better_vectors_again(vault, models, tier):
    vault.index()
    before = answers(vault, exact=False)
    models.forget()

    report = vault.index(tier, rebuild=True)

    assert report.tier == "full"
    assert "vectors" in report.rebuilt
    assert answers(vault, exact=False) == before
    assert models.seen == []
    assert not vault.search("walrus").failed


# --- No room ---


def test_a_rebuild_that_there_is_no_room_for_deletes_nothing(vault, monkeypatch):
    vault.index()
    before = answers(vault)
    usage = namedtuple("usage", "total used free")
    with monkeypatch.context() as small:
        small.setattr("ragvault.engines.shutil.disk_usage", lambda _: usage(10**9, 10**9, 1000))
        with pytest.raises(IndexUnusable, match="nothing was changed") as told:
            vault.index(rebuild=True)
    assert "free some space" in told.value.fix
    assert answers(vault) == before
    vault.index(rebuild=True)
    assert answers(vault) == before


# --- A search makes nothing ---


def test_a_search_with_another_engine_is_answered_by_the_one_there_is_and_makes_no_file(vault):
    vault.index()
    other = {"whoosh": "tantivy", "tantivy": "whoosh"}[vault.settings.config.keyword.engine]
    pytest.importorskip("tantivy")
    before = sorted((vault.folder / "caches").rglob("*"))
    found = answers(vault)

    reader = opened(vault.root, vault.folder.parent.parent, f"keyword.engine={other}")

    assert not reader.search("walrus").failed
    assert answers(reader) == found
    assert sorted((vault.folder / "caches").rglob("*")) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may delete everything")
def test_a_damaged_index_that_may_not_be_deleted_is_replaced(vault):
    vault.index()
    before = answers(vault)
    held = next((vault.folder / "caches").glob("keyword-*"))
    for path in [path for path in held.iterdir() if "lock" not in path.name.lower()]:
        path.write_bytes(b"boom")
    held.chmod(0o500)
    try:
        vault.index()
        assert answers(vault) == before
    finally:
        held.chmod(0o700)


# --- Vaults that cannot be reached ---


def test_a_vault_that_cannot_be_reached_is_not_taken_for_gone(vault, tmp_path, monkeypatch):
    """Nor does it keep others from being indexed: a mount that hangs raises what it likes."""
    vault.index("keyword")
    write(tmp_path / "copy", notes(6))
    real = os.scandir

    def scandir(path="."):
        if str(path) == str(vault.root):
            raise OSError(107, "Transport endpoint is not connected")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    monkeypatch.setenv("RAGVAULT_HOME", str(tmp_path / "home"))
    home, heard = tmp_path / "home", Heard()

    assert opened(tmp_path / "copy", home).index("keyword", progress=heard).added == 6
    assert not any("gone" in line or "goes on" in line for line in heard.lines)
    rows = vault_rows(layout.known_vaults(home))
    assert [(row.name, row.state) for row in rows] == [("copy", "ready"), ("vault", "unreadable")]
    with vault.catalogue() as catalogue, pytest.raises(VaultUnreadable, match="not connected"):
        freshness.check_vault(vault.root, catalogue)


def test_an_index_that_is_being_written_is_waited_for_and_then_taken_over(vault, tmp_path, models):
    vault.index()
    models.forget()
    vault.root.rename(tmp_path / "new")
    moved = opened(tmp_path / "new", tmp_path / "home")
    with WriterLock(vault.folder, "another"), pytest.raises(IndexLocked):
        moved.index()
    assert not moved.folder.exists()

    assert moved.index().unchanged == 6
    assert models.seen == []
