"""Recover: before a run, an index that lost its vault or is damaged is put right.

    adopt_index         a vault that was renamed or moved keeps its index: nothing is embedded again
    rebuild_catalogue   a catalogue that is damaged or of an older format is replaced

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
from ragvault.store.catalogue import OLD, Catalogue, drop_old, is_rebuilding, set_aside
from ragvault.store.database import RebuildNeeded
from ragvault.store.layout import KnownVault
from ragvault.store.lock import WriterLock
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


def rebuild_catalogue(folder: Path, progress: Progress, *, check: bool) -> None:
    """Make a new catalogue in place of a damaged one or one of an older format, with its vectors.

    The run that follows fills it from the vault. A rebuild that was stopped is finished. Only with
    `check`, which reads the whole file, is damage looked for.
    """
    why = _fault(folder, check)
    if why or not (folder / layout.CATALOGUE).exists():
        set_aside(folder)
    if not is_rebuilding(folder):
        return
    with Catalogue.open(folder, write=True) as catalogue:
        saved = catalogue.take_over(folder / OLD)
        catalogue.set_facts(taken_over=True)
    drop_old(folder)
    why = why or "the run that began to rebuild it was stopped"
    progress.info(f"rebuilding the index from the vault, because {why}; {saved:,} vectors are kept")


def _fault(folder: Path, check: bool) -> str:
    """Why a catalogue has to be rebuilt; empty for one that is sound or missing."""
    if not (folder / layout.CATALOGUE).exists():
        return ""
    try:
        with Catalogue.open(folder, write=True) as catalogue:
            return catalogue.check() if check else ""
    except RebuildNeeded as error:
        return error.why
