"""The part of a passage that is shown: whole words, true offsets, the best sentence."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ragvault.answer.snippet import LENGTH, MORE, best_snippet

TEXT = """# Bread

Flour comes first. Then there is water, and salt. A rye dough is a mortar of starch and gum.
The oven comes last.

## Oven

Hot.
"""


def spans(text: str, *words: str) -> list[tuple[int, int]]:
    found = [(text.index(word), text.index(word) + len(word)) for word in words]
    return sorted(found)


def marked(found) -> list[str]:
    return [found.text[a:b] for a, b in found.marks]


def test_the_sentence_with_most_of_the_words_is_shown():
    found = best_snippet(TEXT, spans(TEXT, "water", "rye", "dough"), "rye dough water")
    assert found.text.startswith(f"{MORE} A rye dough is a mortar")
    assert marked(found) == ["rye", "dough"]
    assert TEXT[found.at :].startswith("rye")


def test_where_the_heading_matched_better_the_passage_is_shown_from_its_beginning():
    text = "# Rye dough\n\nFlour first. Water next. Some rye at the end.\n"
    found = best_snippet(text, spans(text, "Rye", "dough", "rye"), "rye dough")
    assert found.text.startswith("Flour first.")


def test_a_heading_alone_is_shown_itself():
    assert best_snippet("# Plan\n", [(2, 6)], "plan").text == "# Plan"


def test_without_a_shared_word_the_sentence_with_the_nearest_letters_is_shown():
    text = "Nothing about it here. Fermenting takes a night. The end.\n"
    assert best_snippet(text, [], "fermentation at night").text.startswith(f"{MORE} Fermenting")
    assert best_snippet(text, [], "zebra").text.startswith("Nothing")


def test_a_snippet_ends_before_the_next_heading():
    assert "Oven" not in best_snippet(TEXT, spans(TEXT, "oven"), "oven").text


def test_a_match_far_into_a_long_sentence_is_in_the_snippet():
    text = "word " * 200 + "needle " + "word " * 200
    found = best_snippet(text, spans(text, "needle"), "needle")
    assert marked(found) == ["needle"]
    assert found.text.startswith(MORE)
    assert found.text.endswith(MORE)


texts = st.text(alphabet="ab .\n#-|é字", max_size=600)


@given(texts, st.data())
def test_a_snippet_is_one_line_of_the_passage_and_its_marks_are_what_was_marked(text, data):
    edges = data.draw(st.lists(st.integers(0, len(text)), unique=True, max_size=8).map(sorted))
    marks = [
        (a, b)
        for a, b in zip(edges[::2], edges[1::2], strict=False)
        if text[a:b] and not set(text[a:b]) & set(" \n")
    ]
    found = best_snippet(text, marks, "ab")
    said = found.text.removeprefix(f"{MORE} ").removesuffix(f" {MORE}")
    assert said in " ".join(text.split())
    assert len(said) <= LENGTH
    assert set(marked(found)) <= {text[a:b] for a, b in marks}
    assert 0 <= found.at <= len(text)
