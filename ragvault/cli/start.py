"""The console entry point. A search that a watcher can answer never imports Typer.

Everything else, and every search that no watcher answers, goes on to main.py. Both ways write the
same bytes, because the watcher runs the same function as `ragvault search`. RAGVAULT_ALONE=1 asks
no watcher.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragvault.cli.caller import Reply

HELP = ("-h", "--help")  # answered by the process in which they were typed
VOLUME = ("-q", "--quiet", "-v", "--verbose")  # may also stand before the command
LEG_THREADS = "leg"  # prefix of the names of a search's threads
GRACE = 0.2  # seconds a late leg gets to end
# Python looks for reference cycles after 700 new containers, and now and then at everything. A
# search makes thousands that need no collector; it was held up by 1.8 ms, once in forty by 35 ms.
GC_THRESHOLD = 50_000  # containers


def run() -> None:
    """The whole program."""
    code = answered_by_watcher(sys.argv[1:])
    if code is None:
        collect_garbage_less_often()  # before the imports: they create most objects
        from ragvault.cli.main import main

        code = main(sys.argv[1:])
    if _has_late_legs():
        # Everything is written. Python would wait for the thread, perhaps for ever.
        os._exit(code)
    sys.exit(code)


def collect_garbage_less_often() -> None:
    """Make Python's cycle collector run less often; for processes that are ours alone."""
    gc.set_threshold(GC_THRESHOLD, 20, 20)


def _has_late_legs() -> bool:
    """Whether a leg that timed out is still running."""
    threading = sys.modules.get("threading")
    threads = threading.enumerate() if threading else ()
    legs = [thread for thread in threads if thread.name.startswith(LEG_THREADS)]
    for leg in legs:
        leg.join(GRACE)
    return any(leg.is_alive() for leg in legs)


def answered_by_watcher(args: Sequence[str]) -> int | None:
    """Let the watcher answer a search and return its exit code; None if it must be done here."""
    args = _search_first(args)
    if not args or os.environ.get("RAGVAULT_ALONE") or set(HELP) & set(args):
        return None
    from ragvault.cli.caller import Reply, this_caller
    from ragvault.config.folders import runtime_folder
    from ragvault.service.client import WatcherUnavailable, ask_watcher

    try:
        caller = this_caller()._asdict()
        answer = ask_watcher(runtime_folder(), {"op": "search", "args": args, "around": caller})
        return _write(Reply(str(answer["out"]), tuple(answer["err"]), int(answer["code"])))
    except WatcherUnavailable as unavailable:
        if unavailable.reason and {"-v", "--verbose"} & set(args):
            sys.stderr.write(f"the watcher does not answer: {unavailable.reason}\n")
        return None
    except KeyboardInterrupt:
        return 130


def _search_first(args: Sequence[str]) -> list[str]:
    """The arguments with `search` first; empty for any other command."""
    before = 0
    while args[before : before + 1] and args[before] in VOLUME:
        before += 1
    if args[before : before + 1] != ["search"]:
        return []
    return ["search", *args[:before], *args[before + 1 :]]


def _write(reply: Reply) -> int:
    """Write what `ragvault search` would have written, and return its exit code."""
    from ragvault.cli import caller

    try:
        caller.write_reply(reply)
    except BrokenPipeError:
        from ragvault.cli.main import reader_left

        return reader_left()
    except OSError as error:  # a full disk
        from ragvault.cli.render import console

        console.unexpected(error)
        return 4
    return reply.code
