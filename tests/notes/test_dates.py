"""Dates: names, properties and commits, and which of them is believed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragvault.notes import dates as dating
from ragvault.notes.dates import (
    Daily,
    created_of,
    date_of,
    git_dates,
    head,
    modified_of,
    moment_of,
    named_date,
    read_daily_notes,
)
from ragvault.types import Date

needs_git = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
MTIME_NS = 1_500_000_000_000_000_000
PI_DAY = datetime(2024, 3, 14, tzinfo=timezone.utc).timestamp()


def on(path, form="YYYY-MM-DD", folder=""):
    return named_date(path, Daily(folder, form))


@pytest.mark.parametrize(
    "path",
    [
        "2024-03-14.md",
        "Journal/2024-03-14.md",
        "2024-03-14 Meeting with Bo.md",
        "journals/2024_03_14.md",
        "20240314.md",
        "20240314-note.md",
        "zettel/202403141530 On dates.md",
        "20240314153000.markdown",
        "Meeting 2024-03-14.md",
        "Trip_2024-03-14_photos.md",
        "From 2024-03-14 to 2024-03-18.md",
    ],
)
def test_a_name_that_holds_a_date_is_from_that_day(path):
    assert on(path) == PI_DAY


@pytest.mark.parametrize(
    "path",
    [
        "Invoice 20240314.md",
        "12024-03-14.md",
        "2024-02-30.md",
        "2024-03-145.md",
        "2024-03_14.md",
        "12345678.md",
        "99990101 far.md",
        "2024-03-14/index.md",
        "2024.md",
        "x.md",
    ],
)
def test_a_name_without_a_day_says_nothing(path):
    assert on(path) is None


@pytest.mark.parametrize(
    ("form", "path"),
    [
        ("DD.MM.YYYY", "14.03.2024.md"),
        ("YYYY/MM-MMMM/YYYY-MM-DD-dddd", "2024/03-March/2024-03-14-Thursday.md"),
        ("YYYY/MM-MMMM/YYYY-MM-DD-dddd", "2024/03-März/2024-03-14-Donnerstag.md"),
        ("dddd, MMMM Do YYYY", "Thursday, March 14th 2024.md"),
        ("ddd D MMM YY", "Thu 14 Mar 24.md"),
        ("[Daily] YYYY.M.D", "Daily 2024.3.14.md"),
        ("YYYY-[W]WW/DD-MM-YYYY", "2024-W11/14-03-2024.md"),
        ("YYYY-DDDD", "2024-074.md"),
        ("(YYYY) DD+MM", "(2024) 14+03.md"),
    ],
)
def test_a_daily_note_is_found_by_the_format_of_the_vault(form, path):
    assert on(path, form) == PI_DAY
    assert on(f"Journal/{path}", form, "Journal") == PI_DAY


def test_the_format_of_daily_notes_holds_in_their_folder_only():
    assert on("Other/14.03.2024.md", "DD.MM.YYYY", "Journal") is None


def test_a_token_that_comes_twice_means_one_day():
    assert on("2023/2024-03-14 x.md", "YYYY/YYYY-MM-DD [x]") == PI_DAY  # by its name alone
    assert on("2023/14.03.2024.md", "YYYY/DD.MM.YYYY") is None


def test_a_format_that_names_no_day_finds_none():
    assert on("2024-W11.md", "YYYY-[W]WW") is None
    assert on("March.md", "MMMM") is None
    assert on("Marraskuu 14 2024.md", "MMMM D YYYY") is None  # November, in Finnish


@given(st.text(max_size=12), st.text(max_size=20))
def test_no_format_and_no_path_are_an_error(form, path):
    on(path, form)


@pytest.mark.parametrize(
    "value",
    [
        date(2024, 3, 14),
        datetime(2024, 3, 14),
        datetime(2024, 3, 14, 2, tzinfo=timezone(timedelta(hours=2))),
        "2024-03-14",
        "2024-03-14T00:00:00",
        "2024-03-14T00:00:00Z",
        "2024-03-14 01:30+01:30",
        "2024-03-13T19:00:00.000-0500",
        "2024-03-14 12:00 AM",
        "2024/03/14",
        "2024.3.14",
        "14.03.2024",
        "14 March 2024",
        "14th Mar. 2024",
        "14-MAR-2024",
        "March 14, 2024",
        "Thursday, March 14th, 2024",
        "Thu, 14 Mar 2024 00:00:00 +0000",
        "Thursday, March 14, 2024 at 12:00 am",
        "14/03/2024",
        "03/14/2024",
        "20240314",
        20240314,
        202403140000,
        1710374400,
        "1710374400000",
        "[[2024-03-14]]",
        ["2024-03-14", "2020-01-01"],
    ],
)
def test_a_date_is_read_as_people_write_it(value):
    assert moment_of(value) == PI_DAY


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "soon",
        "{{date}}",
        "2024-02-30",
        "2024-13-01",
        "03/04/2024",
        "2024-03-14 25:00",
        "2024-03-14 13:00 pm",
        "0000-01-01",
        "٢٠٢٤-٠٣-٣٩",
        "14.3.",
        "14 Marraskuu 2024",
        "2024",
        2024,
        1.5,
        True,
        [],
        {"a": 1},
    ],
)
def test_a_value_that_is_no_day_is_passed_over(value):
    assert moment_of(value) is None


def test_a_month_is_its_first_day():
    assert moment_of("2024-03") == datetime(2024, 3, 1, tzinfo=timezone.utc).timestamp()


ANY_VALUE = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.dates(), st.datetimes(),
    st.datetimes(timezones=st.timezones()), st.lists(st.text(), max_size=2),
    st.from_regex(r"\A\d{4}-\d{1,2}-\d{1,2}([T ]\d{2}:\d{2})?([+-]\d{4})?\Z"),
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(["date", "created", "Updated", "x"]), ANY_VALUE), st.text())
def test_every_note_has_a_date(properties, path):
    found = date_of(path, properties, mtime_ns=MTIME_NS, git=None, daily=Daily())
    assert isinstance(found.at, float)
    created_of(path, properties, mtime_ns=MTIME_NS)
    modified_of(properties, mtime_ns=MTIME_NS)


@given(st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)))
def test_an_iso_date_is_read_as_python_reads_it(moment):
    aware = moment.replace(microsecond=0, tzinfo=timezone(timedelta(hours=-3, minutes=-30)))
    assert moment_of(aware.isoformat()) == aware.timestamp()


def test_the_first_source_that_knows_is_believed_and_named():
    properties = {"updated": "2021-01-01", "Created": "2020-01-01", "date": "{{date}}"}
    from_git = {"mtime_ns": MTIME_NS, "git": 1.6e9}
    assert date_of("2024-03-14.md", properties, **from_git) == Date(PI_DAY, "name")
    assert date_of("a.md", properties, **from_git) == Date(moment_of("2020-01-01"), "frontmatter")
    assert date_of("a.md", {}, **from_git) == Date(1.6e9, "git")
    assert date_of("a.md", {"date": "soon"}, mtime_ns=MTIME_NS) == Date(1.5e9, "mtime")


def test_created_and_modified_ask_other_properties():
    properties = {"created": "2020-01-01", "updated": "2021-01-01"}
    assert created_of("2024-03-14.md", properties, mtime_ns=MTIME_NS) == moment_of("2020-01-01")
    assert created_of("2024-03-14.md", {}, mtime_ns=MTIME_NS, git=1.0) == PI_DAY
    assert created_of("a.md", {}, mtime_ns=MTIME_NS, git=1.0) == 1.0
    assert modified_of(properties, mtime_ns=MTIME_NS, git=1.0) == moment_of("2021-01-01")
    assert modified_of({}, mtime_ns=MTIME_NS, git=1.0) == 1.0
    assert modified_of({}, mtime_ns=MTIME_NS) == 1.5e9


def test_the_settings_of_daily_notes_are_read_from_obsidian(tmp_path):
    assert read_daily_notes(tmp_path) == (Daily(), [])
    file = tmp_path / ".obsidian" / "daily-notes.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"folder": "/Journal/", "format": "YYYY/DD"}))
    assert read_daily_notes(tmp_path) == (Daily("Journal", "YYYY/DD"), [])
    file.write_text(json.dumps({"folder": None, "format": ""}))
    assert read_daily_notes(tmp_path) == (Daily(), [])
    file.write_text("{")
    found, (warning,) = read_daily_notes(tmp_path)
    assert found == Daily()
    assert "daily-notes.json" in warning


class Repository:
    """A git repository with commits at known times, whatever the settings of the user."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str, at: int = 1_000_000_000) -> None:
        names = ("AUTHOR", "COMMITTER")
        who = {f"GIT_{name}_{part}": "x" for name in names for part in ("NAME", "EMAIL")}
        when = {f"GIT_{name}_DATE": f"{at} +0000" for name in names}
        environment = os.environ | who | when | {"GIT_CONFIG_GLOBAL": os.devnull}
        subprocess.run(["git", *arguments], cwd=self.root, env=environment, check=True)

    def commit(self, at: int, **files: str) -> None:
        for name, text in files.items():
            path = self.root / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.with_name(path.name + ".md").write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", "x", at=at)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    return Repository(tmp_path / "repository")


@needs_git
def test_a_note_has_the_dates_of_its_last_and_first_commit(repository):
    repository.commit(1_000_000_000, a="1", b="1")
    repository.commit(1_100_000_000, a="2")
    dates = git_dates(repository.root)
    assert dates.last == {"a.md": 1.1e9, "b.md": 1.0e9}
    assert dates.first == {"a.md": 1.0e9, "b.md": 1.0e9}
    assert dates.reason == ""


@needs_git
def test_a_vault_inside_a_repository_has_paths_of_its_own(repository):
    repository.commit(1_000_000_000, outside="1", vault__x__a="1")
    assert git_dates(repository.root / "vault").last == {"x/a.md": 1.0e9}
    assert head(repository.root / "vault" / "x") == head(repository.root) != ""


@needs_git
def test_unusual_names_come_through(repository):
    names = ["a\nb", '"q"', "cafe\u0301", "-x", " ", "tab\t", ":(top)", "0" * 32]
    repository.commit(1_000_000_000, **dict.fromkeys(names, "1"))
    nfc = {name.replace("e\u0301", "\u00e9") + ".md" for name in names}
    assert set(git_dates(repository.root).last) == nfc


@needs_git
def test_changes_that_are_not_committed_leave_the_date_of_the_commit(repository):
    repository.commit(1_000_000_000, a="1")
    (repository.root / "a.md").write_text("2")
    (repository.root / "new.md").write_text("2")
    assert git_dates(repository.root).last == {"a.md": 1.0e9}


@needs_git
def test_empty_commits_and_merges_do_not_date_what_they_did_not_change(repository):
    repository.commit(1_000_000_000, a="1")
    repository.git("checkout", "--quiet", "-b", "side")
    repository.commit(1_100_000_000, b="1")
    repository.git("checkout", "--quiet", "main")
    repository.commit(1_200_000_000, c="1")
    repository.git("merge", "--quiet", "--no-edit", "side", at=1_300_000_000)
    repository.commit(1_400_000_000)
    assert git_dates(repository.root).last == {"a.md": 1.0e9, "b.md": 1.1e9, "c.md": 1.2e9}


PROGRAM_SETTINGS = (
    "alias.log",
    "core.askPass",
    "core.editor",
    "core.fsmonitor",
    "core.pager",
    "core.sshCommand",
    "credential.helper",
    "diff.evil.command",
    "diff.evil.textconv",
    "diff.external",
    "filter.evil.clean",
    "filter.evil.smudge",
    "gpg.program",
    "interactive.diffFilter",
    "pager.log",
)


@needs_git
def test_no_program_of_the_repository_is_run(repository, tmp_path):
    repository.commit(1_000_000_000, a="1")
    repository.commit(1_100_000_000, a="2")
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch '{tmp_path}/sprung'\n")
    trap.chmod(0o700)
    (repository.root / ".gitattributes").write_text("* diff=evil filter=evil\n")
    for key in PROGRAM_SETTINGS:
        repository.git("config", key, str(trap))
    repository.git("config", "log.showSignature", "true")
    hooks = repository.root / ".git" / "hooks"
    for name in ("post-index-change", "reference-transaction", "fsmonitor-watchman"):
        shutil.copy(trap, hooks / name)
    (repository.root / "a.md").write_text("3")

    assert git_dates(repository.root).last == {"a.md": 1.1e9}
    assert not (tmp_path / "sprung").exists()
    repository.git("status", "--short")
    assert (tmp_path / "sprung").exists()  # so the trap works, and git_dates did not step on it


@needs_git
def test_settings_of_the_repository_do_not_change_the_dates(repository):
    repository.commit(1_000_000_000, a="1", vault__b="1")
    for key, value in {
        "log.showRoot": "false",
        "diff.orderFile": "/nowhere",
        "diff.relative": "false",
        "diff.noprefix": "true",
        "format.pretty": "oneline",
        "color.ui": "always",
    }.items():
        repository.git("config", key, value)
    assert git_dates(repository.root).last == {"a.md": 1.0e9, "vault/b.md": 1.0e9}


@needs_git
def test_git_writes_nothing(repository):
    repository.commit(1_000_000_000, a="1")

    def tree():
        return {path: path.stat().st_mtime_ns for path in repository.root.rglob("*")}

    before = tree()
    git_dates(repository.root)
    head(repository.root)
    assert tree() == before


@needs_git
def test_the_repository_of_a_hook_that_runs_us_is_not_taken_for_the_vaults(
    repository, tmp_path, monkeypatch
):
    repository.commit(1_000_000_000, a="1")
    other = Repository(tmp_path / "other")
    other.commit(1_100_000_000, b="1")
    monkeypatch.setenv("GIT_DIR", str(other.root / ".git"))
    assert set(git_dates(repository.root).last) == {"a.md"}


@needs_git
def test_a_bare_repository_that_lies_in_a_vault_is_not_used(repository, tmp_path):
    repository.commit(1_000_000_000, a="1")
    outer = Repository(tmp_path / "outer")
    outer.commit(1_100_000_000, b="1")
    shutil.copytree(repository.root / ".git", outer.root / "vault")
    assert git_dates(outer.root / "vault").last == {}


def test_without_a_repository_there_are_no_dates_and_a_reason(tmp_path):
    dates = git_dates(tmp_path)
    assert (dates.last, dates.first) == ({}, {})
    assert "repository" in dates.reason
    assert head(tmp_path) == ""


def fake_git(folder: Path, script: str, monkeypatch) -> None:
    folder.mkdir()
    (folder / "git").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "git").chmod(0o700)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@pytest.fixture
def vault(tmp_path):
    """A folder that looks like a repository."""
    (tmp_path / "vault" / ".git").mkdir(parents=True)
    (tmp_path / "vault" / ".git" / "HEAD").write_text("0" * 40)
    return tmp_path / "vault"


def test_without_git_there_are_no_dates_and_a_reason(vault, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert "git cannot be run" in git_dates(vault).reason


def test_a_git_that_fails_gives_no_dates_and_a_reason(vault, tmp_path, monkeypatch):
    fake_git(tmp_path / "bin", "exit 128", monkeypatch)
    assert "safe.directory" in git_dates(vault).reason


def test_a_git_that_takes_too_long_is_ended(vault, tmp_path, monkeypatch):
    fake_git(tmp_path / "bin", "exec sleep 600", monkeypatch)
    assert "longer than" in git_dates(vault, timeout_s=0.05).reason


def test_a_long_log_is_read_in_pieces(monkeypatch, tmp_path):
    monkeypatch.setattr(dating, "CHUNK", 3)
    log = tmp_path / "log"
    log.write_bytes(b"MARK7\na.md\0b.md\0\0MARK5\nb.md\0\0MARK3")
    with log.open("rb") as opened:
        found = list(dating.commits(opened, b"MARK"))
    assert found == [("a.md", 7.0), ("b.md", 7.0), ("b.md", 5.0)]


@needs_git
def test_the_head_is_what_git_says_whether_loose_packed_or_detached(repository, tmp_path):
    repository.commit(1_000_000_000, a="1")

    def by_git(root):
        asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True)
        return asked.stdout.decode().strip()

    assert head(repository.root) == by_git(repository.root) != ""
    repository.git("pack-refs", "--all")
    assert head(repository.root) == by_git(repository.root)
    repository.git("worktree", "add", "--quiet", "-b", "side", str(tmp_path / "worktree"))
    assert head(tmp_path / "worktree") == by_git(repository.root)
    repository.git("checkout", "--quiet", "--detach")
    assert head(repository.root) == by_git(repository.root)
    assert git_dates(tmp_path / "worktree").last == {"a.md": 1.0e9}


@pytest.mark.parametrize("text", ["ref: ../../../etc/passwd", "ref: refs/../x", "", "ref:"])
def test_a_head_that_points_elsewhere_is_none(vault, text):
    (vault / ".git" / "HEAD").write_text(text)
    assert head(vault) == ""


def test_a_head_that_is_a_pipe_is_not_waited_for(tmp_path):
    (tmp_path / ".git").mkdir()
    os.mkfifo(tmp_path / ".git" / "HEAD")
    assert head(tmp_path) == ""
