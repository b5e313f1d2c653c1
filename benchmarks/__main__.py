"""All benchmarks, one after the other: `make bench`. One that lacks its data is skipped."""

from __future__ import annotations

import contextlib

from benchmarks import dense, embed, imports, reading, windows

if __name__ == "__main__":
    for benchmark in (imports, reading, embed, windows, dense):
        print(f"\n== {benchmark.__name__.rpartition('.')[2]}", flush=True)
        with contextlib.suppress(SystemExit):
            benchmark.main()
