"""Where a result matches: its heading, and what of it is quoted."""

from __future__ import annotations

from msgspec.structs import replace
from rank_kit import candidate

from ragvault.answer.match import Match, Snippet, _headings, quoted
from ragvault.candidate import Candidate, Excerpt, Ranked, Removal
from ragvault.rank.pipeline import Outcome
from ragvault.text.readable import readable

WORDS = "Some words that fill the part so that it is long enough to be quoted by itself. " * 3
TEXT = f"# Raft\n\nIntro.\n\n## Roles\n\n{WORDS}\n\n### Leader\n\n{WORDS}\n\n## Log\n\n{WORDS}\n"


def found(start: str, **facts) -> Candidate:
    """A result that shows TEXT from line 3 on, whose passage begins with `start`."""
    text = TEXT[TEXT.index(start) :]
    each = candidate("a", passage={"text": text, "lines": (3, 17), **facts})
    return replace(each, shown=Excerpt(1, TEXT, (3, 17), ("Raft",)))


def match(each: Candidate, word: str, *headings: str) -> Match:
    return Match(Snippet("", (), each.passage.text.index(word)), 1, headings)


def quote(each: Candidate, where: Match, *removed: Removal) -> Candidate:
    return quoted(each, where, [Outcome("parents", Ranked((each,), removed))])


def test_a_passage_of_several_headings_matches_under_the_last_one_above_the_match():
    each = found("# Raft", headings=("Raft",), subheadings=("Roles", "Leader", "Log"))
    text = each.passage.text
    shown = readable(text)
    assert _headings(each, shown, text.index("Intro")) == ("Raft",)
    assert _headings(each, shown, text.index("Leader") + 20) == ("Raft", "Roles", "Leader")
    assert _headings(each, shown, text.index("## Log") + 20) == ("Raft", "Log")


def test_a_passage_of_one_heading_has_its_own():
    each = found("## Log", headings=("Raft", "Log"))
    assert _headings(each, readable(each.passage.text), 20) == ("Raft", "Log")


def test_the_quote_is_the_part_under_the_heading_it_cites_with_its_own_lines():
    each = found("### Leader")
    part = quote(each, match(each, "Some", "Raft", "Roles", "Leader"))
    assert part.text == f"### Leader\n\n{WORDS}".rstrip()
    assert TEXT.split("\n")[part.lines[0] - 3] == "### Leader"
    assert part.lines == (11, 13)
    assert part.headings == ("Raft", "Roles", "Leader")


def test_headings_below_the_match_are_quoted_and_so_are_other_sure_passages():
    each = found("## Roles")
    part = quote(each, match(each, "Some", "Raft", "Roles"))
    assert part.text.startswith("## Roles")
    assert "### Leader" in part.text
    assert "## Log" not in part.text
    sibling = replace(found("## Log"), confidence=0.9)
    sibling = replace(sibling, passage=replace(sibling.passage, id=99))
    merged = replace(each, merged=(99,))
    both = quote(merged, match(each, "Some"), Removal(sibling, "shown", merged))
    assert "## Log" in both.text
    unsure = Removal(replace(sibling, confidence=0.2), "shown", merged)
    assert "## Log" not in quote(merged, match(each, "Some"), unsure).text


def test_a_part_that_is_too_short_is_quoted_with_what_is_around_it():
    each = found("# Raft")
    text = "## One\n\nFew words.\n\n## Two\n\nAs few.\n"
    each = replace(each, passage=replace(each.passage, source=text))
    each = replace(each, shown=Excerpt(1, text, (1, 7), ("Raft",)))
    assert quote(each, match(each, "As few", "Raft", "Two")).text == text


def test_a_text_with_hidden_lines_is_quoted_whole():
    hidden = found("### Leader")
    hidden = replace(hidden, shown=replace(hidden.shown, lines=(3, 30)))
    whole = quote(hidden, match(hidden, "Some", "Raft", "Leader"))
    assert (whole.text, whole.lines, whole.headings) == (TEXT, (3, 30), ("Raft", "Leader"))
