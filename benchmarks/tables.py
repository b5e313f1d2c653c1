"""Writes the tables of both README.md from the last results, so that none is typed by hand.

    python -m benchmarks.tables            rewrites README.md here and in the folder above
    python -m benchmarks.tables --check    fails if a table differs from its result

A table is between `<!-- table: NAME -->` and `<!-- end -->`, with the commit, the command and
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
    components,
    confidence,
    heldout,
    names,
    peers,
    process,
    quality,
    record,
    related,
    speed,
    vectors,
)

PAGES = (Path(__file__).parent / "README.md", Path(__file__).parent.parent / "README.md")
_PLACE = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end -->)", re.S)
Rows = Sequence[Mapping[str, Any]]


def growth(rows: Rows) -> str:
    """Our figures at every size, and those that other designs state for themselves."""
    return f"{speed.table(rows)}\n\n{OTHERS}"


# As printed in the design documents; they name no machine.
OTHERS = """| stated by other designs, on unnamed machines | |
|---|---:|
| ragdocs: query at 1,000 / 10,000 documents | 110 / 320 ms |
| ragdocs: index 1,000 documents | 5–10 minutes |
| recollection: budget of one query | 240 ms |"""

TABLES: Mapping[str, Callable[[Any], str]] = {
    "quality": quality.table,
    "quality-parts": quality.parts_table,
    "kinds": quality.kind_table,
    "beir": quality.collection_table,
    "beir-parts": quality.parts_table,
    "peers": peers.table,
    "peers-beir": peers.table,
    "components": components.table,
    "heldout": heldout.table,
    "confidence": confidence.table,
    "confidence-threshold": confidence.threshold_table,
    "confidence-fit": confidence.fit_table,
    "names": names.table,
    "names-speed": names.speed_table,
    "related": related.table,
    "speed-static": growth,
    "speed-full": growth,
    "vectors": vectors.table,
    "process": process.table,
}


def rewritten(text: str) -> str:
    """The page with every table written anew."""
    return _PLACE.sub(lambda place: f"{place[1]}{shown(place[2])}\n{place[3]}", text)


def shown(name: str) -> str:
    """A table with its origin, or a line that says that nothing was measured yet."""
    base = name.replace("-sample", "")
    found = record.latest(name)
    if found is None:
        return "*Not measured yet.*"
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
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args(arguments)
    for page in PAGES:
        before = page.read_text("utf-8")
        after = rewritten(before)
        if args.check and after != before:
            where = f"{page.parent.name}/README.md"
            print(f"{where} differs from the results: python -m benchmarks.tables", file=sys.stderr)
            raise SystemExit(1)
        page.write_text(after, "utf-8")


if __name__ == "__main__":
    main()
