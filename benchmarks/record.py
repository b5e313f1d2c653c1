"""Results of benchmarks, with the commit, the machine and the command that made them.

    benchmarks/results/NAME.json               the last summary of each benchmark; committed
    RAGVAULT_BENCH_HOME/runs/COMMIT/NAME.json  everything a run measured; never committed

`python -m benchmarks.tables` writes the tables of both README.md from the summaries. A commit that
ends in "+" means that the checkout had changes.
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
# Left out of a summary: figures of single questions and of kinds of question.
DETAIL = frozenset({"kinds", "ranks", "regressions"})


def save(name: str, rows: Any, **about: Any) -> Path:
    """Store a run outside the repository, and its summary in place of the last one."""
    run = {
        "name": name,
        "commit": commit(),
        "when": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "command": command(),
        "machine": machine(),
        **about,
        "rows": rows,
    }
    raw = home() / "runs" / run["commit"] / f"{name}.json"
    raw.parent.mkdir(parents=True, exist_ok=True)
    raw.write_text(json.dumps(run, indent=1, ensure_ascii=False) + "\n", "utf-8")
    path = RESULTS / f"{name}.json"
    path.write_text(encoded(summary(run)), "utf-8")
    print(f"summary: {path.relative_to(HERE.parent)}, whole run: {raw}", file=sys.stderr)
    return path


def latest(name: str) -> Mapping[str, Any] | None:
    """The last summary of this name; None if there is none."""
    path = RESULTS / f"{name}.json"
    if not path.exists():
        return None
    found: Mapping[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def summary(value: Any) -> Any:
    """The same without DETAIL, and with six digits after the point."""
    if isinstance(value, Mapping):
        return {key: summary(each) for key, each in value.items() if key not in DETAIL}
    if isinstance(value, (list, tuple)):
        return [summary(each) for each in value]
    return round(value, 6) if isinstance(value, float) else value


def encoded(run: Mapping[str, Any]) -> str:
    """JSON with one line for each field and each row, so that a diff shows what changed."""
    head = [f" {json.dumps(key)}: {_line(run[key])}" for key in run if key != "rows"]
    rows = ",\n".join(f"  {_line(row)}" for row in run["rows"])
    return "{\n" + ",\n".join([*head, f' "rows": [\n{rows}\n ]']) + "\n}\n"


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def commit() -> str:
    """The commit that was measured; results and tables do not count as changes."""

    def git(*args: str) -> str:
        done = subprocess.run(
            ["git", "-C", HERE, *args], capture_output=True, text=True, check=False
        )
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--", "../ragvault", "*.py")
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + ("+" if changed else "")


def command() -> str:
    """The command as one would type it, without the folders of this machine."""
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
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def home() -> Path:
    """Where benchmarks store indexes, models and whole runs."""
    named = os.environ.get("RAGVAULT_BENCH_HOME")
    return Path(named) if named else Path(tempfile.gettempdir(), "ragvault-bench")
