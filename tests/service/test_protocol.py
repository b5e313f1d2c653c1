"""Messages, and the two kinds of socket that carry them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragvault import __version__
from ragvault.service import PROTOCOL, RECORD_FILE, SOCKET_FILE, protocol
from ragvault.service.process import WatcherLock, running_watcher
from ragvault.service.protocol import WatcherUnavailable, ask_watcher
from ragvault.service.server import Server

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

    with pytest.raises(protocol.PeerRefused, match="not a socket"):
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
            answer=lambda args, around: {"out": " ".join(args), "err": [], "code": 0},
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
            answer=lambda args, around: 1 / 0,  # type: ignore[arg-type, return-value]
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

    def answer(args: list[str], around: object) -> dict[str, object]:
        if args == ["exit"]:
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
