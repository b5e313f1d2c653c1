"""What is said about a query that cannot be meant, and which name was probably meant."""

from __future__ import annotations

from collections.abc import Iterable

from ragvault.errors import UsageError

SHOWN = 40  # characters of what was typed: enough to recognise it


def wrong(message: str, fix: str) -> UsageError:
    """The one kind of error this room raises."""
    return UsageError(message, fix=fix)


def shown(text: str) -> str:
    """What was typed, short enough for a sentence."""
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else line[: SHOWN - 1] + "…"


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that is spelt most like this one; empty when none is near."""
    # Imported here: only a mistake needs it.
    from difflib import get_close_matches

    return next(iter(get_close_matches(name.lower(), list(known), n=1, cutoff=0.6)), "")


def near(name: str, known: Iterable[str]) -> str:
    """The known name that is one slip away (two where it is long); empty when none is."""
    allowed = 1 if len(name) < 7 else 2
    close = [each for each in known if slips(name.lower(), each) <= allowed]
    return min(close, key=lambda each: (slips(name.lower(), each), each), default="")


def slips(a: str, b: str) -> int:
    """Letters to add, drop, change or swap with their neighbour to make one word the other."""
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        older, before, row = before, row, [i]
        for j, right in enumerate(b, 1):
            least = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (left != right))
            if i > 1 and j > 1 and (left, a[i - 2]) == (b[j - 2], right):
                least = min(least, older[j - 2] + 1)
            row.append(least)
    return row[-1]
