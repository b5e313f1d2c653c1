"""The protocol: how a client reaches the watcher, and the messages they exchange.

A message is four bytes of length and that much JSON. The client sends one request. The watcher
confirms it within ACCEPT_SECONDS, then sends a sign of life every second until the answer is ready.
In every other case (no watcher runs, it was killed, it hangs, it is another release, it belongs to
another user) the client raises WatcherUnavailable, and the caller does the work by itself. All of
this is the same for a resident process.

There are two kinds of socket:

    unix        watch.sock, private to its user; both ends check the other's user where the
                system reports it
    loopback    a port on 127.0.0.1, where there are no Unix sockets. Both ends prove that they
                have read the token in the record, which only its owner can read

A resident process is started only for a caller that may have one: not under CI, not as process 1
(a container ends with it), and not with `service.resident = "off"`. The client waits for it instead
of loading models itself.

This module imports little, because every search waits for it.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import socket
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

from ragvault import __version__
from ragvault.config.folders import runtime_folder
from ragvault.service import PROTOCOL, RECORD_FILE, SOCKET_FILE

ACCEPT_SECONDS = 2.0  # to confirm the request: a busy machine takes its time
SILENCE_SECONDS = 3.0  # without a sign of life: the watcher hangs
ANSWER_SECONDS = 60.0  # for the whole answer
MAX_REQUEST = 1 << 20  # bytes; a search sends a few kilobytes
MAX_REPLY = 1 << 25  # bytes; a larger answer is left to the client
MAX_SOCKET_NAME = 100  # bytes that every system accepts; Linux accepts 108
# The installation. Another one may lack an engine or a model that this one has.
CODE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
PEER_CREDENTIALS = getattr(socket, "SO_PEERCRED", None)


class WatcherUnavailable(Exception):
    """No watcher answers; `reason` is empty if none runs."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


class WatcherMissing(WatcherUnavailable):
    """None runs, it has just ended, or it is another release: another one may be started."""


# --- the client ---


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
        except (ConnectionError, FileNotFoundError) as ended:
            raise WatcherMissing(str(ended) or type(ended).__name__) from None
        except (OSError, ValueError, RecursionError) as error:
            raise WatcherUnavailable(str(error) or type(error).__name__) from None
        yield answer


def _connect(folder: str) -> tuple[socket.socket, str]:
    address, token = _address_and_token(folder)
    if address == "unix":
        return connect_unix(folder, ACCEPT_SECONDS), ""
    return connect_loopback(address, token, ACCEPT_SECONDS)


def _address_and_token(folder: str) -> tuple[str, str]:
    """Read from the watcher's record. Raises WatcherUnavailable."""
    try:
        with open(os.path.join(folder, RECORD_FILE), "rb") as file:  # noqa: PTH118, PTH123
            record = json.loads(file.read())
        if record["protocol"] != PROTOCOL or record["version"] != __version__:
            version = record["version"]
            raise WatcherMissing(f"it is ragvault {version}, and this is {__version__}")
        if record.get("code", CODE) != CODE:
            raise WatcherMissing(f"it is another installation ({record['code']})")
        return str(record["address"]), str(record.get("token", ""))
    except (FileNotFoundError, NotADirectoryError):
        raise WatcherMissing from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise WatcherUnavailable(f"its record cannot be read ({error})") from None


def _exchange(connection: socket.socket, request: Mapping[str, object]) -> dict[str, Any]:
    head = {"protocol": PROTOCOL, "version": __version__}
    connection.settimeout(ACCEPT_SECONDS)
    connection.sendall(encode_message({**head, **request}, MAX_REQUEST))
    end = time.monotonic() + ANSWER_SECONDS
    while True:
        message = receive_message(connection, end)
        if message.get("state") == "done":
            return message
        if message.get("state") not in ("accepted", "working"):
            raise WatcherUnavailable(str(message.get("why", "it declined")))
        if time.monotonic() > end:
            raise WatcherUnavailable("it takes too long")
        connection.settimeout(SILENCE_SECONDS)


# --- messages ---


def encode_message(value: object, most: int = MAX_REPLY) -> bytes:
    """A value as one message. Every string survives, also file names that are not Unicode.

    Raises ValueError if it is longer than `most` bytes.
    """
    data = json.dumps(value).encode("ascii")
    if len(data) > most:
        raise ValueError(f"a message of {len(data):,} bytes is too long")
    return len(data).to_bytes(4, "big") + data


def decode_message(data: bytes) -> dict[str, Any]:
    """The value of a message, given without its length. Raises ValueError and RecursionError."""
    value = json.loads(data)
    if not isinstance(value, dict):
        raise ValueError("not a message")
    return value


def message_length(head: bytes, most: int = MAX_REPLY) -> int:
    """The length that the first four bytes announce. Raises ValueError if it is above `most`."""
    length = int.from_bytes(head, "big")
    if length > most:
        raise ValueError(f"a message of {length:,} bytes is too long")
    return length


def receive_message(connection: socket.socket, end: float = math.inf) -> dict[str, Any]:
    """The next message. Raises OSError if none comes in time, ValueError if it is malformed.

    `end` is a time.monotonic(): a peer that sends one byte now and then must not hold us up.
    """
    length = message_length(_receive_exactly(connection, 4, end))
    return decode_message(_receive_exactly(connection, length, end))


def _receive_exactly(connection: socket.socket, count: int, end: float) -> bytes:
    parts = []
    while count:
        if time.monotonic() > end:
            raise TimeoutError("it takes too long")
        part = connection.recv(min(count, 1 << 16))
        if not part:
            raise ConnectionResetError("the other end closed the connection")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


@contextlib.contextmanager
def closed_after_error(opened: Any) -> Iterator[None]:
    """Closes it if the block ends with an error."""
    try:
        yield
    except BaseException:
        opened.close()
        raise


# --- Unix sockets ---


def has_unix_sockets() -> bool:
    return hasattr(socket, "AF_UNIX") and sys.platform != "win32"


@contextlib.contextmanager
def short_socket_name(folder: str) -> Iterator[str]:
    """A name for the socket in this folder that is short enough, valid inside the block.

    A long name is reached through an open folder (/proc/self/fd) on Linux, else by changing into
    the folder.
    """
    name = os.path.join(folder, SOCKET_FILE)  # noqa: PTH118
    if len(os.fsencode(name)) <= MAX_SOCKET_NAME:
        yield name
        return
    if sys.platform.startswith("linux"):
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            yield f"/proc/self/fd/{opened}/{SOCKET_FILE}"
        finally:
            os.close(opened)
        return
    before = os.getcwd()  # noqa: PTH109
    os.chdir(folder)
    try:
        yield SOCKET_FILE
    finally:
        os.chdir(before)


def bind_unix(folder: str) -> socket.socket:
    """A listening socket that only its owner can reach; replaces one left by a killed watcher."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with closed_after_error(listener):
        with short_socket_name(folder) as name:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)  # noqa: PTH108
            before = os.umask(0o177)
            try:
                listener.bind(name)
            finally:
                os.umask(before)
            os.chmod(name, 0o600)  # noqa: PTH101
        listener.listen(1024)
    return listener


def connect_unix(folder: str, seconds: float) -> socket.socket:
    """A connection to a watcher of this user. Raises WatcherUnavailable and OSError."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with closed_after_error(connection):
        connection.settimeout(seconds)
        with short_socket_name(folder) as name:
            status = os.lstat(name)
            if not stat.S_ISSOCK(status.st_mode):
                raise WatcherUnavailable("its socket is not a socket")
            if status.st_uid != os.getuid():
                raise WatcherUnavailable("its socket belongs to another user")
            connection.connect(name)
        check_peer(connection)
    return connection


def check_peer(connection: socket.socket) -> None:
    """Raises WatcherUnavailable if the system reports that the other end is another user."""
    if PEER_CREDENTIALS is None:
        return  # file permissions keep other users out of the folder and the socket
    credentials = connection.getsockopt(socket.SOL_SOCKET, PEER_CREDENTIALS, 12)
    user = int.from_bytes(credentials[4:8], sys.byteorder)
    if user != os.getuid():
        raise WatcherUnavailable("the other end is another user")


# --- loopback ---


def bind_loopback() -> socket.socket:
    """A listening socket on a free port of 127.0.0.1."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", 0))
    listener.listen(1024)
    return listener


def connect_loopback(address: str, token: str, seconds: float) -> tuple[socket.socket, str]:
    """A connection to a watcher that knows the token, and our own proof that we know it.

    Raises WatcherUnavailable and OSError.
    """
    host, _, port = address.rpartition(":")
    if host != "127.0.0.1":
        raise WatcherUnavailable("its address is not on this machine")
    if not 0 < int(port) < 1 << 16:
        raise WatcherUnavailable("its address has no such port")
    connection = socket.create_connection((host, int(port)), timeout=seconds)
    with closed_after_error(connection):
        nonce = os.urandom(16).hex()
        connection.sendall(encode_message({"nonce": nonce}))
        message = receive_message(connection)
        if not is_token_proof(str(message.get("proof")), token, "watcher", nonce):
            raise WatcherUnavailable("it does not know the token")
        return connection, token_proof(token, "client", str(message.get("nonce")))


def token_proof(token: str, role: str, nonce: str) -> str:
    """Proves that the end with this role knows the token, for the connection with this nonce."""
    import hmac

    return hmac.digest(token.encode(), f"{role} {nonce}".encode(), "sha256").hex()


def is_token_proof(given: str, token: str, role: str, nonce: str) -> bool:
    import hmac

    # As bytes: two strings must be ASCII to be compared, and a peer sends any.
    expected = token_proof(token, role, nonce).encode()
    return bool(token) and hmac.compare_digest(given.encode("utf-8", "replace"), expected)


# --- asking, and starting a process to ask ---


# Seconds before a process is started. Later tries are for one that was just ending, or was killed.
PAUSES = (0.0, 0.05, 0.2)
FALSE = ("", "0", "false", "no")  # values of CI that mean that it is not set


def ask_or_start(
    request: Mapping[str, object], environ: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The answer of the process of this user, which is started if none runs.

    `environ` is a whole environment, in which the process is started; default: that of this one.
    Raises WatcherUnavailable: then the caller does the work by itself.
    """
    given = os.environ if environ is None else environ
    if given.get("RAGVAULT_ALONE") or given.get("RAGVAULT_DEBUG"):
        raise WatcherUnavailable("")
    folder = runtime_folder(given)
    for pause in PAUSES:
        try:
            return ask_watcher(folder, request)
        except WatcherMissing:
            if not may_start(given):
                raise
        time.sleep(pause)
        _start(given)
    return ask_watcher(folder, request)


def _start(environ: Mapping[str, str]) -> None:
    from ragvault.errors import RagvaultError
    from ragvault.service.process import start_resident

    try:
        start_resident(environ)
    except (OSError, RagvaultError) as error:
        raise WatcherUnavailable(f"it could not be started: {error}") from None


def may_start(environ: Mapping[str, str]) -> bool:
    """Whether a search may leave a process behind."""
    if environ.get("CI", "").lower() not in FALSE or os.getpid() == 1 or not sys.executable:
        return False
    from ragvault.config.load import load_settings
    from ragvault.errors import ConfigError

    with contextlib.suppress(ConfigError):  # the search itself reports it
        return load_settings(environ=environ).config.service.resident != "off"
    return False
