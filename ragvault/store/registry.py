"""The registry: the vaults ragvault knows, by name, and the one that is meant when none is named.

    data/vaults/default      the name of the index folder of the default vault

What a person types becomes a vault here: a folder, a name, or nothing at all. The vaults themselves
are the index folders (layout.py); no vault and no index is opened.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from ragvault.errors import VaultNotFound
from ragvault.store import layout
from ragvault.store.layout import Known
from ragvault.store.private import unusable, write_file

DEFAULT = "default"


def find(where: str | Path | None, data: Path, here: Path) -> Path:
    """The folder of the vault that is meant from the folder `here`. Raises VaultNotFound.

    A known vault's folder comes first, then a name, then any folder; a Path is never a name as
    long as it leads somewhere.
    """
    if where is None:
        return around(data, here)
    path = here / _expanded(where)
    vaults = layout.known(data)
    if path.is_dir():
        real = path.resolve()
        named = [] if isinstance(where, Path) else _named(vaults, str(where))
        return named[0].root if named and all(each.root != real for each in vaults) else real
    known = _named(vaults, str(where)) or [each for each in vaults if each.root == path]
    if known:
        return known[0].root
    if path.exists():
        raise VaultNotFound(f"{where} is a file", fix="name the folder that holds your notes")
    raise VaultNotFound(
        f"there is no folder {where}, and no vault of that name", fix=_known_names(vaults)
    )


def around(data: Path, here: Path) -> Path:
    """The known vault a folder lies in, else the only or the default one."""
    vaults = layout.known(data)
    inside = [vault.root for vault in vaults if here.resolve().is_relative_to(vault.root)]
    if inside:
        return max(inside, key=lambda root: len(root.parts))
    chosen = default(data) or (vaults[0] if len(vaults) == 1 else None)
    if chosen:
        return chosen.root
    said = "several vaults are known" if vaults else "no vault is known yet"
    fix = _known_names(vaults)
    if vaults:
        fix += "; or choose one for good: ragvault vaults default NAME"
    raise VaultNotFound(f"{said}, and this folder is in none of them", fix=fix)


def named(where: str, data: Path, here: Path) -> Known:
    """A known vault by its name or its folder, which may be gone. Raises VaultNotFound."""
    vaults = layout.known(data)
    path = (here / _expanded(where)).resolve()
    found = [each for each in vaults if each.root == path] or _named(vaults, where)
    if not found:
        raise VaultNotFound(f"no vault is known as {where}", fix=_known_names(vaults))
    return found[0]


def default(data: Path) -> Known | None:
    """The vault that is meant where no other is; None when none was chosen or it was removed."""
    try:
        folder = (data / "vaults" / DEFAULT).read_text("utf-8").strip()
    except (OSError, ValueError):
        return None
    return next((each for each in layout.known(data) if each.folder.name == folder), None)


def set_default(vault: Known) -> None:
    write_file(vault.folder.parent / DEFAULT, vault.folder.name.encode())


def unset_default(data: Path) -> None:
    (data / "vaults" / DEFAULT).unlink(missing_ok=True)


def remove(vault: Known, *, keep: bool = False) -> None:
    """Forget a vault, and delete its index unless that is kept. Its notes are not touched."""
    data = vault.folder.parent.parent
    try:
        chosen = default(data)
        if chosen is not None and chosen.folder == vault.folder:
            unset_default(data)
        # First its card: what is left by a deletion that was stopped belongs to no vault.
        (vault.folder / layout.VAULT).unlink(missing_ok=True)
        if not keep:
            shutil.rmtree(vault.folder)
    except OSError as error:
        raise unusable(vault.folder, error) from error


def _expanded(where: str | Path) -> str:
    # Not Path: a ~name that nobody has is a name of a vault, or a mistake, and no error of ours.
    return os.path.expanduser(where)  # noqa: PTH111


def _named(vaults: list[Known], name: str) -> list[Known]:
    """By the very name, else by the name in any case."""
    exact = [each for each in vaults if each.name == name]
    return exact or [each for each in vaults if each.name.casefold() == name.casefold()]


def _known_names(vaults: list[Known]) -> str:
    names = ", ".join(vault.name for vault in vaults)
    return f"name one with --vault: {names}" if names else "ragvault index FOLDER"
