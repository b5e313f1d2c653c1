"""docs/searching.md says what the program does."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import pytest

from ragvault.config import profiles
from ragvault.plan import PARTS
from ragvault.query.operators import OPERATORS, SYNTAX
from ragvault.query.understand import understand

PAGE = (Path(__file__).parents[2] / "docs" / "searching.md").read_text("utf-8")
NOW = datetime(2024, 3, 13)


def examples(section: str) -> list[str]:
    """What stands in backticks in the first column of the tables below a heading."""
    below = PAGE.split(f"## {section}\n")[1].split("\n## ")[0]
    cells = [line.split("|")[1] for line in below.splitlines() if line.startswith("| `")]
    return [code for cell in cells for code in re.findall(r"`([^`]+)`", cell)]


@pytest.mark.parametrize("query", examples("Operators"))
def test_every_example_of_an_operator_is_understood(query):
    plan = (
        understand(query, profiles.config("default").query, now=NOW)
        if query != "in:notes"
        else None
    )

    assert plan is None or plan.filter is not None
    assert plan is None or plan.warnings == ()


@pytest.mark.parametrize("text", examples("Dates"))
def test_every_example_of_a_date_is_one(text):
    assert (
        understand(f"created:{text}", profiles.config("default").query, now=NOW).filter is not None
    )


@pytest.mark.parametrize("name", OPERATORS)
def test_every_operator_is_documented(name):
    assert any(query.startswith(f"{name}:") for query in examples("Operators"))


@pytest.mark.parametrize("name", OPERATORS)
def test_the_example_of_a_mistake_is_right_itself(name):
    example = OPERATORS[name].example

    assert example.startswith(f"{name}:")
    understand(f"bread {example}", profiles.config("default").query, now=NOW)


def test_the_tables_that_help_prints_are_those_of_the_page():
    tables = PAGE.split("## Words and phrases\n")[1].split("## When nothing is found")[0]
    found = re.findall(r"(?m)^\| (`.+?) \| (.+) \|$", tables)
    rows = [f"{re.sub('` `', '`  `', typed)} | {means}" for typed, means in found]

    printed = [line for line in SYNTAX.splitlines() if " | " in line]
    bare = str.maketrans("", "", "` ")
    assert [row.translate(bare) for row in rows] == [line.translate(bare) for line in printed]


@pytest.mark.parametrize("part", PARTS)
def test_every_part_a_passage_can_have_is_documented(part):
    assert f"`has:{part}`" in PAGE


def test_text_that_is_said_to_stay_text_does():
    said = PAGE.split("searched as text:")[1].split("If it may have")[0]
    for text in re.findall(r"`([^`]+)`", said):
        assert understand(text, profiles.config("default").query, now=NOW).filter is None
