"""Readers and failures: search works while indexing, and what goes wrong is said with its cure."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading

import pytest
from store_builders import note, put, unprivileged
from store_builders import passages as stored_passages

from ragvault.errors import IndexMissing, IndexUnusable
from ragvault.ports import Progress
from ragvault.store.catalogue import Catalogue
from ragvault.store.layout import register_vault
from ragvault.update.upkeep import rebuild_catalogue

FILE = "catalogue.sqlite"


def made(folder, *paths):
    with Catalogue.open(folder, write=True) as catalogue:
        for path in paths or ("a.md",):
            put(catalogue, note(path))


def paths(folder):
    with Catalogue.open(folder) as reader:
        return sorted(reader.files())


def test_a_reader_sees_what_is_finished_while_the_writer_writes(tmp_path):
    made(tmp_path)
    with Catalogue.open(tmp_path, write=True) as writer, Catalogue.open(tmp_path) as reader:
        with writer.batch():
            put(writer, note("b.md"))
            assert list(reader.files()) == ["a.md"]
        assert list(reader.files()) == ["a.md", "b.md"]


def test_a_snapshot_stays_at_one_moment(tmp_path):
    made(tmp_path)
    with Catalogue.open(tmp_path, write=True) as writer, Catalogue.open(tmp_path) as reader:
        with reader.snapshot():
            assert reader.revision == 1
            put(writer, note("b.md"))
            assert reader.revision == 1
            assert list(reader.files()) == ["a.md"]
        assert reader.revision == 2


def test_a_reader_cannot_write(tmp_path):
    made(tmp_path)
    with (
        Catalogue.open(tmp_path) as reader,
        pytest.raises(IndexUnusable, match="read-only"),
    ):
        put(reader, note("b.md"))
    assert paths(tmp_path) == ["a.md"]


def test_many_readers_in_threads_never_meet_half_a_change(tmp_path):
    made(tmp_path)
    stop, torn = threading.Event(), []

    def read():
        with Catalogue.open(tmp_path) as reader:
            while not stop.is_set():
                with reader.snapshot():
                    text = reader.note("a.md").text
                    passages = [passage.text for passage in stored_passages(reader, "a.md")]
                if text.split("\n") != passages:
                    torn.append((text, passages))

    readers = [threading.Thread(target=read) for _ in range(3)]
    with Catalogue.open(tmp_path, write=True) as writer:
        for thread in readers:
            thread.start()
        for i in range(150):
            put(writer, note("a.md", "\n".join(f"{i} {line}" for line in range(i % 7 + 1))))
        stop.set()
        for thread in readers:
            thread.join()
    assert torn == []


def test_a_vault_without_an_index_is_named(tmp_path):
    (tmp_path / "notes").mkdir()
    folder = register_vault(tmp_path / "notes", tmp_path / "data").folder
    with pytest.raises(IndexMissing, match="notes has no index yet") as missing:
        Catalogue.open(folder)
    assert missing.value.fix.endswith("/notes")


def test_a_catalogue_that_was_never_finished_is_no_index_and_can_be_made(tmp_path):
    (tmp_path / FILE).touch()
    with pytest.raises(IndexMissing):
        Catalogue.open(tmp_path)
    made(tmp_path)
    assert paths(tmp_path) == ["a.md"]


@pytest.mark.parametrize("write", [True, False])
def test_a_file_that_is_no_database_is_said_to_be_none_and_is_left_alone(tmp_path, write):
    (tmp_path / FILE).write_bytes(b"my diary " * 500)
    with pytest.raises(IndexUnusable, match="is not a database") as refused:
        Catalogue.open(tmp_path, write=write)

    assert "ragvault index --rebuild" in refused.value.fix
    assert (tmp_path / FILE).read_bytes() == b"my diary " * 500


@pytest.mark.parametrize("write", [True, False])
def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path, write):
    with sqlite3.connect(tmp_path / FILE) as other:
        other.execute("CREATE TABLE theirs (a)")
    other.close()
    before = (tmp_path / FILE).read_bytes()

    with pytest.raises(IndexUnusable, match="another program"):
        Catalogue.open(tmp_path, write=write)
    assert (tmp_path / FILE).read_bytes() == before


def test_a_damaged_catalogue_names_the_cure_and_the_cure_works(tmp_path):
    made(tmp_path, *(f"{i}.md" for i in range(100)))
    whole = bytearray((tmp_path / FILE).read_bytes())
    whole[4096:] = b"\xa5" * (len(whole) - 4096)  # all but the first page
    (tmp_path / FILE).write_bytes(whole)

    with pytest.raises(IndexUnusable, match="damaged") as refused:
        paths(tmp_path)
    assert "ragvault index --rebuild" in refused.value.fix

    rebuild_catalogue(tmp_path, Progress(), check=True)
    made(tmp_path)
    assert paths(tmp_path) == ["a.md"]


def test_a_damaged_text_is_said_to_be_damaged(tmp_path):
    with Catalogue.open(tmp_path, write=True) as catalogue:
        note_id = put(catalogue, note("a.md"))
        catalogue._db.execute("UPDATE bodies SET text = x'00'")
        with pytest.raises(IndexUnusable, match="damaged"):
            catalogue.text(note_id)


def test_a_full_disk_changes_nothing_and_is_survived(tmp_path):
    with Catalogue.open(tmp_path, write=True) as catalogue:
        put(catalogue, note("a.md"))
        (pages,) = catalogue._db.execute("PRAGMA page_count").fetchone()
        catalogue._db.execute(f"PRAGMA max_page_count = {pages}")
        big = note("a.md", "\n".join(str(i) for i in range(5000)))
        with pytest.raises(IndexUnusable, match="disk is full") as full:
            put(catalogue, big)
        assert "free some space" in full.value.fix

        assert catalogue.note("a.md") == note("a.md")
        assert catalogue.revision == 1
        catalogue._db.execute("PRAGMA max_page_count = 100000")
        put(catalogue, big)
        assert catalogue.note("a.md") == big


def test_a_full_disk_in_a_batch_keeps_whole_notes_only(tmp_path):
    with Catalogue.open(tmp_path, write=True) as catalogue:
        put(catalogue, note("a.md"))
        (pages,) = catalogue._db.execute("PRAGMA page_count").fetchone()
        catalogue._db.execute(f"PRAGMA max_page_count = {pages}")

        def fill():
            with catalogue.batch():
                put(catalogue, note("b.md"))
                put(catalogue, note("c.md", "\n".join(str(i) for i in range(5000))))

        with pytest.raises(IndexUnusable, match="disk is full"):
            fill()
    assert set(paths(tmp_path)) <= {"a.md", "b.md"}
    assert "a.md" in paths(tmp_path)


def test_a_catalogue_another_program_holds_is_said_to_be_held(tmp_path):
    made(tmp_path)
    holder = sqlite3.connect(tmp_path / FILE, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with Catalogue.open(tmp_path, write=True) as catalogue:
        catalogue._db.execute("PRAGMA busy_timeout = 0")
        with pytest.raises(IndexUnusable, match="another program holds"):
            put(catalogue, note("b.md"))
        assert list(catalogue.files()) == ["a.md"]
    holder.close()


def test_a_read_only_folder_can_be_searched():
    with unprivileged() as place:
        made(place)
        assert not (place / f"{FILE}-wal").exists()
        place.chmod(0o500)
        (place / FILE).chmod(0o400)
        assert paths(place) == ["a.md"]


def test_a_read_only_folder_can_be_searched_while_its_writer_runs():
    with unprivileged() as place, Catalogue.open(place, write=True) as writer:
        put(writer, note("a.md"))
        place.chmod(0o500)
        assert paths(place) == ["a.md"]


def test_a_read_only_folder_cannot_be_indexed_and_says_so():
    with unprivileged() as place:
        made(place)
        place.chmod(0o500)
        (place / FILE).chmod(0o400)
        with pytest.raises(IndexUnusable, match="read-only"):
            Catalogue.open(place, write=True)


def test_a_catalogue_copied_without_its_end_is_refused_rather_than_read_in_part():
    with unprivileged() as place, Catalogue.open(place, write=True) as writer:
        put(writer, note("a.md"))
        copy = place / "copy"
        copy.mkdir()
        for suffix in ("", "-wal"):
            (copy / f"{FILE}{suffix}").write_bytes((place / f"{FILE}{suffix}").read_bytes())
        copy.chmod(0o500)
        with pytest.raises(IndexUnusable) as refused:
            Catalogue.open(copy)
    assert "permissions" in refused.value.fix or "writable" in refused.value.fix


def test_a_folder_with_an_odd_name_is_opened(tmp_path):
    folder = tmp_path / "50% ä?#&x=1\udcff"
    made(folder)
    assert paths(folder) == ["a.md"]


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_every_file_of_the_catalogue_is_for_its_owner_alone(tmp_path, umask):
    before = os.umask(umask)
    folder = tmp_path / "index"
    try:
        with Catalogue.open(folder, write=True) as writer, Catalogue.open(folder) as reader:
            put(writer, note("a.md"))
            reader.files()
            files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    finally:
        os.umask(before)
    assert files == {FILE: 0o600, f"{FILE}-wal": 0o600, f"{FILE}-shm": 0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_reader_that_comes_first_leaves_private_files_only(tmp_path):
    made(tmp_path)
    before = os.umask(0)
    try:
        with Catalogue.open(tmp_path) as reader:
            reader.files()
            modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes == {0o600}
