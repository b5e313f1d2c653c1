"""ragvault read: the part that was asked for, from the file as it is, and nothing outside."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vault_kit import SECRET, indexed_sample, ragvault, sample, trap, vault

from ragvault.answer.read import NoteUnreadable
from ragvault.errors import RagvaultError, UsageError
from ragvault.vault import Vault

__all__ = ["indexed_sample", "sample", "trap", "vault"]

NOTE = """---
tags: [x]
---
Intro.

# Setup

All systems.

## Linux

- one ^first
- two
  more of two

```sh
# no heading

make
```

## macOS

Text. ^mac

# Setup > Linux

A heading with that very name.

# Later
"""


@pytest.fixture
def opened(vault: Path) -> Vault:
    (vault / "note.md").write_text(NOTE)
    return Vault.open(vault)


@pytest.mark.parametrize(
    ("part", "first", "last"),
    [
        ({}, "---", "# Later"),
        ({"heading": "Linux"}, "## Linux", "```"),
        ({"heading": "linux"}, "## Linux", "```"),
        ({"heading": "Setup#Linux"}, "## Linux", "```"),
        ({"heading": "Setup"}, "# Setup", "Text. ^mac"),
        ({"heading": "Setup > Linux"}, "# Setup > Linux", "A heading with that very name."),
        ({"heading": "Setup > macOS"}, "## macOS", "Text. ^mac"),
        ({"heading": "Later"}, "# Later", "# Later"),
        ({"heading": "^first"}, "- one ^first", "- one ^first"),
        ({"heading": "^mac"}, "Text. ^mac", "Text. ^mac"),
        ({"lines": "4"}, "Intro.", "Intro."),
        ({"lines": "4-6"}, "Intro.", "# Setup"),
        ({"lines": "30-"}, "# Later", "# Later"),
        ({"lines": "29-900"}, "", "# Later"),
    ],
)
def test_a_part_is_what_it_says_with_its_lines(opened, part, first, last):
    found = opened.read("note.md", **part)
    shown = found.text.rstrip("\n").split("\n")

    assert (shown[0], shown[-1]) == (first, last)
    assert found.rest is None
    lines = NOTE.split("\n")
    assert "\n".join(lines[found.lines[0] - 1 : found.lines[1]]).rstrip() == found.text.rstrip()


@pytest.mark.parametrize(
    "named",
    ["note#Linux", "note > Linux", "[[note#Linux]]", "[[note#Setup#Linux|label]]", "note.md:10-20"],
)
def test_a_note_may_be_named_with_its_part(opened, named):
    assert opened.read(named).text.rstrip().startswith("## Linux")
    assert opened.read(named).text.rstrip().endswith("```")


def test_the_file_is_read_as_it_is_now(opened, vault):
    assert opened.read("a").links == {"out": 2, "in": 2}
    (vault / "a.md").write_text("# Other\n\nNew.\n")
    assert (opened.read("a").title, opened.read("a").text) == ("Other", "# Other\n\nNew.\n")
    assert not opened.read("note").indexed  # found by a walk

    (vault / "a.md").unlink()
    with pytest.raises(NoteUnreadable, match=r"a\.md cannot be read"):
        opened.read("a")


@given(budget=st.integers(1, 200), numbered=st.booleans())
def test_a_budget_holds_ends_between_blocks_and_names_the_rest(indexed_sample, budget, numbered):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAGVAULT_HOME", str(indexed_sample / "home"))
        opened = Vault.open(indexed_sample / "vault")
        whole = opened.read("Steam", numbered=numbered)
        found = opened.read("Steam", budget=budget, numbered=numbered)

    assert len(found.text) <= 4 * budget or found.rest
    assert whole.text.startswith(found.text) or numbered
    assert (found.rest is None) == (found.lines == whole.lines and found.text == whole.text)
    if found.rest:
        assert found.rest[0] in (found.lines[1], found.lines[1] + 1)
        assert found.rest[1] == whole.lines[1]
    if budget > 100 and not numbered and found.rest:
        assert found.text.endswith("\n")
        assert not found.text.rstrip().split("\n")[-1].startswith("#")


@pytest.mark.parametrize(
    ("part", "message", "fix"),
    [
        ({"heading": "Windows"}, "no heading “Windows”", "its headings are: Setup; Setup > Linux;"),
        ({"heading": "^nope"}, r"no block “\^nope”", r"its blocks are: \^first, \^mac"),
        ({"lines": "90"}, "has 30 lines", "from 1 to 30"),
        ({"lines": "8-4"}, "not a line range", "40-80"),
        ({"lines": "x"}, "not a line range", "40-80"),
        ({"lines": "0"}, "not a line range", "40-80"),
        ({"heading": "Linux", "lines": "3"}, "a heading and lines", "leave one"),
    ],
)
def test_a_part_that_is_not_there_is_an_error_with_a_fix(opened, part, message, fix):
    with pytest.raises(UsageError, match=message) as error:
        opened.read("note", **part)
    assert re.search(fix, error.value.fix)


def test_a_miss_names_the_three_nearest_notes(sample):
    with pytest.raises(UsageError, match="no note called “Sourdogh”") as error:
        Vault.open(sample).read("Sourdogh")
    assert error.value.fix.count(".md") == 3
    assert "Technique/Sourdough Starter.md" in error.value.fix


def test_json_is_what_the_api_returns(sample):
    assert ragvault("read", "Steam", "--json").json == Vault.open(sample).read("Steam").to_dict()


# --- nothing outside the vault ---

# fmt: off
PARTS = st.sampled_from(
    (
        "..", ".", "/", "\\", "~", "~root", "C:", "c:\\", "\\\\?\\", "\\\\host\\share",
        "file://", "NUL", "CON", "%2e%2e", "%00", "#", "^", "[[", "]]", "|", ":1-9", "a.md", "b",
        "sub", "c.md", "link.md", "folder", "secret.md", "outside", "vault", "<root>",
        "<outside>", "\x00", " ", "\n", "\u202e", "\udcff",
    )
)
# fmt: on


@given(names=st.lists(PARTS, max_size=6), joint=st.sampled_from(["", "/", "\\"]))
def test_nothing_outside_the_vault_can_be_read(trap, names, joint):
    places = {"<root>": str(trap / "vault"), "<outside>": str(trap / "outside")}
    named = joint.join(places.get(name, name) for name in names)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAGVAULT_HOME", str(trap / "home"))
        patch.chdir(trap / "vault" / "sub")
        try:
            found = Vault.open(trap / "vault").read(named)
        except RagvaultError:
            return
    assert SECRET not in found.text
    assert found.note in ("a.md", "sub/c.md")


@pytest.mark.parametrize(
    "named",
    [
        "../outside/secret.md",
        "<outside>/secret.md",
        "a.md/../../outside/secret.md",
        "/etc/passwd",
        "link.md",
        "folder/secret.md",
        "gone/secret.md",
        "private.md",
        "b.md",
        "x" * 2000,
        "\0",
        "",
    ],
)
def test_links_out_ignored_files_and_absolute_paths_are_refused(trap, named, monkeypatch):
    monkeypatch.setenv("RAGVAULT_HOME", str(trap / "home"))
    with pytest.raises(RagvaultError) as error:
        Vault.open(trap / "vault").read(named.replace("<outside>", str(trap / "outside")))
    assert error.value.fix
