"""The writer's lock: one owner, named to the others, and none that outlives its process."""

from __future__ import annotations

import json
import os
import platform
import signal
import stat
import subprocess
import sys
import time

import pytest
from store_builders import unprivileged

from ragvault.errors import IndexLocked, IndexUnusable
from ragvault.store.files import LOCK, OWNER, Owner, WriterLock, lock_owner

HOLD = """
import sys
from pathlib import Path
from ragvault.store.files import WriterLock
with WriterLock(Path(sys.argv[1]), "ragvault watch"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def other(tmp_path):
    """Another process that holds the lock until it is told to stop."""
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        yield process
        process.kill()


def take(folder):
    with WriterLock(folder, "ragvault index"):
        pass


def record(folder, **changes):
    """Write the record of an owner that is this process, but for the changes."""
    with WriterLock(folder, "ragvault watch"):
        card = json.loads((folder / OWNER).read_text())
    (folder / OWNER).write_text(json.dumps({**card, **changes}))


def test_the_second_writer_is_told_who_the_first_is(tmp_path, other):
    with pytest.raises(IndexLocked) as refused:
        take(tmp_path)

    assert f"by pid {other.pid} (ragvault watch) since " in str(refused.value)
    assert "searching works meanwhile" in refused.value.fix


def test_a_killed_owner_does_not_block_the_next_writer(tmp_path, other):
    other.send_signal(signal.SIGKILL)
    other.wait()

    assert (tmp_path / OWNER).exists()
    take(tmp_path)


def test_an_owner_that_ends_leaves_the_lock_and_no_record(tmp_path, other):
    other.communicate()

    assert not (tmp_path / OWNER).exists()
    take(tmp_path)


def test_the_lock_is_released_by_an_exception(tmp_path):
    with pytest.raises(ZeroDivisionError), WriterLock(tmp_path, "ragvault index"):
        raise ZeroDivisionError

    assert not (tmp_path / OWNER).exists()
    take(tmp_path)


def test_a_second_writer_in_the_same_process_is_refused(tmp_path):
    with WriterLock(tmp_path, "ragvault watch"):
        with pytest.raises(IndexLocked, match=rf"pid {os.getpid()} \(ragvault watch\)"):
            take(tmp_path)
        assert lock_owner(tmp_path).pid == os.getpid()


def test_a_refused_writer_does_not_end_the_owners_hold(tmp_path, other):
    for _ in range(2):
        with pytest.raises(IndexLocked, match=f"pid {other.pid}"):
            take(tmp_path)


def test_the_record_of_a_dead_process_blocks_nobody_and_is_not_believed(tmp_path):
    record(tmp_path, pid=2**22 + 1)  # more than Linux gives out

    assert lock_owner(tmp_path) is None
    take(tmp_path)


def test_a_record_whose_pid_now_belongs_to_another_process_is_not_believed(tmp_path, other):
    card = json.loads((tmp_path / OWNER).read_text())
    (tmp_path / OWNER).write_text(json.dumps({**card, "started": card["started"] - 1}))

    assert lock_owner(tmp_path) is None
    with pytest.raises(IndexLocked, match="by another process"):
        take(tmp_path)


def test_a_record_of_another_machine_is_believed(tmp_path):
    record(tmp_path, host="elsewhere", pid=2**22 + 1)
    assert " on elsewhere (ragvault watch)" in lock_owner(tmp_path).words(time.time())


@pytest.mark.parametrize("damage", [b"", b"{}", b"[1]", b'{"pid": "x"}', b"\xff"])
def test_a_damaged_record_is_no_owner(tmp_path, other, damage):
    (tmp_path / OWNER).write_bytes(damage)
    with pytest.raises(IndexLocked, match="by another process"):
        take(tmp_path)


def test_the_words_name_the_day_when_it_is_not_today():
    noon = time.mktime((2026, 3, 14, 12, 5, 0, 0, 0, -1))
    me = Owner(4711, platform.node(), None, "ragvault watch", noon)

    assert me.words(noon + 3600) == "pid 4711 (ragvault watch) since 12:05"
    assert me.words(noon + 86400) == "pid 4711 (ragvault watch) since 2026-03-14 12:05"


@pytest.mark.parametrize("index", ["", "index"])
def test_a_read_only_folder_is_named_with_the_cure(index):
    with unprivileged() as place:
        place.chmod(0o500)
        lock = WriterLock(place / index, "ragvault index")
        with pytest.raises(IndexUnusable, match="Permission denied") as refused:
            lock.acquire()
    assert "check free space and permissions" in refused.value.fix


def test_a_lock_whose_record_cannot_be_written_is_not_kept(tmp_path, monkeypatch):
    def fails(*_):
        raise IndexUnusable(tmp_path, "no space")

    with monkeypatch.context() as patch:
        patch.setattr("ragvault.store.files.replace_file", fails)
        with pytest.raises(IndexUnusable, match="no space"):
            take(tmp_path)
    take(tmp_path)


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_lock_and_record_are_for_their_owner_alone(tmp_path, umask):
    before = os.umask(umask)
    try:
        with WriterLock(tmp_path, "ragvault index"):
            modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in (LOCK, OWNER)}
    finally:
        os.umask(before)
    assert modes == {0o600}
