"""A query that is the very name of a note finds that note first, whatever signs the name has."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

import pytest

from ragvault.answer.results import Response
from ragvault.corpus import LocalCorpus
from ragvault.errors import UsageError
from ragvault.retrieve.names import exact_notes
from ragvault.search import search
from ragvault.types import SearchRequest
from ragvault.vault import Vault

NOW = datetime(2026, 3, 1, tzinfo=timezone.utc)
FAKE = ("models.static=fake", "models.embedder=fake")
ALSO = "is also the name of a note"

# Titles, each of a note whose file is called otherwise.
TITLES = (
    "State Machine Replication (SMR)",
    "Foo bar",
    "Foo (bar)",
    "[WIP] Build",
    "Kettle",
    "Kettle -rye",
    "-rye",
    "tag:recipe",
    "Re: budget",
    "before:yesterday and after",
    "has:unicorn",
    "since:soon",
    "Part (one",
    'A 5" nail',
    'The "cold start" problem',
    "Rye OR Wheat",
    "OR",
    "Bread AND butter",
    "`tag:x`",
    "[[Home]] page",
    "path:*",
    "50% done_now",
    "C++",
    "🍞",
    "???",
    "日本語の題名",
    "ÉTÉ à la plage",
    "Straße (alt)",
    "a title of very many words that nobody would ever type in full but may well paste here",
    "What is \\ this?",
    "don't -stop",
    "#hashtag talk",
    "--hard",
    "$HOME & co; rm -rf",
    "__",
)
ALIASES = ("JFK (airport)", "[x] y", "in -out", 'so-called "alias"', "Ψ-wave (2)")
STEMS = (
    "Network Layer (IP)",
    "[draft] plan",
    "2024-01-02 -old",
    "tag=x, [y]",
    "Decisions (DUR)",
    "Cold start",
)
OTHERS = {
    "one.md": "# Cold starts\n\nA cold start, a cold start, and again a cold start.\n",
    "two.md": "# Engines\n\nThe cold start of an engine. Rye, foo bar, build, plan, kettle.\n",
    "three.md": "---\ntags: [recipe]\nWIP: yes\n---\n# Rye bread\n\nA recipe, to build. Foo bar.\n",
}


def notes() -> dict[str, str]:
    titled = {
        f"t{at}.md": f"---\ntitle: {_quoted(title)}\n---\nSome text {at}.\n\n## More\n\nOf it.\n"
        for at, title in enumerate(TITLES)
    }
    called = {
        f"a{at}.md": f"---\naliases: [{_quoted(alias)}]\n---\n# Alpha {at}\n\nSome text.\n"
        for at, alias in enumerate(ALIASES)
    }
    stems = {f"sub/{stem}.md": f"# Sigma {at}\n\nRye and text.\n" for at, stem in enumerate(STEMS)}
    blank = {"sub/Stub (empty).md": "", "s.md": "---\ntitle: Only -properties\n---\n"}
    return titled | called | stems | blank | OTHERS


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


NAMES = {
    **{title: f"t{at}.md" for at, title in enumerate(TITLES)},
    **{alias: f"a{at}.md" for at, alias in enumerate(ALIASES)},
    **{stem: f"sub/{stem}.md" for stem in STEMS},
    "Stub (empty)": "sub/Stub (empty).md",
    "Only -properties": "s.md",
}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCorpus]:
    root = tmp_path_factory.mktemp("called") / "vault"
    for path, text in notes().items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    vault = Vault.open(root, flags=FAKE)
    vault.index()
    with vault.corpus() as opened:
        yield opened


def ask(index: LocalCorpus, query: str, limit: int = 10) -> Response:
    return search(SearchRequest(query, NOW, limit), index)


def paths(response: Response) -> list[str]:
    return [each.note.path for each in response.results]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("spelled", [str, str.upper, lambda name: f"  {name} "], ids=range(3))
def test_every_title_alias_and_file_name_comes_first(index, name, spelled):
    assert paths(ask(index, spelled(name)))[:1] == [NAMES[name]]


@pytest.mark.parametrize("name", [name for name in NAMES if '"' not in name and "\\" not in name])
@pytest.mark.parametrize("quotes", ["“{}”", '"{}"'])
def test_every_name_in_quotes_comes_first(index, name, quotes):
    assert paths(ask(index, quotes.format(name)))[:1] == [NAMES[name]]


def test_a_quoted_title_stands_before_passages_that_hold_the_phrase(index):
    found = paths(ask(index, '"Cold start"'))
    assert found[0] == "sub/Cold start.md"
    assert {"one.md", "two.md"} <= set(found)


def test_of_two_names_the_one_with_these_very_signs_comes_first(index):
    assert paths(ask(index, "Foo (bar)"))[:1] == ["t2.md"]
    assert paths(ask(index, "Foo bar"))[:1] == ["t1.md"]
    assert paths(ask(index, "Kettle"))[:1] == ["t4.md"]


def test_that_a_query_is_also_a_name_is_said_where_its_conditions_are_passed(index):
    for query in ("[WIP] Build", "Kettle -rye", "tag:recipe", "-rye"):
        assert any(ALSO in line for line in ask(index, query).warnings), query
    for query in ("Foo (bar)", '"Cold start"', "Kettle", "C++"):
        assert not any(ALSO in line for line in ask(index, query).warnings), query


def test_all_other_results_obey_the_query_as_it_was_understood(index):
    assert paths(ask(index, "[WIP] Build")) == ["t3.md", "three.md"]
    assert paths(ask(index, "tag:recipe")) == ["t7.md", "three.md"]
    others = ask(index, "Kettle -rye", 100).results[1:]
    assert others
    assert not any("rye" in each.passage.text.casefold() for each in others)


def test_a_filter_that_is_nobodys_name_is_a_filter(index):
    for query in ("tag:recipe path:three", "[WIP]", "[WIP:yes] bread", "-tag:recipe path:three"):
        response = ask(index, query)
        assert set(paths(response)) <= {"three.md"}, query
        assert not any(ALSO in line for line in response.warnings)


def test_what_cannot_be_a_query_is_still_an_error_where_no_note_is_called_so(index):
    for query in ("has:dragon", "Part (two", 'a "6 nail', "since:never"):
        with pytest.raises(UsageError):
            ask(index, query)
    assert any("is the name of a note" in line for line in ask(index, "Part (one").warnings)


def test_a_name_past_its_limit_is_no_name(index):
    assert exact_notes("x" * 301, index) == {}
    assert exact_notes("", index) == {}


def test_a_title_comes_first_however_many_names_it_is_a_part_of(tmp_path):
    """Notes that have the word in title and alias score higher than the one that is it."""
    (tmp_path / "Meeting.md").write_text("What such things are for.\n")
    for at in range(60):
        text = f"---\naliases: [Meeting with Anna {at}]\n---\n# Meeting {at}\n\nMeeting, meeting.\n"
        (tmp_path / f"Meeting {at}.md").write_text(text)
    vault = Vault.open(tmp_path, flags=FAKE)
    vault.index()
    with vault.corpus() as opened:
        assert paths(ask(opened, "Meeting"))[:1] == ["Meeting.md"]
        assert paths(ask(opened, "Meeting with Anna 7"))[:1] == ["Meeting 7.md"]
