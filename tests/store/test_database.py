"""Transactions: whole or absent, at whatever statement a Ctrl-C comes."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from ragvault.store import database


class Interrupted(sqlite3.Connection):
    """A connection at whose nth statement somebody presses Ctrl-C: before it has run, or after."""

    left, after = 0, False

    def execute(self, statement: str) -> sqlite3.Cursor:
        self.left -= 1
        if self.left == 0 and not self.after:
            raise KeyboardInterrupt
        cursor = super().execute(statement)
        if self.left == 0:
            raise KeyboardInterrupt
        return cursor


class Refusing(sqlite3.Connection):
    """A connection that refuses statements, as on a disk that fails."""

    refused = "nothing"

    def execute(self, statement: str) -> sqlite3.Cursor:
        if statement.startswith(self.refused):
            raise sqlite3.OperationalError("disk I/O error")
        return super().execute(statement)


@pytest.fixture(params=[Interrupted])
def db(request):
    with closing(sqlite3.connect(":memory:", isolation_level=None, factory=request.param)) as db:
        db.execute("CREATE TABLE said (word)")
        yield db


def words(db):
    return [word for (word,) in db.execute("SELECT word FROM said ORDER BY rowid")]


def change(db):
    db.execute("INSERT INTO said VALUES ('one')")
    db.execute("INSERT INTO said VALUES ('two')")


def snapshot(db):
    return database.Database(Path(), db).snapshot()


MOMENTS = [(nth, after) for nth in range(1, 5) for after in (False, True)]


def interrupt(db, nth, after):
    db.left, db.after = nth, after


@pytest.mark.parametrize(("nth", "after"), MOMENTS)
def test_an_interrupt_anywhere_in_a_transaction_is_told_as_one_and_leaves_all_or_nothing(
    db, nth, after
):
    interrupt(db, nth, after)
    with suppress(KeyboardInterrupt), database.transaction(db):
        change(db)

    assert not db.in_transaction
    interrupt(db, 0, False)
    assert words(db) in ([], ["one", "two"])


@pytest.mark.parametrize(("nth", "after"), MOMENTS)
def test_an_interrupt_anywhere_in_a_change_of_a_batch_keeps_the_others(db, nth, after):
    def store():
        with database.transaction(db):
            db.execute("INSERT INTO said VALUES ('before')")
        interrupt(db, nth, after)
        with database.transaction(db):
            change(db)

    with pytest.raises(KeyboardInterrupt), database.batch(db):
        store()

    assert not db.in_transaction
    assert words(db) in (["before"], ["before", "one", "two"])


@pytest.mark.parametrize("nth", range(1, 5))
def test_a_change_inside_a_change_of_a_batch_goes_or_stays_with_it(db, nth):
    def store():
        with database.transaction(db):
            db.execute("INSERT INTO said VALUES ('before')")
        with database.transaction(db):
            db.execute("INSERT INTO said VALUES ('outer')")
            interrupt(db, nth, after=True)
            with database.transaction(db):
                change(db)

    with pytest.raises(KeyboardInterrupt), database.batch(db):
        store()

    assert words(db) == ["before"]


@pytest.mark.parametrize(("nth", "after"), MOMENTS[:6])
@pytest.mark.parametrize("kind", [snapshot, database.batch])
def test_an_interrupt_anywhere_in_a_snapshot_or_batch_is_told_as_one_and_leaves_it(
    db, kind, nth, after
):
    interrupt(db, nth, after)
    with pytest.raises(KeyboardInterrupt), kind(db):
        [db.execute("SELECT 1") for _ in range(2)]

    assert not db.in_transaction
    interrupt(db, 0, False)
    with database.transaction(db):
        change(db)
    assert words(db) == ["one", "two"]


def fail(db):
    change(db)
    raise ZeroDivisionError


@pytest.mark.parametrize("db", [Refusing], indirect=True)
def test_a_change_that_cannot_be_undone_takes_its_batch_with_it_and_says_why(db):
    def store():
        db.execute("INSERT INTO said VALUES ('before')")
        with database.transaction(db):
            fail(db)

    db.refused = "ROLLBACK"
    with pytest.raises(ZeroDivisionError), database.batch(db):
        store()

    assert words(db) == []


@pytest.mark.parametrize("kind", [database.transaction, database.batch])
def test_a_commit_that_fails_is_told_and_undone(db, kind):
    db.execute("PRAGMA foreign_keys = ON")
    db.execute("CREATE TABLE of (id PRIMARY KEY)")
    db.execute("CREATE TABLE part (of REFERENCES of DEFERRABLE INITIALLY DEFERRED)")

    def refused():
        change(db)
        db.execute("INSERT INTO part VALUES (7)")  # only the commit looks at it

    with pytest.raises(sqlite3.IntegrityError), kind(db):
        refused()

    assert not db.in_transaction
    assert words(db) == []
