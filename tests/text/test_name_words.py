"""Which note a name means; and names and queries become the same words, however they are typed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragvault.text.names import (
    NameFolder,
    initials,
    name_forms,
    nearest_notes,
    notes_called,
    notes_with,
    plain_words,
    typed_forms,
    typed_name,
    vault_languages,
    without_frame,
)
from ragvault.types import Head

ENGLISH = NameFolder(("english",))
names = st.text(st.sampled_from("aeiksuüÉ'’-–_ ()Straße日本CRDT1"), max_size=20)


def keys(text: str, folder: NameFolder = ENGLISH) -> list[set[str]]:
    return [{own, *others} for own, others in map(folder.keys, plain_words(text))]


@pytest.mark.parametrize(
    ("name", "typed"),
    [
        ("Chesterton's Fence", "chestertons fence"),
        ("Chesterton's Fence", "Chesterton’s FENCE"),
        ("Chesterton's Fence", "chesterton fence"),
        ("The Mythical Man-Month", "the mythical man month"),
        ("local-first software", "local first softwares"),
        ("Résumé", "resumes"),
        ("Straße", "STRASSE"),
        ("Nash equilibrium", "nash equilibria"),
        ("Criterion", "criteria"),
        ("Index", "indices"),
        ("Child", "children"),
        ("snake_case_name", "snake case name"),
        ("日本語", "日本語"),
    ],
)
def test_forms_of_a_name_have_keys_in_common(name, typed):
    ours, theirs = keys(name), keys(typed)

    assert len(ours) == len(theirs)
    assert all(one & other for one, other in zip(ours, theirs, strict=True))


@pytest.mark.parametrize(("one", "other"), [("cat", "car"), ("universe", "university press")])
def test_other_words_have_none(one, other):
    assert keys(one) != keys(other)


@given(names)
def test_folding_twice_changes_nothing(name):
    words = plain_words(name)

    assert typed_name(typed_name(name)) == typed_name(name)
    assert plain_words(" ".join(w for w in words if w.isascii())) == tuple(
        w for w in words if w.isascii()
    )


@given(names)
def test_case_and_outer_space_never_count(name):
    assert plain_words(f"  {name} ") == plain_words(name)
    assert plain_words(name.swapcase().swapcase()) == plain_words(name.swapcase())


@pytest.mark.parametrize(
    ("name", "forms"),
    [
        (
            "Conflict-free Replicated Data Type (CRDT)",
            {"CRDT", "Conflict-free Replicated Data Type"},
        ),
        ("The Mythical Man-Month", {"The Mythical ManMonth"}),
        ("State (of the art, and what comes of it)", {"State"}),
        ("Plain", set()),
    ],
)
def test_a_name_has_other_forms(name, forms):
    assert forms <= set(name_forms(name))
    assert "of the art, and what comes of it" not in set(name_forms(name))


@pytest.mark.parametrize(
    ("name", "letters"),
    [
        ("Network Time Protocol", "ntp"),
        ("Tragedy of the Great Commons", "tgc"),
        ("conflict-free replicated data", "cfrd"),
        ("Two Words", ""),
        ("Data Type Thing (DTT)", ""),
        ("日本 語の 題名", ""),
    ],
)
def test_initials_are_of_three_words_or_more(name, letters):
    assert initials(name) == letters


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("what is nash equilibrium?", "nash equilibrium"),
        ("What is a CRDT", "CRDT"),
        ("who was Grothendieck", "Grothendieck"),
        ("how does raft work?", "raft"),
        ("what does IPFS mean", "IPFS"),
        ("notes about burnout", "burnout"),
        ("my notes on the garden", "garden"),
        ("quote about friendship", "friendship"),
        ("tell me about the memex", "memex"),
        ("what is the difference between TCP and UDP", "TCP and UDP"),
        ("burnout notes", "burnout"),
        ("was ist ein Sauerteig?", "Sauerteig"),
        ("wer war Raymond Calvel", "Raymond Calvel"),
        ("wie funktioniert Autolyse", "Autolyse"),
        ("Notizen über Mehltypen", "Mehltypen"),
        ("Zitat von Kant", "Kant"),
        ("was bedeutet Stockgare", "Stockgare"),
    ],
)
def test_the_question_around_a_name_is_removed(query, name):
    assert without_frame(query, ("english", "german"))[-1] == name


@pytest.mark.parametrize(
    "query", ["What is art", "notes", "how it works", "explain", "the", "about"]
)
def test_a_name_that_looks_like_a_question_stays_as_typed_first(query):
    assert without_frame(query, ("english",))[0] == query


def test_a_frame_of_a_language_that_the_vault_does_not_have_stays():
    assert without_frame("was ist Kant", ("english",)) == ("was ist Kant",)


@given(names)
def test_a_query_without_its_question_still_has_a_word_of_it(query):
    for step in without_frame(query, ("english", "german", "french", "spanish")):
        assert plain_words(step)
        assert step in query


def test_the_languages_of_a_vault_are_those_of_its_commonest_words():
    german = {"und": 0.8, "der": 0.7, "nicht": 0.4, "ist": 0.6, "the": 0.1}

    assert vault_languages(lambda _: 0.0, "english") == ("english",)
    assert vault_languages(lambda word: german.get(word, 0.0), "english") == ("english", "german")
    assert vault_languages(lambda _: 0.0, "german") == ("german", "english")
    assert vault_languages(lambda _: 0.0, "none") == ("english",)


NOTES = [
    Head(1, "Technique/Steam.md", "Vapour in the oven", ("Dampf",)),
    Head(2, "Café.md", "Café", ()),
    Head(3, "daily-notes.md", "Steam", ("C#",)),
    Head(4, "Cafe bills.md", "Bills", ()),
]


@pytest.mark.parametrize(
    ("typed", "called"),
    [
        ("Technique/Steam.md", {1: "file"}),
        ("technique/steam", {1: "file"}),
        ("steam", {1: "file", 3: "title"}),
        ("VAPOUR  in the oven", {1: "title"}),
        ("dampf", {1: "alias"}),
        ("café", {2: "file"}),
        ("cafe", {2: "file"}),
        ("Daily Notes", {3: "file"}),
        ("c#", {3: "alias"}),
        ("eam", {}),
        ("technique/", {}),
        ("", {}),
        ("/", {}),
    ],
)
def test_a_note_is_called_by_its_file_its_title_and_its_aliases(typed, called):
    assert notes_called(NOTES, [typed]) == called


def test_signs_may_count():
    assert notes_called(NOTES, ["cafe"], signs=True) == {}
    assert notes_called(NOTES, ["CAFÉ"], signs=True) == {2: "file"}


def test_a_part_of_a_name_and_the_nearest_name():
    assert notes_with(NOTES, "caf") == [2, 4]
    assert notes_with(NOTES, "") == []
    assert nearest_notes(NOTES, "Tehcnique/Steam") == {"Technique/Steam.md": "Technique/Steam"}
    assert nearest_notes(NOTES, "Daily_Note") == {"daily-notes.md": "daily-notes"}
    assert nearest_notes(NOTES, "qqqqq") == {}


@pytest.mark.parametrize(
    ("typed", "forms"),
    [
        ("Steam", []),
        ("Steam.md:12", [("Steam.md", "", "12")]),
        ("Steam.md:12-20", [("Steam.md", "", "12-20")]),
        ("[[Steam]]", [("Steam", "", "")]),
        ("[[Steam#Doing it|there]]", [("Steam#Doing it", "", ""), ("Steam", "Doing it", "")]),
        ("Steam#A#B", [("Steam", "A#B", "")]),
        ("Steam > A > B", [("Steam", "A > B", "")]),
        ("Steam#^id", [("Steam", "^id", "")]),
        ("C#", []),
        ("Issue #5", []),
        ("#tag", []),
        ("[[#Here]]", [("#Here", "", "")]),
    ],
)
def test_a_name_is_read_as_it_is_typed_and_without_what_is_no_part_of_it(typed, forms):
    assert list(map(tuple, typed_forms(typed))) == [(typed, "", ""), *forms]


def test_the_innermost_heading_and_the_first_line_of_a_typed_name():
    assert typed_forms("Steam > A > B")[-1].last_heading == "B"
    assert typed_forms("Steam#A#B")[-1].last_heading == "B"
    assert typed_forms("Steam.md:12-20")[-1].first_line == 12
    assert typed_forms("Steam")[-1].first_line == 0
