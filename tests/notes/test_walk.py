"""Walk: on real folders, with everything in them that is no note."""

from __future__ import annotations

import json
import os
import socket
import stat
import unicodedata
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragvault.config import settings as config
from ragvault.errors import VaultNotFound, VaultUnreadable
from ragvault.notes import read
from ragvault.notes import walk as walking
from ragvault.notes.walk import walk
from ragvault.types import Skipped

NFC, NFD = "caf\u00e9.md", "cafe\u0301.md"


def make(root: Path, *paths: str, text: str = "text") -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def paths(walked):
    return [file.path for file in walked.files]


def reasons(walked):
    return {skipped.path: skipped.reason for skipped in walked.skipped}


def seen(root, **settings):
    return paths(walk(root, config.Walk(**settings)))


def snapshot(root: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every name below a folder, with its time and its bytes."""
    return {
        str(path.relative_to(root)): (
            path.lstat().st_mode,
            path.lstat().st_mtime_ns,
            path.read_bytes() if path.is_file() and not path.is_symlink() else b"",
        )
        for path in sorted(root.rglob("*"))
    }


@pytest.fixture
def denied(monkeypatch):
    """Folders that refuse to be listed, also to root."""
    names: set[str] = set()
    scandir = os.scandir

    def refusing(path):
        if Path(path).name in names:
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    return names


def test_markdown_files_are_found_in_every_folder_in_the_order_of_their_paths(tmp_path):
    make(tmp_path, "b.md", "a/z.markdown", "a/B.MD", "photo.png", "a/readme.text", "md")
    assert seen(tmp_path) == ["a/B.MD", "a/z.markdown", "b.md"]


def test_a_file_has_its_size_and_its_time_in_nanoseconds(tmp_path):
    make(tmp_path, "a.md", text="12345")
    os.utime(tmp_path / "a.md", ns=(0, 1_700_000_000_123_456_789))
    (file,) = walk(tmp_path, config.Walk()).files
    assert (file.size, file.mtime_ns) == (5, (tmp_path / "a.md").stat().st_mtime_ns)


def test_an_empty_vault_is_no_error(tmp_path):
    assert walk(tmp_path, config.Walk()).files == ()


def test_folders_with_a_dot_and_those_of_programs_are_not_entered(tmp_path):
    make(tmp_path, ".obsidian/a.md", ".trash/b.md", "x/node_modules/c.md", "x/d.md")
    walked = walk(tmp_path, config.Walk())
    assert paths(walked) == ["x/d.md"]
    assert walked.skipped == walked.excluded == ()


def test_what_the_settings_exclude_is_listed_a_folder_once(tmp_path):
    make(tmp_path, "a.md", "private/b.md", "private/d.md", "c.secret.md")
    walked = walk(tmp_path, config.Walk(exclude=["private/", "*.secret.md"]))
    assert paths(walked) == ["a.md"]
    by = ("excluded", "by walk.exclude")
    assert walked.excluded == (Skipped("c.secret.md", *by), Skipped("private/", *by))
    assert walked.skipped == ()


def test_a_gitignore_speaks_of_its_own_folder_and_the_nearest_one_wins(tmp_path):
    make(tmp_path, "drafts/a.md", "x/drafts/b.md", "x/keep/drafts/c.md", "y/only.md")
    make(tmp_path, ".gitignore", text="drafts/\n")
    make(tmp_path, "x/keep/.gitignore", text="!drafts/\n")
    make(tmp_path, "y/.gitignore", text="/only.md\n/drafts\n")
    assert seen(tmp_path) == ["x/keep/drafts/c.md"]
    assert len(seen(tmp_path, gitignore=False)) == 4


def test_a_ragignore_wins_over_every_gitignore(tmp_path):
    make(tmp_path, "wanted/a.md", "unwanted/b.md", "wanted/deep/c.md")
    make(tmp_path, ".gitignore", text="wanted/\n")
    make(tmp_path, "wanted/deep/.gitignore", text="c.md\n")
    make(tmp_path, ".ragignore", text="!wanted/\n!c.md\nunwanted/\n")
    assert seen(tmp_path) == ["wanted/a.md", "wanted/deep/c.md"]


def test_a_ragignore_can_ask_back_what_is_excluded_by_default(tmp_path):
    make(tmp_path, ".notes/a.md")
    make(tmp_path, ".ragignore", text="!.notes/\n")
    assert seen(tmp_path) == [".notes/a.md"]


def test_a_ragignore_holds_without_gitignore(tmp_path):
    make(tmp_path, "a.md", "b.md")
    make(tmp_path, ".ragignore", text="\ufeffb.md\r\n")
    assert seen(tmp_path, gitignore=False) == ["a.md"]


def test_an_ignore_file_that_cannot_be_read_is_a_warning(tmp_path):
    make(tmp_path, "a.md")
    os.mkfifo(tmp_path / ".ragignore")
    walked = walk(tmp_path, config.Walk())
    assert paths(walked) == ["a.md"]
    assert ".ragignore cannot be read" in walked.warnings[0]


def test_excluded_files_of_obsidian_are_ignored(tmp_path):
    make(tmp_path, "Templates/a.md", "b.md", "drawing.excalidraw.md")
    filters = {"userIgnoreFilters": ["templates/", r"/\.excalidraw\.md$/", 7]}
    make(tmp_path, ".obsidian/app.json", text=json.dumps(filters))
    assert seen(tmp_path) == ["b.md"]
    assert len(seen(tmp_path, obsidian_ignore=False)) == 3


@pytest.mark.parametrize("text", ["{", "[]", '{"userIgnoreFilters": 5}', "[" * 100_000, "\x00"])
def test_broken_settings_of_obsidian_hide_nothing(tmp_path, text):
    make(tmp_path, "a.md")
    make(tmp_path, ".obsidian/app.json", text=text)
    assert seen(tmp_path) == ["a.md"]


def test_broken_json_is_a_warning(tmp_path):
    make(tmp_path, ".obsidian/app.json", text="{")
    assert ".obsidian/app.json" in walk(tmp_path, config.Walk()).warnings[0]


def test_conflict_copies_are_named(tmp_path):
    copies = ["a.sync-conflict-20240314-101010-ABCDEFG.md", "a (Bo's conflicted copy).md"]
    make(tmp_path, "a.md", *copies)
    walked = walk(tmp_path, config.Walk())
    assert paths(walked) == ["a.md"]
    assert reasons(walked) == dict.fromkeys(copies, read.CONFLICT)
    assert walked.excluded == ()


def test_a_stub_of_icloud_names_the_note_that_is_elsewhere(tmp_path):
    make(tmp_path, "x/.Note.md.icloud", "x/.photo.png.icloud", ".trash/.Old.md.icloud")
    walked = walk(tmp_path, config.Walk())
    assert reasons(walked) == {"x/Note.md": read.CLOUD}
    assert walked.unreadable == {"x/Note.md"}


def test_a_file_without_a_block_is_elsewhere_where_others_have_blocks(tmp_path):
    make(tmp_path, "here.md", text="x" * 5000)
    with (tmp_path / "elsewhere.md").open("wb") as sparse:
        sparse.truncate(100_000)
    if (tmp_path / "elsewhere.md").stat().st_blocks or not (tmp_path / "here.md").stat().st_blocks:
        pytest.skip("this file system has no sparse files")
    walked = walk(tmp_path, config.Walk())
    assert paths(walked) == ["here.md"]
    assert reasons(walked) == {"elsewhere.md": read.CLOUD}
    assert walked.unreadable == {"elsewhere.md"}


def status(**fields):
    usual = {"st_size": 9000, "st_mtime_ns": 1, "st_blocks": 24, "st_dev": 1}
    return SimpleNamespace(**usual | fields)


def taken(*statuses):
    state = walking.WalkState("/", (".md",), 1_000_000, frozenset())
    for number, each in enumerate(statuses):
        walking.take(state, read.File(f"{number}.md", f"{number}.md", each.st_size, 1), each)
    return paths(walking.finish(state))


def test_a_mount_that_counts_no_blocks_loses_no_note():
    assert taken(status(st_blocks=0), status(st_blocks=0, st_size=10)) == ["0.md", "1.md"]
    assert taken(status(st_blocks=0), status(st_dev=2)) == ["0.md", "1.md"]


def test_a_small_note_kept_inside_its_directory_entry_is_a_note():
    assert taken(status(), status(st_blocks=0, st_size=150)) == ["0.md", "1.md"]


def test_a_note_that_the_system_marks_as_dataless_is_not_taken():
    assert taken(status(st_flags=read.SF_DATALESS), status(st_file_attributes=0x400000)) == []


def test_pipes_and_sockets_are_named_and_never_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe.md")
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(tmp_path)  # the path of a socket has to be short
        try:
            listener.bind("socket.md")
        finally:
            os.chdir(here)
        walked = walk(tmp_path, config.Walk())
    assert reasons(walked) == {"pipe.md": read.SPECIAL, "socket.md": read.SPECIAL}


def test_a_device_is_named(tmp_path):
    try:
        os.mknod(tmp_path / "null.md", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    except (OSError, AttributeError):
        pytest.skip("devices cannot be made here")
    assert reasons(walk(tmp_path, config.Walk())) == {"null.md": read.SPECIAL}


def test_a_file_over_the_limit_is_named(tmp_path):
    make(tmp_path, "fits.md", text="x" * 100)
    make(tmp_path, "large.md", text="x" * 101)
    walked = walk(tmp_path, config.Walk(max_bytes=100))
    assert paths(walked) == ["fits.md"]
    assert reasons(walked) == {"large.md": read.LARGE}


def test_a_folder_with_the_name_of_a_note_is_a_folder(tmp_path):
    make(tmp_path, "folder.md/a.md")
    assert seen(tmp_path) == ["folder.md/a.md"]


def test_a_link_into_the_vault_is_not_a_second_note(tmp_path):
    make(tmp_path, "real/a.md")
    (tmp_path / "b.md").symlink_to("real/a.md")
    (tmp_path / "again").symlink_to("real", target_is_directory=True)
    walked = walk(tmp_path, config.Walk())
    assert paths(walked) == ["real/a.md"]
    assert reasons(walked) == {"again": read.SYMLINK, "b.md": read.SYMLINK}


def test_a_link_out_of_the_vault_is_not_followed(tmp_path):
    make(tmp_path, "vault/a.md", "vault-other/b.md", "other/c.md", "other/d.png")
    vault = tmp_path / "vault"
    (vault / "b.md").symlink_to(tmp_path / "vault-other" / "b.md")
    (vault / "other").symlink_to(tmp_path / "other", target_is_directory=True)
    (vault / "d.png").symlink_to(tmp_path / "other" / "d.png")
    walked = walk(vault, config.Walk())
    assert paths(walked) == ["a.md"]
    assert reasons(walked) == {"b.md": read.OUTSIDE, "other": read.OUTSIDE}


def test_links_in_a_circle_end(tmp_path):
    make(tmp_path, "x/a.md")
    (tmp_path / "x" / "up").symlink_to("..", target_is_directory=True)
    (tmp_path / "self.md").symlink_to("self.md")
    (tmp_path / "lost.md").symlink_to("nowhere.md")
    walked = walk(tmp_path, config.Walk())
    assert paths(walked) == ["x/a.md"]
    assert reasons(walked) == {
        "x/up": read.SYMLINK,
        "self.md": read.BROKEN,
        "lost.md": read.BROKEN,
    }


def test_the_vault_itself_may_be_a_link(tmp_path):
    make(tmp_path, "real/a.md")
    (tmp_path / "vault").symlink_to("real", target_is_directory=True)
    assert seen(tmp_path / "vault") == ["a.md"]


def test_a_missing_vault_is_never_an_empty_one(tmp_path):
    make(tmp_path, "file")
    with pytest.raises(VaultNotFound):
        walk(tmp_path / "missing", config.Walk())
    for path in ("file", "file/below"):
        with pytest.raises(VaultNotFound):
            walk(tmp_path / path, config.Walk())


def test_a_vault_that_cannot_be_listed_is_never_an_empty_one(tmp_path, denied):
    make(tmp_path, "vault/a.md")
    denied.add("vault")
    with pytest.raises(VaultUnreadable) as raised:
        walk(tmp_path / "vault", config.Walk())
    assert "Permission denied" in str(raised.value)


def test_a_folder_that_cannot_be_listed_is_named_so_that_its_notes_are_kept(tmp_path, denied):
    make(tmp_path, "a.md", "x/locked/b.md")
    denied.add("locked")
    walked = walk(tmp_path, config.Walk())
    assert paths(walked) == ["a.md"]
    assert walked.skipped == (Skipped("x/locked/", read.UNREADABLE, "Permission denied"),)
    assert walked.unreadable == {"x/locked/"}


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may list all")
def test_a_folder_without_rights_is_named(tmp_path):
    make(tmp_path, "locked/b.md")
    (tmp_path / "locked").chmod(0)
    try:
        assert walk(tmp_path, config.Walk()).unreadable == {"locked/"}
    finally:
        (tmp_path / "locked").chmod(0o700)


def test_a_folder_that_vanishes_during_the_walk_is_simply_gone(tmp_path, monkeypatch):
    make(tmp_path, "a.md", "gone/b.md")
    scandir = os.scandir

    def late(path):
        if Path(path).name == "gone":
            raise FileNotFoundError(2, "No such file or directory")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", late)
    walked = walk(tmp_path, config.Walk())
    assert (paths(walked), walked.skipped, walked.unreadable) == (["a.md"], (), frozenset())


def test_a_path_is_nfc_and_disk_is_what_can_be_opened(tmp_path):
    make(tmp_path, f"cafe\u0301/{NFD}")
    (file,) = walk(tmp_path, config.Walk()).files
    assert file.path == unicodedata.normalize("NFC", file.disk) == f"caf\u00e9/{NFC}"
    assert (tmp_path / file.disk).read_text() == "text"


def test_of_two_names_that_look_the_same_one_is_indexed_and_the_other_named(tmp_path):
    make(tmp_path, NFC, NFD)
    if len(list(tmp_path.iterdir())) == 1:
        pytest.skip("this file system normalises names")
    walked = walk(tmp_path, config.Walk())
    assert [file.disk for file in walked.files] == [NFC]
    assert reasons(walked) == {NFC: read.DUPLICATE}


def test_a_name_that_is_not_utf8_is_named_and_can_be_printed(tmp_path):
    try:
        for name in (b"caf\xe9.md", b"d\xffr"):
            path = os.path.join(os.fsencode(tmp_path), name)  # noqa: PTH118
            os.mkdir(path) if name == b"d\xffr" else os.close(os.open(path, os.O_CREAT))  # noqa: PTH102
    except OSError:
        pytest.skip("this file system refuses such names")
    walked = walk(tmp_path, config.Walk())
    assert reasons(walked) == {r"caf\xe9.md": read.NAME, r"d\xffr": read.NAME}
    assert all(skipped.path.encode() for skipped in walked.skipped)


@pytest.mark.parametrize("name", ["a\nb.md", " .md", "'\"$`.md", "a\\b.md", "💡.md", "-rf.md"])
def test_unusual_names_are_names(tmp_path, name):
    make(tmp_path, f"x\ny/{name}")
    assert seen(tmp_path) == [f"x\ny/{name}"]


def test_nesting_has_no_limit(tmp_path):
    deep = "/".join("d" * 300)
    make(tmp_path, f"{deep}/a.md")
    assert seen(tmp_path) == [f"{deep}/a.md"]


def test_the_vault_is_the_same_after_a_walk(tmp_path):
    make(tmp_path, "a.md", "x/b.md", ".obsidian/app.json", "x/.gitignore")
    (tmp_path / "link.md").symlink_to("a.md")
    before = snapshot(tmp_path)
    walk(tmp_path, config.Walk())
    assert snapshot(tmp_path) == before


def test_a_note_that_nobody_may_read_is_skipped_with_its_reason(tmp_path, monkeypatch):
    make(tmp_path, "a.md", "b.md")
    monkeypatch.setattr(walking.os, "access", lambda path, mode: False)  # root may read anything
    (tmp_path / "b.md").chmod(0)

    walked = walk(tmp_path, config.Walk())

    assert paths(walked) == ["a.md"]
    assert [(skip.path, skip.reason) for skip in walked.skipped] == [("b.md", read.UNREADABLE)]
    assert walked.unreadable == {"b.md"}


def test_names_that_steer_a_terminal_are_escaped_in_what_is_skipped(tmp_path):
    make(tmp_path, "a\x9b31m\u202e.md", text="x" * 100)

    [skipped] = walk(tmp_path, config.Walk(max_bytes=10)).skipped

    assert skipped.path == "a\\x9b31m\\u202e.md"


# --- some paths only ---

FOLDERS = ("", "a/", "a/b/", "node_modules/", "drafts/")
ENTRIES = st.tuples(
    st.sampled_from(FOLDERS),
    st.sampled_from(("one.md", "two.md", NFC, NFD, "x.sync-conflict-1.md", ".gitignore", "p.png")),
    st.sampled_from(("file", "file", "link", "rules")),
)


@given(st.lists(ENTRIES, max_size=12), st.sets(st.sampled_from(FOLDERS), max_size=3), st.data())
def test_a_walk_of_some_paths_finds_of_them_what_a_whole_walk_finds(entries, ignored, data):
    with TemporaryDirectory() as folder:
        root = Path(folder)
        for above, name, kind in entries:
            path = root / above / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            if kind == "link" and name != ".gitignore":
                path.symlink_to(root / "a")
            else:
                path.write_text("\n".join(ignored) if name == ".gitignore" else "text")
        whole = walk(root, config.Walk())
        every = [above + unicodedata.normalize("NFC", name) for above, name, _ in entries]
        only = data.draw(st.sets(st.sampled_from([*every, "gone.md", "a/gone/x.md"])))

        some = walk(root, config.Walk(), only)

        assert some.files == tuple(file for file in whole.files if file.path in only)
        assert some.skipped == tuple(skip for skip in whole.skipped if skip.path in only)
        assert some.only == only


def test_only_the_folders_on_the_way_are_listed(tmp_path, monkeypatch):
    make(tmp_path, "a/b/note.md", "a/c/note.md", "d/note.md")
    listed = []
    scandir = os.scandir
    monkeypatch.setattr(
        walking.os, "scandir", lambda path: listed.append(Path(path).name) or scandir(path)
    )

    assert paths(walk(tmp_path, config.Walk(), {"a/b/note.md"})) == ["a/b/note.md"]
    assert listed == [tmp_path.name, "a", "b"]


def test_a_second_name_of_a_note_takes_a_whole_walk(tmp_path):
    """The note has changed under the other name as well, which nobody reports."""
    make(tmp_path, "a.md", "c.md")
    (tmp_path / "b.md").hardlink_to(tmp_path / "a.md")

    assert walk(tmp_path, config.Walk(), {"b.md"}) == walk(tmp_path, config.Walk())
    assert walk(tmp_path, config.Walk(), {"c.md"}).only == {"c.md"}


def test_a_note_that_icloud_took_away_is_not_taken_for_deleted(tmp_path):
    make(tmp_path, "a/.Note.md.icloud")

    assert walk(tmp_path, config.Walk(), {"a/Note.md"}).unreadable == {"a/Note.md"}


def test_folders_that_are_not_looked_into_are_known(tmp_path):
    make(tmp_path, "notes/drafts/a.md", "node_modules/b.md", ".git/c.md")
    make(tmp_path, ".gitignore", text="drafts/\n")

    walked = walk(tmp_path, config.Walk())
    assert walked.ignored == {"notes/drafts/", "node_modules/", ".git/"}
