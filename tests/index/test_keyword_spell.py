"""Near spellings, one suite for every engine."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ragvault.config.settings import Boosts
from ragvault.plan import Or, Phrase, Words
from ragvault.text.spelling import near, near_words
from tests.keyword_kit import ENGINES, Shelf, note, passage


@pytest.fixture(params=ENGINES)
def shelf(request, tmp_path):
    shelf = Shelf(tmp_path, request.param)
    yield shelf
    shelf.close()


def test_a_misspelt_word_finds_its_near_spelling_and_says_so(shelf):
    shelf.put(note(1, "Sourdough bread"), note(2), passage(1, 1, "oven"), passage(2, 1, "art"))
    shelf.put(passage(3, 2, "templates"))
    answer = shelf.ask(Words("sourdouhg"))
    assert [hit.passage for hit in answer.hits] == [1, 2]
    assert all(hit.fuzzy for hit in answer.hits)
    assert answer.spellings == {"sourdouhg": ("sourdough",)}
    assert shelf.ids(Words("sourdouhg"), fuzzy=False) == []


@pytest.mark.parametrize("word", ["1385", "PIO-1385", "cas", "v1.2.4"])
def test_digits_and_short_words_are_never_guessed_at(shelf, word):
    shelf.put(note(1), passage(1, 1, "about PIO-1384, v1.2.3, 1384 and a cat"))
    assert not any(hit.fuzzy for hit in shelf.ask(Words(word)).hits)


def test_what_was_asked_before_does_not_change_an_answer(shelf):
    shelf.put(note(1), passage(1, 1, "a sourdaugh"), passage(2, 1, "a sourdough and rye"))
    shelf.remove(passages=[1])
    first = shelf.ask(Words("sourdaugh"))
    for other in ("rye", "sourdough", "and a"):
        shelf.ask(Words(other))
    again, anew = shelf.ask(Words("sourdaugh")), shelf.reopened().ask(Words("sourdaugh"))
    assert (first.hits, first.spellings) == (again.hits, again.spellings)
    assert (first.hits, first.spellings) == (anew.hits, anew.spellings)


def test_scores_of_given_passages_are_those_of_a_search(shelf):
    bodies = ("bread and rye", "rye", "bread bread wheat", "nothing of it", "wheat bread")
    shelf.put(note(1, "Bread"), note(2, "Rye", tags="bread"))
    shelf.put(*(passage(at, 1 + at % 2, body) for at, body in enumerate(bodies, 1)))
    shelf.put(note(3, "Wholemeal"), passage(6, 3, "wholemeal wholemeal"), passage(7, 3, "salt"))
    guesses = ("wholmeal", "wholmeal bread", "breadd wholmeal wheat")
    for query in ("bread", "rye wheat", "bread rye nothing", "zebra", *guesses):
        found = {hit.passage: hit for hit in shelf.ask(Words(query)).hits}
        for some in ([1, 2, 3, 4, 5, 6, 7], [4], [5, 2], [6], [7, 5]):
            told = shelf.index.score_of(Words(query), some)
            assert {hit.passage for hit in told.hits} == found.keys() & set(some)
            for hit in told.hits:
                assert hit.fuzzy == found[hit.passage].fuzzy
                assert hit.score == pytest.approx(found[hit.passage].score, rel=1e-6)
                for part in ("note_score", "passage_score", "title_score"):
                    ours, theirs = getattr(hit, part), getattr(found[hit.passage], part)
                    assert ours == pytest.approx(theirs, rel=1e-6)


def test_a_word_that_is_found_is_not_guessed_at(shelf):
    shelf.put(note(1), passage(1, 1, "kuberntes"), passage(2, 1, "kubernetes " * 9))
    assert shelf.ids(Words("kuberntes")) == [1]


def test_a_guess_is_never_above_an_exact_hit(shelf):
    shelf.put(
        note(1),
        passage(1, 1, "closures " + "filler words of all kinds " * 8),
        passage(2, 1, "javascript javascript"),
        passage(3, 1, "javascript closures"),
    )
    hits = shelf.ask(Words("javscript closures")).hits
    assert [(hit.passage, hit.fuzzy) for hit in hits] == [(3, False), (1, False), (2, True)]
    assert hits[1].score > hits[2].score


def test_a_guess_stands_below_an_exact_hit_that_scores_nothing(shelf):
    shelf.put(note(1, "t"), note(2, "x", tags="deployment"))
    shelf.put(passage(1, 1, "kubernetes cluster"), passage(2, 2, "it is to be there"))
    shelf.put(passage(3, 1, "kubernetes x kubernetes"), passage(4, 1, "deployment"))
    found = shelf.ids(Or((Phrase("to be"), Words("kuberntes"))))
    assert found == [2, 3, 1]
    boosts = {"tags": 0.0}
    assert shelf.ids(Words("kuberntes deployment"), boosts=boosts) == [4, 2, 3, 1]


def test_guesses_count_among_the_few_of_a_note(shelf):
    shelf.put(note(1, "t"), note(2, "u"), passage(1, 1, "deployment guide"))
    shelf.put(passage(2, 1, "kubernetes cluster"), passage(3, 2, "kubernetes again"))
    assert shelf.ids(Words("kuberntes deployment"), per_note=1) == [1, 3]
    assert shelf.ids(Words("kuberntes deployment"), limit=2, per_note=1) == [1, 3]


def test_a_word_that_only_removed_notes_hold_is_no_spelling(shelf):
    shelf.put(note(1, "t"), note(2, "u"), passage(1, 1, "zanzibar kubernetas"))
    shelf.put(passage(2, 2, "kubernetes cluster"), passage(3, 2, "about kubernetes"))
    shelf.remove([1], [1])
    assert shelf.ask(Words("zanzibat")).spellings == {}
    # One slip from what was removed and two from what is there.
    for query in ("kubernetaz", "kubernetas"):
        answer = shelf.ask(Words(query))
        assert answer.spellings == {query: ("kubernetes",)}
        assert sorted(hit.passage for hit in answer.hits) == [2, 3]


def test_the_first_letter_may_be_missing(shelf):
    shelf.put(note(1), passage(1, 1, "kubernetes"), passage(2, 1, "harbour"))
    assert shelf.ask(Words("ubernetes")).spellings == {"ubernetes": ("kubernetes",)}
    assert shelf.ask(Words("arbour", field="body")).spellings == {"arbour": ("harbour",)}


@pytest.mark.parametrize("query", ["node-kuberntes", "kuberntesCluster", "kuberntes_node"])
def test_a_misspelt_part_of_a_compound_is_guessed_at(shelf, query):
    shelf.put(note(1), passage(1, 1, "a kubernetes node in a cluster"), passage(2, 1, "salt"))
    answer = shelf.ask(Words(query))
    assert answer.spellings == {"kuberntes": ("kubernetes",)}
    assert [hit.passage for hit in answer.hits] == [1]
    (hit,) = shelf.ask(Words(query, every=True)).hits
    assert hit.fuzzy


def test_parts_of_a_compound_that_is_found_are_not_guessed_at(shelf):
    shelf.put(note(1), passage(1, 1, "an emailadress"), passage(2, 1, "a mailaddress"))
    assert shelf.ask(Words("e-mailadress")).spellings == {}


@pytest.mark.parametrize(
    ("word", "other", "slips"),
    [("abcd", "abcd", 0), ("abcd", "abdc", 1), ("abcd", "abc", 1), ("abcd", "abcde", 1),
     ("abcd", "axcd", 1), ("abcdefgh", "badcefgh", 2), ("abcd", "wxyz", 4)],
)  # fmt: skip
def test_slips_are_counted(word, other, slips):
    assert dict(near_words(word, [other, "abcdefghij"], 9))[other] == slips


def test_near_spellings_are_the_nearest_only():
    words = {"bread", "broad", "breads", "bred", "beard"}
    find = {"bread": "braed", "nothing": "qqqqqq"}
    begins = lambda start: [word for word in words if word.startswith(start)]  # noqa: E731
    assert near(find["bread"], begins, words.__contains__, most=2, limit=3) == ("bread", "bred")
    assert near(find["nothing"], begins, words.__contains__, most=2, limit=3) == ()


def test_the_common_word_is_guessed_before_a_misspelling_that_occurs_once(shelf):
    shelf.put(note(1), passage(1, 1, "an equilibirum"))
    shelf.put(*(passage(at, 1, "an equilibrium") for at in range(2, 6)))
    answer = shelf.ask(Words("equilibrum"))
    assert answer.spellings == {"equilibrum": ("equilibrium", "equilibirum")}


def test_a_far_commoner_word_is_guessed_although_it_is_one_slip_further_away():
    counts = {"equilibrim": 1, "equilibrium": 10}
    begins = lambda start: [word for word in counts if word.startswith(start)]  # noqa: E731
    find = lambda: near("equilibri", begins, counts.__getitem__, most=2, limit=3)  # noqa: E731
    assert find() == ("equilibrium",)
    counts["equilibrium"] = 9
    assert find() == ("equilibrim",)


words = ("bread", "oven", "kubernetes", "deployment", "wheat", "red-wine", "salt", "🎉", "to", "be")
typed = ("bredd", "ovne", "kuberntes", "node-kuberntes", "deploymet", "oven", "salt", "to be", "🎉")
texts = st.lists(st.sampled_from(words), max_size=6).map(" ".join)


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    titles=st.lists(texts, min_size=1, max_size=3),
    bodies=st.lists(texts, min_size=1, max_size=8),
    query=st.lists(st.sampled_from(typed), min_size=1, max_size=3).map(" ".join),
    some=st.sets(st.integers(0, 7), min_size=1),
    tags=st.sampled_from([0.0, 2.0]),
)
@example(titles=[""], bodies=["bread", "to be"], query="bredd", some={0}, tags=0.0)
def test_guesses_stand_last_and_have_one_score(tmp_path_factory, titles, bodies, query, some, tags):
    told = []
    for engine in ENGINES:
        shelf = Shelf(tmp_path_factory.mktemp("guesses"), engine, boosts=Boosts(tags=tags))
        shelf.put(*(note(at, title, tags=title) for at, title in enumerate(titles)))
        shelf.put(*(passage(at, at % len(titles), body) for at, body in enumerate(bodies)))
        tree = Or((Phrase("to be"), Words(query)))
        hits = shelf.ask(tree).hits
        order = [(hit.fuzzy, -hit.score, hit.passage) for hit in hits if not hit.fuzzy or hit.score]
        assert order == sorted(order)
        every = {hit.passage: hit for hit in hits}
        given = shelf.index.score_of(tree, sorted(some)).hits
        assert {hit.passage for hit in given} == every.keys() & some
        for hit in given:
            assert tuple(hit) == pytest.approx(tuple(every[hit.passage]), rel=1e-5)
        told.append({hit.passage: hit.fuzzy for hit in hits})
        shelf.close()
    assert told[0] == told[-1]
