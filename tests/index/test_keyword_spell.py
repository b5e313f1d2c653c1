"""Near spellings, one suite for every engine."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ragvault.config.settings import Boosts
from ragvault.plan import Or, Phrase, Words
from ragvault.text.spelling import LONG_IN_NAME, near, near_words, slips
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
    assert shelf.spellings(Words("sourdouhg")) == {"sourdouhg": ("sourdough",)}
    assert shelf.ids(Words("sourdouhg"), fuzzy=False) == []


@pytest.mark.parametrize("word", ["1385", "PIO-1385", "cas", "v1.2.4"])
def test_digits_and_short_words_are_never_guessed_at(shelf, word):
    shelf.put(note(1), passage(1, 1, "about PIO-1384, v1.2.3, 1384 and a cat"))
    assert shelf.spellings(Words(word)) == {}


def test_what_was_asked_before_does_not_change_an_answer(shelf):
    shelf.put(note(1), passage(1, 1, "a sourdaugh"), passage(2, 1, "a sourdough and rye"))
    shelf.remove(passages=[1])
    first = shelf.ask(Words("sourdaugh"))
    for other in ("rye", "sourdough", "and a"):
        shelf.ask(Words(other))
    assert first == shelf.ask(Words("sourdaugh")) == shelf.reopened().ask(Words("sourdaugh"))


def test_scores_of_given_passages_are_those_of_a_search(shelf):
    bodies = ("bread and rye", "rye", "bread bread wheat", "nothing of it", "wheat bread")
    shelf.put(note(1, "Bread"), note(2, "Rye", tags="bread"))
    shelf.put(*(passage(at, 1 + at % 2, body) for at, body in enumerate(bodies, 1)))
    shelf.put(note(3, "Wholemeal"), passage(6, 3, "wholemeal wholemeal"), passage(7, 3, "salt"))
    guesses = ("wholmeal", "wholmeal bread", "breadd wholmeal wheat")
    for query in ("bread", "rye wheat", "bread rye nothing", "zebra", *guesses):
        found = {hit.passage: hit for hit in shelf.ask(Words(query)).hits}
        for some in ([1, 2, 3, 4, 5, 6, 7], [4], [5, 2], [6], [7, 5]):
            told = shelf.index.score_of(shelf.index.corrected(Words(query)), some)
            assert {hit.passage for hit in told.hits} == found.keys() & set(some)
            for hit in told.hits:
                assert hit.score == pytest.approx(found[hit.passage].score, rel=1e-6)
                for part in ("note_score", "passage_score", "title_score"):
                    ours, theirs = getattr(hit, part), getattr(found[hit.passage], part)
                    assert ours == pytest.approx(theirs, rel=1e-6)


def test_a_word_that_is_found_is_not_guessed_at(shelf):
    shelf.put(note(1), passage(1, 1, "kuberntes"), passage(2, 1, "kubernetes " * 9))
    assert shelf.ids(Words("kuberntes")) == [1]


def test_a_corrected_word_counts_a_little_less_than_the_exact_one(shelf):
    shelf.put(note(1), passage(1, 1, "javascript closures"), passage(2, 1, "closures here"))
    shelf.put(passage(3, 1, "other words"))
    shares = []
    for query in ("javascript", "javscript", "javasript"):
        answer = shelf.ask(Words(query))
        assert [hit.passage for hit in answer.hits] == [1]
        assert shelf.coverage(Words(query)) == {1: 1.0}
        shares.append(answer.hits[0].score / answer.bound)
    assert shares[1:] == pytest.approx([0.9 * shares[0]] * 2)


def test_one_of_several_spellings_is_the_whole_word(shelf):
    shelf.put(note(1), passage(1, 1, "a trick of rye"), passage(2, 1, "a track of rye"))
    shelf.put(passage(3, 1, "rye"))
    query = Words("trck rye")
    assert shelf.spellings(query) == {"trck": ("track", "trick")}
    covered = shelf.coverage(query)
    assert covered[1] == covered[2] == 1.0
    assert covered[3] < 0.5


def test_a_word_that_meets_the_rest_of_the_query_is_preferred(shelf):
    shelf.put(note(1), *(passage(at, 1, "bread and salt") for at in range(1, 5)))
    shelf.put(passage(5, 1, "broad beans"))
    assert shelf.spellings(Words("brad")) == {"brad": ("bread", "broad")}
    assert shelf.spellings(Words("brad beans")) == {"brad": ("broad",)}
    assert shelf.spellings(Words("beans salt brad"))["brad"] == ("bread", "broad")


@pytest.mark.parametrize(("typed", "meant"), [("flor", "flour"), ("abot", "abbot")])
def test_a_word_that_says_something_is_preferred_to_a_stop_word(shelf, typed, meant):
    for at in range(1, 9):
        shelf.put(note(at), passage(at, at, "about it, for the bread"))
    shelf.put(note(9), passage(9, 9, "the abbot has flour"))
    assert shelf.spellings(Words(typed)) == {typed: (meant,)}

    shelf.put(note(10), passage(10, 10, "what to wait for"))
    assert shelf.spellings(Words("waht")) == {"waht": ("what",)}


def test_a_word_of_the_language_is_not_corrected_though_no_note_has_it(shelf):
    shelf.put(note(1), passage(1, 1, "ping and pong on laws"))
    asked = Words("pony lawns")
    assert shelf.index.corrected(asked, {"pony", "lawns"}.__contains__) == asked
    assert shelf.spellings(asked) == {"pony": ("pong",), "lawns": ("laws",)}


def test_spellings_have_different_stems(shelf):
    shelf.put(note(1), *(passage(at, 1, "make makes making") for at in range(1, 5)))
    shelf.put(passage(5, 1, "market"), passage(6, 1, "makers"))
    found = shelf.spellings(Words("maket"))["maket"]
    assert {"make", "market"} <= set(found)


LANGUAGES = {
    "german": "warum mein meine nicht haben wenn oder aber welche welcher auch sich wieso kann",
    "french": "pourquoi comment dans avec pour vous elle sont leur cette mais quand combien",
    "spanish": "porque como donde cuando cuanto para pero este esta quien tiene sobre muy",
    "italian": "perche come quando dove sono della nella questo quanto anche dalla",
    "portuguese": "porque como quando onde para nosso voce esta quem mais",
    "dutch": "waarom wanneer hoeveel niet voor deze zijn heeft maar",
    "swedish": "varfor inte eller denna mycket vilken",
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_common_words_of_other_languages_are_never_corrected(language):
    for word in LANGUAGES[language].split():
        others = [
            word[:at] + letter + word[at:] for at in range(1, len(word)) for letter in "aeinst"
        ]
        begins = lambda start, others=others: [o for o in others if o.startswith(start)]  # noqa: E731
        assert near(word, begins, lambda _: 1, most=2, limit=3) == (), word
        assert slips(word, LONG_IN_NAME) == 0


def test_a_question_in_another_language_than_the_notes_is_not_corrected(shelf):
    shelf.put(note(1), passage(1, 1, "warm broth with a mean inner crust"))
    assert shelf.spellings(Words("brodh")) == {"brodh": ("broth",)}
    assert shelf.spellings(Words("warum ist mein brodh innen feucht")) == {}


def test_a_word_that_only_removed_notes_hold_is_no_spelling(shelf):
    shelf.put(note(1, "t"), note(2, "u"), passage(1, 1, "zanzibar kubernetas"))
    shelf.put(passage(2, 2, "kubernetes cluster"), passage(3, 2, "about kubernetes"))
    shelf.remove([1], [1])
    assert shelf.spellings(Words("zanzibat")) == {}
    # One slip from what was removed and two from what is there.
    for query in ("kubernetaz", "kubernetas"):
        assert shelf.spellings(Words(query)) == {query: ("kubernetes",)}
        assert sorted(shelf.ids(Words(query))) == [2, 3]


def test_the_first_letter_may_be_missing(shelf):
    shelf.put(note(1), passage(1, 1, "kubernetes"), passage(2, 1, "harbour"))
    assert shelf.spellings(Words("ubernetes")) == {"ubernetes": ("kubernetes",)}
    assert shelf.spellings(Words("arbour", field="body")) == {"arbour": ("harbour",)}


@pytest.mark.parametrize("query", ["node-kuberntes", "kuberntesCluster", "kuberntes_node"])
def test_a_misspelt_part_of_a_compound_is_guessed_at(shelf, query):
    shelf.put(note(1), passage(1, 1, "a kubernetes node in a cluster"), passage(2, 1, "salt"))
    assert shelf.spellings(Words(query)) == {"kuberntes": ("kubernetes",)}
    assert shelf.ids(Words(query)) == shelf.ids(Words(query, every=True)) == [1]


def test_parts_of_a_compound_that_is_found_are_not_guessed_at(shelf):
    shelf.put(note(1), passage(1, 1, "an emailadress"), passage(2, 1, "a mailaddress"))
    assert shelf.spellings(Words("e-mailadress")) == {}


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
    assert near(find["bread"], begins, words.__contains__, most=2, limit=3) == (
        ("bread", 1),
        ("bred", 1),
    )
    assert near(find["nothing"], begins, words.__contains__, most=2, limit=3) == ()


def test_the_common_word_is_guessed_before_a_misspelling_that_occurs_once(shelf):
    shelf.put(note(1), passage(1, 1, "an equilibirum"))
    shelf.put(*(passage(at, 1, "an equilibrium") for at in range(2, 6)))
    assert shelf.spellings(Words("equilibrum")) == {"equilibrum": ("equilibrium", "equilibirum")}


def test_a_far_commoner_word_is_guessed_although_it_is_one_slip_further_away():
    counts = {"equilibrim": 1, "equilibrium": 10}
    begins = lambda start: [word for word in counts if word.startswith(start)]  # noqa: E731
    find = lambda typed: near(typed, begins, counts.__getitem__, most=2, limit=3)  # noqa: E731
    assert find("equilibri") == (("equilibrium", 2),)
    counts["equilibrium"] = 9
    assert find("equilibri") == (("equilibrim", 1),)


def test_a_far_commoner_word_is_not_guessed_if_the_nearest_is_no_slip_of_it():
    counts = {"concerned": 1, "converted": 100}
    begins = lambda start: [word for word in counts if word.startswith(start)]  # noqa: E731
    found = near("conerned", begins, counts.__getitem__, most=2, limit=3)
    assert found == (("concerned", 1),)


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
def test_engines_find_the_same_and_a_passage_has_one_score(
    tmp_path_factory, titles, bodies, query, some, tags
):
    told = []
    for engine in ENGINES:
        shelf = Shelf(tmp_path_factory.mktemp("guesses"), engine, boosts=Boosts(tags=tags))
        shelf.put(*(note(at, title, tags=title) for at, title in enumerate(titles)))
        shelf.put(*(passage(at, at % len(titles), body) for at, body in enumerate(bodies)))
        tree = shelf.index.corrected(Or((Phrase("to be"), Words(query))))
        every = {hit.passage: hit for hit in shelf.ask(tree, fuzzy=False).hits}
        given = shelf.index.score_of(tree, sorted(some)).hits
        assert {hit.passage for hit in given} == every.keys() & some
        for hit in given:
            assert tuple(hit) == pytest.approx(tuple(every[hit.passage]), rel=1e-5)
        told.append(every.keys())
        shelf.close()
    assert told[0] == told[-1]
