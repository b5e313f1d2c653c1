"""Several texts at once, each by itself: how the ONNX engines use the cores.

One text is one run on one thread, and as many runs go on at a time as there are threads. Batches
pad, and their larger arrays cost more than they save: `python -m benchmarks.embed` has both. And
they would be wrong: weights quantised to int8 take their scale from everything in the batch, so a
text's vector would depend on its neighbours (cosine down to 0.993, `python -m benchmarks.windows`).
Run alone, it depends on nothing but the text.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def each(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    size: Callable[[Item], int],
    threads: int,
) -> list[Result]:
    """`work` on every item, in the order given. The longest start first: a long one that came
    last would keep one core busy and the others waiting."""
    threads = min(threads or cores(), len(items))
    if threads <= 1:
        return [work(item) for item in items]
    crew = ThreadPoolExecutor(threads, thread_name_prefix="ragvault-model")
    try:
        order = sorted(range(len(items)), key=lambda at: -size(items[at]))
        begun = {at: crew.submit(work, items[at]) for at in order}
        return [begun[at].result() for at in range(len(items))]
    finally:
        # Interrupted or failed: what has not begun never does.
        crew.shutdown(cancel_futures=True)
