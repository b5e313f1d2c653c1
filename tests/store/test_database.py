"""Transactions: whole or absent, at whatever statement a Ctrl-C comes."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from ragvault.store import database


class Interrupted:
    """A connection at whose nth statement somebody presses Ctrl-C: before it has run, or after."""

    def __init__(self, db: sqlite3.Connection, nth: int, after: bool) -> None:
        self._db, self._left, self._after = db, nth, after

    @property
    def in_transaction(self) -> bool:
        return self._db.in_transaction

    def execute(self, statement: str) -> sqlite3.Cursor:
        self._left -= 1
        if self._left == 0 and not self._after:
            raise KeyboardInterrupt
        cursor = self._db.execute(statement)
        if self._left == 0:
            raise KeyboardInterrupt
        return cursor


@pytest.fixture
def db():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.execute("CREATE TABLE said (word)")
        yield db


def words(db):
    return [word for (word,) in db.execute("SELECT word FROM said ORDER BY rowid")]


def change(db):
    db.execute("INSERT INTO said VALUES ('one')")
    db.execute("INSERT INTO said VALUES ('two')")


MOMENTS = [(nth, after) for nth in range(1, 5) for after in (False, True)]


@pytest.mark.parametrize(("nth", "after"), MOMENTS)
def test_an_interrupt_anywhere_in_a_transaction_is_told_as_one_and_leaves_all_or_nothing(
    db, nth, after
):
    stopped = Interrupted(db, nth, after)
    with pytest.raises(KeyboardInterrupt), database.transaction(stopped):
        change(stopped)

    assert not db.in_transaction
    assert words(db) in ([], ["one", "two"])


@pytest.mark.parametrize(("nth", "after"), MOMENTS)
def test_an_interrupt_anywhere_in_a_change_of_a_batch_keeps_the_others(db, nth, after):
    stopped = Interrupted(db, nth, after)

    def store():
        with database.transaction(db):
            db.execute("INSERT INTO said VALUES ('before')")
        with database.transaction(stopped):
            change(stopped)

    with pytest.raises(KeyboardInterrupt), database.batch(db):
        store()

    assert not db.in_transaction
    assert words(db) in (["before"], ["before", "one", "two"])


@pytest.mark.parametrize(("nth", "after"), MOMENTS)
@pytest.mark.parametrize("kind", [database.snapshot, database.batch])
def test_an_interrupt_anywhere_in_a_snapshot_or_batch_is_told_as_one_and_leaves_it(
    db, kind, nth, after
):
    stopped = Interrupted(db, nth, after)
    with pytest.raises(KeyboardInterrupt), kind(stopped):
        [stopped.execute("SELECT 1") for _ in range(2)]

    assert not db.in_transaction
    with database.transaction(db):
        change(db)
    assert words(db) == ["one", "two"]


def fail(db):
    change(db)
    raise ZeroDivisionError


class Refusing:
    """A connection that undoes nothing, as on a disk that fails."""

    def __init__(self, db: sqlite3.Connection, *refused: str) -> None:
        self._db, self._refused = db, refused

    @property
    def in_transaction(self) -> bool:
        return self._db.in_transaction

    def execute(self, statement: str) -> sqlite3.Cursor:
        if statement.startswith(self._refused):
            raise sqlite3.OperationalError("disk I/O error")
        return self._db.execute(statement)


@pytest.mark.parametrize("refused", ["ROLLBACK", "COMMIT", "RELEASE"])
def test_a_rollback_that_fails_does_not_hide_what_went_wrong_before(db, refused):
    failing = Refusing(db, refused)
    with (
        pytest.raises(ZeroDivisionError),
        database.batch(failing),
        database.transaction(failing),
    ):
        fail(failing)


def test_a_change_that_cannot_be_undone_takes_its_batch_with_it(db):
    failing = Refusing(db, "ROLLBACK TO")
    with (
        pytest.raises(ZeroDivisionError),
        database.batch(failing),
        database.transaction(failing),
    ):
        fail(failing)

    assert words(db) == []


def test_a_commit_that_fails_is_told_and_undone(db):
    failing = Refusing(db, "COMMIT")
    with pytest.raises(sqlite3.OperationalError), database.transaction(failing):
        change(failing)

    assert not db.in_transaction
    assert words(db) == []
