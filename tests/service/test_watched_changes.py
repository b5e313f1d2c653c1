"""Whatever is done to the files of a watched vault, its index becomes that of the vault."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from ragvault.notes.walk import walk
from ragvault.update.freshness import waiting
from tests.watch_kit import SMALL, Watched, soon

FOLDERS = ("", "a", "a/b", "c", "node_modules", "a/drafts")
NAMES = ("one.md", "two.md", "café.md", "cafe\u0301.md", "x.sync-conflict-1.md", "link")
RULES = ("drafts/\n", "!drafts/\n", "two.md\n", "", "b/\n")


class Files:
    """Does to a vault what people and programs do. `dice` decide where and what."""

    def __init__(self, root: Path, outside: Path, dice: random.Random) -> None:
        self.root, self.outside, self.dice = root, outside, dice

    def do_something(self) -> None:
        doings: tuple[Callable[[], object], ...] = (
            *(self.write, self.write, self.write, self.save_by_rename, self.link, self.hard_link),
            *(self.ignore, self.exclude, self.delete, self.delete_folder, self.move, self.move),
            *(self.leave, self.come_back, self.copy_in),
        )
        with suppress(OSError, shutil.Error):  # what is not possible is not done
            self.dice.choice(doings)()

    def write(self) -> None:
        self._free_place().write_text("x" * self.dice.randrange(7))

    def save_by_rename(self) -> None:
        note = self._free_place()
        partial = note.with_name(f".{note.name}.swp")
        partial.write_text("y" * self.dice.randrange(7))
        partial.replace(note)

    def link(self) -> None:
        self._free_place().symlink_to(self.root / self._folder() / self.dice.choice(NAMES))

    def hard_link(self) -> None:
        self._free_place().hardlink_to(self.root / self._folder() / self.dice.choice(NAMES))

    def ignore(self) -> None:
        name = self.dice.choice((".gitignore", ".ragignore"))
        self._free_place(name).write_text(self.dice.choice(RULES))

    def exclude(self) -> None:
        (self.root / ".obsidian").mkdir(exist_ok=True)
        filters = [self._folder()] if self.dice.random() < 0.5 else []
        settings = {"userIgnoreFilters": list(filter(None, filters))}
        (self.root / ".obsidian" / "app.json").write_text(json.dumps(settings))

    def delete(self) -> None:
        (self.root / self._folder() / self.dice.choice(NAMES)).unlink()

    def delete_folder(self) -> None:
        shutil.rmtree(self._inner_folder())

    def move(self) -> None:
        """A folder takes the place of another one."""
        old, new = self._inner_folder(), self._inner_folder()
        if new.is_dir() and not (old.is_relative_to(new) or new.is_relative_to(old)):
            shutil.rmtree(new)
            old.rename(new)

    def leave(self) -> None:
        folder = self._inner_folder()
        shutil.rmtree(self.outside / folder.name, ignore_errors=True)
        folder.rename(self.outside / folder.name)

    def come_back(self) -> None:
        folder = self._inner_folder()
        (self.outside / folder.name).rename(folder)

    def copy_in(self) -> None:
        folder = self._inner_folder()
        shutil.copytree(self.outside / folder.name, folder, symlinks=True)

    def _folder(self) -> str:
        return self.dice.choice(FOLDERS)

    def _inner_folder(self) -> Path:
        return self.root / self.dice.choice(FOLDERS[1:])

    def _free_place(self, name: str = "") -> Path:
        place = self.root / self._folder() / (name or self.dice.choice(NAMES))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        return place


@pytest.mark.parametrize("seed", range(4))
def test_the_index_becomes_that_of_the_vault(tmp_path, monkeypatch, seed):
    for name, value in {**SMALL, "RAGVAULT_HOME": str(tmp_path / "home")}.items():
        monkeypatch.setenv(name, value)
    root, outside = tmp_path / "vault", tmp_path / "outside"
    outside.mkdir()
    root.mkdir()
    (root / "zero.md").write_text("always\n")
    files = Files(root, outside, random.Random(seed))
    with Watched(root) as watched:
        vault = watched.vault_watcher.vault

        def differs() -> object:
            with vault.catalogue() as catalogue:
                known = {path: each.digest for path, each in catalogue.files().items()}
                skipped = {each.path for each in catalogue.skipped()}
                late = waiting(root, catalogue, vault.settings.config)
            found = walk(root, vault.settings.config.walk)
            missing = {file.path for file in found.files} ^ known.keys()
            return any(late), missing, skipped ^ {each.path for each in found.skipped}

        for batch in range(15):
            for _ in range(files.dice.randrange(1, 6)):
                files.do_something()
            assert soon(lambda: differs() == (False, set(), set())), (batch, differs())
