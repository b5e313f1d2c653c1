"""How long ragvault takes to start: best of several fresh processes, in milliseconds.

    python -m benchmarks.startup [--runs 15]

The best, because anything slower is due to other load. Each row is one command line; `python -c
pass` is the lower bound.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

PYTHON = sys.executable
RAGVAULT = str(Path(PYTHON).with_name("ragvault"))

NAMES = ("index", "search", "watch", "status", "doctor", "links", "related", "models", "purge")
COMMANDS: dict[str, Sequence[str]] = {
    "python -c pass": (PYTHON, "-c", "pass"),
    "import ragvault": (PYTHON, "-c", "import ragvault"),
    "import ragvault.config.load": (PYTHON, "-c", "import ragvault.config.load"),
    "ragvault --help": (RAGVAULT, "--help"),
    "ragvault config show": (RAGVAULT, "config", "show"),
    **{f"ragvault {name} --help": (RAGVAULT, name, "--help") for name in NAMES},
}


def starts(command: Sequence[str], runs: int) -> list[float]:
    """How long each of `runs` processes took; one before them warms the file cache."""
    times = []
    for _ in range(runs + 1):
        begun = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append((time.perf_counter() - begun) * 1000)
    return times[1:]


def table(runs: int) -> str:
    lines = ["| start | best ms | median ms |", "|---|---:|---:|"]
    for name, command in COMMANDS.items():
        times = starts(command, runs)
        lines.append(f"| `{name}` | {min(times):.0f} | {median(times):.0f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=15)
    print(table(parser.parse_args().runs))


if __name__ == "__main__":
    main()
