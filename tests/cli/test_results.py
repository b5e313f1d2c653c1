"""What a search writes: on a terminal, in a pipe, as JSON, with links, for several vaults."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import chain
from math import ceil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rank_kit import few

from ragvault.answer.match import LINES, MORE, best_snippet
from ragvault.cli.results import DAY, Style, age_in_words, same_length
from ragvault.cli.search import answer_search, arguments, parse_search
from ragvault.cli.start import Caller, Reply, encoded, this_caller
from ragvault.config import profiles
from ragvault.config.load import load_settings
from ragvault.ports import Progress
from ragvault.text.printable import harmless
from ragvault.text.readable import readable
from ragvault.vault import Vault

SAMPLE = Path(__file__).parents[2] / "sample_vault"
ESCAPE = "\x1b"
LINK = re.compile(r"\x1b\]8;;([^\x1b]*)\x1b\\(.*?)\x1b\]8;;\x1b\\")
STYLE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two vaults with a home of their own: bread, which Obsidian knows, and plain."""
    place = tmp_path_factory.mktemp("results")
    shutil.copytree(SAMPLE, place / "bread")
    (place / "plain").mkdir()
    (place / "plain" / "Rye & spelt.md").write_text("# Rye & spelt\n\nGluten in rye and spelt.\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAGVAULT_HOME", str(place / "home"))
        for name in ("bread", "plain"):
            Vault.open(place / name).index("keyword")
        yield place


def around(place: Path, **how: object) -> Caller:
    return this_caller()._replace(cwd=str(place), **how)


def ask(place: Path, *args: str, **how: object) -> Reply:
    where = around(place, **how)
    return answer_search(parse_search(["search", *args]), where)


def on_terminal(place: Path, *args: str, **more: str) -> str:
    environ = {**this_caller().environ, "TERM": "xterm", **more}
    return ask(place, *args, terminal=True, columns=60, environ=environ).out


def test_a_pipe_gets_no_escape_code_in_any_format(place):
    for format_ in ("text", "json", "jsonl", "paths", "grep", "markdown", "context"):
        out = ask(place, "gluten", "--vault", "bread", "--format", format_, "--explain").out
        assert out
        assert ESCAPE not in out


def test_a_terminal_gets_the_same_words_with_colour_and_links(place):
    plain = ask(place, "rye dough", "--vault", "bread").out
    painted = on_terminal(place, "rye dough", "--vault", "bread")
    bare = STYLE.sub("", LINK.sub(r"\2", painted))
    in_order = iter(plain.split())  # long snippets are cut to three lines
    assert all(word in in_order for word in bare.split() if word != MORE)
    assert "\x1b[1;33mrye\x1b[0m" in painted
    assert max(len(line) for line in bare.splitlines() if line.startswith("    ")) <= 60


@given(lines=st.integers(1, 80), columns=st.integers(40, 200))
@few
def test_an_answer_on_a_terminal_fits_it_or_has_three_results(place, lines, columns):
    environ = {**this_caller().environ, "NO_COLOR": "1", "TERM": "dumb"}
    where = {"terminal": True, "columns": columns, "environ": environ}
    query = ("rye dough with a starter", "--vault", "bread")

    out = ask(place, *query, lines=lines, **where).out

    rows = sum(max(ceil(len(line) / columns), 1) for line in out.splitlines())
    shown = len(re.findall(r"^ ?\d+  ", out, re.MULTILINE))
    folded = re.search(r"^(\d+) (?:more|weaker) results?: -n (\d+)$", out, re.MULTILINE)
    whole = ask(place, *query, "-n", folded[2] if folded else "10", lines=lines, **where).out
    assert rows + 2 <= lines or shown == 3
    assert len(re.findall(r"^ ?\d+  ", whole, re.MULTILINE)) == (
        shown + int(folded[1]) if folded else shown
    )


def test_unlikely_results_are_one_line_on_a_terminal(place):
    tall = {"terminal": True, "columns": 100, "lines": 999}
    found = json.loads(ask(place, "gluten", "--vault", "bread", "--json").out)["results"]
    unlikely = sum(each["band"] == "unlikely" for each in found)

    text = STYLE.sub("", ask(place, "gluten", "--vault", "bread", **tall).out)

    assert 0 < unlikely < len(found)
    assert "unlikely" not in text
    assert text.endswith(f"\n{unlikely} weaker results: -n {len(found)}\n")


def test_bands_stand_below_each_other_on_a_terminal(place):
    tall = {"terminal": True, "columns": 100, "lines": 999}
    text = LINK.sub(r"\2", STYLE.sub("", ask(place, "rye", "--vault", "bread", **tall).out))

    found = re.finditer(r"^ ?\d+  .* (excellent|good|moderate|weak), .*$", text, re.MULTILINE)
    columns = {each.start(1) - each.start() for each in found}
    assert len(columns) == 1


def test_no_color_leaves_no_style_and_dumb_terminals_get_nothing(place):
    quiet = on_terminal(place, "rye dough", "--vault", "bread", NO_COLOR="1")
    assert not STYLE.search(quiet)
    assert LINK.search(quiet)
    assert ESCAPE not in on_terminal(place, "rye dough", "--vault", "bread", TERM="dumb")
    off = on_terminal(place, "rye dough", "--vault", "bread", "--set", "output.links=false")
    assert not LINK.search(off)


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no pseudo-terminals here")
def test_a_real_terminal_is_noticed(place):
    ours, theirs = os.openpty()
    environ = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    environ.pop("NO_COLOR", None)
    command = [sys.executable, "-m", "ragvault", "search", "gluten", "-n", "1", "--vault", "bread"]
    subprocess.run(command, stdout=theirs, cwd=place, env=environ, check=True)
    os.close(theirs)
    assert LINK.search(os.read(ours, 65536).decode())
    os.close(ours)


def test_links_lead_to_obsidian_to_the_file_or_to_the_editor_of_your_choice(place):
    def uri(*args: str) -> str:
        return json.loads(ask(place, *args, "-n", "1", "--json").out)["results"][0]["uri"]

    assert uri("gluten", "--vault", "bread").startswith("obsidian://open?path=%2F")
    assert uri("rye", "--vault", "plain") == (
        f"file://{place.as_posix()}/plain/Rye%20%26%20spelt.md"
    )
    editor = "output.editor=vscode://file{path}:{line}"
    assert uri("gluten", "--vault", "plain", "--set", editor) == (
        f"vscode://file{place.as_posix()}/plain/Rye%20%26%20spelt.md:3"
    )


def test_a_vault_may_not_choose_the_editor(place):
    (place / "plain" / ".ragvault.toml").write_text('[output]\neditor = "evil://{path}"\n')
    try:
        reply = ask(place, "rye", "--vault", "plain")
    finally:
        (place / "plain" / ".ragvault.toml").unlink()
    assert reply.code == 2
    assert "output.editor" in reply.err[0]


def test_json_is_one_object_of_the_contract(place):
    found = json.loads(ask(place, "gluten tag:science", "--vault", "bread", "--json").out)
    assert set(found) == {"query", "vaults", "profile", "took_ms", "plan", "index", "results",
                          "likely", "legs_failed", "left_out", "warnings"}  # fmt: skip
    assert found["likely"] is True
    assert set(found["plan"]) == {"type", "text", "filters", "expansions", "weights", "parse"}
    assert found["plan"]["filters"] == {"tag": "science"}
    assert set(found["index"]) == {"revision", "fresh", "pending", "tier"}
    first = found["results"][0]
    assert {"rank", "vault", "note", "title", "headings", "lines", "score", "confidence",
            "band", "kind", "tier", "stale", "text", "passage", "uri", "modified",
            "legs"} <= set(first)  # fmt: skip
    assert (first["rank"], first["vault"], first["note"]) == (1, "bread", "Science/Gluten.md")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", first["modified"])


def test_explain_adds_steps_to_results_and_what_every_stage_did(place):
    found = json.loads(ask(place, "gluten", "--vault", "bread", "--json", "--explain").out)
    assert all(each["steps"][0]["stage"] == "fuse" for each in found["results"])
    assert [each["stage"] for each in found["explain"]][-3:] == ["parents", "limit", "budget"]
    assert all(set(each) == {"stage", "kept", "removed"} for each in found["explain"])


def test_json_lines_are_the_results_of_the_object(place):
    where = ("gluten", "--vault", "bread")
    lines = ask(place, *where, "--format", "jsonl").out.splitlines()
    found = json.loads(ask(place, *where, "--json").out)["results"]
    assert [json.loads(line) for line in lines] == [{**each, "likely": True} for each in found]


@pytest.mark.parametrize("here", [".", "bread", "bread/Science", "plain"])
def test_paths_work_from_where_the_search_was_typed(place, here):
    for format_ in ("paths", "grep"):
        out = ask(place / here, "gluten", "--vault", "bread", "--format", format_).out
        for line in out.splitlines():
            assert (place / here / line.partition(".md")[0]).with_suffix(".md").is_file()


def test_no_note_steers_a_terminal_or_what_a_pipe_leads_to(tmp_path, monkeypatch):
    monkeypatch.setenv("RAGVAULT_HOME", str(tmp_path / "home"))
    (tmp_path / "vault").mkdir()
    steering = "quagga\tzebra \x1b]0;title\x07 \x9b2J \u202eback"
    (tmp_path / "vault" / "note.md").write_text(f"{steering}\n")
    Vault.open(tmp_path / "vault").index("keyword")

    for format_ in ("json", "jsonl", "paths", "grep", "markdown", "context"):
        shown = on_terminal(tmp_path / "vault", "quagga", "--format", format_)
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", shown), format_
        told = ask(tmp_path / "vault", "quagga", "--format", format_).out
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", told), format_
        if format_ in ("markdown", "context"):
            assert "quagga\tzebra" in shown
            assert harmless(steering) in told
        if format_ == "jsonl":
            assert json.loads(told)["text"].strip() == steering


@pytest.mark.parametrize("name", ["two\nlines.md", "Cafe\u0301/Re\u0301sume\u0301.md"])
def test_a_path_is_that_of_a_file_however_it_is_spelled(tmp_path, monkeypatch, name):
    monkeypatch.setenv("RAGVAULT_HOME", str(tmp_path / "home"))
    note = tmp_path / "vault" / name
    note.parent.mkdir(parents=True)
    note.write_text("# Quagga\n\nquagga\n")
    Vault.open(tmp_path / "vault").index("keyword")

    assert ask(tmp_path / "vault", "quagga", "-0").out == f"{name}\0"


def test_a_line_of_grep_is_a_line_of_the_file(place):
    for line in ask(place, "gluten dough", "--vault", "bread", "--format", "grep").out.splitlines():
        path, number, text = re.fullmatch(r"(.+?\.md):(\d+): (.*)", line).groups()
        assert (place / path).read_text("utf-8").split("\n")[int(number) - 1].strip() == text


UNANSWERED = ("which oven is the cheapest?", "--vault", "bread", "--set", "calibrate.likely=0.99")
NOTICE = "no good match; to list the closest notes, add --all-matches"


def test_nothing_found_is_said_above_the_closest_five(place):
    held = ask(place, *UNANSWERED)
    found = ask(place, "gluten", "--vault", "bread")

    assert held.out.startswith("No good match. Closest notes:\n\n 1  ")
    assert re.findall(r"^ ?(\d+)  ", held.out, re.MULTILINE) == ["1", "2", "3", "4", "5"]
    assert (held.code, held.err) == (1, ())
    assert (found.code, "No good match" in found.out) == (0, False)


def test_programs_get_the_closest_five_as_unlikely(place):
    held = json.loads(ask(place, *UNANSWERED, "--json").out)
    lines = ask(place, *UNANSWERED, "--format", "jsonl").out.splitlines()

    assert (held["likely"], len(held["results"])) == (False, 5)
    assert [json.loads(line)["likely"] for line in lines] == [False] * 5


@pytest.mark.parametrize("flags", [("--format", "paths"), ("--format", "grep"), ("-0",)])
def test_a_pipe_gets_nothing_that_is_no_good_match_unless_asked_for(place, flags):
    held, every = ask(place, *UNANSWERED, *flags), ask(place, *UNANSWERED, *flags, "--all-matches")

    assert (held.out, held.code, held.err) == ("", 1, (NOTICE,))
    assert (len(re.findall(r"\.md", every.out)) > 5, every.code, every.err) == (True, 1, ())


def test_a_pipe_gets_only_what_is_likely_unless_asked_for(place):
    rows = json.loads(ask(place, "gluten", "--json").out)["results"]
    likely = [row["note"] for row in rows if row["band"] != "unlikely"]
    piped = ask(place, "gluten", "--format", "paths").out.splitlines()
    every = ask(place, "gluten", "--format", "paths", "--all-matches").out.splitlines()

    assert 0 < len(piped) == len(dict.fromkeys(likely)) < len(every)


def test_a_pipe_gets_the_first_of_an_answer_that_is_shown_and_has_only_unlikely_results(place):
    bands = ("excellent=0.99", "good=0.98", "moderate=0.97", "weak=0.96")
    sets = chain.from_iterable(("--set", f"calibrate.bands.{band}") for band in bands)
    weak = ("which oven is the cheapest?", "--vault", "bread", *sets)
    rows = json.loads(ask(place, *weak, "--json").out)
    piped = ask(place, *weak, "--format", "paths")

    assert (rows["likely"], {row["band"] for row in rows["results"]}) == (True, {"unlikely"})
    assert (piped.code, len(piped.out.splitlines()), piped.err) == (0, 1, ())


@pytest.mark.parametrize("format_", ["markdown", "context"])
def test_a_model_is_told_that_there_is_no_good_match(place, format_):
    assert ask(place, *UNANSWERED, "--format", format_).out.startswith("No good match. ")


@pytest.mark.parametrize(
    "query", ["tag:science", '"gluten"', "Gluten", "tag:science cheapest oven"]
)
def test_filters_phrases_and_names_are_never_held_back(place, query):
    strict = ("--vault", "bread", "--set", "calibrate.likely=1")

    assert ask(place, query, *strict, "--format", "paths").code == (
        query == "tag:science cheapest oven"
    )


def test_several_vaults_have_five_closest_notes_together(place):
    both = json.loads(ask(place, *UNANSWERED, "--vault", "plain", "--json").out)
    wide = json.loads(ask(place, *UNANSWERED, "--vault", "plain", "--json", "--all-matches").out)

    assert (both["likely"], len(both["results"])) == (False, 5)
    assert (wide["likely"], len(wide["results"])) == (False, 10)


def test_a_least_confidence_is_a_flag(place):
    flags = ("gluten", "--vault", "bread", "--json", "--min-confidence")
    found = [json.loads(ask(place, *flags, least).out)["results"] for least in ("0", "0.5", "1")]

    assert len(found[0]) > len(found[1]) > len(found[2]) == 0
    assert all(each["confidence"] >= 0.5 for each in found[1])


def test_people_see_a_band_and_the_number_where_they_ask_for_reasons(place):
    shown = ask(place, "gluten", "--vault", "bread").out
    explained = ask(place, "gluten", "--vault", "bread", "--explain").out

    assert re.match(r" 1  Gluten  excellent, ", shown)
    assert re.search(r"^ 1  Gluten  excellent [01]\.\d\d, ", explained, re.MULTILINE)


def test_a_note_has_one_row_that_names_its_other_sections(place):
    flags = ("gluten", "--vault", "bread")
    found = json.loads(ask(place, *flags, "--json").out)["results"]
    more = json.loads(ask(place, *flags, "--per-note", "3", "--json").out)["results"]
    named = next(each for each in found if "also" in each)

    assert len({each["note"] for each in found}) == len(found)
    assert len({each["note"] for each in more}) < len(more)
    assert all(set(place) == {"headings", "lines"} for place in named["also"])
    assert re.search(r"^    also: \S", ask(place, *flags).out, re.MULTILINE)


def test_several_vaults_are_one_labelled_list_within_one_limit(place):
    both = ("gluten", "--vault", "bread", "--vault", "plain")
    found = json.loads(ask(place, *both, "--json", "-n", "7", "--explain").out)
    assert found["vaults"] == ["bread", "plain"]
    assert {each["vault"] for each in found["results"]} == {"bread", "plain"}
    assert [each["rank"] for each in found["results"]] == [1, 2, 3, 4, 5, 6, 7]
    assert set(found["indexes"]) == {"bread", "plain"}
    assert {each["vault"] for each in found["explain"]} == {"bread", "plain"}
    assert re.search(r", plain$", ask(place, *both).out, re.MULTILINE)


def test_several_vaults_share_one_budget(place):
    both = ("gluten", "--vault", "bread", "--vault", "plain", "--budget", "200", "--json")
    found = json.loads(ask(place, *both).out)
    assert 0 < sum(len(each["text"]) for each in found["results"]) <= 200 * 4
    assert found["left_out"] > 0


@pytest.mark.parametrize("format_", ["context", "markdown"])
@few
@given(st.integers(1, 900), st.booleans(), st.booleans())
def test_what_is_handed_to_a_model_fits_the_budget_with_its_citations(
    place, format_, budget, several, terminal
):
    vaults = ("--vault", "bread", *(("--vault", "plain") if several else ()))
    flags = ("--format", format_, "--budget", str(budget))
    reply = ask(place, "gluten", *vaults, *flags, terminal=terminal)

    assert ceil(len(reply.out) / 4) <= budget
    assert bool(reply.out) == (reply.code == 0)


def test_what_a_citation_takes_is_said_to_be_left_out(place):
    flags = ("gluten", "--vault", "bread", "--budget", "300")
    listed = json.loads(ask(place, *flags, "--json").out)
    handed = ask(place, *flags, "--format", "context")
    count = len(re.findall(r"^\[\d+\] ", handed.out, re.MULTILINE))

    assert sum(len(each["text"]) for each in listed["results"]) <= 300 * 4
    assert 0 < count <= len(listed["results"])
    assert f"{10 - count} results left out: the 300-token budget is used up" in handed.err
    assert sum("results left out" in line for line in handed.err) == 1


@pytest.mark.parametrize("profile", ["ragtriever", "lightrag", "policy", "ragdocs", "default"])
@pytest.mark.parametrize(
    ("flags", "settings"),
    [
        (["--per-note", "2"], {"parents": {"per_note": 2}}),
        (["--per-note", "5"], {"parents": {"per_note": 5}}),
        (["--passages"], {"parents": {"unit": "passage"}}),
        (["--sections"], {"parents": {"unit": "section"}}),
        (["--neighbours", "2"], {"parents": {"neighbours": 2}}),
        (["--sections", "--neighbours", "1"], {"parents": {"unit": "section", "neighbours": 1}}),
    ],
)
def test_a_flag_of_a_stage_switches_it_on_under_every_profile(profile, flags, settings):
    typed = parse_search(["search", "gluten", "--profile", profile, *flags])
    config = load_settings(flags=typed.flags, environ={}).config

    for stage, values in settings.items():
        found = getattr(config, stage)
        assert {key: getattr(found, key) for key in ("enabled", *values)} == {
            "enabled": True,
            **values,
        }


@pytest.mark.parametrize("profile", profiles.names())
def test_without_such_a_flag_the_profile_chooses(profile):
    typed = parse_search(["search", "gluten", "--profile", profile])
    chosen, own = load_settings(flags=typed.flags, environ={}).config, profiles.config(profile)

    assert (chosen.parents, chosen.diversify) == (own.parents, own.diversify)


def test_flags_of_stages_are_obeyed_where_a_profile_has_them_off(place):
    def found(*flags):
        base = ("gluten", "--vault", "bread", "--profile", "ragtriever", "-n", "20", "--json")
        return json.loads(ask(place, *base, *flags).out)["results"]

    notes = [each["note"] for each in found()]
    assert len(set(notes)) < len(notes)
    once = [each["note"] for each in found("--per-note", "1")]
    assert len(set(once)) == len(once)
    assert all(each["text"] == each["passage"] for each in found("--passages"))
    assert any(len(each["text"]) > len(each["passage"]) for each in found("--sections"))
    assert any(len(each["text"]) > len(each["passage"]) for each in found("--neighbours", "1"))


def test_lists_of_several_vaults_are_one_list_by_date(place):
    both = ("path:.md", "--vault", "bread", "--vault", "plain", "--format", "jsonl", "-n", "50")
    found = [json.loads(line) for line in ask(place, *both).out.splitlines()]
    alone = [json.loads(line) for line in ask(place, *both[:3], *both[5:]).out.splitlines()]
    assert (found[0]["vault"], found[0]["note"]) == ("plain", "Rye & spelt.md")
    assert [each["note"] for each in found[1:]] == [each["note"] for each in alone]


def test_a_vault_alone_lists_its_newest_notes_and_with_a_hypothesis_is_searched(place):
    listed = ask(place, "in:bread", "-n", "3", "--format", "paths")
    assert len(listed.out.splitlines()) == 3
    assert any(line.startswith("the newest 3 of ") for line in listed.err)
    guess = ask(place, "in:plain", "--hypothesis", "rye has little gluten")
    assert not any("nothing to search for" in line for line in guess.err)


def test_one_vault_named_twice_is_searched_once(place):
    twice = ("gluten", "--vault", "bread", "--vault", str(place / "bread"), "--format", "jsonl")
    assert ask(place, *twice) == ask(place, "gluten", "--vault", "bread", "--format", "jsonl")


def test_one_of_several_vaults_without_an_index_is_an_error_and_not_silence(place, tmp_path):
    reply = ask(place, "gluten", "--vault", "bread", "--vault", str(tmp_path))
    assert (reply.out, reply.code) == ("", 3)


EXAMPLES = re.findall(r"^ {4}ragvault (search .*)$", arguments.__doc__, re.MULTILINE)


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_of_the_help_finds_something_in_the_sample_vault(place, example):
    _, *args = shlex.split(example.partition(" | ")[0])
    reply = ask(place / "bread", *args)
    assert reply.code == 0, reply.err
    assert reply.out


def test_there_are_examples():
    assert len(EXAMPLES) >= 4


@pytest.mark.parametrize(
    ("days", "said"),
    [
        (-0.5, "today"),
        (-3, "in 3 days"),
        (0.5, "today"),
        (1, "yesterday"),
        (3, "3 days ago"),
        (15, "2 weeks ago"),
        (61, "2 months ago"),
        (400, "13 months ago"),
        (800, "2 years ago"),
    ],
)
def test_an_age_is_told_in_words(days, said):
    assert age_in_words(days * DAY) == said


def test_marks_survive_the_wrapping_of_lines():
    paint = Style(colour=True, width=24)
    lines = paint.marked("one two three four five six", [(4, 7), (19, 23)], "    ")
    assert len(lines) > 1
    assert "\x1b[1;33mtwo\x1b[0m" in lines[0]
    assert "\x1b[1;33mfive\x1b[0m" in "".join(lines)


@given(st.text(alphabet="ab-é字 \n\t\u00a0\u200b\x1b.", max_size=200), st.integers(0, 90))
def test_no_text_is_too_odd_to_be_wrapped_into_three_lines(text, width):
    found = best_snippet(readable(text), [], "ab")
    shown = same_length(found.text)
    lines = Style(colour=True, width=width).marked(shown, [(0, min(2, len(shown)))], "  ")
    letters = "".join(STYLE.sub("", "".join(lines)).split())
    assert "".join(shown.split()).startswith(letters.removesuffix(MORE))
    assert len(lines) == LINES or letters == "".join(shown.split())
    assert len(lines) <= LINES


def test_a_name_that_is_not_unicode_is_written_as_the_bytes_it_is():
    assert encoded(os.fsdecode(b"a\xff.md"), "utf-8") == b"a\xff.md"
    assert encoded("é\udcff", "ascii") == b"\\xe9\\udcff"


@pytest.mark.parametrize("format_", ["context", "markdown"])
def test_a_name_of_several_lines_is_cited_on_one(tmp_path, monkeypatch, format_):
    monkeypatch.setenv("RAGVAULT_HOME", str(tmp_path / "home"))
    root = tmp_path / "odd"
    root.mkdir()
    (root / "two\nlines\x1b.md").write_text("quokka\n")
    Vault.open(root).index("keyword")
    lines = ask(root, "quokka", "--format", format_).out.splitlines()

    assert "two\\nlines\\x1b.md:1-1" in lines[0]
    assert lines[-1] == "quokka"


@pytest.mark.parametrize("is_writing", [True, False])
def test_an_empty_answer_says_that_the_first_indexing_goes_on(tmp_path, monkeypatch, is_writing):
    from ragvault.store.files import WriterLock

    monkeypatch.setenv("RAGVAULT_HOME", str(tmp_path / "home"))
    root = tmp_path / "young"
    root.mkdir()
    (root / "note.md").write_text("quokka\n")
    vault = Vault.open(root)
    with pytest.raises(KeyboardInterrupt):
        vault.index("keyword", progress=Interrupting())
    with WriterLock(vault.folder, "a test") if is_writing else nullcontext():
        reply = ask(root, "quokka")

    assert reply.code == 3  # nothing could answer yet
    told = "still being indexed" if is_writing else "to continue: ragvault index"
    assert any(told in line for line in reply.err)
    vault.index("keyword")
    assert ask(root, "quokka").code == 0
    assert not any("index" in line for line in ask(root, "tag:none").err)


@pytest.mark.parametrize("lacks", ["file", "keyword"])
def test_while_an_index_runs_no_search_asks_for_one(tmp_path, monkeypatch, lacks):
    from ragvault.store.files import WriterLock

    monkeypatch.setenv("RAGVAULT_HOME", str(tmp_path / "home"))
    root = tmp_path / "young"
    root.mkdir()
    (root / "note.md").write_text("quokka\n")
    vault = Vault.open(root)
    vault.index("keyword")
    if lacks == "file":
        (root / "new.md").write_text("wombat\n")
        monkeypatch.setenv("RAGVAULT_SEARCH__UPDATE", "off")
    else:
        with vault.catalogue(write=True) as catalogue:
            catalogue.drop_cache("keyword")

    with WriterLock(vault.folder, "ragvault index"):
        meanwhile = ask(root, "quokka").err
    after = ask(root, "quokka").err

    assert any("; indexing now" in line for line in meanwhile)
    assert not any("run: ragvault index" in line for line in meanwhile)
    assert any("; run: ragvault index" in line for line in after)


class Interrupting(Progress):
    def step(self, name: str, done: int = 0, total: int = 0) -> None:
        if name == "reading notes":
            raise KeyboardInterrupt
