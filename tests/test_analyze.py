"""What a text can be found by."""

from __future__ import annotations

from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragvault.errors import ConfigError
from ragvault.index.analyze import GAP, Analyzer
from ragvault.index.code import CodeAnalyzer
from ragvault.index.keyword_fold import fold
from ragvault.index.keyword_mark import highlight
from ragvault.sought import AnyOf, Not, Phrase, Words

ENGLISH = Analyzer()
PLAIN = Analyzer("none")


def terms(text, analyzer=ENGLISH):
    return {term for term, _ in analyzer.tokens([text])}


def places(text, term, analyzer=ENGLISH):
    return [place for found, place in analyzer.tokens([text]) if found == term]


@pytest.mark.parametrize(
    ("text", "whole", "parts"),
    [
        ("C++", "c++", {"c"}),
        ("C#", "c#", {"c"}),
        ("F#", "f#", {"f"}),
        (".NET", ".net", {"net"}),
        ("Node.js", "node.js", {"node", "js"}),
        ("v1.2.3", "v1.2.3", {"v1", "2", "3", "1.2.3"}),
        ("PIO-1384", "pio-1384", {"pio", "1384"}),
        ("@scope/pkg", "@scope/pkg", {"scope", "pkg"}),
        ("snake_case", "snake_case", {"snake", "case"}),
        ("camelCase", "camelcase", {"camel", "case"}),
        ("HTTPResponseError", "httpresponseerror", {"http", "response", "error"}),
        ("a-b/my_notes/c.md", "a-b/my_notes/c.md", {"b", "a-b", "my_notes", "notes", "c.md", "md"}),
        ("full-text", "full-text", {"full", "text", "fulltext"}),
        ("R&D", "r&d", {"r", "d"}),
        ("__init__", "__init__", {"init"}),
        ("python3", "python3", {"python", "3"}),
        ("2024-03-01", "2024-03-01", {"2024", "03", "01"}),
        ("l'amour", "l'amour", {"l", "amour"}),
    ],
)
def test_a_name_is_kept_whole_and_split(text, whole, parts):
    assert {whole, *parts} <= terms(text)


@pytest.mark.parametrize(
    ("text", "word"),
    [("iPhone", "iphone"), ("APIs", "apis"), ("mp3", "mp3"), ("_so_", "so"), ("don’t", "don't")],
)
def test_what_is_one_word_stays_one_word(text, word):
    assert places(text, word) == [0]
    assert len({place for _, place in ENGLISH.tokens([text])}) == 1


def test_a_compound_stands_at_its_first_part_and_the_next_word_after_its_last():
    assert places("Node.js version", "node.js") == [0]
    assert places("Node.js version", "js") == [1]
    assert places("Node.js version", "version") == [2]
    assert places("node js version", "version") == [2]


def test_words_of_one_stem_share_a_term_and_keep_their_forms():
    assert terms("configuring") & terms("configuration") == {"~configur"}
    assert "configuring" in terms("configuring")
    assert terms("configuring", PLAIN) == {"configuring"}


def test_accents_are_folded_and_the_exact_form_is_kept():
    assert {"resume", "résumé"} <= terms("Résumé")
    assert "strasse" in terms("Straße")
    assert "é" not in fold("cafe\u0301")
    assert terms("cafe\u0301") == terms("café")


def test_points_of_hebrew_and_arabic_are_folded_and_the_exact_form_is_kept():
    assert {"כתב", "כָּתַב"} <= terms("כָּתַב")
    assert {"كتاب", "كِتَاب"} <= terms("كِتَاب")
    assert fold("كتــاب") == "كتاب"
    assert fold("أَسَد") == "أسد"  # a hamza makes another letter
    assert fold("\u0640") == "\u0640"  # and a term is never empty
    assert terms("\u064b")


def test_joiners_part_words_where_scripts_need_them():
    assert terms("auf\u200clage") == terms("auflage")
    assert places("می\u200cخواهم", "خواهم", PLAIN) == [1]


def test_a_russian_letter_with_a_mark_is_a_letter_of_its_own():
    assert fold("Йод") == "йод"


def test_hindi_words_are_not_cut_at_their_vowels():
    assert terms("नमस्ते दुनिया") == {"नमस्ते", "दुनिया"}


def test_shouted_stop_words_are_words():
    word = ENGLISH.word("IT")
    assert not word.stop
    assert word.main == (("IT", 1.0),)
    assert ENGLISH.word("it").stop


def test_unspaced_scripts_go_by_pairs_and_single_characters():
    assert terms("黑豹队") == {"黑豹", "豹队", "黑", "豹", "队"}
    assert {"日本", "ぐル"} <= terms("日本語プログルート") | terms("ぐル")
    assert {"안녕", "녕하"} <= terms("안녕하세요")
    assert {"สว", "วั"} <= terms("สวัสดี")


def test_latin_words_inside_chinese_are_words():
    assert {"python", "使用", "编写"} <= terms("使用Python编写")


def test_a_phrase_cannot_run_from_one_text_into_the_next():
    found = dict(ENGLISH.tokens(["one", "two"]))
    assert found["two"] - found["one"] > GAP


def test_a_word_without_end_is_found_by_its_beginning():
    assert max(map(len, terms("x" * 100_000))) <= 65


def test_an_unknown_language_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match="klingon") as error:
        Analyzer("klingon")
    assert "english" in error.value.fix


texts = st.text(
    alphabet=st.sampled_from("aB1 ._-/+#'@&é黑豹ส\u0301नम्\nC\u00ad\u200b\u200d🎉🇩שָ"), max_size=40
)


@pytest.mark.parametrize("analyzer", [ENGLISH, PLAIN], ids=["stems", "no stems"])
@given(word=st.text("abcdeginstéß", min_size=1) | st.sampled_from(["it", "IT", "Node.js", "日本"]))
def test_a_word_is_looked_up_by_the_term_that_weighs_most(analyzer, word):
    assert analyzer.looked_up_by(word) == analyzer.word(word).main[0][0]


@given(texts)
def test_every_term_of_a_query_word_is_one_it_is_indexed_by(text):
    for _, _, _, word in ENGLISH.words(text):
        indexed = {term for term, _ in word.tokens}
        asked = {term for term, _ in word.main} | set(word.exact)
        asked |= {term for group in word.groups for term in group}
        assert asked <= indexed
        assert set(word.phrase) <= set(word.tokens)
        assert all(0 <= place < word.width for _, place in word.tokens)


SEVERAL = [c for c in map(chr, range(0x10000)) if c.isalpha() and " " in normalize("NFKC", c)]


@pytest.mark.parametrize("analyzer", [ENGLISH, CodeAnalyzer()], ids=["words", "code"])
def test_a_letter_that_stands_for_several_words_is_one_term(analyzer):
    assert len(SEVERAL) > 10
    for letter in SEVERAL:
        terms = [term for term, _ in analyzer.tokens([f"a{letter}b {letter}"])]
        assert terms
        assert not any(sign.isspace() for term in terms for sign in term)


@given(texts)
def test_words_and_tokens_agree(text):
    by_word = [(t, at + p) for _, at, _, word in ENGLISH.words(text) for t, p in word.tokens]
    assert by_word == list(ENGLISH.tokens([text]))


@given(texts)
def test_places_never_go_back(text):
    found = [place for _, place in ENGLISH.tokens([text])]
    assert found == sorted(found)


@given(texts, texts)
def test_marks_are_in_order_apart_and_inside_the_text(text, query):
    spans = highlight(text, AnyOf((Words(query), Phrase(query))), ENGLISH)
    edges = [edge for span in spans for edge in span]
    assert edges == sorted(edges)
    assert all(0 <= start < end <= len(text) for start, end in spans)


@given(texts)
def test_a_text_marks_itself(text):
    assert bool(highlight(text, Words(text), ENGLISH)) == bool(terms(text))


def marked(text, sought, analyzer=ENGLISH):
    return [text[start:end] for start, end in highlight(text, sought, analyzer)]


def test_a_stem_marks_its_other_forms_only_when_stemming_is_on():
    text = "Configuration: configure it"
    assert marked(text, Words("configuring")) == ["Configuration", "configure"]
    assert marked(text, Words("configure"), PLAIN) == ["configure"]


def test_a_part_marks_its_part_and_a_whole_the_whole():
    assert marked("see getUserById", Words("user")) == ["User"]
    assert marked("see getUserById", Words("get_user_by_id")) == ["getUserById"]


def test_a_phrase_marks_only_where_it_stands_whole():
    assert marked("state of the art, art of state", Phrase("state of the art")) == [
        "state of the art"
    ]


def test_what_is_not_wanted_is_not_marked():
    assert marked("bread and wine", AnyOf((Words("bread"), Not(Words("wine"))))) == ["bread"]


def test_chinese_is_marked_by_its_characters():
    assert marked("我说黑豹队赢了", Words("黑豹队")) == ["黑豹队"]
