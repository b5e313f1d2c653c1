"""A small version of every benchmark, one after the other: `make bench`. Under ten minutes.

The results replace the last ones, and the tables of both README.md are written from them. Without
RAGVAULT_BENCH_DATA only the sample vault is measured. benchmarks/README.md has the commands of the
full runs.
"""

from __future__ import annotations

import importlib
import sys
import time
import traceback

from benchmarks import corpora

# One vault of the data: its passages are embedded in a minute or two if there is no index yet.
_ASKED = ["--corpora", "obsidian-tasks"] if corpora.available() else []
# Each with its arguments, quick ones first.
SMALL = (
    ("startup", None),
    ("components", []),
    ("quality", _ASKED),
    ("quality", [*_ASKED, "--ablate"]),
    ("speed", ["--sizes", "300", "--tier", "static", "--runs", "3"]),
    ("peers", [*_ASKED, "--peers", "faiss,whoosh"]),
    ("related", [*_ASKED, "--pairs", "40"]),
    ("tables", []),
    ("plot", []),
)
WITH_DATA = (
    ("quality", ["--corpora", "ir/xquad-en", "--limit", "60"]),
    ("heldout", ["--corpora", "obsidian-tasks,ir/xquad-en", "--limit", "60", "--tried", "12"]),
    ("reading", None),
    ("vectors", ["many", *_ASKED, "--count", "100000"]),
)


def main() -> None:
    chosen = [*SMALL[:-2], *(WITH_DATA if corpora.available() else ()), *SMALL[-2:]]
    failed = [name for name, arguments in chosen if not _run(name, arguments)]
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


def _run(name: str, arguments: list[str] | None) -> bool:
    """Run one benchmark; if it fails, the others still run and the last line names it."""
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
