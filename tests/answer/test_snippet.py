"""The part of a passage that is shown: whole words, true offsets, the best sentence."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ragvault.answer.match import LENGTH, LINES, MORE, Snippet, best_snippet, units_of
from ragvault.text.readable import readable

TEXT = """# Bread

Flour comes first. Then there is water, and salt. A rye dough is a mortar of starch and gum.
The oven comes last.

## Oven

Hot.
"""


def snippet(text: str, *words: str, query: str = "", nearness=None) -> Snippet:
    """The snippet of a text in which these words match."""
    shown = readable(text)
    found = [(shown.text.index(word), shown.text.index(word) + len(word)) for word in words]
    return best_snippet(shown, sorted(found), query, nearness)


def marked(found: Snippet) -> list[str]:
    return [found.text[a:b] for a, b in found.marks]


def test_the_sentence_with_most_of_the_words_is_shown():
    text = TEXT.replace("gum.", f"gum, {'and so on ' * 12}as it is said.")
    found = snippet(text, "water", "rye", "dough")
    assert found.text.startswith(f"{MORE} A rye dough is a mortar")
    assert marked(found) == ["rye", "dough"]
    assert text[found.at :].startswith("rye")


def test_a_short_passage_is_shown_from_its_beginning():
    found = snippet("Protocol for encrypting. Replaced by [[thoughts/TLS|TLS]].", "TLS")
    assert found.text == "Protocol for encrypting. Replaced by TLS."
    assert marked(found) == ["TLS"]


def test_under_a_heading_that_matches_better_its_first_sentence_is_shown():
    text = "Before.\n\n## Rye dough\n\nFlour first. Water next.\n\n## Else\n\nSome rye.\n"
    found = snippet(text, "Rye", "dough", "rye")
    assert found.text == "Flour first. Water next."


def test_a_heading_alone_is_shown_itself():
    assert snippet("# Plan\n", "Plan").text == "Plan"


def test_without_a_shared_word_the_sentence_with_the_nearest_letters_is_shown():
    text = "Nothing about it here. Fermenting takes a night. The end." + " Much more follows." * 12
    found = snippet(text, query="fermentation at night")
    assert found.text.startswith(f"{MORE} Fermenting")
    assert snippet(text, query="zebra").text.startswith("Nothing")


def test_where_sentences_have_vectors_the_nearest_one_is_shown():
    text = "Nothing about it here. Leavening takes a night. The end." + " Much more follows." * 12
    count = len(units_of(readable(text)))
    found = snippet(text, query="fermentation", nearness=[0.1, 0.9, *[0.2] * (count - 2)])
    assert found.text.startswith(f"{MORE} Leavening")


def test_a_snippet_ends_before_the_next_heading():
    assert "Hot" not in snippet(TEXT, "oven").text


def test_items_and_rows_keep_their_lines():
    text = "- [x] paid rent\n- [ ] call Dr. M. about the MRI\n\nMet [[A contact]] for coffee\n"
    found = snippet(text, "MRI")
    assert found.text.split("\n") == [
        "☑ paid rent",
        "☐ call Dr. M. about the MRI",
        "Met A contact for coffee",
    ]
    row = snippet("| name | use |\n|---|---|\n| a | x |\n| b | y |\n| c | z |\n", "y")
    assert row.text.split("\n")[-2:] == ["b · y", "c · z"]


def test_code_that_is_cut_stays_code():
    text = "```\n" + "word " * 100 + "\n```\n"
    found = snippet(text, "word")
    assert found.text.startswith("`word")
    assert found.text.endswith(f"word` {MORE}")


def test_a_match_far_into_a_long_sentence_is_in_the_snippet():
    text = "word " * 200 + "needle " + "word " * 200
    found = snippet(text, "needle")
    assert marked(found) == ["needle"]
    assert found.text.startswith(MORE)
    assert found.text.endswith(MORE)
    assert found.text.index("needle") < LENGTH // 2  # seen in a narrow window too


texts = st.text(alphabet="ab .\n#-|é字[]`", max_size=600)


@given(texts, st.data())
def test_a_snippet_is_a_part_of_what_people_read_and_its_marks_are_what_was_marked(text, data):
    shown = readable(text)
    room = len(shown.text)
    edges = data.draw(st.lists(st.integers(0, room), unique=True, max_size=8).map(sorted))
    marks = [
        (a, b)
        for a, b in zip(edges[::2], edges[1::2], strict=False)
        if shown.text[a:b] and not set(shown.text[a:b]) & set(" \n")
    ]
    found = best_snippet(shown, marks, "ab")
    said = found.text.removeprefix(f"{MORE} ").removesuffix(f" {MORE}")
    assert said in shown.text or said.removesuffix("`") in shown.text
    assert len(said) <= LENGTH + 1
    assert found.text.count("\n") < LINES
    assert set(marked(found)) <= {shown.text[a:b] for a, b in marks}
    assert 0 <= found.at <= len(text)
