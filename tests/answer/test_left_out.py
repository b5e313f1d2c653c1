"""A note that is excluded, or skipped, is named as such: it is not taken for one that is absent."""

from __future__ import annotations

import json

import pytest
from vault_kit import FAKE, ragvault

LIMITED = {**FAKE, "RAGVAULT_WALK__MAX_BYTES": "2000"}

LEFT_OUT = {
    "Archive/Bread Machine Notes.md": "is excluded by Obsidian's settings",
    "Drafts/2024/Old Loaf.md": "is excluded by .gitignore",
    "sub/Private Loaf.md": "is excluded by sub/.ragignore",
    "Secret Loaf.txt": "is excluded by walk.exclude",
    "Huge.md": "is not indexed (large): 3,000 bytes; walk.max_bytes allows fewer",
    "Picture.md": "is not indexed (binary): holds bytes that are no text",
}
INCLUDED = (
    "take it out of Obsidian's excluded files, or set walk.obsidian_ignore to false; then run: ",
    "add the line !/Drafts/ to .ragignore; then run: ragvault index",
    "take it out of sub/.ragignore; then run: ragvault index",
    "add the line !/Secret Loaf.txt to .ragignore; then run: ragvault index",
    "ragvault status -v lists all files that are not indexed",
    "ragvault status -v lists all files that are not indexed",
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("left-out")
    files = {
        **dict.fromkeys(LEFT_OUT, "Knead it, prove it, bake it.\n"),
        "Huge.md": "x" * 3000,
        "Picture.md": "\0\1\2" * 50,
        "Home.md": "# Home\n\nA page about keys.\n",
        "Bread.md": "The bread of a machine, an old loaf, a private plan, a huge picture. Notes.\n",
        "Archive/.git/x.md": "Of a program.\n",
        "node_modules/Readme.md": "Of a program.\n",
        ".obsidian/app.json": json.dumps({"userIgnoreFilters": ["Archive/"]}),
        ".gitignore": "Drafts/\nnode_modules/\n",
        "sub/.ragignore": "Private*\n",
        ".ragvault.toml": 'walk.exclude = [".*", "Secret*"]\n',
    }
    for path, text in files.items():
        (root / "vault" / path).parent.mkdir(parents=True, exist_ok=True)
        (root / "vault" / path).write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**LIMITED, "RAGVAULT_HOME": str(root / "home")}.items():
            patch.setenv(name, value)
        assert ragvault("index", root / "vault", "-q").code == 0
    return root


@pytest.fixture
def vault(made, monkeypatch):
    for name, value in {**LIMITED, "RAGVAULT_HOME": str(made / "home")}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(made / "vault")
    return made / "vault"


@pytest.mark.parametrize("path", LEFT_OUT)
def test_search_for_its_name_says_why_it_is_not_found(vault, path):
    stem = path.rpartition("/")[2].rpartition(".")[0]
    for typed in (stem, path, stem.lower().replace(" ", "-")):
        said = ragvault("search", typed, "--json").json
        assert [line for line in said["warnings"] if path in line] == [f"{path} {LEFT_OUT[path]}"]
    assert f"{path} {LEFT_OUT[path]}" in ragvault("search", stem).err


@pytest.mark.parametrize(("path", "fix"), list(zip(LEFT_OUT, INCLUDED, strict=True)))
def test_a_command_that_takes_its_name_says_why_and_what_includes_it(vault, path, fix):
    stem = path.rpartition("/")[2].rpartition(".")[0]
    for command in ("read", "links", "related", "open", "forget"):
        if (command, path) == ("read", "Picture.md"):
            continue  # its bytes are looked at, as they are now
        said = ragvault(command, stem)
        assert said.code == 2
        assert f"{path} {LEFT_OUT[path]}" in said.err
        assert fix in said.err


@pytest.mark.parametrize("typed", ["bread machine", "machine notes", "Private", "secret"])
def test_a_part_of_its_name_is_enough(vault, typed):
    said = ragvault("search", typed, "--json").json
    (path,) = (path for path in LEFT_OUT if typed.lower() in path.lower())

    assert said["results"], "and others are found"
    assert f"{path} {LEFT_OUT[path]}" in said["warnings"]
    assert f"{path} {LEFT_OUT[path]}" in ragvault("read", typed).err


@pytest.mark.parametrize("typed", ["notes", "bread", "a bread machine for us", "old rye loaf"])
def test_a_word_of_many_or_more_words_than_its_name_has_do_not_ask_for_it(vault, typed):
    warnings = ragvault("search", typed, "--json").json["warnings"]

    assert not [line for line in warnings if "excluded" in line or "not indexed" in line]


def test_a_path_from_the_current_folder_is_enough(vault, monkeypatch):
    monkeypatch.chdir(vault / "sub")

    assert LEFT_OUT["sub/Private Loaf.md"] in ragvault("read", "./Private Loaf.md").err


def test_a_name_that_no_file_has_is_unknown(vault, made):
    for named in ("Readme", "x", "Archive/.git/x.md", str(made / "Huge.md"), "Machine"):
        assert "no note called" in ragvault("links", named).err
        assert not ragvault("search", named, "--json").json["warnings"]


def test_status_lists_folders_as_one_row_and_nothing_of_programs(vault):
    rows = [line for line in ragvault("status", "-v").out.splitlines() if "skipped" in line]

    assert rows == [
        "skipped   1 binary, 4 excluded, 1 large",
        "skipped   Huge.md: large, 3,000 bytes; walk.max_bytes allows fewer",
        "skipped   Picture.md: binary, holds bytes that are no text",
        "skipped   Archive/: excluded, by Obsidian's settings",
        "skipped   Drafts/: excluded, by .gitignore",
        "skipped   Secret Loaf.txt: excluded, by walk.exclude",
        "skipped   sub/Private Loaf.md: excluded, by sub/.ragignore",
    ]
    assert [each["path"] for each in ragvault("status", "--json").json["excluded"]] == [
        "Archive/",
        "Drafts/",
        "Secret Loaf.txt",
        "sub/Private Loaf.md",
    ]


def test_what_includes_it_again_does(made, tmp_path, monkeypatch):
    import shutil

    for name, value in {**LIMITED, "RAGVAULT_HOME": str(tmp_path / "home")}.items():
        monkeypatch.setenv(name, value)
    shutil.copytree(made / "vault", tmp_path / "vault")
    (tmp_path / "vault" / ".ragignore").write_text("!/Drafts/\n!/Secret Loaf.txt\n")
    assert ragvault("index", tmp_path / "vault", "-q").code == 0
    monkeypatch.chdir(tmp_path / "vault")

    assert ragvault("read", "Old Loaf").code == 0
    assert ragvault("read", "Secret Loaf").code == 0


def test_a_search_that_finds_its_note_does_not_look_for_others(vault, monkeypatch):
    from ragvault.corpus import LocalCorpus

    monkeypatch.setattr(LocalCorpus, "left_out", lambda *_: pytest.fail("the vault was walked"))

    assert ragvault("search", "Home", "--json").json["results"][0]["note"] == "Home.md"
