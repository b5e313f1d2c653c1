"""FAISS, loaded where it is first needed.

The import takes a tenth of a second, so nothing that only prints a help text may pay for it. Two
habits of the library are dealt with here and nowhere else: what it warns about while it is being
imported, and how many threads it takes.
"""

from __future__ import annotations

import sys
import threading
import warnings
from typing import Any

_importing = threading.Lock()


def load(threads: int = 1) -> Any:
    """The module, with its thread count set for the calling thread.

    OpenMP keeps that number per thread, so every thread that searches has to say it. One thread is
    the default because a single query gains nothing from two: 118,000 x 384 exact took 8 ms with
    one and 17 ms with two.
    """
    faiss = sys.modules.get("faiss") or _import()
    faiss.omp_set_num_threads(threads)
    return faiss


def _import() -> Any:
    # Filters belong to the whole process, so two threads must not put them back in turns.
    with _importing, warnings.catch_warnings():
        # SWIG makes types without __module__; Python 3.12 and later say so once, at import.
        warnings.filterwarnings(
            "ignore",
            message=r"builtin type \w+ has no __module__ attribute",
            category=DeprecationWarning,
        )
        import faiss
    return faiss
