"""The console entry point: a search that a watcher can answer is answered before Typer is imported.

Everything else, and every search that no watcher answers, goes on to main.py. Both ways write the
same bytes, since the watcher runs the very function that `ragvault search` runs. RAGVAULT_ALONE=1
asks no watcher.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

HERE = ("-h", "--help")  # for the process in which they were typed
LEG = "leg"  # how the threads of a search are named
GRACE = 0.2  # seconds
LOUD = ("-q", "--quiet", "-v", "--verbose")  # may stand before the command, too


def run() -> None:
    """The whole program."""
    code = warm(sys.argv[1:])
    if code is None:
        collect_garbage_less_often()  # before the imports: they create most objects
        from ragvault.cli.main import main

        code = main(sys.argv[1:])
    if _is_held_up():
        # Everything is written; Python would wait for the thread, which may be for ever.
        os._exit(code)
    sys.exit(code)


def collect_garbage_less_often() -> None:
    """For processes that are only ours; a library leaves the garbage collector as it finds it.

    By default it runs after every 700 new objects. A search creates a few thousand that need no
    collector, and lost 1.8 ms to it, and 35 ms once in forty (14,593 notes).
    """
    import gc

    gc.set_threshold(50_000, 20, 20)


def _is_held_up() -> bool:
    """Whether a leg that nobody waits for is still at work: one that has ended leaves at once."""
    threading = sys.modules.get("threading")
    legs = (
        [each for each in threading.enumerate() if each.name.startswith(LEG)] if threading else []
    )
    for each in legs:
        each.join(GRACE)
    return any(each.is_alive() for each in legs)


def warm(args: Sequence[str]) -> int | None:
    """Have the watcher answer a search; None where it is to be answered here."""
    args = _search(args)
    if not args or os.environ.get("RAGVAULT_ALONE") or set(HERE) & set(args):
        return None
    from ragvault.cli.around import surroundings
    from ragvault.runtime import runtime_folder
    from ragvault.service.client import WatcherUnavailable, ask_watcher

    try:
        around = surroundings()._asdict()
        request = {"op": "search", "args": args, "around": around}
        return _written(ask_watcher(runtime_folder(), request))
    except WatcherUnavailable as unavailable:
        if unavailable.reason and {"-v", "--verbose"} & set(args):
            sys.stderr.write(f"the watcher does not answer: {unavailable.reason}\n")
        return None
    except KeyboardInterrupt:
        return 130


def _search(args: Sequence[str]) -> list[str]:
    """The command line with `search` as its first word; empty for any other command."""
    before = 0
    while args[before : before + 1] and args[before] in LOUD:
        before += 1
    if args[before : before + 1] != ["search"]:
        return []
    return ["search", *args[:before], *args[before + 1 :]]


def _written(told: Mapping[str, Any]) -> int:
    """Write what `ragvault search` would have written, and return its exit code."""
    from ragvault.cli.reply import Reply, write

    reply = Reply(str(told["out"]), tuple(told["err"]), int(told["code"]))
    try:
        write(reply)
    except BrokenPipeError:
        from ragvault.cli.main import reader_left

        return reader_left()
    except OSError as error:  # a full disk
        from ragvault.cli.render import unexpected

        unexpected(error)
        return 4
    return reply.code
