"""The data folder: one index folder a vault, and together they are the list of known vaults.

    data/vaults/
        default                  the folder name of the default vault's index
        notes-3f9c01ab/          slug of the vault's folder - hash of its real path
            vault.json           which vault this is: root, name, created, tier
            catalogue.sqlite     the truth (catalogue.py)
            access.sqlite        how often notes were opened, if recorded (access.py)
            writer.lock, .json   who is writing (files.py)
            tuned-NAME.toml      what `ragvault tune` found for a profile; tuned.jsonl, receipts
            caches/              keyword and vector indexes (catalogue.py)

There is no second list of vaults: it could disagree with the folders. Nothing is ever written into
a vault. This module opens neither vaults nor indexes; it turns what a person types (a folder, a
name, nothing) into a vault.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from hashlib import blake2b
from itertools import chain, count
from os import fsencode
from pathlib import Path

from ragvault.errors import ConfigError, VaultNotFound, refusals
from ragvault.store.files import make_folder, replace_file

CATALOGUE = "catalogue.sqlite"
VAULT = "vault.json"
RECEIPTS = "tuned.jsonl"
DEFAULT = "default"
ADD_A_VAULT = "ragvault index FOLDER"
SLUG_LENGTH = 40  # leaves room for the rest of a path on systems that allow 255 bytes a name


@dataclass(frozen=True, slots=True)
class KnownVault:
    """A vault that has an index folder."""

    name: str
    root: Path
    folder: Path  # of the index
    created: str  # ISO 8601, UTC
    tier: str = ""  # as last asked for; empty: never asked


# --- Index folders ---


def index_folder(root: Path, data: Path) -> Path:
    """Where the index of a vault belongs. Creates nothing; refuses a place inside the vault."""
    real = root.resolve()
    folder = data.resolve() / "vaults" / f"{_slug(real.name)}-{_path_hash(real)}"
    if folder.is_relative_to(real):
        raise ConfigError(
            f"the index folder {folder} would be inside the vault {real}",
            fix="set RAGVAULT_HOME to a folder outside the vault: nothing is written into a vault",
        )
    return folder


def tuned_file(folder: Path, profile: str) -> Path:
    """Where the settings tuned for a profile are: they mean nothing under another profile."""
    return folder / f"tuned-{profile}.toml"


def register_vault(root: Path, data: Path, name: str = "", tier: str = "") -> KnownVault:
    """Create the index folder of a vault and its vault.json; harmless when repeated.

    The name is the given one, else the current one, else that of the vault's folder. A number is
    added to a name that another vault has. The tier is the given one, else the current one.
    """
    folder, real = index_folder(root, data), root.resolve()
    make_folder(folder)
    before = vault_of(folder)
    created = before.created if before else datetime.now(timezone.utc).isoformat(timespec="seconds")
    wanted = name or (before.name if before else real.name) or str(real)
    others = [vault.name for vault in known_vaults(data) if vault.folder != folder]
    tier = tier or (before.tier if before else "")
    now = KnownVault(_free_name(wanted, others), real, folder, created, tier)
    if now != before:
        card = {"root": str(now.root), "name": now.name, "created": now.created}
        card |= {"tier": tier} if tier else {}
        replace_file(folder / VAULT, json.dumps(card, indent=1).encode())
    return now


def known_vaults(data: Path) -> list[KnownVault]:
    """Every vault with an index folder, by name and then by root."""
    vaults = data.resolve() / "vaults"
    folders = vaults.iterdir() if vaults.is_dir() else ()
    found = [vault for folder in folders if (vault := vault_of(folder))]
    return sorted(found, key=lambda vault: (vault.name.casefold(), str(vault.root)))


def vault_of(folder: Path) -> KnownVault | None:
    """The vault of an index folder; None where vault.json is missing or damaged."""
    try:
        card = json.loads((folder / VAULT).read_bytes())
        name, root, tier = str(card["name"]), Path(card["root"]), str(card.get("tier", ""))
        return KnownVault(name, root, folder, str(card["created"]), tier)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remove_vault(vault: KnownVault, *, keep: bool = False) -> None:
    """Remove a vault from the list and, unless `keep`, delete its index. Notes are not touched."""
    data = vault.folder.parent.parent
    with refusals(vault.folder):
        chosen = default_vault(data)
        if chosen is not None and chosen.folder == vault.folder:
            unset_default_vault(data)
        # vault.json first: then the rest of an interrupted deletion belongs to no vault.
        (vault.folder / VAULT).unlink(missing_ok=True)
        if not keep:
            shutil.rmtree(vault.folder)


def _free_name(name: str, taken: Iterable[str]) -> str:
    """The name, or the first of name-2, name-3, … that no other vault has in any case."""
    others = {each.casefold() for each in taken}
    numbered = (f"{name}-{number}" for number in count(2))
    return next(each for each in chain([name], numbered) if each.casefold() not in others)


def _slug(name: str) -> str:
    """Lower-case ASCII letters, digits and hyphens: safe on every file system."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain)[:SLUG_LENGTH].strip("-") or "vault"


def _path_hash(real: Path) -> str:
    return blake2b(fsencode(real), digest_size=4).hexdigest()


# --- Which vault is meant ---


def find_vault(where: str | Path | None, data: Path, here: Path) -> Path:
    """The folder of the vault that is meant from the folder `here`. Raises VaultNotFound.

    A known vault's folder comes first, then a name, then any folder. A Path is never a name as
    long as it exists. Without `where`: the known vault around `here`, else the only or default one.
    """
    if where is None:
        return _vault_around(data, here)
    vaults, path = known_vaults(data), (here / _expanded(where)).resolve()
    try:
        is_folder, is_there = path.is_dir(), path.exists()
    except OSError:  # no file has such a name: it is too long
        is_folder = is_there = False
    is_name = isinstance(where, str) or not is_folder
    if found := _known(vaults, path, str(where) if is_name else ""):
        return found.root
    if is_folder:
        return path
    if is_there:
        raise VaultNotFound(f"{where} is a file", fix="name the folder that holds your notes")
    raise _not_found(f"no folder and no vault is called {where}", vaults, str(where))


def known_vault(where: str, data: Path, here: Path) -> KnownVault:
    """A known vault by its folder, which may be gone, or by its name. Raises VaultNotFound."""
    vaults = known_vaults(data)
    if found := _known(vaults, (here / _expanded(where)).resolve(), where):
        return found
    raise _not_found(f"no vault is called {where}", vaults, where)


def _known(vaults: Sequence[KnownVault], path: Path, name: str) -> KnownVault | None:
    """The vault with this folder, else by the exact name, else by the name in any case."""
    for same in (
        lambda vault: vault.root == path,
        lambda vault: vault.name == name,
        lambda vault: vault.name.casefold() == name.casefold(),
    ):
        if found := next(filter(same, vaults), None):
            return found
    return None


def vaults_around(data: Path, here: Path) -> list[KnownVault]:
    """The known vault around `here`; else the default one; else all of them."""
    vaults = known_vaults(data)
    inside = [vault for vault in vaults if here.resolve().is_relative_to(vault.root)]
    if inside:
        return [max(inside, key=lambda vault: len(vault.root.parts))]
    chosen = default_vault(data)
    return [chosen] if chosen else vaults


def default_vault(data: Path) -> KnownVault | None:
    """The vault chosen as the default; None without a choice or when it was removed."""
    try:
        folder = (data / "vaults" / DEFAULT).read_text("utf-8").strip()
    except (OSError, ValueError):
        return None
    return next((each for each in known_vaults(data) if each.folder.name == folder), None)


def set_default_vault(vault: KnownVault) -> None:
    replace_file(vault.folder.parent / DEFAULT, vault.folder.name.encode())


def unset_default_vault(data: Path) -> None:
    (data / "vaults" / DEFAULT).unlink(missing_ok=True)


def _vault_around(data: Path, here: Path) -> Path:
    vaults = vaults_around(data, here)
    if len(vaults) == 1:
        return vaults[0].root
    if not vaults:
        raise VaultNotFound("no vaults yet", fix=ADD_A_VAULT)
    names = ", ".join(vault.name for vault in vaults)
    raise VaultNotFound(
        f"the current folder is in none of your {len(vaults)} vaults ({names})",
        fix="use --vault NAME, or set a default: ragvault vaults default NAME",
    )


def _expanded(where: str | Path) -> str:
    # Not Path.expanduser: it raises for a ~name without a user, which may be the name of a vault.
    return os.path.expanduser(where)  # noqa: PTH111


def _not_found(message: str, vaults: Sequence[KnownVault], name: str) -> VaultNotFound:
    """The error with the vault that was probably meant, or the known ones."""
    from ragvault.text.spelling import nearest  # only a mistake needs it

    names = [vault.name for vault in vaults]
    fix = f"use one of: {', '.join(names)}" if names else ADD_A_VAULT
    return VaultNotFound(message, fix=fix, near=next(iter(nearest(name, names)), ""))
