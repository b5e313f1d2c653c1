"""A query that names a note finds that note first, however it is typed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timezone

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragvault.answer.results import VaultAnswer
from ragvault.corpus import LocalCorpus
from ragvault.errors import UsageError
from ragvault.plan import QueryPlan
from ragvault.retrieve.names import Named, exact_notes
from ragvault.search import search
from ragvault.text.name_index import NameIndex
from ragvault.text.names import NameFolder
from ragvault.types import Head, SearchRequest
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


def ask(index: LocalCorpus, query: str, limit: int = 10) -> VaultAnswer:
    return search(SearchRequest(query, NOW, limit), index)


def paths(response: VaultAnswer) -> list[str]:
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


# --- Names as people type them ---

TYPED_NOTES = {
    "thoughts/Nash equilibrium.md": "# Nash equilibrium\n\nNobody gains by changing alone.\n",
    "thoughts/game theory.md": "# Game theory\n\n" + "The nash equilibrium of a game. " * 9,
    "thoughts/Chesterton's Fence.md": "Ask why it stands there.\n",
    "thoughts/cargo.md": "# Cargo culting\n\nSee also chesterton fence and the chestertons.\n" * 3,
    "The Mythical Man-Month.md": "Adding people makes it later.\n",
    "books.md": "# Books\n\nThe mythical man month, the mythical man month.\n",
    "crdt.md": "# Conflict-free Replicated Data Type (CRDT)\n\nMerges by itself.\n",
    "bft.md": "# Building a store\n\nWhat a crdt is, and why a crdt. A crdt of crdts.\n",
    "Network Time Protocol.md": "Clocks that agree.\n",
    "clocks.md": "# Clocks\n\nSeveral clocks, and ntp with ntp.\n",
    "Alexandre Grothendieck.md": "A mathematician.\n",
    "taste.md": "# Taste\n\nGrothendieck had taste. Grothendieck, Grothendieck.\n",
    "ui/Command palette.md": "Opens with a key.\n",
    "Web Clipper/Templates.md": "For pages.\n",
    "Mail/Templates.md": "For letters.\n",
    "clip.md": "# Clips\n\nThe web clipper has templates; web clipper templates are many.\n",
    "Sauerteig.md": "Mehl und Wasser, und der Teig ist nicht fertig.\n",
    "brot.md": "# Brot\n\nDer Sauerteig und der Sauerteig ist nicht die Hefe.\n",
    "NVIM Cheatsheet.md": "Keys.\n",
    "git.md": "# git\n\n## Undo a commit\n\nReset it.\n\n## Branches\n\nMany.\n",
    "Notes.md": "A page that lists others.\n",
    "Index.md": "A page that lists others, too.\n",
    **{f"daily/{at}.md": f"# Day {at}\n\nNotes of day {at}, an index.\n" for at in range(40)},
}
FORMS = {
    "what is nash equilibrium?": "thoughts/Nash equilibrium.md",
    "nash equilibria": "thoughts/Nash equilibrium.md",
    "nash equilibrum": "thoughts/Nash equilibrium.md",
    "nash-equilibrium": "thoughts/Nash equilibrium.md",
    "notes about nash equilibrium": "thoughts/Nash equilibrium.md",
    "chestertons fence": "thoughts/Chesterton's Fence.md",
    "chesterton fence": "thoughts/Chesterton's Fence.md",
    "Chesterton’s Fence": "thoughts/Chesterton's Fence.md",
    "the mythical man month": "The Mythical Man-Month.md",
    "mythical manmonth": "The Mythical Man-Month.md",
    "what is a CRDT": "crdt.md",
    "conflict free replicated data types": "crdt.md",
    "NTP": "Network Time Protocol.md",
    "who is Grothendieck": "Alexandre Grothendieck.md",
    "grothendieck": "Alexandre Grothendieck.md",
    "comand pallete": "ui/Command palette.md",
    "web clipper templates": "Web Clipper/Templates.md",
    "was ist ein Sauerteig?": "Sauerteig.md",
    "nvim cheat sheet": "NVIM Cheatsheet.md",
    "git undo commit": "git.md",
}


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCorpus]:
    root = tmp_path_factory.mktemp("typed") / "vault"
    for path, text in TYPED_NOTES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    vault = Vault.open(root, flags=FAKE)
    vault.index()
    with vault.corpus() as opened:
        yield opened


@pytest.mark.parametrize("query", FORMS)
def test_the_note_that_is_the_topic_comes_first(typed, query):
    assert paths(ask(typed, query))[:1] == [FORMS[query]]


@pytest.mark.parametrize(
    "query", ["notes of day 7", "the index of notes", "index of day 12", "notes for the day"]
)
def test_a_title_of_one_common_word_does_not_win_over_what_the_words_mean(typed, query):
    response = ask(typed, query)

    assert not {"Notes.md", "Index.md"} & set(paths(response)[:3])


def test_a_common_word_is_worth_less_than_a_rare_one(typed):
    rare = named(typed, "palette")["ui/Command palette.md"]

    assert named(typed, "some notes").get("Notes.md", 0.0) < 0.5 * rare


def test_evidence_is_graded(typed):
    whole = named(typed, "what is nash equilibrium")
    part = named(typed, "nash")
    more = named(typed, "nash equilibrium of the prisoners in a dilemma")
    note = "thoughts/Nash equilibrium.md"

    assert 0 < part[note] < whole[note] <= 1
    assert 0 < more[note] < whole[note]


@given(st.text(st.sampled_from("nash equilibrium notes CRDT's (crdt) 日- ?"), max_size=40))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_evidence_is_between_0_and_1(typed, query):
    assert all(0 < value <= 1 for value in named(typed, query).values())


def test_the_order_of_notes_does_not_matter():
    rows = [
        Head(at, path, path.rpartition("/")[2].removesuffix(".md"), ())
        for at, path in enumerate(TYPED_NOTES)
    ]
    folder = NameFolder(("english",))
    weights = {"nash": 1.0, "equilibrium": 1.0, "templat": 0.5, "note": 0.1}
    there, back = NameIndex(rows, folder), NameIndex(rows[::-1], folder)

    assert set(there.like(weights, 50)) == set(back.like(weights, 50))
    assert there.keys("equilibria") == back.keys("equilibria")
    assert there.near("equilibrum") == back.near("equilibrum")


def test_a_name_of_several_notes_puts_all_of_them_first(typed):
    assert set(exact_notes("Templates", typed).values()) == {"title"}
    assert set(paths(ask(typed, "Templates"))[:2]) == {
        "Web Clipper/Templates.md",
        "Mail/Templates.md",
    }
    assert set(exact_notes("nash equilibrium", typed).values()) == {"title"}


def test_a_warning_lists_few_of_the_notes_that_are_also_called_so(tmp_path):
    for folder in "abcd":
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "rye -loaf.md").write_text("text\n")
    vault = Vault.open(tmp_path, flags=FAKE)
    vault.index()
    with vault.corpus() as opened:
        response = ask(opened, "rye -loaf")

    assert len(set(paths(response))) == 4
    assert "“rye -loaf” is also the name of 4 notes: a/rye -loaf.md, b/rye -loaf.md, " in "".join(
        response.warnings
    )
    assert response.warnings[-1].endswith(", …")


@pytest.mark.parametrize("query", ["NFLT", "nflt"])
def test_the_initials_of_a_name_are_no_slip_of_another_word(tmp_path, query):
    (tmp_path / "No Free Lunch Theorem.md").write_text("Nothing is best.\n")
    for at in range(9):
        (tmp_path / f"{at}.md").write_text(f"# Art {at}\n\nAn nft, and another nft.\n")
    vault = Vault.open(tmp_path, flags=FAKE)
    vault.index()
    with vault.corpus() as opened:
        response = ask(opened, query)

    assert paths(response)[:1] == ["No Free Lunch Theorem.md"]
    assert not response.warnings


def test_a_name_counts_less_the_more_notes_have_it(tmp_path):
    def evidence(copies: int) -> float:
        root = tmp_path / f"{copies}"
        for at in range(30):
            text = "# Samovar\n\nBoils.\n" if at < copies else f"# Other {at}\n\nText {at}.\n"
            (root / f"{at}").mkdir(parents=True)
            (root / f"{at}" / "note.md").write_text(text)
        vault = Vault.open(root, flags=FAKE)
        vault.index()
        with vault.corpus() as opened:
            return max(named(opened, "samovars").values())

    assert evidence(1) > evidence(2) > evidence(4)


def test_a_name_counts_for_one_passage_of_its_note(typed):
    found = [each for each in ask(typed, "what is git").results if each.note.path == "git.md"]
    terms = [term for each in found for term in each.steps[0].terms if term.name == "name"]

    assert len(terms) == 1
    assert all(each.evidence["name"] > 0 for each in found)


def test_rare_words_tell_more_than_common_ones(typed):
    def telling(query: str) -> float:
        return max(each.evidence.get("telling", 0.0) for each in ask(typed, query).results)

    assert 0 < telling("day") < telling("nash") < telling("nash equilibrium") < 1


def test_without_the_leg_there_is_no_evidence_of_names(typed):
    vault = Vault.open(typed.root, flags=(*FAKE, 'retrieve.legs=["vector","keyword"]'))
    with vault.corpus() as plain:
        response = ask(plain, "nash equilibrium")

    assert not any("name" in each.evidence or each.exact for each in response.results)


def test_a_renamed_note_is_found_by_its_new_name(tmp_path):
    (tmp_path / "Kettle.md").write_text("Boils.\n")
    vault = Vault.open(tmp_path, flags=FAKE)
    vault.index()
    with vault.corpus() as opened:
        assert list(named(opened, "what is a kettle"))
        (tmp_path / "Kettle.md").rename(tmp_path / "Samovar.md")
        vault.index()
        opened.refresh()
        assert list(named(opened, "samovars")) == ["Samovar.md"]
        assert not named(opened, "what is a kettle")


def named(index: LocalCorpus, query: str) -> dict[str, float]:
    """The notes that a query names, with their evidence."""
    with index.snapshot():
        plan = replace(QueryPlan(query, "plain"), text=query)
        notes = Named(plan, index, 20).notes
        paths = {row.id: row.path for row in index.names().rows}
        return {paths[note]: value for note, value in notes.items()}
