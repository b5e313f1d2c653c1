"""Any bytes on the socket: the server declines, the client raises WatcherUnavailable."""

from __future__ import annotations

import json
import os
import socket
from contextlib import nullcontext, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ragvault import __version__
from ragvault.service import PROTOCOL, RECORD_FILE, protocol
from ragvault.service.server import Server
from tests.fuzz_kit import awkward_texts, time_limit

pytestmark = pytest.mark.slow

HEAD = {"protocol": PROTOCOL, "version": __version__}
REQUESTS = (
    {**HEAD, "op": "search", "args": ["search", "bread"], "around": {"cwd": "/", "environ": {}}},
    {**HEAD, "op": "status"},
    {**HEAD, "op": "pause", "root": "/tmp"},
    {**HEAD, "op": "stop", "pid": 1},
    {"nonce": "00", "proof": "11"},
)
REPLIES = (
    {"state": "done", "out": "a", "code": 0},
    {"state": "accepted"},
    {"state": "no", "why": "x"},
)
SEEDS = tuple(json.dumps(value) for value in (*REQUESTS, *REPLIES))
RECORDS = tuple(
    json.dumps({**HEAD, "address": address, "token": "t"})
    for address in (
        "unix",
        "127.0.0.1:1",
        "127.0.0.1:99999",
        "127.0.0.1:-1",
        "::1:80",
        "127.0.0.1:",
    )
)
PIECES = (
    *(
        "{",
        "}",
        "[",
        "]",
        '"',
        ":",
        ",",
        '"op": ',
        '"state": ',
        '"done"',
        '"search"',
        "null",
        "NaN",
    ),
    *(
        "1e999",
        "-",
        "\\u",
        "\\ud800",
        '"args": []',
        '"around": {}',
        '"root": "\\u0000"',
        '"pid": true',
    ),
)
texts = awkward_texts(SEEDS, PIECES)
bodies = texts.map(lambda text: text.encode("utf-8", "surrogatepass")) | st.binary(max_size=200)
lengths = st.sampled_from([None, None, None, 0, 1, 1 << 20, 1 << 25, (1 << 25) + 1, (1 << 32) - 1])


def framed(body, length):
    return (len(body) if length is None else length).to_bytes(4, "big") + body


@given(bodies, lengths)
@example(b"[" * 100_000, None)
@example(b'{"a":' * 50_000, None)
@example(b"9" * 5_000, None)
def test_decoding(body, length):
    ours, theirs = socket.socketpair()
    with ours, theirs, time_limit():
        theirs.sendall(framed(body, length)[:100_000])
        theirs.shutdown(socket.SHUT_WR)
        with suppress(ValueError, OSError):
            assert isinstance(protocol.receive_message(ours), dict)


@given(bodies, st.integers(0, 3))
def test_replies(body, count):
    """What a client makes of the replies of a watcher that lost its mind."""
    ours, theirs = socket.socketpair()
    with ours, theirs, time_limit():
        theirs.sendall(framed(b'{"state": "working"}', None) * count + framed(body, None))
        theirs.shutdown(socket.SHUT_WR)
        with suppress(protocol.WatcherUnavailable, ValueError, OSError):
            assert protocol._exchange(ours, {"op": "status"})["state"] == "done"


@given(awkward_texts(RECORDS, (*PIECES, '"address": ', "unix", "127.0.0.1:", "65536")))
@example(RECORDS[2])
@example(RECORDS[3])
@example("[" * 100_000)
def test_records(record):
    with TemporaryDirectory() as folder, time_limit():
        data = record.encode("utf-8", "surrogatepass")
        Path(folder, RECORD_FILE).write_bytes(data)
        with pytest.raises(protocol.WatcherUnavailable):
            protocol.ask_watcher(folder, {"op": "status"})


@given(texts, texts)
@example("é", "t")
@example("\ud800", "t")
def test_proofs(given_proof, nonce):
    nonce = nonce.encode("utf-8", "replace").decode()
    assert not protocol.is_token_proof(given_proof, "t", "client", nonce)


@pytest.fixture(scope="module", params=[True, False], ids=["unix", "loopback"])
def server(request, tmp_path_factory):
    failures: list[BaseException] = []
    with (
        TemporaryDirectory() as folder,
        Server(
            Path(folder),
            answer=lambda request: {"out": "", "code": 0},
            pause=lambda root: nullcontext(),
            status=lambda: {"pid": os.getpid()},
            failed=failures.append,
            unix=request.param,
        ) as served,
    ):
        yield served, folder, failures


@given(body=bodies, ends=st.booleans())
@example(body=b'{"nonce": "\\ud800"}', ends=True)
@example(body=json.dumps(REQUESTS[2] | {"root": "\0"}).encode(), ends=True)
@example(body=json.dumps(REQUESTS[1] | {"op": ["x"]}).encode(), ends=False)
def test_requests(server, body, ends):
    served, folder, failures = server
    with time_limit():
        if served.address == "unix":
            connection = protocol.connect_unix(folder, 5.0)
        else:
            host, _, port = served.address.rpartition(":")
            connection = socket.create_connection((host, int(port)), 5.0)
        with connection:
            connection.settimeout(5.0)
            connection.sendall(framed(body, None))
            if ends:
                connection.shutdown(socket.SHUT_WR)
            try:
                message = protocol.receive_message(connection)
            except OSError:
                message = {}  # it hung up
    assert message.get("state") in (None, "accepted", "declined", "working", "done")
    assert failures == []
