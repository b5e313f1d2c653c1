"""The client: ask the watcher, if one can be reached.

The watcher confirms a request within ACCEPT_SECONDS and then sends a sign of life every second. In
every other case (none runs, it was killed, it hangs, it is another release, it belongs to another
user) the client raises WatcherUnavailable, and the caller does the work without the watcher. This
module imports little, because every search waits for it.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ragvault import __version__
from ragvault.service import PROTOCOL, RECORD_FILE

if TYPE_CHECKING:
    import socket

ACCEPT_SECONDS = 0.3  # to confirm the request
SILENCE_SECONDS = 3.0  # without a sign of life: the watcher hangs
ANSWER_SECONDS = 60.0  # for the whole answer


class WatcherUnavailable(Exception):
    """No watcher answers; `reason` is empty if none runs."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


def ask_watcher(folder: str, request: Mapping[str, object]) -> dict[str, Any]:
    """The answer of the watcher in this runtime folder. Raises WatcherUnavailable."""
    with watcher_connection(folder, request) as answer:
        return answer


@contextlib.contextmanager
def watcher_connection(folder: str, request: Mapping[str, object]) -> Iterator[dict[str, Any]]:
    """The same, and the connection stays open inside the block. Raises WatcherUnavailable."""
    with contextlib.ExitStack() as stack:
        try:
            connection, proof = _connect(folder)
            stack.enter_context(connection)
            answer = _exchange(connection, {**request, "proof": proof})
        except (OSError, ValueError) as error:
            raise WatcherUnavailable(str(error) or type(error).__name__) from None
        yield answer


def _connect(folder: str) -> tuple[socket.socket, str]:
    address, token = _address_and_token(folder)
    from ragvault.service import protocol  # after the record: without a watcher it is not needed

    try:
        if address == "unix":
            return protocol.connect_unix(folder, ACCEPT_SECONDS), ""
        return protocol.connect_loopback(address, token, ACCEPT_SECONDS)
    except protocol.PeerRefused as refused:
        raise WatcherUnavailable(str(refused)) from None


def _address_and_token(folder: str) -> tuple[str, str]:
    """Read from the watcher's record. Raises WatcherUnavailable."""
    try:
        with open(os.path.join(folder, RECORD_FILE), "rb") as file:  # noqa: PTH118, PTH123
            record = json.loads(file.read())
        if record["protocol"] != PROTOCOL or record["version"] != __version__:
            version = record["version"]
            raise WatcherUnavailable(f"it is ragvault {version}, and this is {__version__}")
        return str(record["address"]), str(record.get("token", ""))
    except (FileNotFoundError, NotADirectoryError):
        raise WatcherUnavailable from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise WatcherUnavailable(f"its record cannot be read ({error})") from None


def _exchange(connection: socket.socket, request: Mapping[str, object]) -> dict[str, Any]:
    from ragvault.service import protocol

    head = {"protocol": PROTOCOL, "version": __version__}
    connection.settimeout(ACCEPT_SECONDS)
    connection.sendall(protocol.encode_message({**head, **request}))
    end = time.monotonic() + ANSWER_SECONDS
    while True:
        message = protocol.receive_message(connection)
        if message.get("state") == "done":
            return message
        if message.get("state") not in ("accepted", "working"):
            raise WatcherUnavailable(str(message.get("why", "it declined")))
        if time.monotonic() > end:
            raise WatcherUnavailable("it takes too long")
        connection.settimeout(SILENCE_SECONDS)
