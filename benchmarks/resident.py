"""The resident process under load: many clients at once, many searches, and killed again and again.

    python -m benchmarks.resident --notes 2000                     part of the large corpus
    python -m benchmarks.resident --vault ~/copy --home ~/.rv      a vault and its index
    python -m benchmarks.resident … --searches 10000 --kills 50    as often as promised

    clients     so many whole `ragvault search` at the same moment, with no process running
    searches    through the socket; memory and open files after a tenth, a half and all of them
    kills       of the resident process, at random moments, while clients search

Everything is counted and nothing is timed, so a busy machine does not change it. Ends with an
error if a search failed, or if there was ever more than one process. Stored as `resident`.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks import data, record
from benchmarks.process import QUERIES, RAGVAULT, environ_of, stop, vault_parser
from ragvault.service.process import running_watcher
from ragvault.service.protocol import WatcherUnavailable, ask_watcher

Environ = dict[str, str]


def whole_search(root: Path, environ: Environ, turn: int) -> bool:
    """Whether `ragvault search` found something."""
    query = QUERIES[turn % len(QUERIES)]
    command = [RAGVAULT, "search", query, "--vault", str(root), "-n", "5", "--format", "paths"]
    ended = subprocess.run(command, env=environ, capture_output=True)
    return ended.returncode == 0 and bool(ended.stdout) and not ended.stderr


def asked(root: Path, environ: Environ, turn: int) -> bool:
    """Whether the process answers; tries again, because a busy machine is late to confirm."""
    args = ["search", QUERIES[turn % len(QUERIES)], "--vault", str(root), "--format", "paths"]
    ours = {
        name: value
        for name, value in environ.items()
        if name.startswith(("RAGVAULT", "HOME", "XDG"))
    }
    around = {"cwd": str(root), "environ": ours, "now": time.time(), "zone": 0}
    folder = os.path.join(environ["RAGVAULT_HOME"], "run")  # noqa: PTH118
    for _ in range(100):
        try:
            answer = ask_watcher(folder, {"op": "search", "args": args, "around": around})
            return answer["code"] == 0 and bool(answer["out"])
        except WatcherUnavailable:  # noqa: PERF203
            time.sleep(0.1)
    return False


def megabytes(pid: int) -> dict[str, float]:
    """Memory now: `MB` counts each page once, `RSS` once for each open index that maps it."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    found = {name: int(rest.split()[0]) for name, _, rest in (x.partition(":") for x in lines[1:])}
    return {"MB": round(found["Pss"] / 1024), "RSS": round(found["Rss"] / 1024)}


def open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def residents(environ: Environ) -> list[int]:
    """Every process that runs as the resident process of this home."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            command = (folder / "cmdline").read_bytes() if folder.name.isdigit() else b""
            home = f"RAGVAULT_HOME={environ['RAGVAULT_HOME']}".encode()
            if b"--resident" in command and home in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:  # noqa: PERF203 - it has ended
            continue
    return found


def clients(root: Path, environ: Environ, count: int) -> dict[str, Any]:
    """So many searches at the same moment, with no process running."""
    stop(environ)
    with ThreadPoolExecutor(count) as pool:
        good = list(pool.map(lambda turn: whole_search(root, environ, turn), range(count)))
    watcher = running_watcher(environ)
    assert watcher is not None
    folder = os.path.join(environ["RAGVAULT_HOME"], "run")  # noqa: PTH118
    answered = ask_watcher(folder, {"op": "status"})["answered"]
    return {
        "clients": count,
        "failed": good.count(False),
        "processes": len(residents(environ)),
        "answered by it": answered,
        **megabytes(watcher.pid),
    }


def searches(root: Path, environ: Environ, count: int) -> list[dict[str, Any]]:
    """Memory and open files on the way through so many searches."""
    watcher = running_watcher(environ)
    assert watcher is not None
    rows, done, failed = [], 0, 0
    with ThreadPoolExecutor(4) as pool:
        for share in (0.1, 0.5, 1.0):
            more = range(done, round(count * share))
            good = list(pool.map(lambda turn: asked(root, environ, turn), more))
            done, failed = round(count * share), failed + good.count(False)
            rows.append(
                {
                    "searches": done,
                    "failed": failed,
                    **megabytes(watcher.pid),
                    "open files": open_files(watcher.pid),
                }
            )
    return rows


def kills(root: Path, environ: Environ, count: int, seed: int) -> dict[str, Any]:
    """Clients search without a pause; the process is killed at random moments."""
    moments, killed, turn = random.Random(seed), 0, 0
    good: list[bool] = []
    with ThreadPoolExecutor(3) as pool:
        running = {pool.submit(whole_search, root, environ, each) for each in range(3)}
        while killed < count:
            time.sleep(moments.uniform(0.0, 1.5))
            watcher = running_watcher(environ)
            if watcher is not None:
                os.kill(watcher.pid, signal.SIGKILL)
                killed += 1
            ended = {each for each in running if each.done()}
            good += [each.result() for each in ended]
            turn += len(ended)
            running = (running - ended) | {
                pool.submit(whole_search, root, environ, turn + each) for each in range(len(ended))
            }
        good += [each.result() for each in running]
    return {"killed": killed, "searches": len(good), "failed": good.count(False)}


def main() -> None:
    parser = vault_parser(__doc__)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--searches", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = args.vault or data.part(args.notes, Path(folder, "notes"))
        environ = environ_of(args.home or Path(folder) / "home", args.models)
        command = [RAGVAULT, "index", str(root), "--tier", args.tier, "-q"]
        subprocess.run(command, env=environ, check=True)
        try:
            rows = [clients(root, environ, args.clients)]
            rows += searches(root, environ, args.searches)
            rows.append(kills(root, environ, args.kills, args.seed))
        finally:
            stop(environ)
    for row in rows:
        print(", ".join(f"{name} {value:,}" for name, value in row.items()))
    record.save("resident", rows, tier=args.tier)
    if any(row["failed"] for row in rows) or rows[0]["processes"] != 1:
        raise SystemExit("a search failed, or there was more than one process")


if __name__ == "__main__":
    main()
