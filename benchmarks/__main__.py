"""All benchmarks, one after the other: `make bench`. One that lacks its data is skipped."""

from __future__ import annotations

import contextlib

from benchmarks import imports, reading

if __name__ == "__main__":
    for benchmark in (imports, reading):
        print(f"\n== {benchmark.__name__.rpartition('.')[2]}", flush=True)
        with contextlib.suppress(SystemExit):
            benchmark.main()
