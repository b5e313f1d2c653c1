"""For fuzz targets: generators of awkward text, and a limit that ends a hang.

Every target builds texts in three ways: pieces of its grammar in any order, one piece repeated or
nested, and a seed with a few edits. `make fuzz` runs each with 20,000 examples, and
`make test-all` with 100.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from hypothesis import strategies as st

SECONDS = 10.0  # of CPU time for one example; the slowest takes a hundredth of it
LONGEST = 20_000  # characters of one example
UNUSUAL = (
    *(
        "",
        " ",
        "\t",
        "\n",
        "\r",
        "\r\n",
        "\x00",
        "\x0b",
        "\x0c",
        "\x1f",
        "\x85",
        "\u2028",
        "\u2029",
    ),
    *(
        "\ufeff",
        "\u200b",
        "\u200d",
        "\u202e",
        "\u00ad",
        "\u0301",
        "é",
        "ß",
        "İ",
        "ı",
        "ſ",
        "ﬀ",
        "Σ",
    ),
    *("²", "٣", "𝟗", "Ⅷ", "中文", "ไทย", "한", "👩‍👩‍👧", "🏳️‍🌈", "\ud800", "\udcff", "\U0010ffff"),
)


class _HungExample(BaseException):
    """Not an Exception: no code that is tested may catch it."""


@contextmanager
def time_limit(seconds: float = SECONDS) -> Iterator[None]:
    """Fail, where the block takes more CPU time than this."""

    def end(*_: object) -> None:
        raise _HungExample

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    except _HungExample:
        raise AssertionError(f"it took more than {seconds:.0f} seconds of CPU time") from None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def awkward_texts(seeds: Sequence[str], pieces: Sequence[str]) -> st.SearchStrategy[str]:
    """Texts of these pieces, some repeated and nested, and seeds with a few edits."""
    piece = st.sampled_from([*pieces, *UNUSUAL]) | st.text(max_size=4)
    some = st.lists(piece, max_size=30).map("".join)
    short = st.lists(piece, min_size=1, max_size=3).map("".join)
    repeated = st.builds(_repeated, some, short, st.integers(2, 400), some)
    nested = st.builds(_nested, short, short, short, st.integers(2, 200))
    edits = st.lists(st.tuples(_PLACE, _PLACE, piece, st.integers(1, 60)), max_size=5)
    edited = st.builds(_edited, st.sampled_from(seeds), edits)
    return st.one_of(some, repeated, nested, edited).map(lambda text: text[:LONGEST])


_PLACE = st.floats(0, 1)


def _repeated(before: str, piece: str, times: int, after: str) -> str:
    return before + piece * times + after


def _nested(opening: str, inside: str, closing: str, depth: int) -> str:
    return opening * depth + inside + closing * depth


def _edited(seed: str, edits: Sequence[tuple[float, float, str, int]]) -> str:
    """Each edit replaces, repeats or cuts out what stands between two places."""
    text = seed
    for first, second, piece, times in edits:
        start, end = sorted((int(first * len(text)), int(second * len(text))))
        middle = text[start:end]
        if times % 3 == 0:
            middle = middle * (times // 3)
        elif times % 3 == 1:
            middle = piece
        else:
            middle = middle + piece * times
        text = (text[:start] + middle + text[end:])[:LONGEST]
    return text
