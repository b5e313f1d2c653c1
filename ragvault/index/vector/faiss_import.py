"""FAISS, imported where it is first needed.

The import takes a tenth of a second, so a command that only prints a help text does not pay for it.
Two habits of the library are dealt with here: its warning during the import, and its threads.
"""

from __future__ import annotations

import threading
import warnings
from typing import Any

from ragvault.errors import EngineMissing

_importing = threading.Lock()
# Not sys.modules: that has a module as soon as its import begins.
_loaded: dict[str, Any] = {}


def load(threads: int = 1) -> Any:
    """The module, with its thread count set for the calling thread. Raises EngineMissing.

    OpenMP keeps that number per thread, so every thread that searches has to set it. The default is
    one, because a single query gains nothing from two.
    """
    faiss = _imported() if "faiss" not in _loaded else _loaded["faiss"]
    faiss.omp_set_num_threads(threads)
    return faiss


def _imported() -> Any:
    # Warning filters belong to the whole process, so two threads must not restore them in turns.
    with _importing, warnings.catch_warnings():
        # SWIG makes types without __module__; Python 3.12 and later warn once, at import.
        warnings.filterwarnings(
            "ignore",
            message=r"builtin type \w+ has no __module__ attribute",
            category=DeprecationWarning,
        )
        try:
            import faiss
        except ImportError as error:
            raise EngineMissing("the vector index", "faiss-cpu", str(error)) from error
        _loaded["faiss"] = faiss
    return faiss
