"""The resident process: started by a search, shared by all, gone by itself, never in the way."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ragvault import __version__
from ragvault.service import LOCK_FILE, RECORD_FILE, START_FILE
from ragvault.service.process import running_watcher, stop_watcher
from ragvault.service.protocol import WatcherUnavailable, ask_or_start, ask_watcher, may_start
from ragvault.store.files import process_start
from tests.watch_kit import Home, daemon, ragvault, remove, soon

TYPED = ("starter", "--format", "paths")
# `watch --resident` as an older release would run it.
OLDER = (
    "import sys, ragvault; ragvault.__version__ = '0.0.1'\n"
    "sys.argv = ['ragvault', 'watch', '--resident', '--quiet']\n"
    "from ragvault.cli.start import run; run()\n"
)


@pytest.fixture(scope="module")
def indexed() -> Iterator[Home]:
    home = Home()
    home.env.pop("CI", None)
    try:
        home.vault().index()
        yield home
    finally:
        remove(home.folder)


@pytest.fixture
def home(indexed: Home) -> Iterator[Home]:
    """An indexed vault whose searches may start a process; ended after the test."""
    try:
        yield indexed
    finally:
        if found := running_watcher(indexed.env):
            stop_watcher(found, indexed.env)


def answered(home: Home) -> int:
    """How many searches the running process has answered."""
    return int(ask_watcher(home.run, {"op": "status"})["answered"])


def started(home: Home, *args: str, **more: str) -> int:
    """Search, and return the pid of the process that answered."""
    found = home.search(*TYPED, *args, **more)
    assert (found.returncode, found.stderr) == (0, b"")
    assert found.stdout
    record = running_watcher(home.env)
    assert record is not None
    assert record.resident
    return record.pid


def test_a_search_starts_a_process_that_answers_it_and_all_later_ones(home):
    first = started(home)
    assert answered(home) == 1

    assert started(home) == first
    assert answered(home) == 2


def test_it_writes_the_bytes_of_a_search_that_answers_by_itself(home):
    started(home)
    typed = ("why is my loaf dense?", "--format", "markdown")
    here, alone = home.search(*typed), home.search(*typed, "--no-resident")

    assert (here.stdout, here.stderr, here.returncode) == (
        alone.stdout,
        alone.stderr,
        alone.returncode,
    )
    assert answered(home) == 2


def test_status_shows_it_and_stop_ends_it(home):
    pid = started(home)
    shown = ragvault(home.env, "watch", "--status")
    assert shown.returncode == 0
    assert f"resident: pid {pid} since".encode() in shown.stdout
    assert b"ends by itself in 10 min without a search" in shown.stdout
    status = ragvault(home.env, "status", "--vault", str(home.root))
    assert f"resident  pid {pid} since".encode() in status.stdout
    assert b"watcher   none" in status.stdout

    stopped = ragvault(home.env, "watch", "--stop")

    assert f"stopped the resident process (pid {pid})".encode() in stopped.stderr
    assert ragvault(home.env, "watch", "--status").returncode == 1
    assert {path.name for path in Path(home.run).iterdir()} == {LOCK_FILE, START_FILE}


@pytest.mark.parametrize(
    ("args", "more"),
    [
        ((), {"CI": "true"}),
        ((), {"RAGVAULT_SERVICE__RESIDENT": "off"}),
        ((), {"RAGVAULT_ALONE": "1"}),
        ((), {"RAGVAULT_DEBUG": "1"}),
        (("--no-resident",), {}),
    ],
)
def test_a_search_that_may_not_start_one_answers_by_itself(home, args, more):
    found = home.search(*TYPED, *args, **more)

    assert found.returncode == 0
    assert found.stdout
    assert running_watcher(home.env) is None


def test_no_resident_does_not_ask_one_that_runs(home):
    started(home)
    assert home.search(*TYPED, "--no-resident").stdout

    assert answered(home) == 1


def test_the_first_process_of_a_container_starts_none(home, monkeypatch):
    assert may_start(home.env)
    monkeypatch.setattr(os, "getpid", lambda: 1)
    assert not may_start(home.env)


def test_the_users_file_decides_whether_one_is_started(home, tmp_path):
    mine = tmp_path / "config.toml"
    environ = {**home.env, "RAGVAULT_CONFIG": str(mine)}
    mine.write_text("# the resident does not answer\n")
    assert may_start(environ)
    mine.write_text('[service]\nresident = "off"')
    assert not may_start(environ)


def test_a_mistake_in_the_settings_is_reported_by_the_search_and_starts_nothing(home):
    found = home.search(*TYPED, RAGVAULT_SERVICE__RESIDENT="10")

    assert found.returncode == 2
    assert b'"off", or a time of at most a day: "500ms", "0.5s", "10m", "1h"' in found.stderr
    assert running_watcher(home.env) is None


def test_clients_that_start_it_at_the_same_moment_get_one_process(home):
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _: home.search(*TYPED), range(6)))

    assert {each.returncode for each in found} == {0}
    assert len({each.stdout for each in found}) == 1
    assert answered(home) == 6
    log = (home.folder / "home" / "cache" / "watch.log").read_text()
    assert f"resident (pid {running_watcher(home.env).pid})" in log


def test_it_ends_after_the_idle_time_and_leaves_nothing_behind(home):
    """On a busy machine it may have ended before this test looks, so its log is what counts."""
    log = home.folder / "home" / "cache" / "watch.log"
    before = len(log.read_text()) if log.exists() else 0
    assert home.search(*TYPED, RAGVAULT_SERVICE__RESIDENT="500ms").stdout

    assert soon(lambda: running_watcher(home.env) is None)
    assert not Path(home.run, RECORD_FILE).exists()
    said = log.read_text()[before:]
    pids = re.findall(r"resident \(pid (\d+)\)", said)
    assert pids
    assert said.count(" stopped\n") == len(pids)
    assert soon(lambda: all(process_start(int(pid)) is None for pid in pids))


def test_a_killed_one_is_replaced_by_the_next_search(home):
    pid = started(home)
    os.kill(pid, signal.SIGKILL)

    assert started(home) != pid
    assert answered(home) == 1


def test_searches_answer_while_it_is_killed_again_and_again(home):
    with ThreadPoolExecutor(3) as pool:
        searches = [pool.submit(home.search, *TYPED) for _ in range(6)]
        while not all(each.done() for each in searches):
            if found := running_watcher(home.env):
                os.kill(found.pid, signal.SIGKILL)
            time.sleep(0.5)

    assert {each.result().returncode for each in searches} == {0}
    assert all(each.result().stdout for each in searches)


def test_many_searches_leave_no_file_open_and_no_thread_behind(home):
    """Forty searches that each left one would show; a thread or an index more is no leak."""
    pid = started(home)

    def held(what: str) -> int:
        return len(list(Path(f"/proc/{pid}/{what}").iterdir()))

    def search(count: int) -> None:
        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(lambda _: soon(lambda: home.answers(*TYPED)), range(count)))

    search(12)  # every worker has opened its index
    few = {what: held(what) for what in ("fd", "task")}
    search(40)

    assert soon(lambda: all(held(what) < number + 20 for what, number in few.items()))


def test_one_of_another_release_is_replaced(home):
    command = [sys.executable, "-c", OLDER]
    with subprocess.Popen(command, env=home.env, stderr=subprocess.DEVNULL) as older:
        assert soon(lambda: running_watcher(home.env))
        assert running_watcher(home.env).version == "0.0.1"

        assert started(home) != older.pid

        assert older.wait(30) == 0
    assert running_watcher(home.env).version == __version__


def test_a_watcher_takes_its_place_and_is_not_replaced(home):
    pid = started(home)
    with daemon(home.root, home.env, "--quiet") as watcher:
        assert soon(lambda: (found := running_watcher(home.env)) and found.pid == watcher.pid)
        assert process_start(pid) is None
        assert soon(lambda: home.search(*TYPED).stdout)
        assert running_watcher(home.env).pid == watcher.pid
        second = ragvault(home.env, "watch", "--resident")
        assert second.returncode == 4


def test_a_home_in_which_nothing_can_be_started_still_answers(home):
    run = Path(home.run)
    shutil.rmtree(run, ignore_errors=True)
    run.write_text("")
    try:
        found = home.search(*TYPED, "-v")
    finally:
        run.unlink()

    assert found.returncode == 0
    assert found.stdout
    assert b"no answer from the resident process: it could not be started" in found.stderr


def test_settings_of_the_asking_process_count_and_not_those_of_the_starting_one(home, tmp_path):
    one, two = tmp_path / "one.toml", tmp_path / "two.toml"
    one.write_text("[limit]\nn = 1\n")
    two.write_text("[limit]\nn = 2\n")

    def lines(**more: str) -> int:
        return len(home.search("bread", "--format", "jsonl", **more).stdout.splitlines())

    assert lines(RAGVAULT_CONFIG=str(one)) == 1
    assert lines(RAGVAULT_CONFIG=str(two)) == 2
    assert lines(RAGVAULT_LIMIT__N="3") == 3
    assert lines() > 3
    assert answered(home) == 4


def test_it_remembers_the_last_results_of_each_session(home):
    def search(session: int, query: str) -> None:
        around = home.around()._replace(session=session)._asdict()
        ask_or_start({"op": "search", "args": ["search", query], "around": around}, home.env)

    def last(session: int) -> list[dict[str, object]] | None:
        found = ask_watcher(home.run, {"op": "last_results", "session": session})
        return found["results"]

    search(1, "starter")
    search(2, "tag:recipe")
    search(1, "crumb")
    shown = json.loads(home.search("crumb", "--json").stdout)["results"]

    assert [each["note"] for each in last(1)] == [each["note"] for each in shown]
    assert last(2)
    assert last(2) != last(1)
    assert last(3) is None
    first = last(1)[0]
    assert first["path"] == str(home.root / first["note"])
    assert set(first) == {"vault", "root", "note", "title", "path", "line", "uri"}


def test_a_client_that_may_not_start_one_learns_that_none_runs(home):
    with pytest.raises(WatcherUnavailable):
        ask_or_start({"op": "status"}, {**home.env, "CI": "1"})


def test_its_command_line_and_its_log_hold_no_query(home):
    pid = started(home)
    command = Path(f"/proc/{pid}/cmdline").read_bytes()

    assert b"starter" not in command
    assert b"watch\0--quiet\0--resident" in command
    assert "starter" not in (home.folder / "home" / "cache" / "watch.log").read_text()
