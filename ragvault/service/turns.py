"""Turns: another process writes an index while a watcher keeps it.

The watcher stops writing that vault at once and goes on when the other has hung up, or died. One
that does not answer is not waited for: the lock of the index decides then, as it always does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ragvault.runtime import runtime_folder
from ragvault.service.client import Unanswered, asking
from ragvault.service.running import Running, watching


@contextmanager
def turn(root: Path, environ: Mapping[str, str] | None = None) -> Iterator[Running | None]:
    """Write the index of this vault without the watcher; gives the watcher that made way."""
    with ExitStack() as stack:
        found = watching(root, environ)
        if found is not None:
            request = {"op": "pause", "root": str(root.resolve())}
            try:
                stack.enter_context(asking(runtime_folder(environ), request))
            except Unanswered:
                found = None
        yield found
