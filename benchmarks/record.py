"""Results: kept as JSON by commit, with the machine and the command that made them.

    benchmarks/results/COMMIT/NAME.json      one measurement
    python -m benchmarks.tables              rewrites the tables of README.md from the newest ones

A result of a changed checkout says so in its commit ("+").
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE / "results"


def save(name: str, rows: Any, **about: Any) -> Path:
    """Keep a measurement; an earlier one of the same name and commit is replaced."""
    made = commit()
    path = RESULTS / made.rstrip("+") / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    told = {
        "name": name,
        "commit": made,
        "when": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "command": command(),
        "machine": machine(),
        **about,
        "rows": rows,
    }
    path.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(f"kept in {path.relative_to(HERE.parent)}", file=sys.stderr)
    return path


def latest(name: str) -> Mapping[str, Any] | None:
    """The newest measurement of this name; None where there is none."""
    found = [json.loads(path.read_text("utf-8")) for path in RESULTS.glob(f"*/{name}.json")]
    return max(found, key=lambda each: each["when"], default=None)


def commit() -> str:
    def git(*args: str) -> str:
        done = subprocess.run(
            ["git", "-C", HERE, *args], capture_output=True, text=True, check=False
        )
        return done.stdout.strip()

    # What was measured is code: results and the tables made of them do not count.
    changed = git("status", "--porcelain", "--", "../ragvault", "*.py")
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + ("+" if changed else "")


def command() -> str:
    """As one would type it, without the folders of this machine."""
    name = Path(sys.argv[0])
    module = f"benchmarks.{name.stem}" if name.stem != "__main__" else "benchmarks"
    return " ".join(["python -m", module, *map(_short, sys.argv[1:])])


def _short(word: str) -> str:
    return f"…/{Path(word).name}" if Path(word).is_absolute() else word


def machine() -> dict[str, Any]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(memory),
        "cpu": _cpu(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 1),
    }


def _cpu() -> str:
    told = Path("/proc/cpuinfo")
    lines = told.read_text().splitlines() if told.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def home() -> Path:
    """Where benchmarks keep indexes and models between runs."""
    named = os.environ.get("RAGVAULT_BENCH_HOME")
    return Path(named) if named else Path(tempfile.gettempdir(), "ragvault-bench")
