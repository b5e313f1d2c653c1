"""What a text can be found by."""

from __future__ import annotations

import re
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragvault.errors import ConfigError
from ragvault.plan import Not, Or, Phrase, Words
from ragvault.text.analyze import FORM, Analyzer, highlight
from ragvault.text.spelling import fold

ENGLISH = Analyzer()
PLAIN = Analyzer("none")
CODE = Analyzer(code=True)


def terms(text, analyzer=ENGLISH):
    return analyzer.terms(text)


def forms(text, analyzer=ENGLISH):
    return [form for *_, word in analyzer.words(text) for form in word.forms]


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
    assert forms(text) == [word]
    assert ENGLISH.word(text).parts == ()


def test_a_compound_is_its_simple_words_in_a_row():
    assert forms("Node.js version") == forms("node js version") == ["node", "js", "version"]
    assert forms("getUserById") == ["getuserbyid"]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("plain English words, one after the other.", ""),
        ("Node.js", "node.js nodejs"),
        ("snake_case", "snake_case snakecase"),
        ("camelCase", "camel case"),
        ("C++", "c++"),
    ],
)
def test_an_engine_takes_plain_text_as_it_stands_and_gets_the_parts_beside_it(text, parts):
    prepared = ENGLISH.prepare([text], " | ")
    assert prepared.forms == prepared.to_stem == text
    assert prepared.parts == parts


def test_text_with_accents_and_unspaced_scripts_is_cut_for_the_engine():
    assert ENGLISH.prepare(["Résumé 黑豹队"], "") == (
        "resume 黑 豹 队",
        "resume 黑 豹 队",
        "résumé 黑豹 豹队",
    )
    assert Analyzer("french").prepare(["Été"], "").to_stem == "été"


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
    assert forms("می\u200cخواهم", PLAIN)[1] == "خواهم"


def test_a_russian_letter_with_a_mark_is_a_letter_of_its_own():
    assert fold("Йод") == "йод"


def test_hindi_words_are_not_cut_at_their_vowels():
    assert forms("नमस्ते दुनिया") == ["नमस्ते", "दुनिया"]


def test_shouted_stop_words_are_words():
    word = ENGLISH.word("IT")
    assert not word.stop
    assert [lookup.term for lookup in word.lookups] == ["IT"]
    assert ENGLISH.word("it").stop


def test_unspaced_scripts_go_by_pairs_and_single_characters():
    assert terms("黑豹队") == {"黑豹", "豹队", "黑", "豹", "队"}
    assert {"日本", "ぐル"} <= terms("日本語プログルート") | terms("ぐル")
    assert {"안녕", "녕하"} <= terms("안녕하세요")
    assert {"สว", "วั"} <= terms("สวัสดี")


def test_latin_words_inside_chinese_are_words():
    assert {"python", "使用", "编写"} <= terms("使用Python编写")


def test_a_word_without_end_is_found_by_its_beginning():
    assert max(map(len, terms("x" * 100_000))) <= 65
    assert len(ENGLISH.prepare(["x" * 100_000], "").forms) <= 64


def test_an_unknown_language_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match="klingon") as error:
        Analyzer("klingon")
    assert "english" in error.value.fix


texts = st.text(
    alphabet=st.sampled_from("aB1 ._-/+#'@&é黑豹ส\u0301नम्\nC\u00ad\u200b\u200d🎉🇩שָ"), max_size=40
)


ANALYZERS = pytest.mark.parametrize("analyzer", [ENGLISH, PLAIN, CODE], ids=["en", "none", "code"])


@ANALYZERS
@given(text=texts)
def test_every_term_of_a_query_word_is_one_it_is_found_by(analyzer, text):
    for *_, word in analyzer.words(text):
        held = analyzer.terms(text)
        assert {lookup.term for lookup in word.lookups} | set(word.exact) <= held
        assert {lookup.term for group in word.groups for lookup in group} <= held


@ANALYZERS
@given(text=texts)
def test_what_an_engine_cuts_is_what_we_cut(analyzer, text):
    prepared = analyzer.prepare([text], "")
    cut = [form.lower() for form in re.findall(FORM, prepared.forms)]
    if not (text.isascii() and "_" in text):  # an underscore by itself is no word
        assert cut == forms(text, analyzer)


@ANALYZERS
@given(text=texts)
def test_an_engine_gets_the_parts_of_every_run(analyzer, text):
    parts = [part for run in analyzer.runs(text) for part in analyzer.cut(run)[1]]
    assert analyzer.prepare([text], "").parts == " ".join(parts)


SEVERAL = [c for c in map(chr, range(0x10000)) if c.isalpha() and " " in normalize("NFKC", c)]


def test_a_letter_that_stands_for_several_words_is_one_term():
    assert len(SEVERAL) > 10
    for letter in SEVERAL:
        found = terms(f"a{letter}b {letter}")
        assert found
        assert not any(sign.isspace() for term in found for sign in term)


@given(texts, texts)
def test_marks_are_in_order_apart_and_inside_the_text(text, query):
    spans = highlight(text, Or((Words(query), Phrase(query))), ENGLISH)
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
    assert marked("bread and wine", Or((Words("bread"), Not(Words("wine"))))) == ["bread"]


def test_chinese_is_marked_by_its_characters():
    assert marked("我说黑豹队赢了", Words("黑豹队")) == ["黑豹队"]


@ANALYZERS
@given(text=texts)
def test_a_chunk_is_cut_as_its_word_says(analyzer, text):
    for run in analyzer.runs(text):
        word = analyzer.word(run)
        assert analyzer.cut(run) == (word.forms, word.parts)


@pytest.mark.parametrize("analyzer", [ENGLISH, CODE])
@given(st.lists(st.sampled_from([*"abC1_ .-@+#/'\n(", "x" * 70]), max_size=20).map("".join))
def test_leaving_out_simple_words_leaves_out_no_part(analyzer, text):
    every = [part for run in analyzer.runs(text) for part in analyzer.cut(run)[1]]
    assert analyzer.prepare([text], " ").parts.split() == every
