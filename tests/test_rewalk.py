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

from ragvault import config
from ragvault.errors import VaultNotFound
from ragvault.notes import walk as walking
from ragvault.notes.rewalk import Rewalk
from ragvault.notes.walk import walk
from ragvault.service.events import Native
from ragvault.service.sieve import Sieve

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
        rewalk = Rewalk(root, config.Walk())
        files = Files(root, rewalk.tell)
        for batch in batches:
            for doing, folder, name, pick in batch:
                getattr(files, doing)(folder, name, pick)

            assert rewalk.walk() == walk(root, config.Walk())


@contextmanager
def listening(root: Path) -> Iterator[tuple[Native, Rewalk]]:
    rewalk = Rewalk(root, config.Walk())
    sieve = Sieve(root, config.Walk())
    native = Native(root, sieve, lambda: None, rewalk.tell)
    try:
        yield native, rewalk
    finally:
        native.close()


@pytest.mark.parametrize("seed", range(6))
def test_what_is_heard_of_real_files_is_enough_to_find_what_a_whole_walk_finds(tmp_path, seed):
    dice = random.Random(seed)
    files = Files(tmp_path, lambda *_: None)
    with listening(tmp_path) as (native, rewalk):
        if not native.misses_nothing:
            pytest.skip("this system may pass over events")
        for _ in range(25):
            for _ in range(dice.randrange(1, 6)):
                doing = dice.choice([each for each in DOINGS if each not in ("ignore", "exclude")])
                getattr(files, doing)(dice.choice(FOLDERS), dice.choice(NAMES), dice.randrange(50))

            assert native.has_told_all(10.0)
            assert rewalk.walk() == walk(tmp_path, config.Walk())


def test_only_the_folder_of_a_change_is_listed(tmp_path, monkeypatch):
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "note.md").write_text("x")
    rewalk = Rewalk(tmp_path, config.Walk())
    rewalk.walk()
    listed: list[str] = []
    monkeypatch.setattr(
        walking.os, "scandir", _noting(listed, tmp_path.resolve(), walking.os.scandir)
    )
    (tmp_path / "b" / "note.md").write_text("another")
    rewalk.tell("b/note.md")
    rewalk.walk()

    assert listed == ["b"]


def _noting(listed: list[str], root: Path, scandir: Callable[[str], object]):
    def noted(path: str) -> object:
        listed.append(os.path.relpath(path, root))
        return scandir(path)

    return noted


def test_a_vault_in_which_nothing_happened_is_the_very_same(tmp_path):
    (tmp_path / "note.md").write_text("x")
    rewalk = Rewalk(tmp_path, config.Walk())
    first = rewalk.walk()
    rewalk.tell("note.md")

    assert rewalk.walk() is first


def test_a_vault_that_could_not_be_listed_is_looked_through_afterwards(tmp_path):
    root, aside = tmp_path / "vault", tmp_path / "aside"
    root.mkdir()
    rewalk = Rewalk(root, config.Walk())
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
    rewalk = Rewalk(tmp_path, config.Walk())
    scandir = os.scandir

    def refusing(path: str) -> object:
        if str(path).rstrip("/").endswith("closed"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    with monkeypatch.context() as patch:
        patch.setattr(walking.os, "scandir", refusing)
        assert rewalk.walk().unreadable == {"closed/"}

    assert rewalk.walk() == walk(tmp_path, config.Walk())
