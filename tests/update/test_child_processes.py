"""Child processes of an indexing run: they ignore Ctrl-C and leave no traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from write_kit import write

from ragvault.update.workers import starting_processes


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="this system masks no signals")
def test_a_process_ignores_ctrl_c_from_its_first_instruction():
    heard = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    with starting_processes():
        started = subprocess.run([sys.executable, "-c", heard], capture_output=True, check=True)

    assert started.stdout.strip() == b"True"
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def children(pid: int) -> int:
    """How many processes the threads of a process have started."""
    found = 0
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # the thread has ended
            found += len(thread.read_text().split())
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="looks for child processes in /proc")
def test_ctrl_c_while_processes_start_says_one_line_and_no_traceback(tmp_path):
    write(tmp_path / "vault", {f"{number}.md": f"# Note {number}" for number in range(3_000)})
    command = [sys.executable, "-m", "ragvault", "index", str(tmp_path / "vault"), "--no-vectors"]
    environ = {**os.environ, "RAGVAULT_HOME": str(tmp_path / "home")}
    began = subprocess.Popen(
        command,
        env=environ,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A test run in the background ignores Ctrl-C, and its children would inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    while began.poll() is None and children(began.pid) < 3:
        time.sleep(0.005)
    time.sleep(0.06)  # they import what they need
    os.killpg(began.pid, signal.SIGINT)
    _, said = began.communicate(timeout=60)

    assert began.returncode == 130
    assert said == "stopped; finished work is kept. Run the same command again to continue\n"
