"""A walk that looks only where it was told to finds what a whole walk finds."""

from __future__ import annotations

import json
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragvault.config import settings as config
from ragvault.errors import VaultNotFound
from ragvault.notes import walk as walking
from ragvault.notes.walk import IncrementalWalk, walk
from ragvault.service.events import NativeEvents, PathFilter

FOLDERS = ("", "a", "a/b", "c", "node_modules", "a/drafts")
NAMES = (
    "one.md",
    "two.md",
    "café.md",
    "cafe\u0301.md",
    "x.sync-conflict-1.md",
    "image.png",
    "link",
)
IGNORE = ("drafts/\n", "!drafts/\n", "two.md\n", "", "b/\n")


class Files:
    """Does things to a vault as people and programs do, and tells of each as events would."""

    def __init__(self, root: Path, tell: Callable[[str, bool], None]) -> None:
        self.root, self._tell = root, tell

    def tell(self, path: Path, *, folder: bool = False) -> None:
        self._tell(str(path.relative_to(self.root)), folder)

    def write(self, folder: str, name: str, pick: int) -> None:
        path = self._clear(folder, name)
        path.write_text("x" * (pick % 7))
        self.tell(path)

    def link(self, folder: str, name: str, pick: int) -> None:
        path = self._clear(folder, name)
        path.symlink_to(self.root / FOLDERS[pick % len(FOLDERS)] / NAMES[pick % len(NAMES)])
        self.tell(path)

    def ignore(self, folder: str, name: str, pick: int) -> None:
        path = self._clear(folder, (".gitignore", ".ragignore")[pick % 2])
        path.write_text(IGNORE[pick % len(IGNORE)])
        self.tell(path)

    def exclude(self, folder: str, name: str, pick: int) -> None:
        """What happens to the settings of Obsidian is told by nobody: their folder is ignored."""
        self._make(self.root / ".obsidian")
        filters = {"userIgnoreFilters": [folder] if pick % 2 and folder else []}
        (self.root / ".obsidian" / "app.json").write_text(json.dumps(filters))

    def delete(self, folder: str, name: str, pick: int) -> None:
        path = self.root / folder / name
        if os.path.lexists(path):
            path.unlink()
            self.tell(path)

    def delete_folder(self, folder: str, name: str, pick: int) -> None:
        if folder and (self.root / folder).is_dir():
            shutil.rmtree(self.root / folder)
            self.tell(self.root / folder, folder=True)

    def move(self, folder: str, name: str, pick: int) -> None:
        """A note or a folder takes another place, and with it whatever was there."""
        old, new = self.root / folder, self.root / FOLDERS[pick % len(FOLDERS)]
        if not folder or not old.is_dir() or new == self.root or new.is_relative_to(old):
            return
        if old.is_relative_to(new):
            return
        self.delete_folder(str(new.relative_to(self.root)), name, pick)
        self._make(new.parent)
        old.rename(new)
        self.tell(old, folder=True)
        self.tell(new, folder=True)

    def _clear(self, folder: str, name: str) -> Path:
        self._make(self.root / folder)
        path = self.root / folder / name
        if os.path.lexists(path):
            path.unlink()
        return path

    def _make(self, folder: Path) -> None:
        for each in reversed([folder, *folder.parents]):
            if each.is_relative_to(self.root) and not each.exists():
                each.mkdir()
                self.tell(each, folder=True)


DOINGS = ("write", "write", "link", "ignore", "exclude", "delete", "delete_folder", "move")
steps = st.lists(
    st.tuples(
        st.sampled_from(DOINGS),
        st.sampled_from(FOLDERS),
        st.sampled_from(NAMES),
        st.integers(0, 50),
    ),
    min_size=1,
    max_size=8,
)


@given(st.lists(steps, min_size=1, max_size=5))
@settings(max_examples=60, deadline=None)
def test_looking_where_something_happened_finds_what_a_whole_walk_finds(batches):
    with tempfile.TemporaryDirectory() as base:
        root = Path(base).resolve()
        rewalk = IncrementalWalk(root, config.Walk())
        files = Files(root, rewalk.mark_changed)
        for batch in batches:
            for doing, folder, name, pick in batch:
                getattr(files, doing)(folder, name, pick)

            assert rewalk.walk() == walk(root, config.Walk())


@contextmanager
def listening(root: Path) -> Iterator[tuple[NativeEvents, IncrementalWalk]]:
    rewalk = IncrementalWalk(root, config.Walk())
    paths = PathFilter(root, config.Walk())
    native = NativeEvents(root, paths, lambda: None, rewalk.mark_changed)
    rewalk.watched = native.watched_folders
    try:
        yield native, rewalk
    finally:
        native.close()


@pytest.mark.parametrize("seed", range(6))
def test_what_is_heard_of_real_files_is_enough_to_find_what_a_whole_walk_finds(tmp_path, seed):
    dice = random.Random(seed)
    files = Files(tmp_path, lambda *_: None)
    batches = 25
    while batches:
        with listening(tmp_path) as (native, rewalk):
            while (
                batches and not native.rules_changed
            ):  # then one listens anew, by the rules of now
                batches -= 1
                for _ in range(dice.randrange(1, 6)):
                    doing, folder = dice.choice(DOINGS), dice.choice(FOLDERS)
                    getattr(files, doing)(folder, dice.choice(NAMES), dice.randrange(50))

                same_as_a_walk(native, rewalk, tmp_path)


def same_as_a_walk(native: NativeEvents, rewalk: IncrementalWalk, root: Path) -> None:
    if not native.is_lossless:
        pytest.skip("this system may pass over events")
    assert native.is_drained(10.0)
    assert rewalk.walk() == walk(root, config.Walk())


def exclude(root: Path, *folders: str) -> None:
    (root / ".obsidian").mkdir(exist_ok=True)
    (root / ".obsidian" / "app.json").write_text(json.dumps({"userIgnoreFilters": folders}))


def test_a_folder_that_obsidian_excludes_no_more_is_looked_at_though_nobody_hears_it(tmp_path):
    exclude(tmp_path, "Archive/")
    deep = tmp_path / "Archive" / "deep"
    deep.mkdir(parents=True)
    (deep / "x.md").write_text("x")
    with listening(tmp_path) as (native, rewalk):
        same_as_a_walk(native, rewalk, tmp_path)
        assert rewalk.unwatched() == frozenset()
        exclude(tmp_path)
        same_as_a_walk(native, rewalk, tmp_path)
        (deep / "x.md").write_text("another")

        same_as_a_walk(native, rewalk, tmp_path)
        assert rewalk.unwatched() == {"Archive/", "Archive/deep/"}
        (tmp_path / "Archive" / ".gitignore").write_text("x.md\n")
        same_as_a_walk(native, rewalk, tmp_path)
        assert not rewalk.walk().files


def test_a_folder_made_in_the_place_of_one_that_left_is_heard_by_its_own_rules(tmp_path):
    root = tmp_path / "vault"
    (root / "A").mkdir(parents=True)
    (root / "A" / ".gitignore").write_text("drafts/\n")
    with listening(root) as (native, rewalk):
        same_as_a_walk(native, rewalk, root)
        (root / "A").rename(tmp_path / "elsewhere")
        (root / "A" / "drafts").mkdir(parents=True)
        (root / "A" / "drafts" / "x.md").write_text("x")
        same_as_a_walk(native, rewalk, root)
        assert rewalk.unwatched() == frozenset()
        (root / "A" / "drafts" / "x.md").write_text("another")

        same_as_a_walk(native, rewalk, root)


def test_a_note_written_through_another_of_its_names_is_seen(tmp_path):
    root, outside = tmp_path / "vault", tmp_path / "outside.md"
    (root / "a").mkdir(parents=True)
    (root / "b").mkdir()
    outside.write_text("x")
    (root / "a" / "note.md").hardlink_to(outside)
    (root / "b" / "first.md").write_text("x")
    with listening(root) as (native, rewalk):
        same_as_a_walk(native, rewalk, root)
        outside.write_text("another")
        same_as_a_walk(native, rewalk, root)
        (root / "a" / "second.md").hardlink_to(root / "b" / "first.md")
        same_as_a_walk(native, rewalk, root)
        (root / "a" / "second.md").write_text("another")

        same_as_a_walk(native, rewalk, root)


def test_only_the_folder_of_a_change_is_listed(tmp_path, monkeypatch):
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "note.md").write_text("x")
    rewalk = IncrementalWalk(tmp_path, config.Walk())
    rewalk.walk()
    listed: list[str] = []
    monkeypatch.setattr(
        walking.os, "scandir", _noting(listed, tmp_path.resolve(), walking.os.scandir)
    )
    (tmp_path / "b" / "note.md").write_text("another")
    rewalk.mark_changed("b/note.md")
    rewalk.walk()

    assert listed == ["b"]


def test_an_ignore_file_that_cannot_be_read_makes_only_its_own_folder_unsure(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / ".gitignore").mkdir()  # a folder has no lines
    (tmp_path / "b").mkdir()
    rewalk = IncrementalWalk(tmp_path, config.Walk())
    assert rewalk.walk().warnings
    listed: list[str] = []
    monkeypatch.setattr(
        walking.os, "scandir", _noting(listed, tmp_path.resolve(), walking.os.scandir)
    )
    for _ in range(2):
        listed.clear()
        rewalk.walk()
        assert listed == ["a"]


def _noting(listed: list[str], root: Path, scandir: Callable[[str], object]):
    def noted(path: str) -> object:
        listed.append(os.path.relpath(path, root))
        return scandir(path)

    return noted


def test_a_vault_in_which_nothing_happened_is_the_very_same(tmp_path):
    (tmp_path / "note.md").write_text("x")
    rewalk = IncrementalWalk(tmp_path, config.Walk())
    first = rewalk.walk()
    rewalk.mark_changed("note.md")

    assert rewalk.walk() is first


def test_a_vault_that_could_not_be_listed_is_looked_through_afterwards(tmp_path):
    root, aside = tmp_path / "vault", tmp_path / "aside"
    root.mkdir()
    rewalk = IncrementalWalk(root, config.Walk())
    rewalk.walk()
    root.rename(aside)
    with pytest.raises(VaultNotFound):
        rewalk.walk()
    (aside / "note.md").write_text("x")
    aside.rename(root)

    assert [file.path for file in rewalk.walk().files] == ["note.md"]


def test_a_folder_that_could_not_be_listed_is_tried_each_time(tmp_path, monkeypatch):
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed" / "note.md").write_text("x")
    rewalk = IncrementalWalk(tmp_path, config.Walk())
    scandir = os.scandir

    def refusing(path: str) -> object:
        if str(path).rstrip("/").endswith("closed"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    with monkeypatch.context() as patch:
        patch.setattr(walking.os, "scandir", refusing)
        assert rewalk.walk().unreadable == {"closed/"}

    assert rewalk.walk() == walk(tmp_path, config.Walk())
