"""Rewrites the tables of both README.md from the newest results: nothing there is typed by hand.

    python -m benchmarks.tables            rewrites README.md here and in the folder above
    python -m benchmarks.tables --check    fails when a table is not what its result says

A table stands between `<!-- table: NAME -->` and `<!-- end -->`, with the commit, the command and
the machine of its result below it.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import (
    beir,
    following,
    heldout,
    peers,
    process,
    quality,
    record,
    relating,
    seeds,
    speed,
)

PAGES = (Path(__file__).parent / "README.md", Path(__file__).parent.parent / "README.md")
_PLACE = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end -->)", re.S)
Rows = Sequence[Mapping[str, Any]]


def growth(rows: Rows) -> str:
    """Ours at every size, beside what the seeds say of theirs."""
    ours = speed.table([dict(row) for row in rows])
    return f"{ours}\n\n{SEEDS}"


# The figures of the seeds, as they stand in their documents; no machine is named there.
SEEDS = """| the seeds' own figures | |
|---|---:|
| a query at 1,000 documents | 100–150 ms |
| a query at 10,000 documents | 320 ms |
| indexing 1,000 documents | 5–10 minutes |
| the budget of a recollection | 240 ms |"""

TABLES: Mapping[str, Callable[[Any], str]] = {
    "quality": quality.table,
    "quality-parts": quality.parts_table,
    "beir": beir.table,
    "beir-parts": quality.parts_table,
    "peers": peers.table,
    "peers-beir": peers.table,
    "seeds": seeds.table,
    "heldout": heldout.table,
    "heldout-confidence": heldout.confidence_table,
    "related": relating.table,
    "speed-static": growth,
    "speed-full": growth,
    "vectors": speed.table,
    "process": process.table,
    "following": following.table,
}


def rewritten(text: str) -> str:
    """The page with every table made again."""
    return _PLACE.sub(lambda place: f"{place[1]}{shown(place[2])}\n{place[3]}", text)


def shown(name: str) -> str:
    """A table and where it is from; a line in its place where nothing was measured yet."""
    base = name.replace("-sample", "")
    found = record.latest(name)
    if found is None:
        return f"*Not measured yet: no result of the name {name}.*"
    return f"{TABLES[base](found['rows'])}\n\n{origin(found)}"


def origin(found: Mapping[str, Any]) -> str:
    machine = found["machine"]
    asked = found.get("corpora", {})
    corpora = ", ".join(f"{name} ({count} questions)" for name, count in asked.items())
    on = f"{machine['cores']} cores ({machine['cpu']}), {machine['memory_gib']} GiB"
    return (
        f"`{found['command']}` · commit {found['commit']} · {found['when'][:10]} · {on}, Python "
        f"{machine['python']}, load {machine['load']}" + (f" · {corpora}" if corpora else "")
    )


def main(arguments: Sequence[str] | None = None) -> None:
    asked = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    asked.add_argument("--check", action="store_true")
    args = asked.parse_args(arguments)
    for page in PAGES:
        before = page.read_text("utf-8")
        after = rewritten(before)
        if args.check and after != before:
            said = f"{page.parent.name}/README.md is not what the results say"
            print(f"{said}: python -m benchmarks.tables", file=sys.stderr)
            raise SystemExit(1)
        page.write_text(after, "utf-8")


if __name__ == "__main__":
    main()
