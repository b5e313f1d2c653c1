"""A search is the same whoever answers it: the command, or another process on its behalf."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import get_args
from zoneinfo import TZPATH, ZoneInfo

import pytest

from ragvault.cli import console, start
from ragvault.cli.main import main
from ragvault.cli.search import Format, answer_search, parse_search
from ragvault.cli.start import Caller, Reply, this_caller
from ragvault.vault import Vault

SAMPLE = Path(__file__).parents[2] / "sample_vault"


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Vault:
    root = tmp_path_factory.mktemp("ask") / "bread"
    shutil.copytree(SAMPLE, root)
    opened = Vault.open(root)
    opened.index("keyword")
    return opened


def typed(*args: str) -> Reply:
    """What the command itself writes."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(["search", *args])
    return Reply(out.getvalue(), tuple(err.getvalue().splitlines()), code)


def timeless(reply: Reply) -> Reply:
    """Without the times that were measured."""
    told = re.sub(r'("(took_ms|start|end)": )[0-9.e-]+', r"\1 0", reply.out)
    return reply._replace(out=re.sub(r" *[0-9.]+ to +[0-9.]+ ms", "0 ms", told))


@pytest.mark.parametrize("format_", get_args(Format))
@pytest.mark.parametrize("query", ["gluten", "qqqzzz"])
def test_an_index_kept_open_gives_the_bytes_of_the_command(vault, format_, query):
    where = ["--vault", str(vault.root)]
    args = [query, *where, "--format", format_, "--explain"]
    around = this_caller()
    with vault.corpus() as kept:
        typed_there = parse_search(["search", *args])
        replies = [
            answer_search(typed_there, around, lambda _: nullcontext(kept)) for _ in range(2)
        ]
    assert timeless(replies[0]) == timeless(replies[1]) == timeless(typed(*args))


@pytest.mark.parametrize(
    "args",
    [["rye", "--vault", "nowhere"], ["   "], ["rye", "--set", "fuse.k=x", "--set", "no.such=1"]],
    ids=["no vault", "no words", "two wrong settings"],
)
def test_an_error_is_the_same_lines_and_code(vault, monkeypatch, args):
    monkeypatch.chdir(vault.root)
    around = this_caller()
    reply = answer_search(parse_search(["search", *args]), around)
    assert reply == typed(*args)
    assert reply.code == 2
    assert reply.err


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["status"],
        ["search"],
        ["search", "--help"],
        ["search", "rye", "-h"],
        ["search", "rye", "--vualt", "x"],
        ["search", "rye", "-n", "0"],
        ["-q", "search", "rye"],
    ],
    ids=" ".join,
)
def test_what_is_not_a_plain_search_is_left_to_the_process_it_was_typed_in(capfd, args):
    assert parse_search(args) is None
    assert capfd.readouterr() == ("", "")


DASHED = [
    "-rye bread",
    "-node things",
    "-tag:inbox",
    "-tag:inbox bread",
    '-"cold start" oven',
    "-path:Recipes",
    "-rye",
    "-(rye OR spelt) bread",
    "--hard reset",
    "-",
]


@pytest.mark.parametrize("query", DASHED)
@pytest.mark.parametrize(
    "how", [("{}",), ("-n", "5", "{}"), ("{}", "-n5", "-q"), ("-qv", "--", "{}")], ids=" ".join
)
def test_a_query_may_begin_with_a_minus(query, how):
    ask = parse_search(["search", *(arg.format(query) for arg in how)])
    assert ask.query == query
    assert ask.limit == (5 if "-n" in "".join(how) else None)


@pytest.mark.parametrize(
    ("args", "wanted"),
    [
        (["-n", "5"], {"limit": 5}),
        (["-n5"], {"limit": 5}),
        (["-qn5"], {"limit": 5, "quiet": True}),
        (["-0"], {"nul": True}),
        (["-q"], {"quiet": True}),
        (["-v"], {"verbose": True}),
        (["-vq"], {"quiet": True}),
        (["-q", "-v"], {"verbose": True}),
        (["--limit=5"], {"limit": 5}),
        (["--hypothesis", "-5 degrees"], {"hypothesis": "-5 degrees"}),
        (["--vault", "-odd name", "-n", "2"], {"vaults": ("-odd name",), "limit": 2}),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("query", ["rye", "-rye bread"])
def test_options_are_options_on_either_side_of_a_query(args, wanted, query):
    for line in ([*args, query], [query, *args]):
        ask = parse_search(["search", *line])
        assert ask.query == query
        assert {name: getattr(ask, name) for name in wanted} == wanted


@pytest.mark.parametrize("args", [["-h"], ["-qh"], ["-n=5", "rye"], ["--jsno", "rye"], ["-n"]])
def test_what_could_be_an_option_is_one(args):
    assert parse_search(["search", *args]) is None


@pytest.mark.parametrize(
    ("args", "query"),
    [
        (["raft", "leader"], "raft leader"),
        (["bread", "-rye"], "bread -rye"),
        (["--callout-icon"], "--callout-icon"),
        (["git", "reset", "--hard"], "git reset --hard"),
        (["rye", "since:last week"], 'rye since:"last week"'),
        (["-title:sourdough starter", "rye"], '-title:"sourdough starter" rye'),
        (["tag:recipe rye", "loaf"], "tag:recipe rye loaf"),
        (["since:last week"], "since:last week"),
        (["12:30 lunch", "monday"], "12:30 lunch monday"),
        (['title:"a b"', "c"], 'title:"a b" c'),
    ],
)
@pytest.mark.parametrize("how", [(), ("-n", "5"), ("--explain",)], ids=" ".join)
def test_the_words_of_a_query_need_no_quotes(args, query, how):
    for line in ([*args, *how], [*how, *args]):
        assert parse_search(["search", *line]).query == query


@pytest.mark.parametrize(
    "text", ['steam "keeps the crust', "tag: (since:soon) OR steam", "[x] -- steam"]
)
def test_a_likely_answer_is_searched_without_a_query_whatever_is_in_it(vault, text):
    where = ("--vault", str(vault.root), "--format", "paths")
    assert typed("--hypothesis", text, *where).out.splitlines()
    assert parse_search(["search", "--hypothesis", text]).hypothesis == text


def test_a_minus_first_leaves_out_what_it_names(vault):
    where = ("--vault", str(vault.root), "--format", "paths", "-n", "500")
    recipes = typed("path:Recipes", *where).out.splitlines()
    others = typed("-path:Recipes", *where).out.splitlines()
    assert recipes
    assert others
    assert set(recipes).isdisjoint(others)


def test_parsing_for_another_leaves_this_process_as_loud_as_it_was():
    assert parse_search(["search", "rye", "-q"]).quiet
    assert not console.is_quiet()


def test_the_folder_and_the_variables_are_those_of_the_one_who_asks(vault, tmp_path):
    here = this_caller()
    inside = Caller(str(vault.root / "Science"), here.environ, here.now, here.zone)
    other = inside._replace(environ={"RAGVAULT_HOME": str(tmp_path)})
    ask = parse_search(["search", "gluten", "--json"])
    assert json.loads(answer_search(ask, inside).out)["vaults"] == [vault.name]
    assert answer_search(ask, other).code == 2


def test_an_answer_of_the_watcher_that_cannot_be_written_is_a_line_and_exit_4(monkeypatch, capsys):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(start, "write_reply", full)

    assert start._write(Reply("x")) == 4
    assert capsys.readouterr().err.startswith("ragvault: there is no space left to write to\n")


# The zone a search was typed in


def night(hour: str, zone: str) -> float:
    return datetime.fromisoformat(hour).replace(tzinfo=ZoneInfo(zone)).timestamp()


@pytest.fixture(scope="module")
def dated(tmp_path_factory: pytest.TempPathFactory) -> Vault:
    """Notes saved late on new year's eve in Berlin, and one that says when it was made."""
    root = tmp_path_factory.mktemp("zones") / "dated"
    root.mkdir()
    saved = night("2023-12-31T23:30", "Europe/Berlin")
    for name, made in {
        "saved": "",
        "local": "created: 2024-03-01T23:30:00",
        "zoned": "created: 2024-03-01T23:30:00+00:00\ndue: 2024-03-01T23:30:00+00:00",
        "day": "created: 2024-03-01",
    }.items():
        (root / f"{name}.md").write_text(f"---\n{made}\n---\n\nA note.\n")
        os.utime(root / f"{name}.md", (saved, saved))
    opened = Vault.open(root)
    opened.index("keyword")
    return opened


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Moves this process into a zone, in the summer of 2024."""
    with monkeypatch.context() as patch:

        def moved(zone: str) -> None:
            patch.setenv("TZ", zone)
            time.tzset()
            patch.setattr("ragvault.cli.start.clock", lambda: night("2024-07-01T12:00", zone))

        yield moved
    time.tzset()


def names(vault: Vault, query: str) -> list[str]:
    found = typed(query, "--vault", str(vault.root), "--format", "jsonl", "-n", "9").out
    return sorted(json.loads(line)["note"].removesuffix(".md") for line in found.splitlines())


ALL = ["day", "local", "saved", "zoned"]


@pytest.mark.parametrize(
    ("place", "query", "found"),
    [
        ("Europe/Berlin", "modified:2023-12-31", ALL),
        ("Europe/Berlin", "modified:2024-01-01", []),
        ("Asia/Tokyo", "modified:2024-01-01", ALL),
        ("Asia/Tokyo", "created:2024-03-01", ["day", "local"]),
        ("Asia/Tokyo", "created:2024-03-02", ["zoned"]),
        ("America/New_York", "created:2024-03-01", ["day", "local", "zoned"]),
        ("Asia/Tokyo", "created:2024-03-01T23:30", ["local"]),
        ("Asia/Tokyo", "(-created:2024-03-01)", ["saved", "zoned"]),
        ("Asia/Tokyo", "[created:2024-03-01]", ["day", "local"]),
        ("Asia/Tokyo", "[due:2024-03-02]", ["zoned"]),
        ("UTC", "[due:2024-03-01]", ["zoned"]),
    ],
)
def test_a_day_is_that_of_the_clock_on_the_wall_when_it_was(dated, at, place, query, found):
    at(place)

    assert names(dated, query) == found


def test_a_zone_is_the_askers_whichever_process_answers(dated, at):
    at("Europe/Berlin")
    asking = this_caller()
    at("Asia/Tokyo")
    args = ["search", "modified:2023-12-31", "--vault", str(dated.root), "--json"]
    ask = parse_search(args)

    assert len(json.loads(answer_search(ask, asking).out)["results"]) == 4


@pytest.mark.parametrize("tz", ["Europe/Berlin", ":Europe/Berlin"])
def test_a_zone_is_named_with_or_without_a_colon(tz):
    around = this_caller()._replace(environ={"TZ": tz}, now=night("2024-07-01", "UTC"), zone=7200)

    assert around.time_zone() == ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize("tz", ["Nowhere/At_all", "CET-1CEST", "/no/such/file", "../..", "Europe"])
def test_a_zone_that_cannot_be_read_is_the_offset_of_this_moment(tz):
    around = this_caller()._replace(environ={"TZ": tz}, zone=3600)

    assert around.time_zone() == timezone(timedelta(hours=1))


@pytest.mark.timeout(20)
def test_a_zone_that_is_a_pipe_or_endless_holds_nobody_up(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for tz in (f"{tmp_path}/pipe", "/dev/zero"):
        around = this_caller()._replace(environ={"TZ": tz}, zone=3600)
        assert around.time_zone() == timezone(timedelta(hours=1))


def test_without_a_name_the_zone_is_the_machines(monkeypatch):
    places = [Path(folder, "Europe", "Berlin") for folder in TZPATH]
    machine = next((place for place in places if place.is_file()), None)
    if machine is None:
        pytest.skip("this machine keeps no zones")
    monkeypatch.setattr(start, "LOCALTIME", str(machine))
    around = this_caller()._replace(environ={}, now=night("2024-07-01T12:00", "UTC"), zone=7200)

    asked = around.local_time()
    assert (asked.utcoffset(), asked.replace(month=1).utcoffset()) == (
        timedelta(hours=2),
        timedelta(hours=1),
    )


def test_where_no_index_could_answer_it_is_not_said_that_there_is_no_such_note(tmp_path):
    root = tmp_path / "bread"
    shutil.copytree(SAMPLE, root)
    vault = Vault.open(root)
    vault.index("keyword")
    where = ["--vault", str(root)]
    assert typed("qqqzzz", *where).code == 1
    shutil.rmtree(vault.folder / "caches")

    reply = typed("collapsed by noon", *where)

    assert reply.code == 3
    assert any("run: ragvault index" in line for line in reply.err)
