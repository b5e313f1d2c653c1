"""The server: answers searches and other requests over the socket.

    search    {"request": {…}, "around": {…}}  -> a response, as the injected function returns it
              {"args": […], "around": {…}}   -> what to print, for the words of a command line
    pause     {"root": "…"}                  -> the watcher does not write there until we hang up
    status    {}                             -> the state of the watcher
    last_results {"session": …}              -> what the last search of that session found
    stop      {"pid": …}                     -> the watcher ends, if that is its process

One thread serves all connections. Searches wait in a queue for a few worker threads, and a client
that waits gets a sign of life every second. The server does not know what a search is or how it is
answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from ragvault import __version__
from ragvault.service import PROTOCOL, SOCKET_FILE, protocol

HEARTBEAT_SECONDS = 1.0  # between two signs of life
REQUEST_SECONDS = 5.0  # for a request to arrive
SEND_SECONDS = 5.0  # for a client to read a message; then it is dropped
IDLE_SECONDS = 30.0  # without work, after which a worker checks its open indexes: 1 ms each

R = TypeVar("R")
Job = Callable[[], None]
# What a client asks, to the message it gets; None: the client answers by itself.
Answer = Callable[[Mapping[str, Any]], Mapping[str, Any] | None]
Pause = Callable[[Path], AbstractContextManager[None]]


class Server:
    """Serves inside `with`.

    `failed` gets errors that nobody expected. `idle` is called now and then in each worker thread
    that has no work.
    """

    def __init__(
        self,
        folder: Path,
        *,
        answer: Answer,
        pause: Pause,
        status: Callable[[], Mapping[str, Any]],
        failed: Callable[[BaseException], None],
        idle: Callable[[], None] = lambda: None,
        stop: Callable[[], None] = lambda: None,
        last_results: Callable[[int], Sequence[Mapping[str, Any]] | None] = lambda _: None,
        threads: int = 3,
        unix: bool | None = None,
    ) -> None:
        self._folder = folder
        self._answer, self._pause, self._status, self._failed = answer, pause, status, failed
        self._stop, self._last_results = stop, last_results
        self._unix = protocol.has_unix_sockets() if unix is None else unix
        self._workers = WorkerThreads(threads, idle, IDLE_SECONDS, failed)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="socket", daemon=True)
        self.token = "" if self._unix else secrets.token_hex(32)
        self._waiting = 0
        self._used = time.monotonic()  # when a search last began or ended
        self.answered = 0

    @property
    def address(self) -> str:
        """As in the watcher's record."""
        if self._unix:
            return "unix"
        host, port = self._listener.getsockname()
        return f"{host}:{port}"

    @property
    def busy(self) -> bool:
        """Whether a client waits for an answer."""
        return self._waiting > 0

    @property
    def idle_seconds(self) -> float:
        """How long no search has been waiting for its answer."""
        return 0.0 if self.busy else time.monotonic() - self._used

    def __enter__(self) -> Server:
        bind = protocol.bind_unix
        self._listener = bind(str(self._folder)) if self._unix else protocol.bind_loopback()
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result()
        return self

    def __exit__(self, *failure: object) -> None:
        with contextlib.suppress(OSError):
            (self._folder / SOCKET_FILE).unlink(missing_ok=True)
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._workers.shutdown(wait=False)

    async def _open(self) -> None:
        start = asyncio.start_unix_server if self._unix else asyncio.start_server
        self._server = await start(self._serve, sock=self._listener)
        self._tasks: set[asyncio.Task[None]] = set()

    async def _close(self) -> None:
        cancelled: set[asyncio.Task[None]] = set()
        # A connection that was just accepted is a task of asyncio before it is one of ours, and
        # asyncio would leave its socket open if the server were closed first.
        while left := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in self._tasks - cancelled:
                task.cancel()
                cancelled.add(task)
            await asyncio.wait(left, timeout=0.01)
        self._server.close()
        await asyncio.sleep(0)  # their sockets are closed in the next round of the loop

    # --- one connection ---

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        # drain() then waits until the client has read everything, so no answer piles up here.
        writer.transport.set_write_buffer_limits(0)
        try:
            request = await asyncio.wait_for(self._request(reader, writer), REQUEST_SECONDS)
            await self._dispatch(request, reader, writer)
        except (ValueError, RecursionError) as error:  # of the request or the answer: too long, say
            with contextlib.suppress(OSError, asyncio.TimeoutError):
                await _decline(writer, f"it leaves this search to you ({error})")
        except (OSError, EOFError, protocol.WatcherUnavailable, asyncio.TimeoutError):
            writer.transport.abort()  # the client is gone, does not read, or is not one we answer
        except asyncio.CancelledError:
            pass  # the server is closing
        except Exception as error:
            self._failed(error)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _request(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> dict[str, Any]:
        """The request, after checking that it comes from our own user, or WatcherUnavailable."""
        if self._unix:
            connection: socket.socket = writer.get_extra_info("socket")
            protocol.check_peer(connection)
            return await _receive(reader)
        nonce = secrets.token_hex(16)
        theirs = str((await _receive(reader)).get("nonce"))
        proof = protocol.token_proof(self.token, "watcher", theirs)
        await _send(writer, {"nonce": nonce, "proof": proof})
        request = await _receive(reader)
        if not protocol.is_token_proof(str(request.get("proof")), self.token, "client", nonce):
            raise protocol.WatcherUnavailable("it does not know the token")
        return request

    async def _dispatch(
        self, request: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if (request.get("protocol"), request.get("version")) != (PROTOCOL, __version__):
            await _decline(writer, f"this is ragvault {__version__}")
            return
        await _send(writer, {"state": "accepted"})
        operation = request.get("op")
        if operation == "search":
            await self._serve_search(request, writer)
        elif operation == "pause" and isinstance(request.get("root"), str):
            await self._serve_pause(Path(request["root"]), reader, writer)
        elif operation == "status":
            await _send(writer, {**self._status(), "state": "done"})
        elif operation == "last_results" and isinstance(request.get("session"), int):
            found = self._last_results(request["session"])
            await _send(writer, {"results": found, "state": "done"})
        elif operation == "stop" and request.get("pid") == os.getpid():
            await _send(writer, {"state": "done"})
            self._stop()
        else:
            await _decline(writer, f"it has no operation {operation}")

    async def _serve_search(self, request: Mapping[str, Any], writer: asyncio.StreamWriter) -> None:
        self._waiting += 1
        try:
            reply = await self._with_heartbeat(
                self._loop.run_in_executor(self._workers, self._safe_answer, request), writer
            )
        finally:
            self._waiting -= 1
            self._used = time.monotonic()
        if reply is None:
            await _decline(writer, "it leaves this search to you")
            return
        await _send(writer, {**reply, "state": "done"})

    def _safe_answer(self, request: Mapping[str, Any]) -> Mapping[str, Any] | None:
        try:
            reply = self._answer(request)
        except BaseException as error:  # SystemExit would end the socket's thread
            self._failed(error)
            return None  # the client will meet the same error, and can show it
        self.answered += 1
        return reply

    async def _serve_pause(
        self, root: Path, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Keep the watcher from writing there until the client hangs up or dies."""
        pause = self._pause(root)
        entering = self._loop.run_in_executor(None, pause.__enter__)
        try:
            await self._with_heartbeat(entering, writer)
            await _send(writer, {"state": "done"})
            await reader.read()
        finally:
            await asyncio.shield(entering)
            pause.__exit__(None, None, None)

    async def _with_heartbeat(self, work: asyncio.Future[Any], writer: asyncio.StreamWriter) -> Any:
        """The result of `work`; sends signs of life while it takes its time."""
        while True:
            done, _ = await asyncio.wait([work], timeout=HEARTBEAT_SECONDS)
            if done:
                return work.result()
            await _send(writer, {"state": "working"})


async def _receive(reader: asyncio.StreamReader) -> dict[str, Any]:
    length = protocol.message_length(await reader.readexactly(4), protocol.MAX_REQUEST)
    return protocol.decode_message(await reader.readexactly(length))


async def _send(writer: asyncio.StreamWriter, value: Mapping[str, object]) -> None:
    """Send a message. Raises TimeoutError if it is not read, ValueError if it is too long."""
    writer.write(protocol.encode_message(value))
    await asyncio.wait_for(writer.drain(), SEND_SECONDS)


async def _decline(writer: asyncio.StreamWriter, reason: str) -> None:
    await _send(writer, {"state": "declined", "why": reason})


# --- worker threads ---


class WorkerThreads(Executor):
    """A thread pool that prefers the thread that worked last: it has open what the job needs.

    It calls `idle` in each thread about every `every` seconds without work, because an open index
    can only be closed by its own thread. ThreadPoolExecutor does neither. A thread starts when a
    job finds none free. `failed` gets the errors of `idle`.
    """

    def __init__(
        self,
        count: int,
        idle: Callable[[], None],
        every: float,
        failed: Callable[[BaseException], None],
    ) -> None:
        self._most, self._idle, self._every, self._failed = count, idle, every, failed
        self._threads: list[threading.Thread] = []
        self._free: list[SimpleQueue[Job | None]] = []  # the last one worked last; None: end
        self._waiting: deque[Job] = deque()
        self._lock = threading.Lock()
        self._is_ending = False

    def submit(self, work: Callable[..., R], /, *args: Any, **named: Any) -> Future[R]:
        future: Future[R] = Future()

        def job() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(work(*args, **named))
            except BaseException as error:
                future.set_exception(error)

        with self._lock:
            if self._is_ending:
                raise RuntimeError("the pool is shut down")
            if self._free:
                self._free.pop().put(job)
            elif len(self._threads) < self._most:
                self._start(job)
            else:
                self._waiting.append(job)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more work, and end when the jobs are done; none is cancelled."""
        with self._lock:
            self._is_ending = True
            while self._free:
                self._free.pop().put(None)
        for thread in self._threads if wait else ():
            thread.join()

    def _start(self, job: Job) -> None:
        name = f"answer_{len(self._threads)}"
        thread = threading.Thread(target=self._work, args=(job,), name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self, job: Job | None) -> None:
        jobs: SimpleQueue[Job | None] = SimpleQueue()
        while job is not None:
            job()
            job = self._next_job(jobs)

    def _next_job(self, jobs: SimpleQueue[Job | None]) -> Job | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            if self._is_ending:
                return None
            self._free.append(jobs)
        while True:
            with contextlib.suppress(Empty):
                return jobs.get(timeout=self._every)
            try:
                self._idle()
            except Exception as error:
                self._failed(error)
