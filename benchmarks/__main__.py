"""A small version of every benchmark, one after the other: `make bench`. Under ten minutes.

Results are kept by commit and the tables of benchmarks/README.md rewritten from them. Without
RAGVAULT_BENCH_DATA the sample vault is measured, and what needs more data is skipped with a line.
The sizes of a full run stand in benchmarks/README.md.
"""

from __future__ import annotations

import importlib
import sys
import time
import traceback

from benchmarks import corpora

# One vault of the data: its passages are embedded in a minute or two where no index is kept.
_ASKED = ["--corpora", "obsidian-tasks"] if corpora.available() else []
# Each with its arguments, the cheap and telling ones first.
SMALL = (
    ("imports", None),
    ("seeds", []),
    ("quality", _ASKED),
    ("quality", [*_ASKED, "--ablate"]),
    ("speed", ["--sizes", "300", "--tier", "static", "--runs", "3"]),
    ("peers", [*_ASKED, "--peers", "faiss,whoosh"]),
    ("relating", [*_ASKED, "--pairs", "40"]),
    ("tables", []),
    ("plot", []),
)
WITH_DATA = (
    ("quality", ["--corpora", "ir/xquad-en", "--limit", "60"]),
    ("heldout", ["--corpora", "obsidian-tasks,ir/xquad-en", "--limit", "60", "--tried", "12"]),
    ("reading", None),
    ("speed", [*_ASKED, "--vectors", "100000"]),
)


def main() -> None:
    chosen = [*SMALL[:-2], *(WITH_DATA if corpora.available() else ()), *SMALL[-2:]]
    failed = [name for name, arguments in chosen if not _run(name, arguments)]
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


def _run(name: str, arguments: list[str] | None) -> bool:
    """One benchmark; the others go on without one that fails, which is told at the end."""
    print(f"\n== {name} {' '.join(arguments or ())}".rstrip(), flush=True)
    began = time.perf_counter()
    module = importlib.import_module(f"benchmarks.{name}")
    sys.argv = [f"{name}.py", *(arguments or ())]
    try:
        module.main() if arguments is None else module.main(arguments)
    except SystemExit as leaving:
        if leaving.code not in (None, 0):
            print(leaving.code, file=sys.stderr)
            return False
    except Exception:
        traceback.print_exc()
        return False
    finally:
        print(f"({time.perf_counter() - began:.0f} s)", file=sys.stderr, flush=True)
    return True


if __name__ == "__main__":
    main()
