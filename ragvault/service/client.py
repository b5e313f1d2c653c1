"""Client: ask the watcher, if there is one that can be asked.

The watcher says within ACCEPTS seconds that it heard, then at least every BEATS that it still
works. Whatever else happens (none runs, it was killed, it hangs, it is another release, it belongs
to somebody else) ends in Unanswered: whoever asked then does the work without it. Imports little.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ragvault import __version__
from ragvault.service.record import PROTOCOL, RECORD

if TYPE_CHECKING:
    import socket

ACCEPTS = 0.3  # seconds to say that the question was heard
BEATS = 3.0  # seconds of silence that mean it hangs; it says something every second
WHOLE = 60.0  # seconds for the whole answer


class Unanswered(Exception):
    """No watcher answers; `why` is empty where none runs."""

    def __init__(self, why: str = "") -> None:
        super().__init__(why)
        self.why = why


def record(folder: str) -> dict[str, str]:
    """Where the watcher of a runtime folder answers, as it wrote. Raises Unanswered."""
    try:
        with open(os.path.join(folder, RECORD), "rb") as file:  # noqa: PTH118, PTH123
            found = json.loads(file.read())
        if found["protocol"] != PROTOCOL or found["version"] != __version__:
            raise Unanswered(f"it is ragvault {found['version']}, and this is {__version__}")
        return {"address": str(found["address"]), "token": str(found.get("token", ""))}
    except (FileNotFoundError, NotADirectoryError):
        raise Unanswered from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Unanswered(f"its record cannot be read ({error})") from None


def ask(folder: str, request: Mapping[str, object]) -> dict[str, Any]:
    """The watcher's answer to one request. Raises Unanswered."""
    with asking(folder, request) as answer:
        return answer


@contextlib.contextmanager
def asking(folder: str, request: Mapping[str, object]) -> Iterator[dict[str, Any]]:
    """The same; the connection stays open while the block lasts. Raises Unanswered."""
    with contextlib.ExitStack() as stack:
        try:
            connection, proof = _connected(folder)
            stack.enter_context(connection)
            answer = _answered(connection, {**request, "proof": proof})
        except (OSError, ValueError) as error:
            raise Unanswered(str(error) or type(error).__name__) from None
        yield answer


def _connected(folder: str) -> tuple[socket.socket, str]:
    found = record(folder)
    from ragvault.service import wire

    try:
        if found["address"] == "unix":
            return wire.connect_unix(folder, ACCEPTS), ""
        return wire.connect_loopback(found["address"], found["token"], ACCEPTS)
    except wire.Refused as refused:
        raise Unanswered(str(refused)) from None


def _answered(connection: socket.socket, request: Mapping[str, object]) -> dict[str, Any]:
    from ragvault.service import wire

    head = {"protocol": PROTOCOL, "version": __version__}
    connection.settimeout(ACCEPTS)
    connection.sendall(wire.packed({**head, **request}))
    end = time.monotonic() + WHOLE
    while True:
        told = wire.receive(connection)
        if told.get("state") == "done":
            return told
        if told.get("state") not in ("accepted", "working"):
            raise Unanswered(str(told.get("why", "it declined")))
        if time.monotonic() > end:
            raise Unanswered("it takes too long")
        connection.settimeout(BEATS)
