"""Damage: whatever an engine makes of a damaged file is told as one exception.

Whoosh, zlib and numpy raise nearly anything, and tantivy panics: that is no Exception, and would
end a program that only wanted to name the leg which cannot answer.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from ragvault.errors import RagvaultError
from ragvault.ports import CacheBroken

P = ParamSpec("P")
REFUSED = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.EMFILE,
    errno.ENFILE,
)
R = TypeVar("R")


def damage_told(method: Callable[P, R]) -> Callable[P, R]:
    """The same method, which raises CacheBroken where files are not what they should be."""

    @wraps(method)
    def told(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except RagvaultError:
            raise
        except BaseException as error:
            if not is_damage(error):
                raise
            what = f"{type(error).__name__}: {error}"
            raise CacheBroken(f"its files cannot be read ({what})") from error

    return told


def is_damage(error: BaseException) -> bool:
    """Whether files may be to blame: not a full disk, a missing right, or no memory."""
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in REFUSED):
        return False
    return isinstance(error, Exception) or is_panic(error)


def is_panic(error: BaseException) -> bool:
    """Whether Rust gave up: damage, or a disk that refuses."""
    return type(error).__name__ == "PanicException"  # of a module that cannot be imported
