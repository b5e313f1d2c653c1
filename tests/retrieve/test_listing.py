"""A filter alone lists notes by date, also those without text."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragvault.cli.search import answer_search, parse_search
from ragvault.cli.start import Reply, this_caller
from ragvault.vault import Vault


def ask(root: Path, *args: str) -> Reply:
    where = this_caller()._replace(cwd=str(root))
    return answer_search(parse_search(["search", *args]), where)


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A vault in which three of four notes have no text, newest last, with the fake model."""
    place = tmp_path_factory.mktemp("stubs")
    root = place / "stubs"
    root.mkdir()
    (root / "2024-01-01.md").write_text("---\nstub: false\n---\n# Said\n\nIt says something.\n")
    (root / "2024-01-02.md").write_text("---\nstub: true\ntitle: Nothing yet\n---\n")
    (root / "2024-01-03.md").write_text("---\nstub: true\n---\n\n%%only a comment%%\n")
    (root / "2024-01-04.md").write_text("")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAGVAULT_HOME", str(place / "home"))
        patch.setenv("RAGVAULT_MODELS__STATIC", "fake")
        patch.setenv("RAGVAULT_MODELS__EMBEDDER", "fake")
        Vault.open(root).index()
        yield root


ALL_OF_THEM = [f"2024-01-0{day}.md" for day in (1, 4, 3, 2)]  # what says something comes first


@pytest.mark.parametrize("unit", ["--passages", "--sections"])
@pytest.mark.parametrize("more", [(), ("--neighbours", "2"), ("--budget", "50"), ("--explain",)])
def test_a_note_without_text_is_listed_with_its_names_and_properties(stubs, unit, more):
    found = json.loads(ask(stubs, "path:2024", unit, *more, "--json").out)["results"]
    assert [each["note"] for each in found] == ALL_OF_THEM
    assert [each["lines"] for each in found][1:] == [[1, 1], [1, 3], [1, 4]]
    assert [each["text"] for each in found][1:] == [
        "2024-01-04",
        "2024-01-03",
        "Nothing yet\n2024-01-02",
    ]
    assert [each["title"] for each in found][1:] == ["2024-01-04", "2024-01-03", "Nothing yet"]
    assert [(each["line"], each["stale"]) for each in found[1:]] == [
        (1, False),
        (1, False),
        (3, False),
    ]


@pytest.mark.parametrize("format_", ["text", "json", "jsonl", "paths", "grep", "context"])
def test_every_format_lists_notes_without_text(stubs, format_):
    out = ask(stubs, "path:2024", "--format", format_).out
    assert re.findall(r"2024-01-0\d\.md", re.sub(r'"uri": "[^"]*"', "", out)) == ALL_OF_THEM
    assert not any(line != line.rstrip() for line in out.splitlines() if format_ == "text")
    assert ask(stubs, '["stub":"true"]', "--format", format_).code == 0


def test_markdown_has_a_heading_for_a_note_without_text(stubs):
    assert ask(stubs, "[stub:true]", "--format", "markdown").out == (
        "## 2024-01-03 (2024-01-03.md:1-3)\n\n2024-01-03\n\n"
        "## Nothing yet (2024-01-02.md:1-4)\n\nNothing yet\n2024-01-02\n"
    )


def test_what_is_asked_of_passages_no_note_without_text_meets(stubs):
    assert ask(stubs, "has:code OR has:task", "--json").code == 1
    assert ask(stubs, 'path:2024 -"something"', "--format", "paths").out.split() == ALL_OF_THEM[1:]


def test_a_list_tells_the_tier_of_each_passage(stubs):
    found = json.loads(ask(stubs, "path:2024", "--json").out)
    assert found["index"]["tier"] == "full"
    assert {each["tier"] for each in found["results"]} == {"full"}


def test_templates_and_notes_without_text_come_last_whatever_their_date(tmp_path, monkeypatch):
    monkeypatch.setenv("RAGVAULT_HOME", str(tmp_path / "home"))
    says_nothing = (
        "",
        "---\ntags: [a]\n---\n",
        "# {{title}}\n\nWrite.\n",
        "# <% tp.date %>\n\nX.\n",
    )
    forms = ("Templates/2024-02-01.md", "a/templates/2024-02-02.md")
    roots = [tmp_path / "one", tmp_path / "two"]
    for year, root in zip((2023, 2024), roots, strict=True):
        notes = {f"{year}-12-{day}.md": text for day, text in enumerate(says_nothing, 10)}
        notes |= dict.fromkeys(forms, "# A form\n\nWrite here.\n")
        notes |= {f"{year}-01-0{day}.md": f"# {{Day}} {day}\n\nRain.\n" for day in (1, 2)}
        for path, text in notes.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        Vault.open(root).index(tier="keyword")

    found = json.loads(ask(tmp_path, "since:1970", "--vault", "one,two", "-n", "50", "--json").out)
    listed = [each["note"] for each in found["results"]]

    days = [f"{year}-01-0{day}.md" for year in (2024, 2023) for day in (2, 1)]
    assert listed[:4] == days
    dates = [path.rpartition("/")[2] for path in listed[4:]]
    assert len(dates) == 12
    assert dates == sorted(dates, reverse=True)


def test_notes_whose_only_date_is_that_of_the_copy_follow_those_with_a_date(tmp_path, monkeypatch):
    monkeypatch.setenv("RAGVAULT_HOME", str(tmp_path / "home"))
    for root in (tmp_path / "one", tmp_path / "two"):
        (root / "templates").mkdir(parents=True)
        (root / "templates" / "form.md").write_text("# A form\n\nWrite here.\n")
        (root / "dated.md").write_text("---\ndate: 2024-01-02\n---\n# Dated\n\nRain.\n")
        (root / "undated.md").write_text("# Undated\n\nRain.\n")
        Vault.open(root).index(tier="keyword")
    expected = ["dated.md", "undated.md", "templates/form.md"]

    one = json.loads(ask(tmp_path, "since:1970", "--vault", "one", "--json").out)["results"]
    assert [each["note"] for each in one] == expected
    both = json.loads(ask(tmp_path, "since:1970", "--vault", "one,two", "--json").out)["results"]
    for name in ("one", "two"):
        assert [each["note"] for each in both if each["vault"] == name] == expected


def test_a_note_written_after_the_copy_is_the_newest(tmp_path, monkeypatch):
    monkeypatch.setenv("RAGVAULT_HOME", str(tmp_path / "home"))
    root = tmp_path / "vault"
    root.mkdir()
    now = 1_800_000_000
    for at, name in enumerate(("a", "b", "c")):
        (root / f"{name}.md").write_text(f"# {name}\n\nRain.\n")
        os.utime(root / f"{name}.md", (now + at, now + at))
    (root / "dated.md").write_text("---\ndate: 2024-01-02\n---\n# Dated\n\nRain.\n")
    (root / "new.md").write_text("# New\n\nRain.\n")
    os.utime(root / "new.md", (now + 86_400, now + 86_400))
    Vault.open(root).index(tier="keyword")
    found = json.loads(ask(root, "since:1970", "--json").out)["results"]
    assert [each["note"] for each in found] == ["new.md", "dated.md", "c.md", "b.md", "a.md"]
