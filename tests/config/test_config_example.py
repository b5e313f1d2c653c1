"""config.toml.example and the documents say what the program does."""

from __future__ import annotations

import re
from functools import reduce
from pathlib import Path

import pytest

from ragvault.cli import config as command
from ragvault.config import profiles, schema
from ragvault.config.load import check_file

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "config.toml.example"


def key_lines() -> dict[str, int]:
    """The line of each key and of each table in the example."""
    found, table = {}, ""
    for number, line in enumerate(EXAMPLE.read_text("utf-8").splitlines(), 1):
        if header := re.match(r"\[([\w.]+)\]", line):
            table = header[1]
            found[table] = number
        elif key := re.match(r"(\w+) = ", line):
            found[f"{table}.{key[1]}"] = number
    return found


LINES = key_lines()
EXAMPLE_KEYS = [key for key in LINES if key in {each.key for each in schema.settings().values()}]
OURS = profiles.config("default")
SHOWN = [each for each in schema.settings().values() if each.key in EXAMPLE_KEYS]


def further_settings() -> dict[str, tuple[str, str]]:
    """The rows of the tables of further settings: key, default and meaning."""
    found = {}
    for name in ("configuration.md", "ranking.md"):
        text = (ROOT / "docs" / name).read_text("utf-8")
        table = text.partition("## Further settings")[2]
        for key, default, meaning in re.findall(
            r"^\| `([\w.]+)` \| `(.*?)` \| (.+) \|$", table, re.M
        ):
            assert key not in found
            found[key] = default, meaning
    return found


def test_the_example_has_every_key_at_its_default():
    loaded = check_file(EXAMPLE)

    assert loaded.config == OURS
    assert loaded.chosen == set(EXAMPLE_KEYS)


def test_every_setting_is_in_the_example_or_in_a_table_of_further_settings():
    known = {
        each.key: schema.literal(reduce(getattr, path, OURS))
        for path, each in schema.settings().items()
    }
    further = further_settings()

    assert set(EXAMPLE_KEYS).isdisjoint(further)
    assert set(EXAMPLE_KEYS) | further.keys() == known.keys()
    assert {key: default for key, (default, _) in further.items()} == {
        key: default for key, default in known.items() if key in further
    }


def test_the_example_is_short_enough_to_read():
    assert len(EXAMPLE_KEYS) <= 90


@pytest.mark.parametrize("key", EXAMPLE_KEYS)
def test_every_key_of_the_example_has_its_reason_above_or_beside_it(key):
    lines = EXAMPLE.read_text("utf-8").splitlines()
    line = LINES[key]

    assert lines[line - 2].startswith("# ") or "  # " in lines[line - 1]


@pytest.mark.parametrize("setting", SHOWN, ids=EXAMPLE_KEYS)
def test_the_example_marks_what_a_vault_may_not_set(setting):
    """`(yours only)` in the reason above the key, or beside the table's name for all its keys."""
    text = EXAMPLE.read_text("utf-8")
    lines = text.splitlines()
    reason = "\n".join(lines[: LINES[setting.key] - 1]).rpartition("\n\n")[2]
    header = lines[LINES[".".join(setting.path[:-1])] - 1]

    assert ("(yours only)" in reason + header) == bool(setting.refusal)


def test_the_file_that_init_writes_sets_nothing_and_explains_the_example(tmp_path):
    path = tmp_path / "config.toml"
    command.write_starter(path)

    assert not check_file(path).chosen
    for key in EXAMPLE_KEYS:
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
        assert f"`[{schema.dotted(*path)}]`" in page
    for setting in schema.settings().values():
        if setting.refusal and setting.path[:-1] in open_tables:
            assert f"`{setting.key}`" in page
