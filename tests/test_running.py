"""Whether a watcher runs, and how it is stopped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace

import pytest

from ragvault.service.record import RECORD, NotOurs, own_folder
from ragvault.service.running import (
    Place,
    Running,
    WatcherRunning,
    _is_locked,
    running,
    stop,
    watching,
)

SLEEPER = (
    "import sys, time; from pathlib import Path; from ragvault.service.running import Place\n"
    "with Place() as place:\n"
    "    place.tell([Path(sys.argv[1])], ''); print('here', flush=True); time.sleep(60)\n"
)


@pytest.fixture
def environ(tmp_path):
    return {"RAGVAULT_HOME": str(tmp_path / "home")}


@pytest.fixture
def sleeper(environ, tmp_path):
    """Another process that has the place."""
    command = [sys.executable, "-c", SLEEPER, str(tmp_path)]
    with subprocess.Popen(
        command, env={**os.environ, **environ}, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"here\n"
        yield process
        process.kill()


def test_nobody_runs_where_nobody_was_started(environ):
    assert running(environ) is None


def test_a_watcher_is_seen_with_what_it_watches(environ, tmp_path):
    with Place(environ) as place:
        place.tell([tmp_path], "unix")

        assert running(environ).pid == os.getpid()
        assert watching(tmp_path, environ)
        assert watching(tmp_path.parent, environ) is None
    assert running(environ) is None


def test_the_second_of_two_is_told_who_is_the_first(environ, sleeper):
    with pytest.raises(WatcherRunning, match=f"pid {sleeper.pid}"), Place(environ):
        pass


def test_the_lock_alone_tells_whether_a_watcher_lives(environ, sleeper, tmp_path):
    """What is asked on Windows, where a process cannot be asked with a signal."""
    folder = tmp_path / "home" / "run"

    assert _is_locked(folder)
    sleeper.kill()
    sleeper.wait()
    assert not _is_locked(folder)


def test_a_killed_watcher_is_not_taken_for_a_running_one(environ, sleeper):
    sleeper.kill()
    sleeper.wait()

    assert running(environ) is None
    with Place(environ) as place:
        place.tell([], "")
        assert running(environ).pid == os.getpid()


def test_a_process_that_only_has_the_pid_is_not_the_watcher(environ, tmp_path):
    with Place(environ) as place:
        place.tell([tmp_path], "unix")
        record = place.folder / RECORD
        me = running(environ)
        record.write_text(json.dumps(asdict(replace(me, started=me.started - 1))))

        assert running(environ) is None


def test_a_watcher_of_another_release_that_tells_more_is_seen(environ, tmp_path):
    with Place(environ) as place:
        place.tell([tmp_path], "unix")
        me = running(environ)
        card = asdict(me) | {"version": "9.9", "protocol": 9, "colour": "green"}
        (place.folder / RECORD).write_text(json.dumps(card))

        assert running(environ) == replace(me, version="9.9", protocol=9)


@pytest.mark.parametrize("contents", [b"", b"{}", b"[1]", b'{"pid": 1}', b"\xff"])
def test_a_record_that_makes_no_sense_is_no_watcher(environ, contents):
    with Place(environ) as place:
        (place.folder / RECORD).write_bytes(contents)

        assert running(environ) is None


def test_stopping_waits_until_it_is_gone(environ, sleeper):
    stop(running(environ))

    assert running(environ) is None
    assert sleeper.wait() != 0


def test_stopping_what_has_gone_is_no_mistake():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()

    stop(Running(process.pid, 1, 0.0, "", (), ""))


def test_a_runtime_folder_that_others_can_enter_is_closed(environ, tmp_path):
    folder = tmp_path / "home" / "run"
    folder.mkdir(parents=True, mode=0o777)
    folder.chmod(0o777)

    with Place(environ):
        assert folder.stat().st_mode & 0o077 == 0


def test_a_runtime_folder_of_another_user_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: tmp_path.stat().st_uid + 1)

    with pytest.raises(NotOurs, match="another user"):
        own_folder(tmp_path)
