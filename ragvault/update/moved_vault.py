"""Moved: a vault that was renamed or moved keeps its index, and nothing is embedded again.

An index belongs to the path of its vault. When a folder is indexed for the first time, and the
folder of a known vault is gone, the two are compared by the content of some of their notes; where
most are the same, the index is this vault's from now on: by its place, its name and as the default.
Others that are left without a vault are named, so that they can be removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from ragvault.config.settings import Config
from ragvault.errors import RagvaultError
from ragvault.notes.read import digest
from ragvault.notes.walk import walk
from ragvault.store import layout
from ragvault.store.catalogue import Catalogue
from ragvault.store.layout import KnownVault
from ragvault.store.lock import WriterLock
from ragvault.types import File
from ragvault.update.freshness import is_gone

SAMPLE = 32  # notes that are read
MOST = 0.5  # more than this share of them, and of the names of each, must be the same


def take_over(root: Path, folder: Path, config: Config, say: Callable[[str], None]) -> None:
    """Give a vault without an index that of the vault it was, if there is one."""
    if folder.exists():
        return
    left = list(_without_vault(folder.parent.parent))
    if not left:
        return
    files = {file.path: file for file in walk(root, config.walk).files}
    same = [known for known in left if _are_the_same(root, files, known, config)]
    for known in same:
        if _moved(known, root, folder):
            say(f"{known.root} is gone and its notes are here: the index of {known.name} goes on")
            return
    if names := ", ".join(known.name for known in left if known not in same):
        say(f"the folder of {names} is gone; to delete an index: ragvault vaults remove NAME")


def _without_vault(data: Path) -> Iterator[KnownVault]:
    for known in layout.known_vaults(data):
        if is_gone(known.root) and (known.folder / layout.CATALOGUE).exists():
            yield known


def _are_the_same(root: Path, files: dict[str, File], known: KnownVault, config: Config) -> bool:
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


def _moved(known: KnownVault, root: Path, folder: Path) -> bool:
    """Whether the index is in its new place, under its new name.

    Raises IndexLocked while somebody writes it: what they make would have to be made again.
    """
    data = folder.parent.parent
    chosen = layout.default_vault(data)
    with WriterLock(known.folder, "ragvault index"):
        pass  # nobody writes; a folder cannot be renamed everywhere while a file in it is open
    try:
        known.folder.rename(folder)
    except OSError:
        return False
    own = known.name != known.root.name  # a name of its own is kept, that of a folder is not
    now = layout.register_vault(root, data, known.name if own else root.resolve().name)
    if chosen is not None and chosen.folder == known.folder:
        layout.set_default_vault(now)
    return True
