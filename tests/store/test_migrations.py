"""Migrations: an older index opens, a newer one is refused, a failed upgrade changes nothing."""

from __future__ import annotations

import sqlite3

import pytest
from store_builders import note, put

from ragvault.errors import IndexTooNew, IndexUnusable
from ragvault.store import database, schema
from ragvault.store.catalogue import Catalogue
from ragvault.store.schema import MIGRATIONS, create, upgrade

NOW = len(MIGRATIONS)

FILE = "catalogue.sqlite"


@pytest.fixture
def folder(tmp_path):
    with Catalogue.open(tmp_path, write=True) as catalogue:
        put(catalogue, note("a.md"))
    return tmp_path


@pytest.fixture
def db(folder):
    opened = sqlite3.connect(folder / FILE, isolation_level=None)
    yield opened
    opened.close()


def formats(db):
    return db.execute("PRAGMA user_version").fetchone()[0]


def add_mood(db):
    db.execute("ALTER TABLE notes ADD COLUMN mood TEXT NOT NULL DEFAULT 'calm'")


def add_weather(db):
    db.execute("ALTER TABLE notes ADD COLUMN weather TEXT")
    db.execute("UPDATE notes SET weather = mood || ' and mild'")  # needs the step before it


def fails(db):
    db.execute("DELETE FROM notes")
    raise RuntimeError("pulled the plug")


def test_a_new_catalogue_has_the_newest_format(folder, db):
    assert formats(db) == len(MIGRATIONS)


def test_steps_are_taken_in_order_and_nothing_is_lost(folder, db):
    assert upgrade(db, folder, (*MIGRATIONS, add_mood, add_weather)) == NOW

    assert formats(db) == NOW + 2
    found = db.execute("SELECT path, weather FROM notes").fetchall()
    assert found == [("a.md", "calm and mild")]


def test_a_catalogue_of_this_format_is_left_alone(folder, db):
    before = (folder / FILE).read_bytes()
    assert upgrade(db, folder) == len(MIGRATIONS)
    assert (folder / FILE).read_bytes() == before


def test_a_step_that_fails_leaves_the_format_before_it(folder, db):
    with pytest.raises(RuntimeError, match="plug"):
        upgrade(db, folder, (*MIGRATIONS, add_mood, fails))

    assert formats(db) == NOW + 1
    assert db.execute("SELECT path, mood FROM notes").fetchall() == [("a.md", "calm")]
    upgrade(db, folder, (*MIGRATIONS, add_mood, add_weather))
    assert formats(db) == NOW + 2


def test_a_failed_first_step_leaves_no_table(tmp_path):
    db = sqlite3.connect(tmp_path / FILE, isolation_level=None)

    def half(db):
        create(db)
        raise RuntimeError("pulled the plug")

    with pytest.raises(RuntimeError, match="plug"):
        upgrade(db, tmp_path, (half,))
    assert db.execute("SELECT * FROM sqlite_master").fetchall() == []
    assert formats(db) == 0
    db.close()


def test_two_processes_that_upgrade_at_once_take_each_step_once(folder, db):
    late = sqlite3.connect(folder / FILE, isolation_level=None)
    steps = (*MIGRATIONS, add_mood)
    upgrade(db, folder, steps)
    schema._one_step(late, folder, steps, NOW)  # it had found format NOW before the other began

    assert formats(late) == NOW + 1
    late.close()


@pytest.mark.parametrize("write", [True, False])
def test_a_newer_index_is_refused_and_left_alone(folder, db, write):
    newer = len(MIGRATIONS) + 6
    db.execute(f"PRAGMA user_version = {newer}")

    with pytest.raises(IndexTooNew, match=f"has format {newer}; this ragvault reads") as refused:
        Catalogue.open(folder, write=write)
    assert "upgrade ragvault" in refused.value.fix
    assert formats(db) == newer


def test_an_older_index_is_upgraded_by_a_writer_and_named_to_a_reader(folder, monkeypatch):
    steps = (*MIGRATIONS, add_mood)
    monkeypatch.setattr(schema, "MIGRATIONS", steps)
    monkeypatch.setattr(database, "MIGRATIONS", steps)

    with pytest.raises(IndexUnusable, match="older release") as refused:
        Catalogue.open(folder)
    assert refused.value.fix == "update it: ragvault index"

    Catalogue.open(folder, write=True).close()
    with Catalogue.open(folder) as reader:
        assert reader.counts().format == len(steps)
        assert reader.note("a.md") == note("a.md")


def test_an_identity_outlives_an_upgrade(folder, db):
    query = "SELECT value FROM meta WHERE key = 'identity'"
    before = db.execute(query).fetchone()
    upgrade(db, folder, (*MIGRATIONS, add_mood))
    assert db.execute(query).fetchone() == before
