"""What every test stands on: no settings of this machine, and one option for transcripts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Several processes run tests: threads of NumPy's would only wait for each other, as ragvault knows
# (cli/start.py). Set here, because it counts when NumPy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# No deadline: two busy cores say nothing about a law. `make test` tries every law a little;
# `make test-all` (--hypothesis-profile=thorough) and `make fuzz` (=fuzz) try harder.
settings.register_profile("ragvault", deadline=None, max_examples=30)
settings.load_profile("ragvault")
settings.register_profile("thorough", deadline=None, max_examples=100)
settings.register_profile(
    "fuzz", deadline=None, max_examples=20_000, suppress_health_check=list(HealthCheck)
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-transcripts",
        action="store_true",
        help="rewrite tests/transcripts/*.txt with what the commands print now",
    )


@pytest.fixture(autouse=True, scope="session")
def nobody_else_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """No RAGVAULT_ variable of the developer is seen, and nothing is written outside a temp folder.

    CI is set: no search leaves a resident process behind, unless a test asks for one.
    A session's worth, because a fixture of every test would be one too many for hypothesis.
    """
    home = tmp_path_factory.mktemp("ragvault-home")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("RAGVAULT_")]:
            patch.delenv(name)
        patch.setenv("RAGVAULT_HOME", str(home))
        patch.setenv("CI", "true")
        yield home
