"""config.toml.example and the documents say what the program does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ragvault import schema, starter, toml
from ragvault.config import Config
from ragvault.configure import check_file

ROOT = Path(__file__).parent.parent
EXAMPLE = ROOT / "config.toml.example"
KEYS = [each.key for each in schema.settings().values()]


def test_the_example_sets_every_key_to_its_default():
    loaded = check_file(EXAMPLE)

    assert loaded.config == Config()
    assert "default" not in loaded.origin.values()


@pytest.mark.parametrize("key", KEYS)
def test_every_key_of_the_example_has_its_reason_above_it(key):
    lines = EXAMPLE.read_text("utf-8").splitlines()
    line = toml.lines("\n".join(lines))[tuple(key.split("."))]

    assert re.match(r"# \S.{30}", lines[line - 2]) or lines[line - 2].endswith(".")


@pytest.mark.parametrize("setting", schema.settings().values(), ids=KEYS)
def test_the_example_marks_what_a_vault_may_not_set(setting):
    text = EXAMPLE.read_text("utf-8")
    line = toml.lines(text)[setting.path]
    reason = "\n".join(text.splitlines()[: line - 1]).rpartition("\n\n")[2]

    assert ("(yours only)" in reason) == bool(setting.refusal)


def test_the_file_that_init_writes_sets_nothing_and_explains_everything(tmp_path):
    path = tmp_path / "config.toml"
    starter.write_starter(path)

    assert set(check_file(path).origin.values()) == {"default"}
    for key in KEYS:
        assert f"\n#{key.rpartition('.')[2]} = " in path.read_text("utf-8")


def test_taking_the_comment_signs_away_gives_the_example_back():
    settings = re.sub(r"^#(?=[a-z]\w* = | {4}\"|\])", "", starter.starter(), flags=re.MULTILINE)

    assert settings == starter.example() == EXAMPLE.read_text("utf-8")


def test_the_configuration_page_names_every_table_and_every_closed_key():
    page = (ROOT / "docs" / "configuration.md").read_text("utf-8")

    for path in list(schema.tables())[1:]:
        assert f"`[{toml.key(*path)}]`" in page
    for setting in schema.settings().values():
        if setting.refusal:
            assert f"`{setting.key}`" in page
