"""Dates that no calendar has: nothing that shows dates fails on them or loses another note."""

from __future__ import annotations

import os
import shutil
import subprocess
from datetime import datetime
from types import SimpleNamespace

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from vault_kit import FAKE, ragvault

from ragvault.api.tools import Tools
from ragvault.cli.pick import label
from ragvault.cli.search import search_function
from ragvault.text.dates import EARLIEST, LATEST, in_calendar, iso_utc

OUTSIDE = (
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00",
    "9999-12-31T23:59:60",
    "0000-00-00",
    "-1",
    "99999999999999",
    "[9999-12-31 23:59:59 -10:00]",
)
WORDS = ("oven", "rye", "starter", "salt", "scale", "window", "crumb", "basket")
zones = st.integers(-14 * 60, 14 * 60).map(
    lambda m: f"{'-' if m < 0 else '+'}{abs(m) // 60:02}:{abs(m) % 60:02}"
)
edges = st.sampled_from(["0001-01-01", "0001-01-02", "9999-12-30", "9999-12-31", "1969-12-31"])
written = st.sampled_from(OUTSIDE) | st.builds(
    "{}T{:02}:59:59{}".format, edges, st.integers(0, 23), zones
)
file_times = st.sampled_from([0, -(10**11), 10**9, 253_402_300_800, 4 * 10**11, 10**12])
hostile = st.lists(
    st.tuples(st.sampled_from(["date", "created", "updated", "due"]), written, file_times),
    min_size=1,
    max_size=8,
)


@given(st.floats(allow_nan=True))
def test_a_moment_is_written_as_a_date_that_can_be_read_or_as_nothing(at):
    text = iso_utc(at)
    if text is None:
        assert not EARLIEST <= at <= LATEST
    else:
        assert abs(datetime.fromisoformat(text).timestamp() - at) < 1
    assert (in_calendar(at) is None) == (text is None)


@settings(max_examples=3, deadline=None, phases=[Phase.generate])
@given(hostile)
def test_no_date_of_one_note_costs_a_result(tmp_path_factory, dates):
    made = tmp_path_factory.mktemp("dates")
    root = made / "vault"
    root.mkdir()
    for at, (name, value, mtime) in enumerate(dates):
        file = root / f"n{at}.md"
        file.write_text(f"---\n{name}: {value}\n---\n# N{at}\n\nBread {WORDS[at]}.\n")
        os.utime(file, (mtime, mtime))
    (root / "plain.md").write_text("# Plain\n\nBread on a day of the calendar.\n")
    paths = {f"n{at}.md" for at in range(len(dates))} | {"plain.md"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**FAKE, "RAGVAULT_HOME": str(made / "home")}.items():
            patch.setenv(name, value)
        _assert_all_are_shown(root, paths)


def _assert_all_are_shown(root, paths):
    assert ragvault("index", root, "-q").code == 0
    every = ("--vault", root, "-n", "50", "--all-copies", "--all-matches", "--no-resident")
    for query in ("bread", "file:md"):
        found = ragvault("search", query, *every, "--json", "--explain").json["results"]
        assert {each["note"] for each in found} == paths
        for each in found:
            assert all(each[of] is None or datetime.fromisoformat(each[of]) for of in _DATES)
            assert label(SimpleNamespace(**each))
    assert ragvault("search", "bread", *every).out
    listed = ragvault("list", "notes", "--vault", root, "--json").json["items"]
    assert {each["note"] for each in listed} == paths
    assert ragvault("list", "notes", "--vault", root).code == 0
    tools = Tools(search_function(resident=False))
    text = tools.call("search", {"query": "bread", "vaults": ["vault"], "limit": 20}).text
    assert "plain.md" in text
    assert tools.call("list", {"what": "notes"}).data
    for operator in ("since:1000", "before:8999", "created:1000..8999", "date:2024", "[due:>2000]"):
        assert ragvault("search", operator, *every, "--json").code in (0, 1)


_DATES = ("date", "modified")


@pytest.mark.parametrize("at", [-(10**11), 0, 9_300_000_000, 15_032_385_535, 10**12])
def test_a_file_is_not_changed_for_ever_whatever_its_time(at, tmp_path, monkeypatch):
    root = tmp_path / "vault"
    root.mkdir()
    (root / "a.md").write_text("# A\n\nBread.\n")
    os.utime(root / "a.md", (at, at))
    for name, value in {**FAKE, "RAGVAULT_HOME": str(tmp_path / "home")}.items():
        monkeypatch.setenv(name, value)
    ragvault("index", root, "-q")
    assert ragvault("status", "--vault", root, "--json").json["pending"]["changed"] == 0
    assert ragvault("search", "bread", "--vault", root, "--json").json["index"]["fresh"]


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_a_commit_beyond_the_calendar_dates_no_note(tmp_path, monkeypatch):
    for name, value in {**FAKE, "RAGVAULT_HOME": str(tmp_path / "home")}.items():
        monkeypatch.setenv(name, value)
    root = tmp_path / "vault"
    root.mkdir()
    (root / "a.md").write_text("# A\n\nBread.\n")
    git = ("git", "-C", root, "-c", "user.name=x", "-c", "user.email=x@y.z")
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    when = "@300000000000 +0000"
    date = {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
    subprocess.run([*git, "commit", "-qm", "x"], check=True, env={**os.environ, **date})
    os.utime(root / "a.md", (1_700_000_000, 1_700_000_000))
    assert ragvault("index", root, "-q").code == 0
    (found,) = ragvault("search", "bread", "--vault", root, "--json", "--no-resident").json[
        "results"
    ]
    assert found["date"] == "2023-11-14T22:13:20Z"
    assert ragvault("index", root, "--json").json["changed"] == 0
