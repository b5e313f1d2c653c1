"""Real weights for tests: found or fetched once, shared by every session of this machine.

RAGVAULT_TEST_MODELS names the folder; without it, one in the user's cache. Tests are skipped, and
say why, where the weights cannot be had.
"""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs
import pytest

from ragvault.cli.console import LineProgress
from ragvault.errors import ModelUnavailable
from ragvault.models import load, registry
from ragvault.models.load import LoadOptions

# Read when the module is: the tests themselves see no RAGVAULT_ variable.
_NAMED = os.environ.get("RAGVAULT_TEST_MODELS")
SHELF = Path(_NAMED) if _NAMED else platformdirs.user_cache_path("ragvault-test-models")


def weights(name: str) -> registry.Build:
    """The first build of this model that can be had, verified; else the test is skipped."""
    model, builds = registry.find_model(name)
    try:
        return load.ensure_installed(model, builds, LoadOptions(SHELF, reporter=LineProgress()))
    except ModelUnavailable as error:
        pytest.skip(f"no weights: {error}")


def opened_here(threads: int = 0) -> LoadOptions:
    """As the product opens models, from the shared folder, without the network."""
    return LoadOptions(SHELF, offline=True, threads=threads)
