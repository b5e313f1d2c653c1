"""config.toml.example and the documents say what the program does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ragvault.cli import config as command
from ragvault.config import schema, toml
from ragvault.config.load import check_file
from ragvault.config.settings import Config

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "config.toml.example"
KEYS = [each.key for each in schema.settings().values()]


def test_the_example_sets_every_key_to_its_default():
    loaded = check_file(EXAMPLE)

    assert loaded.config == Config()
    assert "default" not in loaded.origin.values()


@pytest.mark.parametrize("key", KEYS)
def test_every_key_of_the_example_has_its_reason_above_or_beside_it(key):
    lines = EXAMPLE.read_text("utf-8").splitlines()
    line = toml.lines("\n".join(lines))[tuple(key.split("."))]

    assert lines[line - 2].startswith("# ") or "  # " in lines[line - 1]


@pytest.mark.parametrize("setting", schema.settings().values(), ids=KEYS)
def test_the_example_marks_what_a_vault_may_not_set(setting):
    """`(yours only)` in the reason above the key, or beside the table's name for all its keys."""
    text = EXAMPLE.read_text("utf-8")
    lines, at = text.splitlines(), toml.lines(text)
    reason = "\n".join(lines[: at[setting.path] - 1]).rpartition("\n\n")[2]
    header = lines[at[setting.path[:-1]] - 1]

    assert ("(yours only)" in reason + header) == bool(setting.refusal)


def test_the_file_that_init_writes_sets_nothing_and_explains_everything(tmp_path):
    path = tmp_path / "config.toml"
    command.write_starter(path)

    assert set(check_file(path).origin.values()) == {"default"}
    for key in KEYS:
        assert f"\n#{key.rpartition('.')[2]} = " in path.read_text("utf-8")


def test_taking_the_comment_signs_away_gives_the_example_back():
    settings = re.sub(
        r"^#(?=[a-z]\w* = | {4}\"|\])", "", command.starter_text(), flags=re.MULTILINE
    )

    assert settings == command.example() == EXAMPLE.read_text("utf-8")


def test_the_configuration_page_says_what_a_vault_may_set():
    page = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    open_tables = {each.path[:-1] for each in schema.settings().values() if not each.refusal}

    for path in open_tables:
        assert f"`[{toml.key(*path)}]`" in page
    for setting in schema.settings().values():
        if setting.refusal and setting.path[:-1] in open_tables:
            assert f"`{setting.key}`" in page
