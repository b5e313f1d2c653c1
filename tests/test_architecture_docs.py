"""The page on the architecture has a row for every room there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent
PAGE = (TOP / "docs" / "architecture.md").read_text("utf-8")
ROOMS = sorted(path.parent.name for path in (TOP / "ragvault").glob("*/__init__.py"))


def test_every_room_has_a_row_with_a_question():
    rows = re.findall(r"^\| `(\w+)/` \| .*\? \|$", PAGE, re.M)
    assert sorted(rows) == ROOMS


@pytest.mark.parametrize("name", re.findall(r"`(\w+\.py)`", PAGE))
def test_every_file_it_names_is_there(name):
    assert list((TOP / "ragvault").rglob(name))
