"""Wire: how a watcher and the commands that ask it find and hear each other.

    unix        run/watch.sock, private to its user; the other end's user is checked where the
                system tells it
    loopback    where there are no Unix sockets: a port of this machine. Both ends prove that they
                have read the token in the record, which only its owner can read

A message is four bytes of length and that much JSON. This file imports little: every search that
another process answers waits for it.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
import sys
from collections.abc import Iterator
from typing import Any

from ragvault.service.record import SOCKET

LONGEST = 1 << 28  # bytes: more is no message of ours
NAME_MAX = 100  # bytes of a socket's name that every system takes; Linux has 108
PEER = getattr(socket, "SO_PEERCRED", None)


class Refused(Exception):
    """The other end is not one we talk to; the reason is for `-v`."""


def packed(value: object) -> bytes:
    """A value as one message. Every string survives, also what is not Unicode."""
    data = json.dumps(value).encode("ascii")
    return len(data).to_bytes(4, "big") + data


def unpacked(data: bytes) -> dict[str, Any]:
    value = json.loads(data)
    if not isinstance(value, dict):
        raise ValueError("not a message")
    return value


def length_of(head: bytes) -> int:
    """Raises ValueError for one that no message has."""
    length = int.from_bytes(head, "big")
    if length > LONGEST:
        raise ValueError("too long")
    return length


def receive(connection: socket.socket) -> dict[str, Any]:
    """The next message. Raises OSError when there is none in time, ValueError for nonsense."""
    return unpacked(_exactly(connection, length_of(_exactly(connection, 4))))


def _exactly(connection: socket.socket, count: int) -> bytes:
    parts = []
    while count:
        part = connection.recv(min(count, 1 << 16))
        if not part:
            raise ConnectionResetError("the other end is gone")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


# --- Unix sockets ---


def has_unix() -> bool:
    return hasattr(socket, "AF_UNIX") and sys.platform != "win32"


@contextlib.contextmanager
def short(folder: str) -> Iterator[str]:
    """A name for the socket in this folder that is short enough, while the block lasts.

    A long one is reached through an open folder where the system shows those, else by going there.
    """
    name = os.path.join(folder, SOCKET)  # noqa: PTH118
    if len(os.fsencode(name)) <= NAME_MAX:
        yield name
        return
    if sys.platform.startswith("linux"):
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            yield f"/proc/self/fd/{opened}/{SOCKET}"
        finally:
            os.close(opened)
        return
    before = os.getcwd()  # noqa: PTH109
    os.chdir(folder)
    try:
        yield SOCKET
    finally:
        os.chdir(before)


def bind_unix(folder: str) -> socket.socket:
    """A socket that listens and that only its owner can reach; replaces one left behind."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with short(folder) as name:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)  # noqa: PTH108
            before = os.umask(0o177)
            try:
                listener.bind(name)
            finally:
                os.umask(before)
            os.chmod(name, 0o600)  # noqa: PTH101
        listener.listen(1024)
    except BaseException:
        listener.close()
        raise
    return listener


def connect_unix(folder: str, seconds: float) -> socket.socket:
    """A connection to a watcher of this very user. Raises Refused and OSError."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(seconds)
        with short(folder) as name:
            status = os.lstat(name)
            if not stat.S_ISSOCK(status.st_mode):
                raise Refused("its socket is no socket")
            if status.st_uid != os.getuid():
                raise Refused("its socket belongs to another user")
            connection.connect(name)
        check_peer(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def check_peer(connection: socket.socket) -> None:
    """Raises Refused where the system says that the other end is another user."""
    if PEER is None:
        return  # the folder and the socket are closed to others
    card = connection.getsockopt(socket.SOL_SOCKET, PEER, 12)
    user = int.from_bytes(card[4:8], sys.byteorder)
    if user != os.getuid():
        raise Refused("the other end is another user")


# --- loopback ---


def bind_loopback() -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", 0))
    listener.listen(1024)
    return listener


def connect_loopback(address: str, token: str, seconds: float) -> tuple[socket.socket, str]:
    """A connection to whoever knows the token, and our proof that we know it. Raises Refused."""
    host, _, port = address.rpartition(":")
    if host != "127.0.0.1":
        raise Refused("its address is not of this machine")
    connection = socket.create_connection((host, int(port)), timeout=seconds)
    try:
        nonce = os.urandom(16).hex()
        connection.sendall(packed({"nonce": nonce}))
        told = receive(connection)
        if not is_proof(str(told.get("proof")), token, "watcher", nonce):
            raise Refused("it does not know the token")
        return connection, proof(token, "client", str(told.get("nonce")))
    except BaseException:
        connection.close()
        raise


def proof(token: str, who: str, nonce: str) -> str:
    """That `who` knows the token, for this one connection."""
    import hmac

    return hmac.digest(token.encode(), f"{who} {nonce}".encode(), "sha256").hex()


def is_proof(given: str, token: str, who: str, nonce: str) -> bool:
    import hmac

    return bool(token) and hmac.compare_digest(given, proof(token, who, nonce))
