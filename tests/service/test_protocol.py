"""Messages, and the two kinds of socket that carry them."""

from __future__ import annotations

import gc
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragvault import __version__
from ragvault.cli import start
from ragvault.cli.main import main
from ragvault.service import PROTOCOL, RECORD_FILE, SOCKET_FILE, protocol
from ragvault.service import server as server_module
from ragvault.service.process import WatcherLock, running_watcher
from ragvault.service.protocol import WatcherUnavailable, ask_watcher
from ragvault.service.server import Server
from tests.watch_kit import soon

json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), json))
def test_what_is_packed_is_what_is_unpacked(value):
    packed = protocol.encode_message(value)

    assert protocol.message_length(packed[:4]) == len(packed) - 4
    assert protocol.decode_message(packed[4:]) == value


def test_a_long_message_arrives_whole():
    value = {"out": "long " * 200_000}
    left, right = socket.socketpair()
    with left, right:
        sending = threading.Thread(target=left.sendall, args=[protocol.encode_message(value)])
        sending.start()

        assert protocol.receive_message(right) == value
        sending.join()


def test_a_name_that_is_not_unicode_survives():
    name = b"caf\xe9.md".decode("utf-8", "surrogateescape")

    assert protocol.decode_message(protocol.encode_message({"out": name})[4:])["out"] == name


@pytest.mark.parametrize("data", [b"[]", b"1", b"{", b"\xff"])
def test_what_is_no_message_is_refused(data):
    with pytest.raises(ValueError):  # noqa: PT011 - three kinds of it
        protocol.decode_message(data)


def test_a_length_that_no_message_has_is_refused():
    with pytest.raises(ValueError, match="too long"):
        protocol.message_length(b"\xff\xff\xff\xff")


@pytest.mark.parametrize("depth", [1, 40])
def test_a_socket_is_reached_however_long_its_name_is(tmp_path, depth):
    folder = tmp_path.joinpath(*["folder"] * depth)
    folder.mkdir(parents=True)
    listener = protocol.bind_unix(str(folder))
    try:
        with protocol.connect_unix(str(folder), 5.0):
            listener.accept()[0].close()
        assert (folder / SOCKET_FILE).stat().st_mode & 0o777 == 0o600
    finally:
        listener.close()


def test_a_socket_left_behind_is_replaced(tmp_path):
    protocol.bind_unix(str(tmp_path)).close()
    listener = protocol.bind_unix(str(tmp_path))
    try:
        protocol.connect_unix(str(tmp_path), 5.0).close()
    finally:
        listener.close()


def test_a_file_in_the_place_of_the_socket_is_refused(tmp_path):
    (tmp_path / SOCKET_FILE).write_text("")

    with pytest.raises(protocol.WatcherUnavailable, match="not a socket"):
        protocol.connect_unix(str(tmp_path), 5.0)


# --- where there are no Unix sockets ---


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"RAGVAULT_HOME": str(tmp_path)}


@pytest.fixture
def lock(environ: dict[str, str]) -> Iterator[WatcherLock]:
    """A watcher that answers over the loopback, and repeats what was typed."""
    with (
        WatcherLock(environ) as found,
        Server(
            found.folder,
            answer=lambda request: {"out": " ".join(request["args"]), "err": [], "code": 0},
            pause=lambda root: (_ for _ in ()).throw(AssertionError),
            status=lambda: {"vaults": []},
            failed=lambda error: None,
            unix=False,
        ) as server,
    ):
        found.write_record([], server.address, server.token)
        yield found


def test_the_loopback_answers_who_knows_the_token(lock):
    request = {"op": "search", "args": ["search", "x"], "around": {}}

    assert ask_watcher(str(lock.folder), request)["out"] == "search x"


def test_the_loopback_answers_nobody_else(lock, environ):
    found = running_watcher(environ)
    lock.write_record([], found.address, "another token")

    with pytest.raises(WatcherUnavailable, match="token"):
        ask_watcher(str(lock.folder), {"op": "status"})


def test_a_client_without_proof_hears_nothing(lock, environ):
    host, _, port = running_watcher(environ).address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(protocol.encode_message({"nonce": "00"}))
        assert "proof" in protocol.receive_message(connection)
        connection.sendall(protocol.encode_message({"op": "status", "proof": "guessed"}))

        assert connection.recv(1) == b""


def test_an_address_of_another_machine_is_not_asked(lock):
    lock.write_record([], "192.0.2.1:80", "x")

    with pytest.raises(WatcherUnavailable, match="not on this machine"):
        ask_watcher(str(lock.folder), {"op": "status"})


def test_an_error_while_answering_is_left_to_the_asking_process(environ):
    said: list[BaseException] = []
    with (
        WatcherLock(environ) as found,
        Server(
            found.folder,
            answer=lambda request: 1 / 0,  # type: ignore[arg-type, return-value]
            pause=lambda root: (_ for _ in ()).throw(AssertionError),
            status=dict,
            failed=said.append,
        ) as server,
    ):
        found.write_record([], server.address)
        with pytest.raises(WatcherUnavailable, match="leaves this search to you"):
            ask_watcher(str(found.folder), {"op": "search", "args": [], "around": {}})

    assert [type(each) for each in said] == [ZeroDivisionError]


def test_not_even_the_end_of_a_program_ends_the_socket(environ):
    """A library that calls sys.exit while it answers would take the thread of all sockets along."""
    said: list[BaseException] = []

    def answer(request):
        if request["args"] == ["exit"]:
            raise SystemExit(3)
        return {"out": "here", "err": [], "code": 0}

    with (
        WatcherLock(environ) as found,
        Server(
            found.folder,
            answer=answer,
            pause=lambda root: (_ for _ in ()).throw(AssertionError),
            status=dict,
            failed=said.append,
        ) as server,
    ):
        found.write_record([], server.address)
        with pytest.raises(WatcherUnavailable, match="leaves this search to you"):
            ask_watcher(str(found.folder), {"op": "search", "args": ["exit"], "around": {}})
        told = ask_watcher(str(found.folder), {"op": "search", "args": [], "around": {}})

    assert told["out"] == "here"
    assert [type(each) for each in said] == [SystemExit]


@pytest.mark.parametrize("card", [{}, {"address": 7}, {"address": "127.0.0.1:x", "token": None}])
def test_a_record_without_a_proper_address_is_no_watcher_to_ask(lock, card):
    known = {"protocol": PROTOCOL, "version": __version__}
    (lock.folder / RECORD_FILE).write_bytes(protocol.encode_message(known | card)[4:])

    with pytest.raises(WatcherUnavailable):
        ask_watcher(str(lock.folder), {"op": "status"})


# --- messages that make no sense ---


def framed(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


ODD_REPLIES = {
    "nothing": b"",
    "half a length": b"\0\0",
    "half a message": framed(b'{"state": "done"}')[:-3],
    "no JSON": framed(b"not JSON"),
    "no UTF-8": framed(b'"\xff\xfe"'),
    "a list": framed(b"[1]"),
    "a number": framed(b"7"),
    "deep nesting": framed(b"[" * 200_000),
    "a length of gigabytes": b"\xff\xff\xff\xff",
    "another protocol": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "no fields": framed(b'{"state": "done"}'),
    "an exit code in words": framed(b'{"state": "done", "out": "", "err": [], "code": "zero"}'),
    "an exit code of no process": framed(b'{"state": "done", "out": "", "err": [], "code": 1e99}'),
    "errors that are one text": framed(b'{"state": "done", "out": "", "err": "no", "code": 0}'),
    "errors that are numbers": framed(b'{"state": "done", "out": "", "err": [1], "code": 0}'),
    "no text": framed(b'{"state": "done", "out": null, "err": [], "code": 0}'),
    "no known state": framed(b'{"state": {"a": 1}}'),
    "a status of odd vaults": framed(b'{"state": "done", "vaults": [1], "answered": 1}'),
    "a status without a count": framed(b'{"state": "done", "vaults": [], "answered": "many"}'),
}


@pytest.fixture
def impostor(environ, monkeypatch):
    """A function that makes the process behind the socket send some bytes to every client."""
    monkeypatch.setenv("RAGVAULT_HOME", environ["RAGVAULT_HOME"])
    monkeypatch.delenv("RAGVAULT_ALONE", raising=False)
    with WatcherLock(environ) as found:
        found.write_record([], "unix")
        with protocol.bind_unix(str(found.folder)) as listener:

            def send(data: bytes) -> None:
                def serve() -> None:
                    connection = listener.accept()[0]
                    with connection:
                        connection.sendall(framed(b'{"state": "accepted"}') + data)

                threading.Thread(target=serve, daemon=True).start()

            yield send


@pytest.mark.parametrize("reply", ODD_REPLIES.values(), ids=ODD_REPLIES)
def test_a_search_answers_by_itself_whatever_the_watcher_sends(impostor, reply):
    impostor(reply)

    assert start.answered_by_watcher(["search", "bread"]) is None


@pytest.mark.parametrize("reply", ODD_REPLIES.values(), ids=ODD_REPLIES)
def test_the_status_says_that_the_watcher_does_not_answer(impostor, reply, capsys):
    impostor(reply)

    assert main(["watch", "--status"]) == 0
    assert "it does not answer: " in capsys.readouterr().out


def test_a_reply_that_comes_byte_by_byte_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(protocol, "ANSWER_SECONDS", 0.3)
    left, right = socket.socketpair()
    with left, right:

        def drip() -> None:
            try:
                for byte in framed(b'{"state": "done"}'):
                    right.sendall(bytes([byte]))
                    time.sleep(0.1)
            except OSError:
                pass  # the client has hung up

        dripping = threading.Thread(target=drip)
        dripping.start()
        with pytest.raises(TimeoutError):
            protocol._exchange(left, {})
        left.close()
        dripping.join()


@pytest.fixture
def long_winded(environ):
    """A server whose answers are as long as the last argument says."""
    with (
        WatcherLock(environ) as found,
        Server(
            found.folder,
            answer=lambda request: {"out": "x" * int(request["args"][-1]), "err": [], "code": 0},
            pause=lambda root: (_ for _ in ()).throw(AssertionError),
            status=dict,
            failed=lambda error: pytest.fail(str(error)),
        ) as server,
    ):
        found.write_record([], server.address)
        yield found, server


def test_a_request_that_is_too_long_is_declined_before_it_is_read(long_winded):
    lock, _ = long_winded
    with protocol.connect_unix(str(lock.folder), 10.0) as connection:
        connection.sendall((90_000_000).to_bytes(4, "big"))

        assert protocol.receive_message(connection)["state"] == "declined"


@pytest.mark.parametrize("request_", [b"[1]", b"{", b"[" * 100_000, b'{"op": "seek"}'])
def test_a_request_of_no_sense_is_declined(long_winded, request_):
    lock, _ = long_winded
    with protocol.connect_unix(str(lock.folder), 10.0) as connection:
        connection.sendall(framed(request_))

        assert protocol.receive_message(connection)["state"] == "declined"


def test_a_search_that_is_too_long_to_send_is_not_sent(long_winded):
    lock, _ = long_winded
    request = {"op": "search", "args": ["x" * protocol.MAX_REQUEST], "around": {}}

    with pytest.raises(WatcherUnavailable, match="too long"):
        ask_watcher(str(lock.folder), request)


def test_a_client_that_comes_as_the_server_closes_leaves_no_socket_open(environ, monkeypatch):
    unclosed = []  # a socket that is collected while it is open warns, and warnings are errors
    monkeypatch.setattr(sys, "unraisablehook", lambda each: unclosed.append(str(each.exc_value)))
    unused = {"answer": None, "pause": None, "status": dict, "failed": pytest.fail}
    for _ in range(50):
        with WatcherLock(environ) as lock, Server(lock.folder, **unused):
            protocol.connect_unix(str(lock.folder), 10.0).close()
    gc.collect()
    assert unclosed == []


def test_an_answer_that_is_too_long_is_left_to_the_client(long_winded):
    lock, _ = long_winded
    request = {"op": "search", "args": [str(protocol.MAX_REPLY)], "around": {}}

    with pytest.raises(WatcherUnavailable, match="leaves this search to you"):
        ask_watcher(str(lock.folder), request)


def test_a_client_that_never_reads_is_dropped(long_winded, monkeypatch):
    monkeypatch.setattr(server_module, "SEND_SECONDS", 0.2)
    lock, server = long_winded
    request = {"protocol": PROTOCOL, "version": __version__, "op": "search", "around": {}}
    with protocol.connect_unix(str(lock.folder), 10.0) as connection:
        connection.sendall(protocol.encode_message({**request, "args": ["20000000"]}))
        assert soon(lambda: server.answered == 1)

        assert soon(lambda: not server._tasks)
