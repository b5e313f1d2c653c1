"""The wheel has everything in it: the program runs from it alone, in an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_the_page_on_installing_names_what_is_there():
    page = (ROOT / "docs" / "install.md").read_text("utf-8")
    project = (ROOT / "pyproject.toml").read_text("utf-8")

    assert 'requires-python = ">=3.10"' in project
    assert "Python 3.10 or newer" in page
    assert "\nsentence-transformers = [" in project
    assert "ragvault-search[sentence-transformers]" in page
    assert '"tantivy>=' in project
    assert "Python 3.11" in page


@pytest.mark.slow
def test_the_program_runs_from_its_wheel(tmp_path):
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    subprocess.run([*pip, "wheel", "--no-deps", "-w", tmp_path, ROOT], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    # What it needs is taken from here: only ragvault itself is under test.
    venv.create(tmp_path / "venv", system_site_packages=False, symlinks=os.name == "posix")
    folder = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin")
    site = tmp_path / "site"
    subprocess.run([*pip, "install", "--no-deps", "--target", site, wheel], check=True)
    libraries = next(path for path in sys.path if path.endswith("site-packages"))
    path = os.pathsep.join([str(site), libraries])
    environ = {**os.environ, "PYTHONPATH": path, "RAGVAULT_HOME": str(tmp_path / "home")}

    def run(*args: str) -> str:
        command = [folder / "python", "-P" if sys.version_info >= (3, 11) else "-B"]
        done = subprocess.run(
            [*command, "-m", "ragvault", *args],
            capture_output=True,
            text=True,
            env=environ,
            cwd=tmp_path,
            check=True,
        )
        return done.stdout

    where = subprocess.run(
        [folder / "python", "-c", "import ragvault; print(ragvault.__file__)"],
        capture_output=True,
        text=True,
        env=environ,
        cwd=tmp_path,
        check=True,
    )
    assert where.stdout.startswith(str(site))
    assert "index" in run("--help")
    assert run("config", "init").strip() == str(tmp_path / "home" / "config.toml")
    assert "no problems found" in run("config", "check")
    assert "bge-small-en-v1.5" in run("models", "list")
    assert "[boost" in run("config", "show", "--set", "search.profile=lightrag")
