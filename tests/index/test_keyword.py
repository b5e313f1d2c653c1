"""The keyword index, one suite for every engine."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ragvault.config.settings import Boosts
from ragvault.errors import UsageError
from ragvault.index.keyword.fields import code_in, note_words, passage_words
from ragvault.plan import And, KeywordNote, Not, Or, Phrase, Words
from ragvault.text.analyze import Analyzer
from ragvault.types import Note, Passage
from tests.keyword_kit import ENGINES, Oracle, Shelf, note, passage

ENGLISH = Analyzer()


@pytest.fixture(params=ENGINES, scope="module")
def engine(request):
    return request.param


@pytest.fixture
def shelf(engine, tmp_path):
    shelf = Shelf(tmp_path, engine)
    yield shelf
    shelf.close()


@pytest.fixture(scope="module")
def bakery(engine, tmp_path_factory):
    """SearchRequest by many tests, changed by none."""
    shelf = Shelf(tmp_path_factory.mktemp("bakery"), engine)
    shelf.put(
        note(1, "Sourdough bread", aliases="levain", author="Jane Doe"),
        note(2, "C++ notes", tags="lang/cpp"),
        passage(1, 1, "Configuring the oven is an art"),
        passage(2, 1, "Node.js version 18 runs the state of the art"),
        passage(3, 2, "C++ templates and the STL", headers="Generic code"),
        passage(4, 2, "plain C is simpler than bread"),
    )
    yield shelf
    shelf.close()


# --- Scores ---


def test_a_score_is_boost_times_bm25_by_hand(engine, tmp_path, monkeypatch):
    """Documents are counted by kind; a body of usual length scores its idf, and a passage, which
    has no title, counts as one word long there."""
    monkeypatch.setattr("ragvault.index.keyword.index.AS_TYPED", 0.0)
    shelf = Shelf(tmp_path, engine)
    shelf.put(
        note(1, "zebra run"),
        note(2, "cat walk"),
        passage(1, 1, "zebra dog"),
        passage(2, 1, "dog fish"),
        passage(3, 2, "cow fish"),
    )
    mean = (2 + 2 + 1 + 1 + 1) / 5
    title = log(1 + 1.5 / 1.5) * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 2 / mean))
    body = log(1 + 2.5 / 1.5)
    found = {hit.passage: hit for hit in shelf.ask(Words("zebra")).hits}
    assert found[1].note_score == pytest.approx(3.0 * title, rel=1e-5)
    assert found[1].title_score == found[1].note_score
    assert found[1].passage_score == pytest.approx(body, rel=1e-5)
    assert found[2].score == pytest.approx(3.0 * title, rel=1e-5)
    assert shelf.ask(Words("zebra")).bounds["body"] == pytest.approx(2.2 * body)
    shelf.close()


def test_a_note_counts_for_each_of_its_passages(bakery):
    hits = bakery.ask(Words("sourdough")).hits
    assert [hit.passage for hit in hits] == [1, 2]
    assert hits[0].note_score == hits[1].note_score == hits[0].score
    assert hits[0].passage_score == 0


def test_the_levels_and_the_fields_add_up(bakery):
    for hit in bakery.ask(Words("bread templates oven C++")).hits:
        assert hit.score == pytest.approx(hit.note_score + hit.passage_score, abs=1e-12)
        assert 0 <= hit.title_score <= hit.note_score + 1e-12


def test_boosts_are_a_matter_of_the_search(shelf):
    shelf.put(note(1, "bread"), note(2, "wine"), passage(1, 1, "x"), passage(2, 2, "bread"))
    assert shelf.ids(Words("bread")) == [1, 2]
    other = shelf.with_settings(boosts=Boosts(title=0.1))
    assert other.ids(Words("bread")) == [2, 1]
    (first, *_) = other.index.score_of(Words("bread"), [1, 2]).hits
    assert first.passage == 2
    other.close()


def test_a_score_stays_below_its_bound_and_coverage_is_a_share(bakery):
    answer = bakery.ask(Words("bread oven art art art"))
    assert all(0 < hit.score < answer.bound for hit in answer.hits)
    assert all(0 < share <= 1 for share in bakery.coverage(Words("bread oven art")).values())
    assert answer.bound == pytest.approx(sum(answer.bounds.values()))


def test_coverage_weighs_words_by_their_rarity(shelf):
    shelf.put(
        note(1),
        *(passage(id_, 1, "common") for id_ in range(10)),
        passage(10, 1, "rare"),
        passage(11, 1, "rare common"),
    )
    covered = shelf.coverage(Words("rare common"))
    assert covered[11] == pytest.approx(1.0)
    assert covered[0] < covered[10] < 1
    assert covered[0] + covered[10] == pytest.approx(1.0)


def test_a_word_that_is_nowhere_is_not_covered(bakery):
    assert bakery.coverage(Words("oven 9999"))[1] < 0.6


def test_coverage_of_many_words_tells_each_of_them(shelf):
    words = [f"w{letter}{other}" for letter in "bcdfg" for other in "hjklmnp"]
    shelf.put(note(1), passage(1, 1, " ".join(words[::2])), passage(2, 1, " ".join(words)))
    shelf.put(note(2, words[1]), passage(3, 2, words[30]))
    covered = shelf.coverage(Words(" ".join(words)))
    assert covered[2] == pytest.approx(1.0)
    assert 0.3 < covered[1] < 0.4
    assert 0.03 < covered[3] < 0.1


def test_a_stop_word_is_not_the_word_that_has_it_for_a_stem(shelf):
    shelf.put(note(1), passage(1, 1, "a daily, but not this"), passage(2, 1, "daily nots"))
    covered = shelf.coverage(Words("daily nots"))
    assert covered[1] < 0.9
    assert covered[2] == pytest.approx(1.0)


def test_without_coverage_hits_have_none(bakery):
    assert {hit.coverage for hit in bakery.ask(Words("bread oven"), coverage=False).hits} == {0.0}


def test_coverage_counts_the_words_of_the_note_once_with_those_of_the_passage(shelf):
    shelf.put(note(1, "Rye bread", tags="baking"), note(2, "Wine"))
    shelf.put(passage(1, 1, "breads of rye"), passage(2, 1, "an oven"), passage(3, 2, "rye baked"))
    shelf.put(passage(4, 2, "an oven", "Baking", "rye()"))
    covered = shelf.coverage(Words("rye bread baking"))
    assert covered[1] == covered[2] == pytest.approx(1.0)
    assert 0 < covered[4] < covered[3] < 1
    some = shelf.index.score_of(Words("rye bread baking"), [4, 2]).hits
    assert {hit.passage: hit.coverage for hit in some} == {2: covered[2], 4: covered[4]}


def test_given_passages_get_their_true_scores(bakery):
    every = {hit.passage: hit for hit in bakery.ask(Words("bread oven")).hits}
    some = bakery.index.score_of(Words("bread oven"), [4, 1, 3, 99]).hits
    assert {hit.passage for hit in some} == {1, 4}
    for hit in some:
        assert hit.score == pytest.approx(every[hit.passage].score)


def test_equal_scores_go_by_id(shelf):
    shelf.put(
        note(1), note(2), *(passage(id_, 1 + id_ % 2, "same words") for id_ in (9, 3, 7, 4, 5, 8))
    )
    assert shelf.ids(Words("same")) == [3, 4, 5, 7, 8, 9]
    assert shelf.ids(Words("same"), limit=2) == [3, 4]


# --- What is found ---


def test_the_name_of_the_file_is_found_whatever_the_title():
    words = note_words(1, Note(path="a/index-2024.md", text="", title="Welcome", tags=("x/y",)))
    assert words.fields["title"] == ("Welcome", "index-2024")
    assert words.fields["tags"] == ("x/y",)


def test_the_names_and_values_of_properties_are_found(shelf):
    properties = {"title": "x", "status": "blocked", "due": 2024, "people": ["Ada", {"x": "Bob"}]}
    words = note_words(1, Note(path="a.md", text="", title="x", properties=properties))
    assert words.fields["properties"] == ("status blocked", "due 2024", "people Ada", "Bob")
    shelf.put(words, passage(1, 1, "text"))
    assert shelf.ids(Words("blocked")) == shelf.ids(Words("ada")) == shelf.ids(Words("2024")) == [1]
    assert shelf.ids(Words("status")) == [1]
    assert shelf.ids(Words("bob", field="properties")) == [1]


def test_a_passage_is_found_by_its_headers_and_its_text():
    passage = Passage(
        0, 0, ("A", "B"), "prose", frozenset(), frozenset(), 0, 4, (1, 1), (1, 4), "text"
    )
    assert passage_words(7, 1, passage).fields == {"headers": ("A", "B"), "body": ("text",)}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("configuration", [1]),
        ("C++", [3, 4]),
        ("nodejs", [2]),
        ("version18", [2]),
        ("GENERIC", [3]),
        ("lang/cpp", [3, 4]),
        ("", []),
        ("???", []),
        ("🙂", []),
        ("\u00ad", []),
        ("'; DROP TABLE wine; --", []),
    ],
)
def test_words_find(bakery, query, found):
    assert sorted(bakery.ids(Words(query), fuzzy=False)) == found


def test_the_exact_form_comes_before_another_of_its_stem(shelf):
    shelf.put(note(1), passage(1, 1, "one test more"), passage(2, 1, "many tests more"))
    assert shelf.ids(Words("tests")) == [2, 1]
    assert shelf.ids(Words("test")) == [1, 2]


def test_accents_fold_and_the_accented_comes_first_when_it_was_typed(shelf):
    shelf.put(note(1), passage(1, 1, "a resume here"), passage(2, 1, "a résumé here"))
    assert shelf.ids(Words("résumé")) == [2, 1]
    assert shelf.ids(Words("resume")) == [1, 2]


def test_points_of_hebrew_and_arabic_fold_and_the_pointed_comes_first_when_it_was_typed(shelf):
    shelf.put(note(1), passage(1, 1, "كتاب جديد"), passage(2, 1, "كِتَاب جديد"))
    shelf.put(passage(3, 1, "שלום עולם"), passage(4, 1, "שָׁלוֹם עולם"))
    assert shelf.ids(Words("كِتَاب")) == [2, 1]
    assert shelf.ids(Words("كتاب")) == [1, 2]
    assert shelf.ids(Words("שָׁלוֹם")) == [4, 3]
    assert shelf.ids(Words("שלום")) == [3, 4]


def test_a_compound_with_an_accent_finds_what_one_without_finds(shelf):
    shelf.put(note(1), passage(1, 1, "cooperation of states"), passage(2, 1, "coopération"))
    shelf.put(passage(3, 1, "an email"))
    for query in ("co-operation", "co-opération"):
        assert sorted(shelf.ids(Words(query))) == [1, 2]
        assert sorted(shelf.ids(Words(query, every=True))) == [1, 2]
    assert shelf.ids(Words("co-opération"))[0] == 2
    assert shelf.ids(Words("é-mail")) == [3]


@pytest.mark.parametrize("sign", ["\u00ad", "\u200b", "\u200d", "\u2060", "\ufeff"])
def test_what_is_not_seen_parts_no_word(shelf, sign):
    shelf.put(note(1), passage(1, 1, f"an exam{sign}ple here"), passage(2, 1, "an example here"))
    assert shelf.ids(Words("example")) == [1, 2]
    assert shelf.ids(Words(f"ex{sign}ample")) == [1, 2]
    assert shelf.ids(Phrase("an example here")) == [1, 2]
    text = f"say: exam{sign}ple!"
    spans = shelf.index.highlight(text, Words("example"))
    assert [text[start:end] for start, end in spans] == [f"exam{sign}ple"]


def test_an_emoji_is_found(shelf):
    shelf.put(note(1, "🎉 Party"), note(2, "x", tags="❤️"), note(3), passage(1, 1, "cake"))
    shelf.put(passage(2, 2, "tea"), passage(3, 3, "we won 🎉🎉"), passage(4, 3, "by 👩‍💻 🇩🇪"))
    assert sorted(shelf.ids(Words("🎉"))) == [1, 3]
    assert shelf.ids(Words("❤")) == shelf.ids(Words("❤️")) == [2]
    assert shelf.ids(Words("💻")) == shelf.ids(Words("🇩🇪")) == [4]
    assert shelf.ids(Words("🇪🇩")) == []
    assert shelf.index.highlight("we won 🎉", Words("🎉")) == [(7, 8)]


def test_phrases_are_found_in_the_last_of_a_thousand_aliases(shelf):
    many = tuple(f"alias{at} word{at}" for at in range(1000))
    shelf.put(KeywordNote(1, {"title": ("t",), "aliases": many}), passage(1, 1, "x"))
    assert shelf.ids(Phrase("alias999 word999")) == [1]
    assert shelf.ids(Phrase("word998 alias999")) == []


def test_stop_words_are_looked_up_only_when_nothing_else_is_left(bakery):
    assert bakery.ids(Words("the oven")) == [1]
    assert sorted(bakery.ids(Words("the"))) == [1, 2, 3]
    assert bakery.ids(And((Words("the"), Words("oven")))) == [1]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("state of the art", [2]),
        ("art of the state", []),
        ("C++ templates", [3]),
        ("C templates", [3]),
        ("Node.js version", [2]),
        ("node js version", [2]),
        ("js version 18", [2]),
        ("Sourdough bread", [1, 2]),
        ("generic code", [3]),
        ("configure the oven", []),
        ("configuring the oven", [1]),
        ("the", [1, 2, 3]),
    ],
)
def test_phrases_find_words_in_a_row(bakery, text, found):
    assert sorted(bakery.ids(Phrase(text))) == found


def test_a_phrase_takes_words_as_they_are_written(shelf):
    shelf.put(note(1), passage(1, 1, "a unit test"), passage(2, 1, "two unit tests"))
    assert shelf.ids(Phrase("unit test")) == [1]
    assert shelf.ids(Phrase("unit tests")) == [2]
    assert sorted(shelf.ids(Words("unit test"))) == [1, 2]


def test_a_chinese_phrase_is_a_row_of_pairs(shelf):
    shelf.put(note(1), passage(1, 1, "黑豹队的防守"), passage(2, 1, "防守的黑豹队"))
    assert shelf.ids(Phrase("黑豹队的")) == [1]
    assert sorted(shelf.ids(Words("黑豹"))) == [1, 2]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (Words("bread", field="title"), [1, 2]),
        (Words("bread", field="body"), [4]),
        (Words("generic", field="headers"), [3]),
        (Words("levain", field="aliases"), [1, 2]),
        (Words("jane", field="author"), [1, 2]),
        (Words("cpp", field="tags"), [3, 4]),
        (Phrase("sourdough bread", field="title"), [1, 2]),
        (Phrase("sourdough bread", field="body"), []),
        (And((Words("bread"), Not(Words("oven")))), [2, 4]),
        (And((Words("bread"), Words("oven"))), [1]),
        (And((Words("bread"), Not(Phrase("state of the art")))), [1, 4]),
        (Or((Words("oven"), Words("stl"))), [1, 3]),
        (And((Or((Words("oven"), Words("stl"))), Not(Words("sourdough")))), [3]),
        (Not(Words("bread")), [3]),
        (Not(Not(Words("oven"))), [1]),
        (Words("bread oven", every=True), [1]),
        (Words("bread C++", every=True), [4]),
        (Words("nodejs art", every=True), [2]),
        (Words("bread the oven", every=True), [1]),
    ],
)
def test_fields_and_trees_find(bakery, query, found):
    assert sorted(bakery.ids(query)) == found


def test_a_tree_may_find_one_word_in_the_note_and_one_in_the_passage(bakery):
    (hit,) = bakery.ask(And((Words("levain"), Words("oven")))).hits
    assert hit.note_score > 0
    assert hit.passage_score > 0


def test_a_field_that_there_is_not_is_refused_with_those_that_there_are(bakery):
    with pytest.raises(UsageError, match="no field colour") as error:
        bakery.ask(Not(Words("red", field="colour")))
    assert "headers" in error.value.fix


def test_a_long_query_answers(bakery):
    assert bakery.ids(Words("oven " * 2000)) == [1]


# --- Filters ---


def ids_of(*ids):
    return np.array(sorted(ids), dtype=np.int64)


def test_a_filter_is_never_applied_after_the_cut(shelf):
    shelf.put(note(1), *(passage(id_, 1, "word " * (30 - id_ % 30)) for id_ in range(600)))
    allowed = {599, 300, 7}
    hits = shelf.ids(Words("word"), limit=2, allowed=ids_of(*allowed))
    every = [id_ for id_ in shelf.ids(Words("word"), limit=600) if id_ in allowed]
    assert hits == every[:2]


def test_a_broad_filter_fetches_until_there_are_enough(shelf, monkeypatch):
    monkeypatch.setattr("ragvault.index.keyword.index.FETCH", 20)
    monkeypatch.setattr("ragvault.index.keyword.index.FEW", 5)
    shelf.put(
        note(1), *(passage(id_, 1, "word " * (id_ % 30 + 1) + "x " * 30) for id_ in range(400))
    )
    every = shelf.ids(Words("word"), limit=400)
    assert len(every) == 400
    worst = ids_of(*every[-50:])
    assert shelf.ids(Words("word"), limit=10, allowed=worst) == every[-50:-40]


def test_a_filter_that_allows_nothing_finds_nothing(bakery):
    assert bakery.ids(Words("bread"), allowed=np.zeros(0, dtype=np.int64)) == []


# --- Laws ---

WORDS = ["bread", "oven", "node.js", "C++", "test", "tests", "the", "黑豹队", "résumé", "red-wine"]
bodies = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
vaults = st.lists(
    st.tuples(bodies, st.lists(bodies, min_size=1, max_size=3)), min_size=1, max_size=5
)
relaxed = settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def documents(vault):
    number = 0
    for at, (title, texts) in enumerate(vault):
        yield note(at, title)
        for text in texts:
            yield passage(number, at, text)
            number += 1


parts = st.sampled_from(WORDS)
leaf = st.one_of(
    parts.map(Words),
    st.lists(parts, min_size=1, max_size=2).map(lambda some: Words(" ".join(some), every=True)),
    st.lists(parts, min_size=1, max_size=3).map(lambda some: Phrase(" ".join(some))),
    parts.map(lambda word: Words(word, field="title")),
)
trees = st.recursive(
    leaf,
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3).map(lambda some: And(tuple(some)))
        | st.lists(inner, min_size=1, max_size=3).map(lambda some: Or(tuple(some)))
        | inner.map(Not)
    ),
    max_leaves=4,
)


@relaxed
@given(vault=vaults, query=trees)
@example(vault=[("test", ["oven"])], query=Or((Words("the"), Not(Words("bread")))))
def test_every_engine_finds_what_looking_at_each_passage_finds(tmp_path_factory, vault, query):
    for engine in ENGINES:
        shelf = Shelf(tmp_path_factory.mktemp("law"), engine)
        shelf.put(*documents(vault))
        want = Oracle(shelf).ids(query)
        if "the" not in str(query):  # a stop word counts only where nothing else is asked
            assert sorted(shelf.ids(query, fuzzy=False)) == want
            assert shelf.index.matching(query).tolist() == want
        shelf.close()


@relaxed
@given(
    vault=vaults,
    edits=st.lists(st.tuples(st.integers(0, 14), bodies | st.none()), max_size=6),
    query=bodies,
)
def test_an_index_by_edits_equals_one_from_scratch(tmp_path_factory, vault, edits, query):
    for engine in ENGINES:
        edited = Shelf(tmp_path_factory.mktemp("edited"), engine)
        edited.put(*documents(vault))
        for id_, text in edits:
            if text is None:
                edited.remove(passages=[id_])
            else:
                edited.put(passage(id_, id_ % 3, text))
        fresh = Shelf(tmp_path_factory.mktemp("fresh"), engine)
        fresh.put(*edited.notes.values(), *edited.passages.values())
        # Stock engines count removed documents in idf until they merge: the same passages, and
        # not always the same order.
        assert sorted(edited.ids(Words(query))) == sorted(fresh.ids(Words(query)))
        assert edited.index.passages().tolist() == sorted(edited.passages)
        edited.close()
        fresh.close()


@relaxed
@given(vault=vaults, query=bodies, allowed=st.sets(st.integers(0, 14)), limit=st.integers(1, 5))
def test_a_filter_equals_searching_everything_and_throwing_away(
    tmp_path_factory, vault, query, allowed, limit
):
    for engine in ENGINES:
        shelf = Shelf(tmp_path_factory.mktemp("filter"), engine)
        shelf.put(*documents(vault))
        every = [id_ for id_ in shelf.ids(Words(query)) if id_ in allowed]
        assert shelf.ids(Words(query), limit, allowed=ids_of(*allowed)) == every[:limit]
        shelf.close()


# --- Settings ---


def test_an_answer_that_ran_out_of_time_says_so(tmp_path):
    shelf = Shelf(tmp_path, "whoosh")
    shelf.put(note(1), passage(1, 1, "bread and wine"))
    assert shelf.ask(Words("bread wine")).complete
    hasty = shelf.with_settings(seconds=0.0)
    assert not hasty.ask(Words("bread wine")).complete
    assert hasty.index.matching(Words("bread wine")) is None
    hasty.close()


def test_what_is_not_wanted_is_not_found_for_want_of_time(shelf):
    shelf.put(note(1), passage(1, 1, "bread and wine"), passage(2, 1, "bread"))
    hasty = shelf.with_settings(seconds=0.0)
    assert hasty.ids(And((Words("bread"), Not(Phrase("and wine"))))) == []
    hasty.close()


def test_of_equal_passages_the_first_ids_come_first_however_they_came_in(shelf):
    shelf.put(*(note(at, "x") for at in range(1, 601)))
    shelf.put(*(passage(at, at, "bread") for at in range(1, 601)))
    shelf.put(*(passage(at, at, "bread") for at in (1, 2, 3)))
    assert shelf.ids(Words("bread"), limit=10) == list(range(1, 11))


def test_a_field_that_weighs_nothing_is_still_found(shelf):
    shelf.put(note(1, "x", tags="daily"), note(2, "daily"))
    shelf.put(passage(1, 1, "salt"), passage(2, 2, "daily oven"), passage(3, 2, "salt"))
    for boosts in ({"tags": 0.0}, {"title": 0.0}, {"body": 0.0, "tags": 0.0}):
        other = shelf.with_settings(boosts=Boosts(**boosts))
        found = other.ask(Words("daily")).hits
        assert {hit.passage for hit in found} == {1, 2, 3}
        told = other.index.score_of(Words("daily"), [1, 2, 3]).hits
        assert {hit.passage for hit in told} == {1, 2, 3}
        other.close()


# --- Code ---

CODE = {
    1: "const user = getUserById(42)",
    2: "def get_user_by_id(id): return User(id)",
    3: "data = parse_json_data(text)\nraise HTTPResponseError",
    4: "for x in items: print(x)",
}


@pytest.fixture(scope="module")
def coded(engine, tmp_path_factory):
    shelf = Shelf(tmp_path_factory.mktemp("coded"), engine)
    shelf.put(note(1), *(passage(id_, 1, "prose", code=code) for id_, code in CODE.items()))
    shelf.put(passage(5, 1, "a plain sentence about getUserById and the longest json"))
    yield shelf
    shelf.close()


def in_code(shelf, text):
    return shelf.ids(Words(text, field="code"), fuzzy=False)


def test_camel_and_snake_case_find_each_other_and_the_one_typed_comes_first(coded):
    assert in_code(coded, "getUserById")[:2] == [1, 2]
    assert in_code(coded, "get_user_by_id")[:2] == [2, 1]


def test_code_is_found_by_parts_of_its_names_and_by_words_of_its_language(coded):
    assert in_code(coded, "json") == [3]
    assert in_code(coded, "response") == [3]
    assert in_code(coded, "for in") == [4]
    assert coded.ids(Phrase("raise HTTPResponseError", field="code")) == [3]


def test_code_holds_code_only_and_is_not_among_words(coded):
    assert in_code(coded, "longest") == []
    assert 5 not in in_code(coded, "getUserById")
    assert coded.ids(Words("getUserById")) == [5]


@pytest.mark.parametrize(
    ("text", "block", "code"),
    [
        ("a sentence", False, ()),
        ("say `ls -l` or ``a`b``", False, ("ls -l", "a`b")),
        ("before\n```py\nx = 1\n```\nafter `y`", True, ("x = 1\n", "y")),
        ("> - ~~~\n> x = 1\n> ~~~", True, ("> x = 1\n",)),
        ("x = 1\n```\nafter", True, ("x = 1\n",)),
        ("before\n```py\nx = 1", True, ("x = 1",)),
        ("the middle of a block", True, ("the middle of a block",)),
    ],
)
def test_code_is_fences_and_inline_code(text, block, code):
    assert code_in(text, block) == code
