"""One state of the code in a process of its own, for compare_states.py: searches on request.

    python state_process.py TREE        then a line of JSON: root, flags, queries, limit, timed

Answers "ready", and then to each number on its input with the milliseconds of that search and of
its stages, and with what was found. `ragvault` is taken from TREE and from nowhere else.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import datetime, timezone
from pathlib import Path

WARM = 15
NOW = datetime(2026, 11, 1, tzinfo=timezone.utc)


def answer(query, index, search, timed):
    """Milliseconds of a search and the results; if `timed`, also of its stages alone."""
    began = time.perf_counter()
    response = search.search(query, index)
    took = time.perf_counter() - began
    rows = [(each.note.path, each.confidence, each.band) for each in response.results]
    told = {
        "search": 1000 * took,
        "notes": list(dict.fromkeys(note for note, _, _ in rows)),
        "rows": rows,
        # Before answers said so themselves, a notice was shown if every result was called noise.
        "likely": getattr(response, "likely", any(band != "noise" for _, _, band in rows)),
    }
    if not timed:
        return told
    with index.snapshot():
        plan = search.understand_query(query, index, {})
        found = search.retrieve(plan, query, index).candidates
        context = search.ranking_context(plan, found, query, index, {})
        began = time.perf_counter()
        search.run_stages(found, context, search.stages_of(plan))
        stages = time.perf_counter() - began
    found = [(each.id, round(each.score, 9)) for each in response.results]
    return {**told, "stages": 1000 * stages, "found": found}


def main() -> None:
    tree = Path(sys.argv[1]).resolve()
    sys.path.insert(0, str(tree))
    from ragvault import search
    from ragvault.cli.start import collect_garbage_less_often
    from ragvault.vault import Vault

    if not Path(search.__file__).is_relative_to(tree):
        raise SystemExit(f"ragvault is taken from {search.__file__}, not from {tree}")
    collect_garbage_less_often()  # as a watcher is
    task = json.loads(sys.stdin.readline())
    queries = [search.SearchRequest(query, NOW, task["limit"]) for query in task["queries"]]
    with Vault.open(Path(task["root"]), flags=task["flags"]).corpus() as index:
        for query in queries[: WARM if task.get("timed", True) else 0]:
            search.search(query, index)
        print("ready", flush=True)
        for line in sys.stdin:
            told = answer(queries[int(line)], index, search, task.get("timed", True))
            print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
