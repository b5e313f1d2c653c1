"""Ignore: gitignore grammar, held against git itself, and Obsidian's filters."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragvault.config import settings as config
from ragvault.notes.ignore import ObsidianFilters, Rules, is_fast
from ragvault.notes.walk import walk

needs_git = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")


def decide(lines, path, *, folder=False):
    return Rules(lines).decide(path, path.rpartition("/")[2], folder)


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("draft.md", "draft.md"),
        ("draft.md", "deep/down/draft.md"),
        ("/draft.md", "draft.md"),
        ("*.tmp.md", "a/b.tmp.md"),
        ("a/*.md", "a/b.md"),
        ("a/**", "a/b/c.md"),
        ("**/b.md", "b.md"),
        ("a/**/b.md", "a/b.md"),
        ("a/**/b.md", "a/x/y/b.md"),
        ("**/x/**/y.md", "q/x/r/s/y.md"),
        ("a**b.md", "axxb.md"),
        ("x/a**b.md", "x/axxb.md"),
        ("[a-c].md", "b.md"),
        ("[!a-c].md", "d.md"),
        ("[]x].md", "].md"),
        ("[[:digit:]]*.md", "7 things.md"),
        ("what?.md", "whatä.md"),
        (r"\#tag.md", "#tag.md"),
        (r"\!now.md", "!now.md"),
        (r"end\ ", "end "),
        ("trailing.md   ", "trailing.md"),
        ("crlf.md\r", "crlf.md"),
        ("*b", "a\nb"),
        ("cafe\u0301.md", "caf\u00e9.md"),
    ],
)
def test_a_line_ignores_this_path(line, path):
    assert decide([line], path) is True


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("/draft.md", "deep/draft.md"),
        ("a/*.md", "a/b/c.md"),
        ("a/*.md", "x/a/b.md"),
        ("a/**", "a"),
        ("x/a**b.md", "x/a/b.md"),
        ("folder/", "folder"),
        ("# comment", "# comment"),
        ("", "x.md"),
        ("/", "x.md"),
        ("[z-a].md", "m.md"),
        ("[unclosed.md", "[unclosed.md"),
        ("[[:nothing:]].md", "a.md"),
        ("ends\\", "ends\\"),
        ("a?b", "a/b"),
        ("a[/]b", "a/b"),
    ],
)
def test_a_line_does_not_speak_of_this_path(line, path):
    assert decide([line], path) is None


def test_the_last_line_that_matches_decides():
    assert decide(["*.md", "!keep.md"], "keep.md") is False
    assert decide(["!keep.md", "*.md"], "keep.md") is True


def test_a_line_with_a_slash_at_its_end_speaks_of_folders_only():
    assert decide(["build/"], "deep/build", folder=True) is True
    assert decide(["build/"], "deep/build") is None


def test_all_but_markdown_is_a_way_to_write_an_ignore_file():
    lines = ["*", "!*/", "!*.md"]
    assert decide(lines, "folder", folder=True) is False
    assert decide(lines, "folder/note.md") is False
    assert decide(lines, "folder/photo.png") is True


@pytest.mark.parametrize(
    "line", ["*a" * 40 + "b", "**/a/" * 20 + "b", "a*/" * 30 + "b", "*" * 500 + "b", "[a-" * 300]
)
def test_a_hostile_line_is_over_at_once(line):
    # With backtracking each of these would outlast the test run.
    assert decide([line], "/".join(["a" * 250] * 40)) is None


@given(st.lists(st.text()), st.text())
def test_no_line_is_an_error(lines, path):
    assert decide(lines, path) in (True, False, None)


LITERALS = ("a", "b", "c.md", ".md", " ", "\\")
CLASSES = ("[ab]", "[!a]", "[^b]", "[a-c]", "[/]", "[]a]", "[[:alpha:]]", "?")
STARS = ("*", "**", "/", "/", "**/", "/**")
GLOBS = st.lists(st.sampled_from(LITERALS + CLASSES + STARS), min_size=1, max_size=6).map("".join)
# Of two stars behind a letter, git 2.39 makes one thing or the other from run to run: it compares
# an address in the line with one in the path. What the manual says of them is tested above. And an
# escaped slash, which nobody writes, is to git not quite a slash.
QUIRKS = re.compile(r"[^/*]\*\*|\\/")
LINES = st.builds(
    lambda sign, glob: sign + glob,
    st.sampled_from(["", "", "!"]),
    GLOBS.filter(lambda glob: not QUIRKS.search(glob)),
)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """Folders a and b in each other, three deep, with notes in all of them."""
    root = tmp_path_factory.mktemp("tree")
    folders = ["", "a", "b", "a/a", "a/b", "b/a", "ab", "a/b/a", "b/a/b"]
    for folder in folders:
        (root / folder).mkdir(exist_ok=True)
        for name in ("a.md", "b.md", "c.md", "ab.md"):
            (root / folder / name).touch()
    subprocess.run(["git", "init", "--quiet", root], check=True)
    return root


@needs_git
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(top=st.lists(LINES, max_size=4), nested=st.lists(LINES, max_size=3))
def test_git_and_we_see_the_same_files(tree, top, nested):
    (tree / ".gitignore").write_text("\n".join(top))
    (tree / "a" / ".gitignore").write_text("\n".join(nested))

    assert [file.path for file in walk(tree, config.Walk(exclude=[".git/"])).files] == by_git(tree)


def by_git(tree: Path) -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--others", "--exclude-per-directory=.gitignore"],
        cwd=tree,
        env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CEILING_DIRECTORIES": ""},
        capture_output=True,
        check=True,
    )
    return sorted(name for name in listed.stdout.decode().split("\0") if name.endswith(".md"))


def test_an_obsidian_filter_is_the_beginning_of_a_path_in_any_case():
    filters = ObsidianFilters(["Templates/", "  read", ""])
    assert filters.decide("templates", "templates", folder=True) is True
    assert filters.decide("Templates/Daily.md", "Daily.md", folder=False) is True
    assert filters.decide("README.md", "README.md", folder=False) is True
    assert filters.decide("notes/Templates/x.md", "x.md", folder=False) is None


def test_an_obsidian_filter_between_slashes_is_an_expression_on_files():
    filters = ObsidianFilters([r"/.*\.excalidraw\.md$/", r"/^(?<kind>draft)s?\//"])
    assert filters.decide("a/b.Excalidraw.md", "b.Excalidraw.md", folder=False) is True
    assert filters.decide("Drafts/x.md", "x.md", folder=False) is True
    assert filters.decide("Drafts", "Drafts", folder=True) is None
    assert filters.refused == []


@pytest.mark.parametrize(
    "text",
    ["/(a+)+$/", "/(unclosed/", r"/(a)\1/", "/a.*.*.*.*x/", "/a{9,}{9,}/",
     r"/[a\/]*[a\/]*[a\/]*b$/", "/(?=a*)b/", "/" + "a?" * 30 + "/", "/" + "(a|a)" * 30 + "/",
     "/" + "a" * 400 + "/"],
)  # fmt: skip
def test_an_expression_that_is_broken_or_could_hang_is_refused_by_name(text):
    filters = ObsidianFilters([text, "Private/"])
    assert filters.refused == [text]
    assert filters.decide("Private/x.md", "x.md", folder=False) is True


def test_any_text_at_either_end_of_an_expression_costs_nothing():
    filters = ObsidianFilters(["/.*.*old.*/", "/^.*draft.*$/"])
    assert filters.refused == []
    assert filters.decide("notes/old/x.md", "x.md", folder=False) is True
    assert filters.decide("a draft.md", "a draft.md", folder=False) is True
    assert filters.decide("a.md", "a.md", folder=False) is None


def test_a_list_of_folders_is_a_usual_expression():
    folders = "|".join(f"folder{number}" for number in range(30))
    filters = ObsidianFilters([rf"/^({folders})\/.*\.md$/"])
    assert filters.refused == []
    assert filters.decide("folder7/x.md", "x.md", folder=False) is True


def test_stars_in_a_class_or_after_a_backslash_are_no_repeats():
    assert is_fast(r"[*+*+*+]\*\+\*\+")


@given(st.lists(st.text()), st.text())
def test_no_obsidian_filter_is_an_error(texts, path):
    assert ObsidianFilters(texts).decide(path, path, folder=False) in (True, None)
