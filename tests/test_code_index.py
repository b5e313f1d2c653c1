"""Code is found by the names in it."""

from __future__ import annotations

import sys

import pytest

from ragvault.config.settings import Code, Keyword
from ragvault.fences import LANGUAGES
from ragvault.index.code import CodeAnalyzer, code_words, open_code, sought_code
from ragvault.sought import Phrase, Words
from ragvault.types import Said

ENGINES = ["whoosh", *(["tantivy"] if sys.version_info >= (3, 11) else [])]
CODE = {
    1: ("javascript", "const user = getUserById(42)"),
    2: ("python", "def get_user_by_id(id): return User(id)"),
    3: ("python", "data = parse_json_data(text)\nraise HTTPResponseError"),
    4: ("", "for x in items: print(x)"),
    5: ("js py rs", "send(letter)\nsend_it(letter)\nsend!(letter)"),
}


@pytest.fixture(params=ENGINES)
def index(request, tmp_path):
    index = open_code(tmp_path, Keyword(engine=request.param), Code())
    passages = [
        code_words(id_, 1, Said(id_, 1, b"", (), tuple(langs.split()), ("code",), text))
        for id_, (langs, text) in CODE.items()
    ]
    index.put([], passages)
    index.commit(1)
    yield index
    index.close()


OTHERS = ("c", "lisp", "emacs-lisp", "net", "vb.net", "json", "json-ld", "html+erb", "objective")


@pytest.fixture(params=ENGINES, scope="module")
def labelled(request, tmp_path_factory):
    """One block under every name of every language."""
    folder = tmp_path_factory.mktemp("labelled")
    index = open_code(folder, Keyword(engine=request.param), Code())
    labels = [*(name for names in LANGUAGES for name in names), *OTHERS]
    ids = {label: number for number, label in enumerate(labels)}
    said = [Said(at, 1, b"", (), (label,), (), "getUser()") for label, at in ids.items()]
    index.put([], [code_words(one.id, 1, one) for one in said])
    index.commit(1)
    yield index, ids
    index.close()


def found(index, text, *languages):
    return [hit.passage for hit in index.search(sought_code(text, languages), limit=10).hits]


@pytest.mark.parametrize(
    ("name", "terms"),
    [
        # The seed prints the parts of HTTPResponseError with capitals; terms are small here, or
        # Response would not find response.
        ("getUserById", {"getUserById", "get", "user", "by", "id"}),
        ("parse_json_data", {"parse_json_data", "parse", "json", "data"}),
        ("HTTPResponseError", {"HTTPResponseError", "http", "response", "error"}),
    ],
)
def test_a_name_is_kept_as_written_and_by_its_parts(name, terms):
    assert terms <= {term for term, _ in CodeAnalyzer().tokens([name])}


def test_camel_and_snake_case_find_each_other(index):
    assert set(found(index, "getUserById")[:2]) == {1, 2}
    assert set(found(index, "get_user_by_id")[:2]) == {1, 2}


def test_the_name_as_it_is_written_comes_first(index):
    assert found(index, "getUserById")[0] == 1
    assert found(index, "get_user_by_id")[0] == 2


def test_a_part_finds_the_name(index):
    assert found(index, "json") == [3]
    assert found(index, "response") == [3]


def test_the_language_filters_and_does_not_score(index):
    assert found(index, "user", "python") == [2]
    assert found(index, "user", "py") == [2]
    assert found(index, "user", "js", "python") == found(index, "user")
    assert found(index, "python") == []


@pytest.mark.parametrize("names", LANGUAGES, ids=lambda names: names[0])
def test_every_name_of_a_language_finds_blocks_under_each_of_its_names(labelled, names):
    index, ids = labelled
    for asked in names:
        assert set(found(index, "getUser", asked)) == {ids[name] for name in names}


@pytest.mark.parametrize("asked", ["c", "lisp", "net", "json", "objective"])
def test_a_language_is_not_found_by_a_part_of_its_name(labelled, asked):
    index, ids = labelled
    assert found(index, "getUser", asked) == [ids[asked]]


@pytest.mark.parametrize("language", ["javascript", "js", "python", "rust", "rs"])
def test_a_passage_in_several_languages_is_found_in_each(index, language):
    assert found(index, "letter", language) == [5]
    assert found(index, "letter", "go") == []


def test_words_of_a_language_are_looked_up_in_code(index):
    assert found(index, "for in") == [4]


def test_a_phrase_is_names_in_a_row(index):
    hits = index.search(Phrase("raise HTTPResponseError", field="code"), limit=5).hits
    assert [hit.passage for hit in hits] == [3]


def test_a_name_is_marked_where_it_stands(index):
    text = "call getUserById(1) or userById"
    spans = index.highlight(text, Words("get_user_by_id"))
    assert text[slice(*spans[0])] == "getUserById"
