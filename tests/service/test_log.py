"""The log of a watcher: small, private, and without queries and notes."""

from __future__ import annotations

import sys

from ragvault.service.watcher import OLDER_FILES, WatchLog, describe_unexpected


def test_a_reader_that_left_does_not_end_the_watcher(tmp_path, monkeypatch):
    class Gone:
        def write(self, _):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Gone())
    log = WatchLog(tmp_path / "watch.log", echo=True)
    log.info("one")
    log.info("two")
    log.close()

    assert (tmp_path / "watch.log").read_text().count("\n") == 2


def test_a_log_stays_small_and_private(tmp_path, monkeypatch):
    monkeypatch.setattr("ragvault.service.watcher.LOG_BYTES", 1000)
    path = tmp_path / "logs" / "watch.log"
    log = WatchLog(path, echo=False)
    for number in range(200):
        log.info(f"line {number}")

    files = sorted(path.parent.iterdir())
    assert len(files) == OLDER_FILES + 1
    assert all(file.stat().st_size <= 1000 for file in files)
    assert all(file.stat().st_mode & 0o077 == 0 for file in files)
    assert "line 199" in path.read_text()
    log.close()


def test_nothing_in_a_log_steers_a_terminal(tmp_path):
    log = WatchLog(tmp_path / "watch.log", echo=False)
    log.info("a note \x1b[31mred\nsecond line")
    log.close()

    assert (tmp_path / "watch.log").read_text().count("\n") == 1
    assert "\x1b" not in (tmp_path / "watch.log").read_text()


def test_an_error_is_logged_by_its_kind_and_place_only():
    try:
        int("the text of a note")
    except ValueError as error:
        said = describe_unexpected(error)

    assert "ValueError at test_log.py:" in said
    assert "text of a note" not in said
