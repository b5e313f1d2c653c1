"""The keyword index, one suite for every engine."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ragvault.config.settings import Boosts, Keyword
from ragvault.errors import ConfigError, UsageError
from ragvault.index.keyword_fields import note_words, passage_words
from ragvault.index.keyword_open import open_keyword
from ragvault.sought import AllOf, AnyOf, KeywordNote, Not, Phrase, Words
from ragvault.types import Chunk, Note
from tests.keyword_shelves import ENGINES, Shelf, Twin, note, passage


@pytest.fixture(params=ENGINES, scope="module")
def engine(request):
    return request.param


@pytest.fixture
def shelf(engine, tmp_path):
    shelf = Shelf(tmp_path, Keyword(engine=engine))
    yield shelf
    shelf.index.close()


@pytest.fixture(scope="module")
def bakery(engine, tmp_path_factory):
    """Asked by many tests, changed by none."""
    shelf = Shelf(tmp_path_factory.mktemp("bakery"), Keyword(engine=engine))
    shelf.put(
        note(1, "Sourdough bread", aliases="levain", author="Jane Doe"),
        note(2, "C++ notes", tags="lang/cpp"),
        passage(1, 1, "Configuring the oven is an art"),
        passage(2, 1, "Node.js version 18 runs the state of the art"),
        passage(3, 2, "C++ templates and the STL", headers="Generic code"),
        passage(4, 2, "plain C is simpler than bread"),
    )
    yield shelf
    shelf.index.close()


# --- Scores ---


def test_a_score_is_the_formula_over_terms_and_fields(bakery):
    twin = Twin(bakery)
    for query in ("bread", "configuration art", "templates bread oven generic", "levain jane"):
        hits = bakery.ask(Words(query)).hits
        assert hits
        for hit in hits:
            assert hit.score == pytest.approx(twin.score(query, hit.passage), rel=1e-5)


def test_a_score_is_what_raw_counts_give_by_hand(engine, tmp_path):
    """Two notes and three passages, counted by eye; a note's fields are counted once a note."""
    shelf = Shelf(tmp_path, Keyword(engine=engine, exact=0.0, stemming="none"))
    shelf.put(
        note(1, "zebra run"),
        note(2, "cat"),
        passage(1, 1, "zebra zebra dog"),
        passage(2, 1, "dog"),
        passage(3, 2, "zebra cat dog cow", headers="zebra"),
    )

    def bm25(df, documents, tf, length, average, k1=1.2, b=0.75):
        idf = log(1 + (documents - df + 0.5) / (df + 0.5))
        return idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / average))

    title = 3.0 * bm25(df=1, documents=2, tf=1, length=2, average=3 / 2)
    headers = 2.5 * bm25(df=1, documents=3, tf=1, length=1, average=1)  # an empty one counts 1
    want = {
        1: title + 1.0 * bm25(df=2, documents=3, tf=2, length=3, average=8 / 3),
        2: title,
        3: headers + 1.0 * bm25(df=2, documents=3, tf=1, length=4, average=8 / 3),
    }
    found = {hit.passage: hit.score for hit in shelf.ask(Words("zebra")).hits}
    # tantivy keeps scores in single precision, and lengths up to 40 words as they are.
    assert found == pytest.approx(want, rel=1e-9 if engine == "whoosh" else 1e-6)
    shelf.index.close()


def test_a_note_counts_for_each_of_its_passages(bakery):
    hits = bakery.ask(Words("sourdough")).hits
    assert [hit.passage for hit in hits] == [1, 2]
    assert hits[0].note_score == hits[1].note_score == hits[0].score
    assert hits[0].passage_score == 0


def test_the_levels_and_the_fields_add_up(bakery):
    for hit in bakery.ask(Words("bread templates oven C++")).hits:
        assert hit.score == pytest.approx(hit.note_score + hit.passage_score, abs=1e-12)
        assert 0 <= hit.title_score <= hit.note_score + 1e-12


def test_boosts_are_a_matter_of_the_query(engine, tmp_path):
    shelf = Shelf(tmp_path, Keyword(engine=engine))
    shelf.put(note(1, "bread"), note(2, "wine"), passage(1, 1, "x"), passage(2, 2, "bread"))
    assert shelf.ids(Words("bread")) == [1, 2]
    assert shelf.ids(Words("bread"), boosts={"title": 0.1}) == [2, 1]
    (first, *_) = shelf.index.score_of(Words("bread"), [1, 2], boosts={"title": 0.1}).hits
    assert first.passage == 2
    other = Keyword(engine=engine, boosts=Boosts(title=0.0))
    shelf.index.close()
    assert Shelf(tmp_path, other).ids(Words("bread"))[0] == 2


def test_a_score_stays_below_its_bound_and_coverage_is_a_share(bakery):
    answer = bakery.ask(Words("bread oven art art art"))
    assert all(0 < hit.score < answer.bound for hit in answer.hits)
    assert all(0 < hit.coverage <= 1 for hit in answer.hits)
    assert answer.bound == pytest.approx(sum(answer.bounds.values()))


def test_coverage_weighs_words_by_their_rarity(shelf):
    shelf.put(
        note(1),
        *(passage(id_, 1, "common") for id_ in range(10)),
        passage(10, 1, "rare"),
        passage(11, 1, "rare common"),
    )
    covered = {hit.passage: hit.coverage for hit in shelf.ask(Words("rare common")).hits}
    assert covered[11] == pytest.approx(1.0)
    assert covered[0] < covered[10] < 1
    assert covered[0] + covered[10] == pytest.approx(1.0)


def test_a_word_that_is_nowhere_is_not_covered(bakery):
    (hit,) = bakery.ask(Words("oven 9999"), fuzzy=False).hits
    assert hit.coverage < 0.6


def test_given_passages_get_their_true_scores(bakery):
    every = {hit.passage: hit for hit in bakery.ask(Words("bread oven")).hits}
    some = bakery.index.score_of(Words("bread oven"), [4, 1, 3, 99]).hits
    assert {hit.passage for hit in some} == {1, 4}
    for hit in some:
        assert hit.score == pytest.approx(every[hit.passage].score)


def test_equal_scores_go_by_id_and_a_note_may_be_kept_short(shelf):
    shelf.put(
        note(1), note(2), *(passage(id_, 1 + id_ % 2, "same words") for id_ in (9, 3, 7, 4, 5, 8))
    )
    assert shelf.ids(Words("same")) == [3, 4, 5, 7, 8, 9]
    assert shelf.ids(Words("same"), limit=2) == [3, 4]
    assert shelf.ids(Words("same"), per_note=1) == [3, 4]
    assert shelf.ids(Words("same"), limit=3, per_note=2) == [3, 4, 5]


# --- What is found ---


def test_the_name_of_the_file_is_found_whatever_the_title():
    words = note_words(1, Note(path="a/index-2024.md", text="", title="Welcome", tags=("x/y",)))
    assert words.fields["title"] == ("Welcome", "index-2024")
    assert words.fields["tags"] == ("x/y",)


def test_a_passage_is_found_by_its_headers_and_its_text():
    chunk = Chunk(0, 0, ("A", "B"), "prose", frozenset(), frozenset(), 0, 4, (1, 1), (1, 4), "text")
    assert passage_words(7, 1, chunk).fields == {"headers": ("A", "B"), "body": ("text",)}


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
    assert bakery.ids(AllOf((Words("the"), Words("oven")))) == [1]


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
    ("sought", "found"),
    [
        (Words("bread", field="title"), [1, 2]),
        (Words("bread", field="body"), [4]),
        (Words("generic", field="headers"), [3]),
        (Words("levain", field="aliases"), [1, 2]),
        (Words("jane", field="author"), [1, 2]),
        (Words("cpp", field="tags"), [3, 4]),
        (Phrase("sourdough bread", field="title"), [1, 2]),
        (Phrase("sourdough bread", field="body"), []),
        (AllOf((Words("bread"), Not(Words("oven")))), [2, 4]),
        (AllOf((Words("bread"), Words("oven"))), [1]),
        (AllOf((Words("bread"), Not(Phrase("state of the art")))), [1, 4]),
        (AnyOf((Words("oven"), Words("stl"))), [1, 3]),
        (AllOf((AnyOf((Words("oven"), Words("stl"))), Not(Words("sourdough")))), [3]),
        (Not(Words("bread")), [3]),
        (Not(Not(Words("oven"))), [1]),
        (Words("bread oven", every=True), [1]),
        (Words("bread C++", every=True), [4]),
        (Words("nodejs art", every=True), [2]),
        (Words("bread the oven", every=True), [1]),
    ],
)
def test_fields_and_trees_find(bakery, sought, found):
    assert sorted(bakery.ids(sought)) == found


def test_a_tree_may_find_one_word_in_the_note_and_one_in_the_passage(bakery):
    (hit,) = bakery.ask(AllOf((Words("levain"), Words("oven")))).hits
    assert hit.note_score > 0
    assert hit.passage_score > 0


def test_a_field_that_there_is_not_is_refused_with_those_that_there_are(bakery):
    with pytest.raises(UsageError, match="no field colour") as error:
        bakery.ask(Not(Words("red", field="colour")))
    assert "headers" in error.value.fix


def test_a_long_query_answers(bakery):
    assert bakery.ids(Words("oven " * 2000)) == [1]


# --- Filters ---

FILTERS = {
    "ids": lambda ids: np.array(sorted(ids), dtype=np.int64),
    "bitmap": lambda ids: np.isin(np.arange(max(ids, default=0) + 1), list(ids)),
    "test": lambda ids: lambda given: np.isin(given, list(ids)),
}


@pytest.mark.parametrize("kind", FILTERS)
def test_a_filter_is_never_applied_after_the_cut(shelf, kind):
    shelf.put(note(1), *(passage(id_, 1, "word " * (30 - id_ % 30)) for id_ in range(600)))
    allowed = {599, 300, 7}
    hits = shelf.ids(Words("word"), limit=2, allowed=FILTERS[kind](allowed))
    every = [id_ for id_ in shelf.ids(Words("word"), limit=600) if id_ in allowed]
    assert hits == every[:2]


def test_a_filter_that_allows_nothing_finds_nothing(bakery):
    assert bakery.ids(Words("bread"), allowed=np.zeros(0, dtype=np.int64)) == []
    assert bakery.ids(Words("bread"), allowed=np.zeros(0, dtype=bool)) == []


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


@relaxed
@given(vault=vaults, query=st.lists(st.sampled_from(WORDS), min_size=1, max_size=4, unique=True))
@example(
    vault=[("bread", ["bread bread node.js 黑豹队 黑豹队 red-wine red-wine red-wine"])],
    query=["bread"],
)
def test_every_engine_agrees_with_the_formula(tmp_path_factory, vault, query):
    for engine in ENGINES:
        shelf = Shelf(tmp_path_factory.mktemp("law"), Keyword(engine=engine))
        shelf.put(*documents(vault))
        twin = Twin(shelf)
        content = [word for word in query if word != "the"] or query
        for hit in shelf.ask(Words(" ".join(query)), fuzzy=False).hits:
            assert hit.score == pytest.approx(twin.score(" ".join(content), hit.passage), rel=1e-4)
        shelf.index.close()


@pytest.mark.parametrize("engine", ENGINES)
def test_long_fields_agree_with_the_formula_to_the_length_that_the_engine_keeps(tmp_path, engine):
    shelf = Shelf(tmp_path, Keyword(engine=engine))
    lengths = (1, 39, 40, 41, 42, 55, 56, 57, 59, 60, 87, 88, 100, 1_000, 5_000)
    texts = ("bread" + " oven" * (length - 1) for length in lengths)
    shelf.put(note(0), *(passage(id_, 0, text) for id_, text in enumerate(texts)))
    hits = shelf.ask(Words("bread")).hits
    assert len(hits) == len(lengths)
    for hit in hits:
        assert hit.score == pytest.approx(Twin(shelf).score("bread", hit.passage), rel=1e-5)
    shelf.index.close()


@relaxed
@given(
    vault=vaults,
    edits=st.lists(st.tuples(st.integers(0, 14), bodies | st.none()), max_size=6),
    query=bodies,
)
def test_an_index_by_edits_equals_one_from_scratch(tmp_path_factory, vault, edits, query):
    for engine in ENGINES:
        edited = Shelf(tmp_path_factory.mktemp("edited"), Keyword(engine=engine))
        edited.put(*documents(vault))
        for id_, text in edits:
            if text is None:
                edited.remove(passages=[id_])
            else:
                edited.put(passage(id_, id_ % 3, text))
        edited.compact()
        fresh = Shelf(tmp_path_factory.mktemp("fresh"), Keyword(engine=engine))
        fresh.put(*edited.notes.values(), *edited.passages.values())
        mine, theirs = edited.ask(Words(query)).hits, fresh.ask(Words(query)).hits
        assert [hit.passage for hit in mine] == [hit.passage for hit in theirs]
        assert [hit.score for hit in mine] == pytest.approx([hit.score for hit in theirs])
        edited.index.close()
        fresh.index.close()


@relaxed
@given(vault=vaults, query=bodies, allowed=st.sets(st.integers(0, 14)), limit=st.integers(1, 5))
def test_a_filter_equals_searching_everything_and_throwing_away(
    tmp_path_factory, vault, query, allowed, limit
):
    for engine in ENGINES:
        shelf = Shelf(tmp_path_factory.mktemp("filter"), Keyword(engine=engine))
        shelf.put(*documents(vault))
        every = [id_ for id_ in shelf.ids(Words(query)) if id_ in allowed]
        assert shelf.ids(Words(query), limit, allowed=FILTERS["ids"](allowed)) == every[:limit]
        shelf.index.close()


# --- Settings ---


def test_tantivy_refuses_another_k1_or_b(tmp_path):
    with pytest.raises(ConfigError, match=r"fixed at 1\.2 and 0\.75") as error:
        open_keyword(tmp_path, Keyword(engine="tantivy", k1=0.9))
    assert "whoosh" in error.value.fix


def test_k1_and_b_are_settings_of_whoosh(tmp_path):
    for own in (Keyword(k1=0.0), Keyword(b=0.0), Keyword(k1=2.0, b=0.3)):
        shelf = Shelf(tmp_path / str(own.k1) / str(own.b), own)
        shelf.put(note(1), passage(1, 1, "bread bread wine"), passage(2, 1, "bread"))
        for hit in shelf.ask(Words("bread")).hits:
            assert hit.score == pytest.approx(Twin(shelf).score("bread", hit.passage))


def test_an_answer_that_ran_out_of_time_says_so(tmp_path):
    shelf = Shelf(tmp_path, Keyword())
    shelf.put(note(1), passage(1, 1, "bread and wine"))
    answer = shelf.ask(Words("bread wine"), seconds=0.0)
    assert not answer.complete
    assert shelf.ask(Words("bread wine")).complete


def test_of_equal_passages_the_first_ids_come_first_however_they_came_in(shelf):
    shelf.put(*(note(at, "x") for at in range(1, 601)))
    shelf.put(*(passage(at, at, "bread") for at in range(1, 601)))
    shelf.put(*(passage(at, at, "bread") for at in (1, 2, 3)))
    assert shelf.ids(Words("bread"), limit=10) == list(range(1, 11))


def test_a_field_that_weighs_nothing_is_still_found(shelf):
    shelf.put(note(1, "x", tags="daily"), note(2, "daily"))
    shelf.put(passage(1, 1, "salt"), passage(2, 2, "daily oven"), passage(3, 2, "salt"))
    for boosts in ({"tags": 0.0}, {"title": 0.0}, {"body": 0.0, "tags": 0.0}):
        found = shelf.ask(Words("daily"), boosts=boosts).hits
        assert {hit.passage for hit in found} == {1, 2, 3}
        assert {hit.coverage for hit in found} == {1.0}
        told = shelf.index.score_of(Words("daily"), [1, 2, 3], boosts=boosts).hits
        assert {(hit.passage, hit.coverage) for hit in told} == {(1, 1.0), (2, 1.0), (3, 1.0)}
