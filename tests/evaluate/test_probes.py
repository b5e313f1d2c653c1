"""The exam a vault writes for itself: deterministic, askable, and true to the notes."""

from __future__ import annotations

import shutil
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragvault.config import profiles
from ragvault.errors import UsageError
from ragvault.evaluate.probes import (
    KINDS,
    link_words,
    notes_by_name,
    probes,
    prose_sentences,
    typed_query,
    without_links,
)
from ragvault.evaluate.questions import read_questions, write_questions
from ragvault.query.understand import understand
from ragvault.types import Head
from ragvault.vault import Vault

SAMPLE = Path(__file__).parent.parent.parent / "sample_vault"
NOW = datetime(2026, 3, 1, tzinfo=timezone.utc)


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory):
    root = tmp_path_factory.mktemp("probes") / "vault"
    shutil.copytree(SAMPLE, root)
    vault = Vault.open(root)
    vault.index("keyword")
    with vault.catalogue() as catalogue:
        yield catalogue


@pytest.fixture(scope="module")
def exam(catalogue):
    return probes(catalogue, 210)


def of(exam, kind):
    return [each for each in exam if each.kind == kind]


def test_the_same_vault_and_seed_make_the_same_exam(catalogue, exam):
    assert probes(catalogue, 210) == exam
    assert probes(catalogue, 210, seed=1) != exam


def test_every_kind_has_its_share(exam):
    counts = Counter(each.kind for each in exam)
    assert set(counts) == set(KINDS)
    assert counts["nonsense"] == 21
    assert max(counts.values()) <= 2 * min(counts.values())


def test_a_small_vault_has_fewer_probes_and_no_question_twice(catalogue):
    exam = probes(catalogue, 5000)
    assert 400 < len(exam) < 5000
    asked = [(each.kind, each.query.casefold()) for each in exam]
    assert len(asked) == len(set(asked))


def test_an_exam_can_be_kept_and_read_again(exam, tmp_path):
    write_questions(tmp_path / "exam.jsonl", exam)
    assert read_questions(tmp_path / "exam.jsonl") == exam


def test_titles_and_aliases_are_those_of_their_notes(catalogue, exam):
    for each in of(exam, "title"):
        titles = {typed_query(catalogue.note(judged.note).title) for judged in each.relevant}
        assert each.query in titles
    for each in of(exam, "alias"):
        assert any(
            each.query == typed_query(alias)
            for judged in each.relevant
            for alias in catalogue.note(judged.note).aliases
        )


def test_a_misspelt_title_is_one_step_from_the_title(catalogue, exam):
    for each in of(exam, "typo"):
        title = typed_query(catalogue.note(each.relevant[0].note).title)
        assert each.query != title
        assert abs(len(each.query) - len(title)) <= 1


def test_a_masked_link_asks_for_its_target_and_leaves_its_note_out(catalogue, exam):
    for each in of(exam, "link"):
        target = each.relevant[0].note
        assert each.without
        assert target not in each.without
        source = catalogue.note(each.without[0])
        assert any(link.form == "wiki" for link in source.links)
        words = each.query.split()
        assert words[0] in source.text


def test_a_sentence_stands_in_its_note(catalogue, exam):
    for each in of(exam, "sentence"):
        text = typed_query(link_words(catalogue.note(each.relevant[0].note).text))
        assert each.query in text


def test_nonsense_is_in_no_note(catalogue, exam):
    everything = " ".join(catalogue.note(path).text.casefold() for path in catalogue.files())
    known = {"how", "do", "i", "the", "what", "is", "a", "why", "does", "need"}
    for each in of(exam, "nonsense"):
        assert not each.relevant
        assert all(
            word not in everything for word in each.query.casefold().split() if word not in known
        )


def test_every_probe_can_be_asked_as_plain_words(exam):
    settings = profiles.config("default").query
    for each in exam:
        plan = understand(each.query, settings, now=NOW)
        assert plan.filter is None, each.query
        assert not plan.phrases


@given(st.text(max_size=80))
def test_what_is_typed_from_a_note_is_never_an_operator(text):
    query = typed_query(text)
    if not query:
        return
    try:
        plan = understand(query, profiles.config("default").query, now=NOW)
    except UsageError as error:
        assert "nothing to search for" in str(error)  # noqa: PT017
        return
    assert plan.filter is None
    assert not plan.phrases


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One two three four five six. Too short.", ["One two three four five six."]),
        ("See [[A|the letter]] for all you want.", ["See [[A|the letter]] for all you want."]),
        ("# A heading of more than six words here", []),
        ("- a list of more than six words here", []),
        ("| a | table | of | more | than | six |", []),
        ("    code that is indented and has many words", []),
        ("麵團在低溫下發酵需要更長的時間。", ["麵團在低溫下發酵需要更長的時間。"]),
    ],
)  # fmt: skip
def test_sentences_are_prose(text, sentences):
    assert list(prose_sentences(text)) == sentences


def test_a_link_is_masked_and_its_neighbours_keep_their_words():
    sentence = "Ask [[Ines]] about [[Home|the jar]] and ![[picture.png]]."
    assert list(without_links(sentence)) == [
        ("Ines", "Ask   about the jar and ![[picture.png]]."),
        ("Home", "Ask Ines about   and ![[picture.png]]."),
    ]


def test_a_link_may_leave_out_folders_and_must_mean_one_note():
    names = [("a/b/c.md", ("sea",)), ("x/c.md", ()), ("a/d.md", ())]
    known = notes_by_name([Head(0, path, "", aliases) for path, aliases in names])
    assert known["b/c"] == known["a/b/c"] == known["sea"] == "a/b/c.md"
    assert known["d"] == "a/d.md"
    assert "c" not in known
