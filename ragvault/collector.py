"""Python's collector of reference cycles, made patient: for processes that are ours alone.

By default it looks for cycles whenever 700 more containers have come than gone, and now and then at
everything there is. A search makes a few thousand containers, which all go by themselves, and was
held up by 1.8 ms on the way and by 35 ms once in forty (14,593 notes). What is imported as a
library leaves the collector as it finds it.
"""

from __future__ import annotations

import gc

CONTAINERS = 50_000  # more come than gone, before the youngest are looked at


def be_patient() -> None:
    """Look for cycles seldom; none of them is kept for ever."""
    gc.set_threshold(CONTAINERS, 20, 20)
