"""For tests of commands: the sample vault, indexed with the small models, in a home of its own."""

from __future__ import annotations

import io
import json
import shutil
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ragvault.cli.main import main

SAMPLE = Path(__file__).parent.parent / "sample_vault"
SECRET = "the secret of another folder"
FAKE = {"RAGVAULT_MODELS__EMBEDDER": "fake", "RAGVAULT_MODELS__STATIC": "fake"}


@dataclass(frozen=True)
class Said:
    """What a command wrote, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def ragvault(*args: str) -> Said:
    """The program in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(arg) for arg in args])
    return Said(code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="session")
def indexed_sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `vault` and its `home`, made once and copied by whoever changes it."""
    return index_sample(tmp_path_factory.getbasetemp())


@cache  # to pytest, every module that imports the fixture has one of its own
def index_sample(place: Path) -> Path:
    made = place / "indexed-sample"
    shutil.copytree(SAMPLE, made / "vault")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**FAKE, "RAGVAULT_HOME": str(made / "home")}.items():
            patch.setenv(name, value)
        assert ragvault("index", made / "vault", "-q").code == 0
    return made


@pytest.fixture
def sample(indexed_sample: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of a vault that is indexed and only read; no other vault is known."""
    for name, value in {**FAKE, "RAGVAULT_HOME": str(indexed_sample / "home")}.items():
        monkeypatch.setenv(name, value)
    return indexed_sample / "vault"


@pytest.fixture
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of a small vault of one's own, indexed, to be changed at will."""
    for name, value in {**FAKE, "RAGVAULT_HOME": str(tmp_path / "home")}.items():
        monkeypatch.setenv(name, value)
    root = tmp_path / "vault"
    root.mkdir()
    (root / "a.md").write_text("---\naliases: [first]\n---\n# A\n\nBread. [[b]] [[nowhere]]\n")
    (root / "b.md").write_text("# B\n\nFlour and water, see [[a]] and [[a#Missing]].\n")
    (root / "sub").mkdir()
    (root / "sub" / "c.md").write_text("# C\n\n```python\ndef knead_dough(): ...\n```\n")
    assert ragvault("index", root, "-q").code == 0
    return root


@pytest.fixture(scope="module")
def trap(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A vault with links that lead out of it, made of a note too after it was indexed."""
    top = tmp_path_factory.mktemp("trap")
    for folder in ("vault/sub", "vault/gone", "outside"):
        (top / folder).mkdir(parents=True)
    (top / "outside" / "secret.md").write_text(SECRET)
    for name in ("a.md", "b.md", "sub/c.md", "gone/secret.md"):
        (top / "vault" / name).write_text(f"# {name}\n")
    (top / "vault" / "private.md").write_text(SECRET)
    (top / "vault" / ".ragignore").write_text("private.md\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAGVAULT_HOME", str(top / "home"))
        assert ragvault("index", top / "vault", "--no-vectors", "-q").code == 0
    vault = top / "vault"
    (vault / "link.md").symlink_to(top / "outside" / "secret.md")
    (vault / "folder").symlink_to(top / "outside")
    for indexed, outside in (("b.md", "secret.md"), ("gone", "")):
        if (vault / indexed).is_dir():
            (vault / indexed / "secret.md").unlink()
            (vault / indexed).rmdir()
        else:
            (vault / indexed).unlink()
        (vault / indexed).symlink_to(top / "outside" / outside)
    return top
