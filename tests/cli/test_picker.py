"""The picker: what it shows, what keys do, and that typing never waits for a search."""

from __future__ import annotations

import threading
from datetime import datetime, timezone
from itertools import count
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from prompt_toolkit.utils import get_cwidth

from ragvault.cli.pick import (
    FILTERS,
    FilterCompleter,
    Found,
    Picker,
    Searcher,
    label,
    matches,
    pick,
    preview_lines,
    shortened,
)
from ragvault.config import profiles
from ragvault.errors import RagvaultError
from ragvault.query.understand import understand
from tests.cost_kit import cpu_seconds
from tests.watch_kit import soon

ESCAPE = "\x1b"
LETTERS = st.characters(codec="utf-8", exclude_categories=("Cs", "Cc"))
NOW = datetime(2026, 11, 1, tzinfo=timezone.utc)


def result(title="Steam", note="Technique/Steam.md", text="Wet heat.\nSteam rises.\n", **more):
    given = {"title": title, "note": note, "headings": [title], "line": 2, "lines": [1, 2]}
    given |= {"text": text, "uri": f"obsidian://open?file={note}", "vault": "v", "band": ""}
    return SimpleNamespace(**given | more)


def shown(parts):
    return "".join(text for _, text, *_ in parts)


def picker():
    made = Picker(lambda query: Found(query), lambda result: None, lambda name: [])
    made.searcher.close()
    return made


def test_a_search_that_was_replaced_before_its_turn_never_runs():
    started, go, asked, done = threading.Event(), threading.Event(), [], threading.Event()

    def search(query):
        asked.append(query)
        started.set()
        go.wait(10)
        return Found(query)

    searcher = Searcher(search, lambda found: done.set() if found.query == "steam" else None)
    searcher.ask("s")
    assert started.wait(10)
    for query in ("st", "ste", "stea", "steam"):
        searcher.ask(query)  # returns at once, although the first search is still running
    go.set()

    assert done.wait(10)
    searcher.close()
    assert asked == ["s", "steam"]


def test_a_search_that_fails_is_a_notice_and_the_next_one_runs():
    told, done = [], threading.Event()

    def search(query):
        if query == "bad":
            raise ValueError
        return Found(query)

    def report(found):
        told.append((found.query, found.notice))
        searcher.ask("good") if found.query == "bad" else done.set()

    searcher = Searcher(search, report)
    searcher.ask("bad")

    assert done.wait(10)
    searcher.close()
    assert told == [("bad", "the search failed: ValueError"), ("good", "")]


def test_an_answer_to_what_is_no_longer_typed_is_dropped():
    made = picker()
    made.buffer.insert_text("steam")

    made._received(Found("st", [result()]))
    assert made.found.results == ()
    made._received(Found("steam", [result()]))
    assert made.selected.title == "Steam"


def test_an_answer_that_comes_while_the_screen_is_drawn_is_shown_after_that():
    made, later = picker(), []
    made.buffer.insert_text("steam")
    loop = SimpleNamespace(call_soon_threadsafe=lambda *call: later.append(call))
    made.app = SimpleNamespace(loop=loop, invalidate=lambda: None)

    made._answered(Found("steam", [result()]))
    assert made.found.results == ()
    for act, *values in later:
        act(*values)
    assert made.selected.title == "Steam"


def test_the_preview_marks_the_words_that_were_searched_for_in_all_their_forms():
    made = picker()
    made.found = Found("steamed", [result()], words="steamed")

    marked = [text for style, text, *_ in made.preview_text() if "match" in style]

    assert marked == ["Steam"]
    assert shown(made.preview_text()) == "Wet heat.\nSteam rises.\n\n"


def test_a_preview_keeps_every_line_of_a_list_that_is_indented_by_tabs():
    lines = preview_lines("- a\n\t- bread\n\t\t- deep bread\nlast", "bread", 40)

    assert [shown(line) for _, line in lines] == [
        "- a",
        "    - bread",
        "        - deep bread",
        "last",
    ]
    marked = [text for _, line in lines for style, text, *_ in line if "match" in style]
    assert marked == ["bread", "bread"]


@given(st.text(LETTERS | st.just("\n")), st.integers(20, 90))
def test_wrapping_a_preview_loses_no_character_and_fits(text, width):
    lines = preview_lines(text, "steam", width)
    written = {}
    for number, line in lines:
        written[number] = written.get(number, "") + shown(line)

    assert "\n".join(written.values()) == text
    assert all(len(shown(line)) <= width for _, line in lines)


@given(st.text(LETTERS), st.integers(2, 40))
def test_a_shortened_title_fits_whatever_its_letters(text, width):
    assert get_cwidth(shortened(text, width)) <= width


def test_shortening_a_title_twice_as_long_takes_about_twice_the_time():
    different = count()  # the width of a text that was seen before is remembered

    def shortening(size):
        return cpu_seconds(lambda: shortened(f"{next(different)}" + "ä" * size, 40))

    assert shortening(60_000) < 3 * shortening(30_000)


def test_control_characters_of_a_note_never_reach_the_terminal():
    made = picker()
    made.found = Found("x", [result(title="a\x1b[2Jb", text="c\x1b]0;d\x07")])

    for text in (shown(made.list_text()), shown(made.preview_text())):
        assert "\x1b" not in text
        assert "\x07" not in text


def test_moving_stays_within_the_list_and_the_preview_begins_near_the_match():
    made = picker()
    text = "\n".join(f"line {number}" for number in range(1, 61))
    made.found = Found("x", [result(), result(text=text, line=41, lines=[1, 60])])

    made.move(-5)
    assert made.at == 0
    made.move(5)
    assert made.at == 1
    assert shown(made.preview_text()).startswith("line 39\nline 40\nline 41\n")
    made.scrolled = 1000
    assert shown(made.preview_text()) == "line 60\n", "it never scrolls past its end"


def test_the_vault_is_named_only_where_there_are_several():
    made = picker()
    made.found = Found("x", [result(), result(vault="v")])
    assert "v: " not in shown(made.list_text())
    made.found = Found("x", [result(), result(vault="w")])
    assert "w: Technique/Steam.md:2" in shown(made.list_text())


def test_a_row_ends_with_its_band_faint_and_never_wider_than_the_list():
    made = picker()
    made.found = Found("x", [result(band="good"), result(note="a/" * 60, band="moderate")])

    faint = [text.strip() for style, text, *_ in made.list_text() if style == "class:faint"]
    rows = shown(made.list_text()).splitlines()[1::2]

    assert faint == ["good", "moderate"]
    assert rows[0].endswith("Steam.md:2  good")
    assert rows[1].endswith("…  moderate")
    assert all(get_cwidth(row) <= made.width for row in rows)


def test_it_starts_with_the_answer_to_no_query_and_goes_back_to_it():
    asked = []
    made = picker()
    made.searcher = SimpleNamespace(ask=asked.append)
    made.start("")
    made.buffer.insert_text("s")
    made.buffer.delete_before_cursor()

    assert asked == ["", "s", ""]
    made._received(Found("", [result()]))
    assert shown(made.count_text()).strip() == "newest notes"


def test_a_label_names_the_title_once():
    assert label(result(headings=["Steam", "Why"])) == "Steam > Why"
    assert label(result(headings=["Why"])) == "Steam > Why"
    assert label(result(title="", headings=[])) == "Technique/Steam.md"


def test_nothing_is_marked_for_a_query_without_words():
    assert matches("tagged", "") == []


@pytest.mark.parametrize("name", FILTERS)
def test_every_filter_that_tab_offers_is_one_that_a_query_understands(name):
    values = {"since:": "2024", "before:": "2024", "linkto:": "Steam", "in:": "v"}
    plan = understand(
        f"{name}{values.get(name, '' if name[-1] != ':' else 'a')}",
        profiles.config("default").query,
        now=NOW,
    )

    assert plan.listing


def completions(typed, values=()):
    completer = FilterCompleter(lambda name: values)
    found = completer.get_completions(Document(typed), CompleteEvent())
    return [each.text for each in found]


def test_tab_completes_filters_and_then_their_values():
    assert completions("bread ta") == ["tag:"]
    assert completions("bread tag:re", ["recipe", "to read", "rye"]) == ["recipe", '"to read"']
    assert completions("") == list(FILTERS)


class Screen(DummyOutput):
    """Remembers what is written, and what is written as it is."""

    def __init__(self):
        self.text = self.raw = ""

    def write(self, data):
        self.text += data

    def write_raw(self, data):
        self.raw += data


def played(keys, found, open_result=lambda result: None):
    """What a user gets who types these keys as soon as the results are on the screen."""
    screen = Screen()
    with create_pipe_input() as typed, create_app_session(input=typed, output=screen):

        def search(query):
            return Found(query, found, words=query)

        def keys_after_the_answer():
            typed.send_text("steam")
            assert soon(lambda: "1 result" in screen.text)
            for key in keys:
                typed.send_text(key)

        thread = threading.Thread(target=keys_after_the_answer)
        thread.start()
        code = pick(search, open_result, lambda name: [], input_=typed, output=screen)
        thread.join(10)
    return code, screen


def test_escape_leaves_with_0_and_ctrl_c_with_130():
    assert played([ESCAPE], [result()])[0] == 0
    assert played(["\x03"], [result()])[0] == 130


def test_a_home_that_cannot_be_read_ends_it_with_the_error_of_every_command():
    def search(query):
        raise PermissionError(13, "Permission denied", "/srv/home/vaults")

    with create_pipe_input() as typed, pytest.raises(PermissionError, match="vaults"):
        pick(search, lambda result: None, lambda name: [], input_=typed, output=Screen())


def test_ctrl_y_copies_the_link_of_the_selected_result_by_the_terminal():
    _, screen = played(["\x19", ESCAPE], [result()])

    assert "\x1b]52;c;" in screen.raw


def test_enter_opens_the_selected_result_and_an_error_is_shown_instead_of_ending():
    made, opened = picker(), []
    made.found = Found("x", [result()])
    made._open = opened.append
    made.open_selected()
    assert opened == [result()]

    def refuse(_):
        raise RagvaultError("no editor is set", fix="set EDITOR")

    made._open = refuse
    made.open_selected()
    assert shown(made.status_text()).strip() == "no editor is set. set EDITOR"
