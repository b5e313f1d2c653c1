"""Ask: the answer to a search, for programs that run for long: the picker and the MCP server.

The resident process answers, so that all of them share one model. If there is none and none may be
started, the search is answered here, and indexes and models stay open for the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from ragvault.cli.start import Reply, checked_reply, this_caller
from ragvault.errors import RagvaultError
from ragvault.service.protocol import WatcherUnavailable, ask_or_start

if TYPE_CHECKING:
    from ragvault.service.watcher import ResidentIndexes

THREADS = 3  # searches at a time without a resident process


def search_function(*, resident: bool = True) -> Callable[[Sequence[str]], Reply]:
    """A function that answers the arguments of `ragvault search`."""
    here = _SearchHere()

    def search(args: Sequence[str]) -> Reply:
        request = {"op": "search", "args": ["search", *args], "around": this_caller()._asdict()}
        try:
            reply = checked_reply(ask_or_start(request)) if resident else None
        except WatcherUnavailable:
            reply = None
        return reply or here(args)

    return search


class _SearchHere:
    """Searches in this process, in a few threads of its own: an index belongs to one thread."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="answer")
        self._indexes: ResidentIndexes | None = None

    def __call__(self, args: Sequence[str]) -> Reply:
        return self._threads.submit(self._answer, args).result()

    def _answer(self, args: Sequence[str]) -> Reply:
        from ragvault.cli.search import answer_search, parse_search
        from ragvault.models.load import ModelPool
        from ragvault.service.watcher import ResidentIndexes

        if self._indexes is None:
            self._indexes = ResidentIndexes(ModelPool())
        self._indexes.close_outdated()
        caller = this_caller()
        typed = parse_search(["search", *args], caller)
        if typed is None:
            raise RagvaultError("this search cannot be understood", fix="change the query")
        return answer_search(typed, caller, self._indexes)
