"""What programs import: every public name is there, and none of them is paid for in advance."""

from __future__ import annotations

import subprocess
import sys

import pytest

import ragvault


@pytest.mark.parametrize("name", ragvault.__all__)
def test_every_public_name_can_be_imported(name):
    assert getattr(ragvault, name) is not None


def test_a_name_that_is_not_public_is_an_error():
    with pytest.raises(AttributeError, match="no attribute 'Volt'"):
        _ = ragvault.Volt


def test_importing_the_package_imports_no_room():
    program = "import sys, ragvault; print(*(m for m in sys.modules if m.startswith('ragvault.')))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.stdout.split() == ["ragvault.errors"]
