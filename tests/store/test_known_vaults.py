"""Which vault is meant by what was typed."""

from __future__ import annotations

import pytest

from ragvault.errors import VaultNotFound
from ragvault.store import layout
from ragvault.store.layout import known_vaults, register_vault


@pytest.fixture
def place(tmp_path):
    """work/notes and home/notes, both known; other is a folder that is not."""
    for name in ("work/notes/deep", "home/notes", "other"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("work/notes", "home/notes"):
        register_vault(tmp_path / name, tmp_path / "data")
    return tmp_path


def find(place, where, here="."):
    return layout.find_vault(where, place / "data", place / here).relative_to(place).as_posix()


def test_a_name_that_is_taken_gets_a_number(place):
    assert [vault.name for vault in known_vaults(place / "data")] == ["notes", "notes-2"]
    (place / "third" / "Notes").mkdir(parents=True)
    assert register_vault(place / "third" / "Notes", place / "data").name == "Notes-3"
    assert register_vault(place / "work" / "notes", place / "data").name == "notes"


@pytest.mark.parametrize(
    ("where", "here", "meant"),
    [
        ("notes", ".", "work/notes"),
        ("notes-2", ".", "home/notes"),
        ("NOTES-2", ".", "home/notes"),
        ("notes", "home", "home/notes"),  # a known folder here comes before a name
        ("home/notes", ".", "home/notes"),
        ("../home/notes", "work", "home/notes"),
        ("other", ".", "other"),
        (None, "work/notes/deep", "work/notes"),
        (None, "home/notes", "home/notes"),
    ],
)
def test_a_folder_a_name_or_nothing_means_a_vault(place, where, here, meant):
    assert find(place, where, here) == meant


def test_a_name_comes_before_a_folder_that_nobody_indexed(place):
    (place / "other" / "notes").mkdir()
    assert find(place, "notes", "other") == "work/notes"
    assert find(place, place / "other" / "notes") == "other/notes"


def test_the_default_is_meant_only_outside_of_all_vaults(place):
    layout.set_default_vault(known_vaults(place / "data")[1])
    assert find(place, None, "other") == "home/notes"
    assert find(place, None, "work/notes") == "work/notes"
    layout.unset_default_vault(place / "data")
    with pytest.raises(VaultNotFound, match="none of your 2 vaults") as refused:
        find(place, None, "other")
    assert "(notes, notes-2)" in str(refused.value)


def test_the_only_vault_is_meant_without_being_chosen(place):
    layout.remove_vault(known_vaults(place / "data")[0])
    assert find(place, None, "other") == "home/notes"


def test_a_default_that_was_removed_is_none(place):
    chosen = known_vaults(place / "data")[1]
    layout.set_default_vault(chosen)
    layout.remove_vault(chosen)
    assert layout.default_vault(place / "data") is None
    assert not (place / "data" / "vaults" / "default").exists()


def test_removing_another_vault_leaves_the_default(place):
    first, second = known_vaults(place / "data")
    layout.set_default_vault(first)
    layout.remove_vault(second)
    assert layout.default_vault(place / "data") == first


@pytest.mark.parametrize("damage", [b"", b"\xff\xfe", b"../../elsewhere", b"no-such-folder"])
def test_a_damaged_choice_chooses_nothing(place, damage):
    (place / "data" / "vaults" / "default").write_bytes(damage)
    assert layout.default_vault(place / "data") is None


def test_removing_deletes_the_index_or_keeps_it_and_never_the_notes(place):
    (place / "work" / "notes" / "a.md").write_text("# A\n")
    first, second = known_vaults(place / "data")
    layout.remove_vault(first)
    layout.remove_vault(second, keep=True)
    assert known_vaults(place / "data") == []
    assert not first.folder.exists()
    assert second.folder.exists()
    assert (place / "work" / "notes" / "a.md").read_text() == "# A\n"


def test_a_vault_whose_folder_is_gone_is_still_known_by_name_and_by_path(place):
    (place / "home" / "notes").rmdir()
    for where in ("notes-2", "home/notes"):
        assert layout.known_vault(where, place / "data", place).name == "notes-2"
        assert find(place, where) == "home/notes"


def test_what_is_nothing_says_what_there_is(place):
    with pytest.raises(VaultNotFound, match="no folder and no vault is called nowhere") as refused:
        find(place, "nowhere")
    assert refused.value.fix == "use one of: notes, notes-2"
    (place / "file.md").write_text("")
    with pytest.raises(VaultNotFound, match="is a file"):
        find(place, "file.md")
