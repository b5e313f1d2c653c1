"""Server: questions come in over the socket, and are answered by a few threads.

    search    {"args": […], "around": {…}}   -> what to print, as the injected function says
    pause     {"root": "…"}                  -> the watcher writes nothing there until we hang up
    status    {}                             -> how the watcher is

One thread of its own holds all connections, however many; searches wait in line for the threads
that answer them, and whoever waits hears a beat every second. What a search is, and how it is
answered, is not known here.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from ragvault import __version__
from ragvault.service import wire
from ragvault.service.record import PROTOCOL, SOCKET
from ragvault.service.threads import Threads

BEAT = 1.0  # seconds between two signs of life
HEARD = 5.0  # seconds for a question to arrive whole
IDLE = 30.0  # seconds without work after which a thread looks after what it keeps: 1 ms each

# What was typed, and where, to what is to be printed; None is for the asking process to answer.
Answer = Callable[[list[str], Mapping[str, Any]], Mapping[str, Any] | None]
Aside = Callable[[Path], AbstractContextManager[None]]


class Server:
    """Answers from `with` on. `failed` is told the kind of an error that nobody expected.

    `idle` is called now and then in each thread that answers, when it has nothing to do.
    """

    def __init__(
        self,
        folder: Path,
        *,
        answer: Answer,
        aside: Aside,
        status: Callable[[], Mapping[str, Any]],
        failed: Callable[[BaseException], None],
        idle: Callable[[], None] = lambda: None,
        threads: int = 3,
        unix: bool | None = None,
    ) -> None:
        self._folder = folder
        self._answer, self._aside, self._status, self._failed = answer, aside, status, failed
        self._unix = wire.has_unix() if unix is None else unix
        self._pool = Threads(threads, "answer", idle, IDLE, failed)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="socket", daemon=True)
        self._token = "" if self._unix else secrets.token_hex(32)
        self._waiting = 0
        self.answered = 0

    @property
    def address(self) -> str:
        """As the record has it."""
        if self._unix:
            return "unix"
        host, port = self._listener.getsockname()
        return f"{host}:{port}"

    @property
    def token(self) -> str:
        return self._token

    @property
    def busy(self) -> bool:
        """Whether somebody waits for an answer."""
        return self._waiting > 0

    def __enter__(self) -> Server:
        self._listener = wire.bind_unix(str(self._folder)) if self._unix else wire.bind_loopback()
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result()
        return self

    def __exit__(self, *failure: object) -> None:
        with contextlib.suppress(OSError):
            (self._folder / SOCKET).unlink(missing_ok=True)
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._pool.shutdown(wait=False)

    async def _open(self) -> None:
        start = asyncio.start_unix_server if self._unix else asyncio.start_server
        self._server = await start(self._serve, sock=self._listener)
        self._tasks: set[asyncio.Task[None]] = set()

    async def _close(self) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # --- one connection ---

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            request = await asyncio.wait_for(self._request(reader, writer), HEARD)
            await self._serve_one(request, reader, writer)
        except (OSError, EOFError, ValueError, wire.Refused, asyncio.TimeoutError):
            pass  # whoever asked is gone, or is nobody we answer
        except asyncio.CancelledError:
            pass  # we are closing
        except Exception as error:
            self._failed(error)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _request(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> dict[str, Any]:
        """The question, once we know that it comes from our own user."""
        if self._unix:
            end: socket.socket = writer.get_extra_info("socket")
            wire.check_peer(end)
            return await _receive(reader)
        nonce = secrets.token_hex(16)
        theirs = str((await _receive(reader)).get("nonce"))
        proof = wire.proof(self._token, "watcher", theirs)
        await _send(writer, {"nonce": nonce, "proof": proof})
        request = await _receive(reader)
        if not wire.is_proof(str(request.get("proof")), self._token, "client", nonce):
            raise wire.Refused("it does not know the token")
        return request

    async def _serve_one(
        self, request: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if (request.get("protocol"), request.get("version")) != (PROTOCOL, __version__):
            await _send(writer, {"state": "declined", "why": f"this is ragvault {__version__}"})
            return
        await _send(writer, {"state": "accepted"})
        what = request.get("op")
        if what == "search":
            await self._search(request, writer)
        elif what == "pause":
            await self._pause(Path(str(request["root"])), reader, writer)
        elif what == "status":
            await _send(writer, {**self._status(), "state": "done"})
        else:
            await _send(writer, {"state": "declined", "why": "it cannot do that"})

    async def _search(self, request: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        args, around = request["args"], request["around"]
        self._waiting += 1
        try:
            reply = await self._beating(
                self._loop.run_in_executor(self._pool, self._answered, args, around), writer
            )
        finally:
            self._waiting -= 1
        if reply is None:
            await _send(writer, {"state": "declined", "why": "it leaves this search to you"})
        else:
            await _send(writer, {**reply, "state": "done"})

    def _answered(self, args: list[str], around: Mapping[str, Any]) -> Mapping[str, Any] | None:
        try:
            reply = self._answer(args, around)
        except BaseException as error:  # one that ends a program would end the socket's thread
            self._failed(error)
            return None  # the asking process will meet the same, and can show it
        self.answered += 1
        return reply

    async def _beating(self, work: asyncio.Future[Any], writer: asyncio.StreamWriter) -> Any:
        """The result of `work`; says that we are alive while it takes its time."""
        while True:
            done, _ = await asyncio.wait([work], timeout=BEAT)
            if done:
                return work.result()
            await _send(writer, {"state": "working"})

    async def _pause(
        self, root: Path, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Write nothing there until the other end hangs up, or dies."""
        aside = self._aside(root)
        entering = self._loop.run_in_executor(None, aside.__enter__)
        try:
            await self._beating(entering, writer)
            await _send(writer, {"state": "done"})
            await reader.read()
        finally:
            await asyncio.shield(entering)
            aside.__exit__(None, None, None)


async def _receive(reader: asyncio.StreamReader) -> dict[str, Any]:
    length = wire.length_of(await reader.readexactly(4))
    return wire.unpacked(await reader.readexactly(length))


async def _send(writer: asyncio.StreamWriter, value: Mapping[str, object]) -> None:
    writer.write(wire.packed(value))
    await writer.drain()
