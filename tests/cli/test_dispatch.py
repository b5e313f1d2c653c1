"""Which command a command line means: a command, another name of one, a bare query, a mistake."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rank_kit import few
from vault_kit import indexed_sample, ragvault, sample, vault

from ragvault.cli.commands import (
    COMMANDS,
    OTHER_NAMES,
    OWN_OPTIONS,
    TAKE_NAMES,
    asked_for,
    check_command,
    instead_of,
    meant_command,
    with_command,
)
from ragvault.cli.start import _search_first
from ragvault.errors import UsageError
from ragvault.text.spelling import misspelt

__all__ = ["indexed_sample", "sample", "vault"]


@pytest.mark.parametrize(
    ("typed", "means"),
    [
        ("status", "status"),
        ("-q status -v", "-q status -v"),
        ("raft leader", "search raft leader"),
        ("-q raft leader -n 3", "-q search raft leader -n 3"),
        ("--callout-icon", "search --callout-icon"),
        ("--json rye", "search --json rye"),
        ("-- status", "search -- status"),
        ("find rye", "search rye"),
        ("ls tags", "list tags"),
        ("help", "--help"),
        ("help config show", "config show --help"),
        ("help me bake", "search help me bake"),
        ("help operators", "help operators"),
        ("help operators of a phone company", "search help operators of a phone company"),
        ("--version", "--version"),
        ("--show-completion=zsh", "--show-completion=zsh"),
        ("", ""),
    ],
)
def test_a_command_line_has_one_meaning(typed, means):
    assert with_command(typed.split()) == means.split()


@given(st.lists(st.text(max_size=8), max_size=4))
def test_a_meaning_is_final(args):
    assert with_command(with_command(args)) == with_command(args)


@given(st.text(min_size=1, max_size=12))
def test_a_bare_word_is_always_searched(word):
    if word in (*COMMANDS, *OTHER_NAMES, *OWN_OPTIONS, "help", "-q", "-v", "--quiet", "--verbose"):
        return
    assert with_command([word]) == ["search", word]
    is_letter = len(word) == 2 and word[0] == "-" and word[1].isalpha()  # an option, if any
    assert _search_first([word]) == ([] if is_letter else ["search", word])


@given(st.sampled_from([name for name in COMMANDS if len(name) > 4]), st.data())
def test_a_command_with_two_typing_errors_is_recognised(name, data):
    letters = list(name)
    for _ in range(2):
        at = data.draw(st.integers(0, len(letters) - 1))
        letters[at] = data.draw(st.sampled_from("aeiouxyz"))
    word = "".join(letters)
    if word not in COMMANDS:
        assert _search_first([word]) == ["search", word]
        for found in (0, 1):
            assert meant_command([word], found).startswith(f"there is no command “{word}”; did you")


@pytest.mark.parametrize(
    ("line", "code", "command"),
    [
        ("water", 0, "watch"),
        ("-q oven", 0, "open"),
        ("inbox -n 3", 0, "index"),
        ("water temperature", 0, ""),
        ("water temperature", 1, "watch"),
        ("serach foo", 1, "search"),
        ("stauts", 3, "status"),
        ("stauts of the project", 2, "status"),
        ("-- water", 1, ""),
        ("search water", 1, ""),
        ("which", 1, ""),
    ],
)
def test_a_hint_at_a_command_follows_a_search_for_words_that_look_like_one(line, code, command):
    hint = meant_command(line.split(), code)

    assert hint.partition("did you mean ")[2] == (f"ragvault {command}?" if command else "")


def test_options_that_a_search_has_too_are_its_options():
    check_command(["stauts", "--vault", "notes", "--json"])


@pytest.mark.parametrize("line", ["idnex notes --rebuild", "confgi init --force", "wathc --stop"])
def test_options_that_only_the_meant_command_has_are_never_searched(line):
    words = line.split()
    with pytest.raises(UsageError, match=f"there is no command “{words[0]}”") as refused:
        check_command(words)
    assert f"ragvault search -- {line}" in refused.value.fix
    assert _search_first(words) == []


def test_a_note_whose_name_is_nearly_a_command_is_found(vault):
    (vault / "Water.md").write_text("# Water\n\nSoft water makes a slack dough.\n")
    ragvault("index", vault, "-q")

    said = ragvault("water")

    assert (said.code, "Water.md" in said.out) == (0, True)
    assert said.err.endswith("there is no command “water”; did you mean ragvault watch?\n")
    assert "did you mean" not in ragvault("water", "-q").err


NO_WORDS = [name for name in COMMANDS if name in ("status", "doctor", "purge", "tune", "models")]


@given(st.sampled_from(NO_WORDS), st.lists(st.sampled_from(["of", "the"]), min_size=2, max_size=4))
@few
def test_words_that_begin_with_a_command_get_the_search_for_them(name, words):
    said = ragvault(name, *words)

    assert said.code == 2
    assert f"to search for these words: ragvault search {' '.join([name, *words])}" in said.err


@pytest.mark.parametrize("name", TAKE_NAMES)
@pytest.mark.parametrize("word", ["everything", "zzyzx"])
def test_a_word_that_nothing_is_called_behind_a_command_gets_the_search_for_it(sample, name, word):
    said = ragvault(name, word)

    assert said.code == 2
    assert f"ragvault search {name} {word}" in said.err or f"ragvault search {word}" in said.err


@pytest.mark.parametrize("line", ["read a/later.md", "index my_notes", "open 123", "read Streem"])
def test_what_looks_like_a_name_gets_no_offer_to_search(line):
    assert asked_for(line.split()) == ""


@pytest.mark.parametrize("name", ["status", "doctor"])
def test_a_folder_after_a_command_that_takes_it_as_an_option_gets_that_option(name, tmp_path):
    said = ragvault(name, tmp_path)

    assert said.code == 2
    assert f"fix: ragvault {name} --vault {tmp_path}" in said.err
    assert "--vault" not in ragvault(name, tmp_path / "nowhere").err


@pytest.mark.parametrize("line", ["status --jsn now", "status", "rye loaf"])
def test_what_is_no_question_gets_no_offer_to_search(line):
    assert instead_of(line.split()) == ""


@pytest.mark.parametrize(
    "word", ["rust", "raft", "rye", "home", "tea", "bread", "which", "Is", "the"]
)
def test_ordinary_short_words_are_searched(word):
    check_command([word])


@pytest.mark.parametrize(
    ("word", "name"),
    [("serch", "search"), ("idnex", "index"), ("lsit", "list"), ("evl", "eval"), ("xyzzy", "")],
)
def test_the_nearest_command(word, name):
    assert misspelt(word, COMMANDS) == name
