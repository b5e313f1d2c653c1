"""Contents and suggestions: what a vault holds, and what was probably meant."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragvault.answer.contents import (
    KINDS,
    Counted,
    contents,
    folders,
    properties,
    suggestions,
    tags,
    unmet_conditions,
)
from ragvault.config import profiles
from ragvault.errors import UsageError
from ragvault.query.understand import understand
from ragvault.types import Head

NOW = datetime(2026, 3, 1)


def head(id_: int, path: str, *, own: tuple[str, ...] = (), **properties: object) -> Head:
    title = str(properties.pop("title", path.rpartition("/")[2].removesuffix(".md")))
    aliases = tuple(properties.pop("aliases", ()))  # type: ignore[call-overload]
    return Head(id_, path, title, aliases, own, (), "", "", properties)


NOTES = [
    head(1, "food/apple.md", own=("fruit/apple", "Red"), status="draft", rating=4),
    head(2, "food/pear.md", own=("fruit",), status="Draft", tested=True),
    head(3, "home.md", own=("red",), Status=["done", "old"], title="My Home"),
]


def test_a_tag_counts_the_notes_below_it_once_and_in_any_case():
    assert tags(NOTES) == [Counted("fruit", 2), Counted("Red", 2), Counted("fruit/apple", 1)]


def test_a_folder_counts_what_is_below_it():
    assert folders(NOTES) == [Counted("/", 3), Counted("food/", 2)]


def test_a_property_has_its_most_frequent_values():
    first, *rest = properties(NOTES)
    values = (Counted("draft", 2), Counted("done", 1), Counted("old", 1))
    assert first == Counted("status", 3, values)
    assert [each.name for each in rest] == ["rating", "tested"]
    assert rest[1].values == (Counted("true", 1),)


def test_words_narrow_by_name_and_title():
    assert [each.note for each in contents("notes", NOTES, {}, words="HOME my").items] == [
        "home.md"
    ]
    assert contents("tags", NOTES, {}, words="app").items == (Counted("fruit/apple", 1),)


@given(st.integers(0, 30), st.integers(1, 7), st.sampled_from(KINDS))
def test_pages_together_are_the_whole_list(number, limit, kind):
    notes = [head(n, f"f{n % 3}/{n}.md", own=(f"t{n % 5}",), a=n % 4) for n in range(number)]
    whole = contents(kind, notes, {}).items
    cursor, pages = None, []
    while True:
        page = contents(kind, notes, {}, limit=limit, cursor=cursor)
        assert page.total == len(whole)
        assert len(page.items) <= limit
        pages += page.items
        cursor = page.next
        if cursor is None:
            break
    assert tuple(pages) == whole


@pytest.mark.parametrize("cursor", ["x", "-1", "", "²"])
def test_a_cursor_that_nobody_gave_is_refused(cursor):
    with pytest.raises(UsageError):
        contents("tags", NOTES, {}, cursor=cursor)


def suggested(query: str, *vaults: list[Head]) -> list[str]:
    plan = understand(query, profiles.config("default").query, now=NOW)
    return list(suggestions([unmet_conditions(plan, notes) for notes in vaults or (NOTES,)]))


@pytest.mark.parametrize(
    ("query", "line"),
    [
        ("#frut", "No notes tagged #frut. Did you mean #fruit (2 notes)?"),
        ("bread tag:qqq", "No notes tagged #qqq."),
        ("[statsu:draft]", "No note has the property statsu. Did you mean [status] (3 notes)?"),
        ("[status:drfat]", "No note has status: drfat. Did you mean [status:draft] (2 notes)?"),
        ("link:My-Hom", "No note called “My-Hom”. Did you mean My Home?"),
        ('"no such words"', "No note contains the phrase “no such words”. Try it without quotes."),
    ],
)
def test_a_misspelt_condition_is_named_with_what_is_there(query, line):
    assert suggested(query) == [line]


@pytest.mark.parametrize(
    "query", ["bread", "#FRUIT", "-#frut", "[rating:>9]", "tag:fr*", "link:home"]
)
def test_a_condition_that_some_note_meets_is_not_blamed(query):
    assert suggested(query) == []


def test_of_several_vaults_only_what_none_has_is_named():
    other = [head(9, "x.md", own=("frut",))]
    assert suggested("#frut", NOTES, other) == []
    assert suggested("#frot", NOTES, NOTES) == [
        "No notes tagged #frot. Did you mean #fruit (4 notes)?"
    ]
