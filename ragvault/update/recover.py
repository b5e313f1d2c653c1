"""Recover: before a run, an index that lost its vault or is damaged is put right.

    adopt_index        a vault that was renamed or moved keeps its index: nothing is embedded again
    repair_catalogue   a damaged catalogue is replaced, with the vectors that can still be read

An index belongs to the path of its vault. When a folder is indexed for the first time, and the
folder of a known vault is gone, the two are compared by the content of some of their notes; where
most are the same, the index moves: its place, its name and whether it is the default. The names of
other indexes without a vault are reported, so that they can be removed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ragvault.config.settings import Config
from ragvault.errors import RagvaultError
from ragvault.notes.read import digest
from ragvault.notes.walk import walk
from ragvault.ports import Progress
from ragvault.store import layout
from ragvault.store.catalogue import Catalogue
from ragvault.store.layout import KnownVault
from ragvault.store.lock import WriterLock
from ragvault.store.repair import (
    find_damage,
    is_repair_unfinished,
    repair,
    undo_unstarted_repair,
)
from ragvault.types import File
from ragvault.update.freshness import is_gone

SAMPLE = 32  # notes compared by content
MOST = 0.5  # more than this share of them, and of the paths of each vault, must be the same


def adopt_index(root: Path, folder: Path, config: Config, progress: Progress) -> None:
    """Give a vault without an index the one it had under another path, if there is one."""
    if folder.exists():
        return
    left = list(_indexes_without_vault(folder.parent.parent))
    if not left:
        return
    files = {file.path: file for file in walk(root, config.walk).files}
    same = [known for known in left if _is_same_vault(root, files, known, config)]
    for known in same:
        if _move_index(known, root, folder):
            progress.info(f"{known.root} has moved here; continuing with its index ({known.name})")
            return
    if names := ", ".join(known.name for known in left if known not in same):
        progress.info(
            f"the folder of {names} is gone; to delete an index: ragvault vaults remove NAME"
        )


def _indexes_without_vault(data: Path) -> Iterator[KnownVault]:
    for known in layout.known_vaults(data):
        if is_gone(known.root) and (known.folder / layout.CATALOGUE).exists():
            yield known


def _is_same_vault(root: Path, files: dict[str, File], known: KnownVault, config: Config) -> bool:
    try:
        with Catalogue.open(known.folder) as catalogue:
            seen = catalogue.files()
    except RagvaultError:
        return False
    both = sorted(seen.keys() & files.keys())
    if len(both) <= MOST * max(len(seen), len(files)):
        return False
    some = both[:: -(-len(both) // SAMPLE)]
    most = config.walk.max_bytes
    same = [path for path in some if digest(root, files[path], most) == seen[path].digest]
    return len(same) > MOST * len(some)


def _move_index(known: KnownVault, root: Path, folder: Path) -> bool:
    """Whether the index is in its new place, under its new name.

    Raises IndexLocked while another process writes it.
    """
    data = folder.parent.parent
    chosen = layout.default_vault(data)
    with WriterLock(known.folder, "ragvault index"):
        pass  # nobody writes; a folder cannot be renamed everywhere while a file in it is open
    try:
        known.folder.rename(folder)
    except OSError:
        return False
    own = known.name != known.root.name  # keep a chosen name, but not one that came from the folder
    now = layout.register_vault(root, data, known.name if own else root.resolve().name)
    if chosen is not None and chosen.folder == known.folder:
        layout.set_default_vault(now)
    return True


def repair_catalogue(folder: Path, progress: Progress, *, check: bool) -> None:
    """Replace a damaged catalogue, or finish a repair that was stopped.

    Only with `check`, which reads the whole file, is damage looked for.
    """
    undo_unstarted_repair(folder)
    damage = find_damage(folder) if check else ""
    if damage:
        progress.info(f"{damage}; rebuilding it from the vault")
    if damage or is_repair_unfinished(folder):
        saved = repair(folder)
        if saved:
            progress.info(f"saved {saved:,} vectors; their texts are not embedded again")
        else:
            progress.info("none of its vectors could be saved; all notes are embedded again")
