"""The page on the architecture has a heading for every room there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent
PAGE = (TOP / "docs" / "architecture.md").read_text("utf-8")
ROOMS = sorted(path.parent.name for path in (TOP / "ragvault").glob("*/__init__.py"))
ALONE = sorted(path.name for path in (TOP / "ragvault").glob("[a-z]*.py"))


def test_every_room_has_a_heading_that_is_a_question():
    headed = re.findall(r"^## `(\w+)/`: .*\?$", PAGE, re.M)
    assert sorted(headed) == ROOMS


@pytest.mark.parametrize("name", re.findall(r"`(\w+\.py)`", PAGE))
def test_every_file_it_names_is_there(name):
    assert name in ALONE or list((TOP / "ragvault").rglob(name))
