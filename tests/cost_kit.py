"""For laws about cost: the CPU time of some work, measured well enough to compare two of them."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

RESOLUTION = 0.02  # seconds of CPU time; anything faster is noise


def cpu_seconds(work: Callable[[], object]) -> float:
    """The best of three; never less than RESOLUTION."""
    took = []
    for _ in range(3):
        start = process_time()
        work()
        took.append(process_time() - start)
    return max(min(took), RESOLUTION)
