"""Which events of a vault arrive, which paths matter, and what happens without events."""

from __future__ import annotations

import errno
import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragvault.config.settings import Walk
from ragvault.notes.walk import walk
from ragvault.service import events, inotify
from ragvault.service.events import (
    NativeEvents,
    NoNativeEvents,
    PathFilter,
    Poller,
    network_mount,
)
from tests.watch_kit import soon


class Ears:
    """Counts what is heard of a vault."""

    def __init__(self, root: Path) -> None:
        self.root, self.count = root, 0
        self.native = NativeEvents(root, PathFilter(root, Walk()), self._changed)

    def _changed(self) -> None:
        self.count += 1

    def heard(self) -> bool:
        """Whether something was heard since the last time; a note of our own marks the end."""
        mark = self.root / "mark.md"
        before = self.count
        mark.write_text("mark\n")
        assert soon(lambda: self.count > before)
        mark.unlink()
        return True

    @property
    def watches(self) -> int:
        return len(self.native._emitter.watched_folders)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "vault"
    folder.mkdir()
    return folder


@pytest.fixture
def ears(root: Path) -> Iterator[Ears]:
    found = Ears(root)
    yield found
    found.native.close()


# --- native events ---


def test_ignored_folders_take_no_watch(root):
    for name in ("node_modules/a/b", ".git/objects/00", "notes/deep", "build"):
        (root / name).mkdir(parents=True)
    (root / ".gitignore").write_text("build/\n")
    ears = Ears(root)
    try:
        assert ears.watches == 3  # the vault, notes and notes/deep
        (root / "node_modules" / "later").mkdir()
        (root / ".git" / "later").mkdir()
        (root / "more").mkdir()
        assert soon(lambda: ears.watches == 4)
    finally:
        ears.native.close()


def test_what_happens_in_an_ignored_folder_is_not_heard(root, ears):
    """An ignored note first and a real one after it: only the second is heard."""
    (root / "node_modules").mkdir()
    (root / "node_modules" / "readme.md").write_text("x\n")
    (root / "picture.png").write_bytes(b"x")
    (root / ".note.md.swp").write_text("x\n")
    mark = root / "z"
    mark.mkdir()  # heard once, and in order: what came before has been dealt with
    assert soon(lambda: ears.count)

    assert ears.count == 1


def test_a_folder_that_left_is_watched_no_more(root, ears, tmp_path):
    (root / "a" / "b").mkdir(parents=True)
    assert soon(lambda: ears.watches == 3)
    (root / "a").rename(tmp_path / "a")

    assert soon(lambda: ears.watches == 1)


def test_losing_events_is_heard_as_a_change(root, ears, monkeypatch):
    overflow = inotify.EVENT_HEAD.pack(-1, inotify.In.IN_Q_OVERFLOW, 0, 0)
    real = os.read
    monkeypatch.setattr(
        inotify.os,
        "read",
        lambda fd, count: (
            real(fd, count) and overflow if fd == ears.native._emitter._fd else real(fd, count)
        ),
    )
    (root / "picture.png").write_bytes(b"x")

    assert soon(lambda: ears.count)


@pytest.mark.parametrize(
    ("code", "said"), [(errno.ENOSPC, "max_user_watches"), (errno.EMFILE, "max_user_instances")]
)
def test_a_limit_of_the_system_is_named_with_its_cure(root, monkeypatch, code, said):
    def refuse(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(inotify.PrunedEmitter, "on_thread_start", refuse)

    with pytest.raises(NoNativeEvents, match=said):
        Ears(root)


def test_a_limit_that_is_reached_later_is_noticed(root, ears, monkeypatch):
    def refuse(fd, path, mask):
        inotify.ctypes.set_errno(errno.ENOSPC)
        return -1

    monkeypatch.setattr(inotify, "inotify_add_watch", refuse)
    (root / "one more").mkdir()

    assert soon(lambda: "max_user_watches" in ears.native.failure)


def test_a_vault_that_was_deleted_is_not_listened_to_under_its_name(root, ears):
    """A folder made in its place can even have its inode: nothing but this tells them apart."""
    root.rmdir()
    root.mkdir()

    assert soon(lambda: "was removed" in ears.native.failure)


def test_a_network_mount_is_not_listened_to(root, monkeypatch):
    monkeypatch.setattr(events, "network_mount", lambda _: "nfs4")

    with pytest.raises(NoNativeEvents, match="network file system \\(nfs4\\)"):
        Ears(root)


def test_closing_leaves_no_thread(root):
    before = threading.active_count()
    ears = Ears(root)
    assert ears.heard()
    ears.native.close()

    assert soon(lambda: threading.active_count() <= before)


# --- mounts ---

MOUNTS = """\
22 1 8:1 / / rw - ext4 /dev/sda1 rw
40 22 0:40 / /home/me/server rw - nfs4 server:/x rw
41 40 0:41 / /home/me/server/local rw - tmpfs tmpfs rw
42 22 0:42 / /home/me/with\\040space rw - fuse.sshfs me@host: rw
not a line of that file
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/home/me/notes", ""),
        ("/home/me/server", "nfs4"),
        ("/home/me/server/notes/deep", "nfs4"),
        ("/home/me/server/local/notes", ""),
        ("/home/me/servers", ""),
        ("/home/me", "nfs4"),
        ("/home/me/with space", "fuse.sshfs"),
        ("/home/me/server/local", ""),
        ("/home/me/with space/notes", "fuse.sshfs"),
        ("\\\\server\\share\\notes", "a Windows share"),
    ],
)
def test_the_file_system_of_a_folder_is_that_of_the_nearest_mount(tmp_path, folder, kind):
    table = tmp_path / "mountinfo"
    table.write_text(MOUNTS)

    assert network_mount(Path(folder), table) == kind


def test_without_a_table_of_mounts_a_folder_counts_as_local(tmp_path):
    assert network_mount(tmp_path, tmp_path / "none") == ""


# --- the path filter ---

names = st.sampled_from(["a.md", "b.md", "c.txt", ".d.md", "é.md", "e.MARKDOWN"])
parts = st.sampled_from(["x", "y", "node_modules", ".git", "ü"])
rules = st.sampled_from(["x/", "*.md", "!a.md", "y/b.md", "/x/y", "!x/", "ü", "# nothing", ""])
trees = st.lists(st.tuples(st.lists(parts, max_size=3), names), max_size=12)
ignoring = st.lists(
    st.tuples(
        st.lists(parts, max_size=2), st.sampled_from([".gitignore", ".ragignore"]), st.lists(rules)
    ),
    max_size=3,
)


@given(trees, ignoring)
def test_relevant_paths_are_those_that_the_walk_finds(tree, ignored):
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for above, name, lines in ignored:
            root.joinpath(*above).mkdir(parents=True, exist_ok=True)
            root.joinpath(*above, name).write_text("\n".join(lines))
        for above, name in tree:
            root.joinpath(*above).mkdir(parents=True, exist_ok=True)
            root.joinpath(*above, name).write_text("x")
        paths = PathFilter(root, Walk())
        found = {file.disk for file in walk(root, Walk()).files}

        written = {"/".join([*above, name]) for above, name in tree}
        assert {path for path in written if paths.is_relevant(path, is_folder=False)} == found


def test_rules_and_settings_matter_although_they_are_hidden(root):
    paths = PathFilter(root, Walk())

    for name in (".gitignore", ".ragignore", ".ragvault.toml", "a/.gitignore"):
        assert paths.is_relevant(name, is_folder=False)
        assert paths.is_rule_file(name)
    assert not paths.is_rule_file("a/.ragvault.toml")


def test_a_note_that_the_cloud_took_matters(root):
    assert PathFilter(root, Walk()).is_relevant("a/.Note.md.icloud", is_folder=False)
    assert not PathFilter(root, Walk()).is_relevant("a/.Picture.png.icloud", is_folder=False)


# --- polling ---


def test_a_look_sees_what_was_written_renamed_and_deleted(root):
    poller = Poller(root, Walk())
    assert poller.has_changed()
    assert not poller.has_changed()
    for change in (
        lambda: (root / "a.md").write_text("a"),
        lambda: (root / "a.md").write_text("ab"),
        lambda: (root / "a.md").rename(root / "b.md"),
        lambda: (root / "b.md").unlink(),
    ):
        change()
        assert poller.has_changed()
        assert not poller.has_changed()


def test_a_look_passes_over_what_is_ignored(root):
    poller = Poller(root, Walk())
    poller.has_changed()
    (root / "node_modules").mkdir()
    (root / "node_modules" / "a.md").write_text("a")

    assert not poller.has_changed()


def test_a_vault_that_is_gone_is_no_change(root):
    poller = Poller(root, Walk())
    poller.has_changed()
    root.rmdir()

    assert not poller.has_changed()


def test_what_takes_long_to_look_through_is_looked_through_less_often(root):
    poller = Poller(root, Walk())
    poller._took = 0.5

    assert poller.pause(2.0) == 50.0
