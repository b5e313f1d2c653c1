"""The watcher as a process: asked by other processes, killed, forged, and never in the way."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ragvault.cli.search import answer_search, parse_search
from ragvault.service import PROTOCOL, RECORD_FILE, SOCKET_FILE, protocol
from ragvault.service.process import pause_watcher, running_watcher, stop_watcher
from ragvault.service.protocol import WatcherUnavailable, ask_watcher
from tests.watch_kit import Home, daemon, environ, ragvault, remove, soon

FORMATS = ("text", "json", "jsonl", "paths", "grep", "markdown", "context")


@pytest.fixture(scope="module")
def warm() -> Iterator[Home]:
    """One watcher for all tests that do it no harm."""
    home = Home()
    try:
        home.vault().index()
        with daemon(home.root, home.env, "--quiet"):
            assert soon(lambda: not home.status()["waiting"])
            yield home
    finally:
        remove(home.folder)


@pytest.fixture(scope="module")
def cold() -> Iterator[Home]:
    """A vault that is indexed, and nobody who watches it, unless a test starts one and ends it."""
    home = Home()
    try:
        home.vault().index()
        yield home
    finally:
        remove(home.folder)


def timeless(output: str) -> str:
    """Without the times that were measured."""
    told = re.sub(r'("(took_ms|start|end)": )[0-9.e-]+', r"\1 0", output)
    return re.sub(r" +[0-9.]+ to +[0-9.]+ ms", " 0 ms", told)


# --- the same answer ---


@pytest.mark.parametrize("args", [(), ("--explain",)])
@pytest.mark.parametrize("format_", FORMATS)
def test_the_watcher_gives_the_bytes_of_a_process_that_answers_by_itself(warm, format_, args):
    typed = ("why is my loaf dense?", "-n", "3", "--format", format_, *args)
    told, around = warm.asked(*typed), warm.around()
    alone = answer_search(parse_search(["search", *typed]), around)

    assert timeless(str(told["out"])) == timeless(alone.out)
    assert tuple(told["err"]) == alone.err
    assert told["code"] == alone.code


def test_the_command_writes_the_same_bytes_with_and_without_the_watcher(warm):
    typed = ("why is my loaf dense?", "--format", "markdown")
    here, alone = warm.search(*typed), warm.search(*typed, RAGVAULT_ALONE="1")

    assert here.stdout == alone.stdout
    assert (here.stderr, here.returncode) == (alone.stderr, alone.returncode)


def test_a_search_is_answered_by_the_watcher_and_not_by_itself(warm):
    """A client without a single library of ours beyond the floor still finds it."""
    before = json.loads(ragvault(warm.env, "watch", "--status", "--json").stdout)["answered"]
    found = warm.search("starter", "--format", "paths")

    assert found.returncode == 0
    assert found.stdout
    after = json.loads(ragvault(warm.env, "watch", "--status", "--json").stdout)["answered"]
    assert after == before + 1


@pytest.mark.parametrize("before", [("-q",), ("--verbose",), ("-q", "-v")])
def test_options_before_the_command_leave_the_search_to_the_watcher(warm, before):
    def answered() -> int:
        return int(ask_watcher(warm.run, {"op": "status"})["answered"])

    count = answered()
    typed = (*before, "search", "zzzqqq", "--format", "paths")
    here = ragvault(warm.env, *typed, cwd=warm.root)
    assert answered() == count + 1
    alone = ragvault({**warm.env, "RAGVAULT_ALONE": "1"}, *typed, cwd=warm.root)

    assert (here.stdout, here.stderr, here.returncode) == (
        alone.stdout,
        alone.stderr,
        alone.returncode,
    )


def test_a_search_that_the_watcher_answers_imports_nothing_heavy(warm):
    code = (
        "import sys; sys.argv = ['ragvault', 'search', 'starter', '--format', 'paths']\n"
        "from ragvault.cli.start import run\n"
        "try: run()\n"
        "except SystemExit as end: assert end.code == 0, end.code\n"
        "heavy = {'typer', 'click', 'rich', 'msgspec', 'numpy', 'faiss', 'onnxruntime', 'whoosh',"
        " 'networkx', 'sqlite3', 'platformdirs', 'pathlib', 'asyncio'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, env=warm.env, cwd=warm.root, capture_output=True, check=True)

    assert found.stdout
    assert found.stderr.decode().strip() == "[]"


def test_nothing_found_is_exit_1_with_its_line(warm):
    found = warm.search("tag:nothing-has-this-tag")

    assert found.returncode == 1
    assert b"No notes tagged #nothing-has-this-tag." in found.stderr


@pytest.mark.parametrize(
    "args",
    [("--no-such-option",), ("x", "--vault", "nowhere"), ("--help",)],
)
def test_mistakes_and_help_are_the_same_with_and_without_it(warm, args):
    here, alone = warm.search(*args), warm.search(*args, RAGVAULT_ALONE="1")

    assert (here.stdout, here.stderr, here.returncode) == (
        alone.stdout,
        alone.stderr,
        alone.returncode,
    )


def test_settings_of_the_asking_process_count(warm):
    found = warm.search("starter", "--format", "json", RAGVAULT_LIMIT__N="1")

    assert len(json.loads(found.stdout)["results"]) == 1


def test_a_search_of_another_session_is_answered_and_one_of_another_home_is_not(warm):
    assert warm.asked("starter", "--format", "paths", XDG_SESSION_ID="77")["out"]
    with pytest.raises(WatcherUnavailable, match="leaves this search to you"):
        warm.asked("starter", "--format", "paths", HOME="/elsewhere")


def test_a_note_that_is_written_is_found_through_the_watcher(warm):
    (warm.root / "fresh.md").write_text("a wildebeest in the oven\n")
    try:
        assert soon(
            lambda: warm.search('"wildebeest"', "--format", "paths").stdout == b"fresh.md\n"
        )
    finally:
        (warm.root / "fresh.md").unlink()


# --- others who write ---


def test_index_works_while_a_watcher_runs(warm):
    found = ragvault(warm.env, "index", str(warm.root), "--tier", "static")

    assert found.returncode == 0
    assert b"pausing the watcher (pid " in found.stderr


def test_a_watcher_writes_nothing_while_another_has_its_turn(warm):
    with pause_watcher(warm.root, warm.env) as found:
        assert found
        (warm.root / "meanwhile.md").write_text("a bandicoot\n")
        assert warm.status()["paused"]
        assert not warm.asked('"bandicoot"', "--format", "paths")["out"]

    assert soon(lambda: warm.asked('"bandicoot"', "--format", "paths")["out"])
    (warm.root / "meanwhile.md").unlink()


# --- many at once ---


def hammer(home: Home, searches: int) -> None:
    """Search from many threads while files change; every answer is whole."""
    ended = threading.Event()

    def edit() -> None:
        number = 0
        while not ended.is_set():
            (home.root / f"busy {number % 10}.md").write_text(f"# Busy {number}\n\nstarter rye\n")
            number += 1
            time.sleep(0.05)

    def one(number: int) -> tuple[object, bool, list[str]]:
        for _ in range(100):
            try:
                told = home.asked(("starter", "rye bread", "crumb")[number % 3], "--json")
            except WatcherUnavailable:
                time.sleep(0.05)  # it confirms in time, which a busy machine may miss
                continue
            answer = json.loads(str(told["out"]))
            return told["code"], bool(answer["results"]), answer["legs_failed"]
        raise AssertionError("never answered")

    editor = threading.Thread(target=edit)
    editor.start()
    try:
        with ThreadPoolExecutor(20) as pool:
            answers = list(pool.map(one, range(searches)))
    finally:
        ended.set()
        editor.join()
        for path in home.root.glob("busy *.md"):
            path.unlink()
    assert set(map(str, answers)) == {str((0, True, []))}


def test_many_searches_at_once_while_files_change(warm):
    hammer(warm, 100)


@pytest.mark.slow
def test_a_thousand_searches_at_once_while_files_change(warm):
    hammer(warm, 1000)


# --- one watcher ---


def test_the_second_watcher_says_so_and_leaves(warm):
    found = ragvault(warm.env, "watch", str(warm.root))

    assert found.returncode == 4
    assert b"a watcher is already running" in found.stderr


def test_of_two_that_start_at_once_one_wins(cold):
    command = [sys.executable, "-m", "ragvault", "watch", str(cold.root)]
    both = [subprocess.Popen(command, env=cold.env, stderr=subprocess.PIPE) for _ in range(2)]
    try:
        assert soon(lambda: any(each.poll() is not None for each in both))
        loser, winner = sorted(both, key=lambda each: each.poll() is None)
        assert loser.wait() == 4
        assert b"a watcher is already running" in loser.stderr.read()
        assert soon(lambda: (found := running_watcher(cold.env)) and found.pid == winner.pid)
    finally:
        for each in both:
            each.terminate()
            each.wait()
            each.stderr.close()


def test_it_starts_tells_and_stops_in_the_background(cold):
    started = ragvault(cold.env, "watch", "--daemon", str(cold.root))
    try:
        assert started.returncode == 0, started.stderr
        status = ragvault(cold.env, "watch", "--status")
        assert status.returncode == 0
        assert b"notes: " in status.stdout
        assert cold.asked("starter", "--format", "paths")["out"]
    finally:
        stopped = ragvault(cold.env, "watch", "--stop")
    assert stopped.returncode == 0
    assert ragvault(cold.env, "watch", "--status").returncode == 1
    assert list(Path(cold.run).iterdir()) == [Path(cold.run, "watch.lock")]


def test_a_home_named_from_the_current_folder_is_the_same_in_the_background(cold):
    env = {**cold.env, "RAGVAULT_HOME": "home"}
    try:
        assert ragvault(env, "watch", "notes", "--daemon", cwd=cold.folder).returncode == 0
        assert running_watcher(cold.env)
    finally:
        ragvault(env, "watch", "--stop", cwd=cold.folder)


def test_a_note_that_a_watcher_brings_back_is_ignored_first_and_then_erased(cold):
    note, ignore = cold.root / "Secret.md", cold.root / ".ragignore"
    note.write_text("# Secret\n\nA wolpertinger.\n")

    def finds() -> bool:
        return b"Secret.md" in cold.search('"wolpertinger"', "--format", "paths").stdout

    with daemon(cold.root, cold.env, "--quiet") as process:
        assert soon(finds)
        told = ragvault(cold.env, "forget", "Secret.md", "--vault", str(cold.root)).stderr.decode()
        assert f"the watcher (pid {process.pid}) adds it again right away: Secret.md" in told
        assert soon(finds)

        (line,) = re.findall(rf"first add this line to {re.escape(str(ignore))}: (.*)", told)
        with ignore.open("a") as lines:
            lines.write(f"{line}\n")
        assert soon(lambda: not finds())
        (then,) = re.findall(r"then erase what is left: ragvault (.*)", told)
        again = ragvault(cold.env, *then.split(), "--vault", str(cold.root))
        assert (again.returncode, finds()) == (0, False)
    note.unlink()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(cold, number):
    with daemon(cold.root, cold.env, "--quiet") as process:
        process.send_signal(number)

        assert process.wait(30) == 0
        assert process.stderr.read() == b""
    assert not Path(cold.run, RECORD_FILE).exists()
    assert not Path(cold.run, SOCKET_FILE).exists()


# --- dead, hung, old, forged ---


def alone(home: Home) -> bytes:
    """A search that has to be answered without the watcher, and says why with -v."""
    found = home.search("starter", "--format", "paths", "-v")
    assert found.returncode == 0
    assert found.stdout
    return found.stderr


def test_a_killed_watcher_is_passed_over_and_replaced(cold):
    with daemon(cold.root, cold.env, "--quiet") as process:
        process.kill()
        process.wait()
    assert Path(cold.run, RECORD_FILE).exists()
    assert Path(cold.run, SOCKET_FILE).exists()

    assert b"no answer from the resident process" in alone(cold)
    assert b"the watcher" not in cold.search("starter", "--format", "paths").stderr
    with daemon(cold.root, cold.env, "--quiet"):
        assert soon(lambda: cold.answers("starter", "--format", "paths"))


def test_a_watcher_killed_in_the_middle_of_a_search_costs_no_answer(cold):
    """The question is on its way when the watcher dies."""
    with daemon(cold.root, cold.env, "--quiet") as process:
        assert soon(lambda: cold.answers("starter", "--format", "paths")), process.poll()
        os.kill(process.pid, signal.SIGSTOP)  # so that it is in the middle for certain
        results: list[subprocess.CompletedProcess[bytes]] = []
        asking = threading.Thread(
            target=lambda: results.append(cold.search("starter", "--format", "paths"))
        )
        asking.start()
        time.sleep(0.1)
        process.kill()
        asking.join()

    assert results[0].returncode == 0, results[0].stderr
    assert results[0].stdout


def test_a_watcher_that_hangs_is_not_waited_for(cold):
    with daemon(cold.root, cold.env, "--quiet") as process:
        os.kill(process.pid, signal.SIGSTOP)
        try:
            assert b"timed out" in alone(cold)
        finally:
            os.kill(process.pid, signal.SIGCONT)


class Impostor:
    """Something else where the watcher's socket should be; answers every question with `reply`."""

    def __init__(self, home: Home, reply: dict[str, object], **card: object) -> None:
        folder = Path(home.run)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        from ragvault import __version__

        known = {"protocol": PROTOCOL, "version": __version__, "address": "unix", "token": ""}
        (folder / RECORD_FILE).write_text(json.dumps(known | card))
        self._listener = protocol.bind_unix(str(folder))
        self._reply = reply
        self.heard: list[dict[str, object]] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                self.heard.append(protocol.receive_message(connection))
                connection.sendall(protocol.encode_message(self._reply))
                time.sleep(0.2)

    def __enter__(self) -> Impostor:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


def test_a_watcher_of_another_release_is_not_asked(cold):
    with Impostor(cold, {"state": "done"}, version="0.0.1") as other:
        assert b"it is ragvault 0.0.1" in alone(cold)
    assert other.heard == []


def test_a_client_of_another_release_is_declined(warm):
    with protocol.connect_unix(warm.run, 5.0) as connection:
        request = {"protocol": PROTOCOL, "version": "9.9", "op": "status"}
        connection.sendall(protocol.encode_message(request))

        assert protocol.receive_message(connection)["state"] == "declined"


def test_an_answer_that_makes_no_sense_is_no_answer(cold):
    with Impostor(cold, {"state": "whatever", "why": "just so"}):
        assert b"just so" in alone(cold)


@pytest.mark.parametrize(
    "nonsense", [b"", b"\0", b"\0\0\0\2[]", b"\xff\xff\xff\xff", b"GET / HTTP/1.1"]
)
def test_nonsense_on_the_socket_harms_nobody(warm, nonsense):
    with protocol.connect_unix(warm.run, 5.0) as connection:
        connection.sendall(nonsense)

    assert warm.asked("starter", "--format", "paths")["out"]


def test_the_socket_and_its_folder_are_private(warm):
    assert Path(warm.run).stat().st_mode & 0o777 == 0o700
    assert Path(warm.run, SOCKET_FILE).stat().st_mode & 0o777 == 0o600
    assert Path(warm.run, RECORD_FILE).stat().st_mode & 0o777 == 0o600
    assert (warm.folder / "home" / "cache" / "watch.log").stat().st_mode & 0o777 == 0o600


def test_a_socket_of_another_user_is_refused(warm, monkeypatch):
    monkeypatch.setattr(protocol.os, "getuid", lambda: 12345)

    with pytest.raises(WatcherUnavailable, match="another user"):
        ask_watcher(warm.run, {"op": "status"})


@pytest.mark.skipif(
    protocol.PEER_CREDENTIALS is None, reason="this system does not tell the other end's user"
)
def test_another_user_behind_our_socket_is_refused(warm, monkeypatch):
    """The file may be ours and the process behind it not."""
    owner = os.getuid()
    asked = iter([owner, owner + 1])
    monkeypatch.setattr(protocol.os, "getuid", lambda: next(asked))

    with pytest.raises(WatcherUnavailable, match="the other end is another user"):
        ask_watcher(warm.run, {"op": "status"})


def test_the_log_holds_no_query_and_no_text(warm):
    secret = "xylophonist"
    (warm.root / "secret.md").write_text(f"{secret} tuba\n")
    log = warm.folder / "home" / "cache" / "watch.log"
    assert soon(lambda: warm.answers(f'"{secret}"', "--format", "paths"))
    # A note answers before the run that brought it has ended, and a run is logged at its end.
    assert soon(lambda: "added" in log.read_text())
    (warm.root / "secret.md").unlink()

    assert secret not in log.read_text()
    assert "tuba" not in log.read_text()


# --- far away, and without Unix sockets ---


def test_a_runtime_folder_with_a_long_name_works(tmp_path):
    home = Home()
    try:
        home.env = environ(tmp_path / ("long" * 30) / "home")
        assert len(home.run) > 108
        home.vault().index("keyword")
        with daemon(home.root, home.env, "--quiet"):
            assert home.asked("starter", "--format", "paths")["out"]
            stop_watcher(running_watcher(home.env), home.env)
    finally:
        remove(home.folder)
