"""Whether a watcher runs, how it is stopped, and what starts it at every login."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace

import pytest

from ragvault.cli.main import main
from ragvault.service import RECORD_FILE
from ragvault.service.process import (
    WatcherError,
    WatcherLock,
    WatcherRecord,
    _is_lock_held,
    check_runtime_folder,
    running_watcher,
    stop_watcher,
    watcher_of,
)
from ragvault.store.files import process_start

SLEEPER = (
    "import sys, time; from pathlib import Path; from ragvault.service.process import WatcherLock\n"
    "with WatcherLock() as lock:\n"
    "    lock.write_record([Path(sys.argv[1])], ''); print('here', flush=True); time.sleep(60)\n"
)


@pytest.fixture
def environ(tmp_path):
    return {"RAGVAULT_HOME": str(tmp_path / "home")}


@pytest.fixture
def sleeper(environ, tmp_path):
    """Another process that holds the lock of the watcher."""
    command = [sys.executable, "-c", SLEEPER, str(tmp_path)]
    with subprocess.Popen(
        command, env={**os.environ, **environ}, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"here\n"
        yield process
        process.kill()


def test_nobody_runs_where_nobody_was_started(environ):
    assert running_watcher(environ) is None


def test_a_watcher_is_seen_with_what_it_watches(environ, tmp_path):
    with WatcherLock(environ) as lock:
        lock.write_record([tmp_path], "unix")

        assert running_watcher(environ).pid == os.getpid()
        assert watcher_of(tmp_path, environ)
        assert watcher_of(tmp_path.parent, environ) is None
    assert running_watcher(environ) is None


def test_the_second_of_two_is_told_who_is_the_first(environ, sleeper):
    with pytest.raises(WatcherError, match=f"pid {sleeper.pid}"), WatcherLock(environ):
        pass


def test_the_lock_alone_tells_whether_a_watcher_lives(environ, sleeper, tmp_path):
    """What is asked on Windows, where a process cannot be asked with a signal."""
    folder = tmp_path / "home" / "run"

    assert _is_lock_held(folder)
    sleeper.kill()
    sleeper.wait()
    assert not _is_lock_held(folder)


def test_a_killed_watcher_is_not_taken_for_a_running_one(environ, sleeper):
    sleeper.kill()
    sleeper.wait()

    assert running_watcher(environ) is None
    with WatcherLock(environ) as lock:
        lock.write_record([], "")
        assert running_watcher(environ).pid == os.getpid()


def test_a_process_that_only_has_the_pid_is_not_the_watcher(environ, tmp_path):
    with WatcherLock(environ) as lock:
        lock.write_record([tmp_path], "unix")
        record_file = lock.folder / RECORD_FILE
        me = running_watcher(environ)
        record_file.write_text(json.dumps(asdict(replace(me, started=me.started - 1))))

        assert running_watcher(environ) is None


def test_a_watcher_of_another_release_that_tells_more_is_seen(environ, tmp_path):
    with WatcherLock(environ) as lock:
        lock.write_record([tmp_path], "unix")
        me = running_watcher(environ)
        card = asdict(me) | {"version": "9.9", "protocol": 9, "colour": "green"}
        (lock.folder / RECORD_FILE).write_text(json.dumps(card))

        assert running_watcher(environ) == replace(me, version="9.9", protocol=9)


@pytest.mark.parametrize("contents", [b"", b"{}", b"[1]", b'{"pid": 1}', b"\xff"])
def test_a_record_that_makes_no_sense_is_no_watcher(environ, contents):
    with WatcherLock(environ) as lock:
        (lock.folder / RECORD_FILE).write_bytes(contents)

        assert running_watcher(environ) is None


def test_stopping_waits_until_it_is_gone(environ, sleeper):
    stop_watcher(running_watcher(environ), environ)

    assert running_watcher(environ) is None
    assert sleeper.wait() != 0


@pytest.fixture
def stranger():
    """A process that has nothing to do with ragvault."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        yield process
        process.kill()


def forged(environ, **fields):
    """The record of a watcher, with some fields changed."""
    with WatcherLock(environ) as lock:
        lock.write_record([], "unix")
        record = asdict(running_watcher(environ)) | fields
    (lock.folder / RECORD_FILE).write_text(json.dumps(record))


@pytest.mark.parametrize("started", [None, 1, "1"])
def test_stopping_never_signals_a_stranger_that_a_damaged_record_names(
    environ, stranger, monkeypatch, started
):
    forged(environ, pid=stranger.pid, started=started)
    monkeypatch.setenv("RAGVAULT_HOME", environ["RAGVAULT_HOME"])

    assert main(["watch", "--stop"]) == 0
    with pytest.raises(subprocess.TimeoutExpired):
        stranger.wait(0.2)


def test_a_stranger_with_the_pid_and_the_start_time_of_a_record_before_a_reboot_is_not_signalled(
    environ, stranger
):
    forged(environ, pid=stranger.pid, started=process_start(stranger.pid))

    stop_watcher(running_watcher(environ), environ)
    with pytest.raises(subprocess.TimeoutExpired):
        stranger.wait(0.2)


def test_a_watcher_that_cannot_be_identified_is_not_signalled(environ, sleeper, monkeypatch):
    """Without /proc, a pid proves nothing."""
    watcher = replace(running_watcher(environ), started=None)
    monkeypatch.setattr("ragvault.service.process.process_start", lambda pid: None)

    with pytest.raises(WatcherError, match=f"pid {sleeper.pid}"):
        stop_watcher(watcher, environ)
    assert sleeper.poll() is None


@pytest.mark.parametrize("fields", [{"pid": -1}, {"pid": 0}, {"pid": "7"}, {"since": "x"}])
def test_a_record_with_a_field_of_no_sense_is_no_watcher(environ, fields):
    forged(environ, **fields)

    assert running_watcher(environ) is None


def test_stopping_what_has_gone_is_no_mistake():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()

    stop_watcher(WatcherRecord(process.pid, 1, 0.0, "", (), ""))


def test_a_runtime_folder_that_others_can_enter_is_closed(environ, tmp_path):
    folder = tmp_path / "home" / "run"
    folder.mkdir(parents=True, mode=0o777)
    folder.chmod(0o777)

    with WatcherLock(environ):
        assert folder.stat().st_mode & 0o077 == 0


def test_a_runtime_folder_of_another_user_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: tmp_path.stat().st_uid + 1)

    with pytest.raises(WatcherError, match="another user"):
        check_runtime_folder(tmp_path)
