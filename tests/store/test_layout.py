"""The layout of the data folder: where an index lies, and which vaults are known."""

from __future__ import annotations

import json
import os
import re
import stat

import pytest
from store_builders import unprivileged

from ragvault.errors import ConfigError, IndexUnusable
from ragvault.store.files import make_folder, replace_file
from ragvault.store.layout import index_folder, known_vaults, register_vault, vault_of


@pytest.fixture
def vault(tmp_path):
    root = tmp_path / "My Notes"
    root.mkdir()
    return root


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_an_index_folder_is_named_after_the_vault_and_its_real_path(vault, tmp_path):
    folder = index_folder(vault, tmp_path / "data")

    assert folder.parent == tmp_path / "data" / "vaults"
    assert re.fullmatch(r"my-notes-[0-9a-f]{8}", folder.name)


def test_naming_an_index_folder_creates_nothing(vault, tmp_path):
    index_folder(vault, tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_two_vaults_of_one_name_have_two_folders(tmp_path):
    for parent in ("work", "home"):
        (tmp_path / parent / "notes").mkdir(parents=True)

    folders = {index_folder(tmp_path / p / "notes", tmp_path / "data") for p in ("work", "home")}

    assert len(folders) == 2


def test_a_link_to_a_vault_is_the_same_vault(vault, tmp_path):
    (tmp_path / "link").symlink_to(vault)
    data = tmp_path / "data"
    assert index_folder(tmp_path / "link", data) == index_folder(vault, data)


@pytest.mark.parametrize(
    ("name", "slug"),
    [("Notizbücher", "notizbucher"), ("笔记", "vault"), ("a" * 200, "a" * 40), ("..x..", "x")],
)
def test_the_slug_is_plain_and_short_whatever_the_name(tmp_path, name, slug):
    (tmp_path / name).mkdir()
    folder = index_folder(tmp_path / name, tmp_path / "data")
    assert folder.name.rpartition("-")[0] == slug


@pytest.mark.parametrize("data", ["", "sub", "sub/../other"])
def test_an_index_inside_the_vault_is_refused(vault, data):
    with pytest.raises(ConfigError, match="inside the vault") as refused:
        register_vault(vault, vault / data)

    assert "RAGVAULT_HOME" in refused.value.fix
    assert list(vault.iterdir()) == []


def test_an_index_that_a_link_leads_into_the_vault_is_refused(vault, tmp_path):
    (tmp_path / "data").symlink_to(vault)
    with pytest.raises(ConfigError, match="inside the vault"):
        register_vault(vault, tmp_path / "data")


def test_a_data_folder_beside_the_vault_with_its_name_as_prefix_is_accepted(vault, tmp_path):
    assert register_vault(vault, tmp_path / "My Notes data").root == vault


def test_a_remembered_vault_is_known(vault, tmp_path):
    remembered = register_vault(vault, tmp_path / "data", "diary")

    assert known_vaults(tmp_path / "data") == [remembered]
    assert (remembered.name, remembered.root) == ("diary", vault)


def test_remembering_again_keeps_the_name_and_the_day(vault, tmp_path):
    first = register_vault(vault, tmp_path / "data", "diary")
    card = json.loads((first.folder / "vault.json").read_text())
    replace_file(first.folder / "vault.json", json.dumps({**card, "created": "2001"}).encode())

    assert register_vault(vault, tmp_path / "data").created == "2001"
    assert register_vault(vault, tmp_path / "data").name == "diary"
    assert register_vault(vault, tmp_path / "data", "log").name == "log"


def test_vaults_are_listed_by_name(tmp_path):
    for name in ("b", "C", "a"):
        (tmp_path / name).mkdir()
        register_vault(tmp_path / name, tmp_path / "data")

    assert [vault.name for vault in known_vaults(tmp_path / "data")] == ["a", "b", "C"]


def test_without_a_data_folder_nothing_is_known(tmp_path):
    assert known_vaults(tmp_path / "data") == []


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"root": 1}', b"\xff\xfe"])
def test_a_folder_with_a_damaged_card_is_not_known_and_is_mended_by_remembering(
    vault, tmp_path, damage
):
    folder = register_vault(vault, tmp_path / "data").folder
    (folder / "vault.json").write_bytes(damage)

    assert known_vaults(tmp_path / "data") == []
    register_vault(vault, tmp_path / "data")
    assert vault_of(folder) is not None


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_only_the_owner_may_look_whatever_the_umask(vault, tmp_path, umask):
    before = os.umask(umask)
    try:
        folder = register_vault(vault, tmp_path / "data").folder
    finally:
        os.umask(before)

    assert {mode(path) for path in (folder, folder.parent, folder.parent.parent)} == {0o700}
    assert mode(folder / "vault.json") == 0o600


def test_a_folder_of_the_user_keeps_its_rights(vault, tmp_path):
    (tmp_path / "data").mkdir(mode=0o755)
    register_vault(vault, tmp_path / "data")
    assert mode(tmp_path / "data") == 0o755


def test_an_index_folder_that_was_open_to_others_is_closed(vault, tmp_path):
    folder = register_vault(vault, tmp_path / "data").folder
    folder.chmod(0o755)
    register_vault(vault, tmp_path / "data")
    assert mode(folder) == 0o700


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    replace_file(tmp_path / "card", b"old")
    monkeypatch.setattr(os, "fsync", fails)

    with pytest.raises(IndexUnusable, match="the disk is full"):
        replace_file(tmp_path / "card", b"new")

    assert [path.name for path in tmp_path.iterdir()] == ["card"]
    assert (tmp_path / "card").read_bytes() == b"old"


def fails(_):
    raise OSError(28, "No space left on device")


def test_a_folder_that_cannot_be_made_says_so():
    with unprivileged() as place:
        place.chmod(0o500)
        with pytest.raises(IndexUnusable, match="Permission denied") as refused:
            make_folder(place / "deep" / "index")
    assert "permissions" in refused.value.fix
