"""A reply: what a search writes, and writing it. Imports nothing, for whoever only passes it on."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple


class Reply(NamedTuple):
    """`out` ends as it is to end, `err` is lines; a path in `out` is that of os.fsdecode."""

    out: str
    err: tuple[str, ...] = ()
    code: int = 0


def write(reply: Reply) -> None:
    """Results to stdout, then the talk to stderr."""
    if reply.out and sys.stdout:  # None when it was closed: `>&-`
        buffer = getattr(sys.stdout, "buffer", None)
        if buffer is None:
            sys.stdout.write(reply.out)
        else:
            sys.stdout.flush()
            buffer.write(encoded(reply.out, sys.stdout.encoding))
            buffer.flush()
    if reply.err and sys.stderr:
        sys.stderr.write("".join(f"{line}\n" for line in reply.err))


def encoded(text: str, encoding: Any) -> bytes:
    """Names that are not Unicode as the bytes they are; what cannot be said at all, escaped."""
    try:
        return text.encode(encoding or "utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode(encoding or "utf-8", "backslashreplace")
