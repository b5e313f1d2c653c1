"""Exit 3: an index that is damaged or half rebuilt never looks like a vault without the words."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from vault_kit import ragvault, vault

__all__ = ["vault"]


def kill_rebuild(root: Path, seconds: float) -> None:
    """Rebuild the index in another process, and kill it after so many seconds."""
    command = [sys.executable, "-m", "ragvault", "index", str(root), "--rebuild", "-q"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        time.sleep(seconds)
        process.kill()


@pytest.mark.parametrize(
    "moments", [pytest.param(2, id="twice"), pytest.param(40, marks=pytest.mark.slow, id="often")]
)
def test_after_a_killed_rebuild_a_search_finds_or_exits_with_3(vault, moments):
    began = time.monotonic()
    command = [sys.executable, "-m", "ragvault", "index", str(vault), "--rebuild", "-q"]
    subprocess.run(command, check=True, capture_output=True)
    whole = time.monotonic() - began

    for moment in range(moments):
        # Most of the first half is imports: nothing can break in it.
        kill_rebuild(vault, whole * (0.4 + 0.6 * (moment + 1) / moments))
        found = ragvault("search", '"flour and water"', "--format", "paths", "--vault", vault)
        assert found.code == 3 or (found.code == 0 and "b.md" in found.out), (moment, found)


def test_nothing_found_where_a_leg_could_not_answer_exits_with_3(vault):
    typed = ("search", "zebra", "--vault", vault, "--set", "calibrate.floor=0.9")
    assert ragvault(*typed).code == 1  # nothing is found, and every leg has answered
    for folder in (vault.parent / "home" / "vaults").glob("*/caches/keyword-*"):
        shutil.rmtree(folder)

    found = ragvault(*typed)
    assert (found.code, found.out) == (3, "")
    assert "keyword did not answer" in found.err
