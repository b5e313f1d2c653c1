"""The layout of the data folder: one index folder a vault, and that is the registry.

    data/vaults/
        default                  which of them is meant when none is named (registry.py)
        notes-3f9c01ab/          slug of the vault's folder - hash of its real path
            vault.json           which vault this is: root, name, created
            catalogue.sqlite     the truth (catalogue.py)
            writer.lock, .json   who is writing (lock.py)
            tuned-NAME.toml      what `ragvault tune` found for a profile; tuned.jsonl, receipts
            …                    caches, each in a folder of its own

The vaults ragvault knows are the index folders that are there: a second list could disagree with
them. Nothing is ever written inside a vault. This file knows names and places, not contents.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from hashlib import blake2b
from itertools import chain, count
from os import fsencode
from pathlib import Path

from ragvault.errors import ConfigError
from ragvault.store.private import make_folder, write_file

CATALOGUE = "catalogue.sqlite"
VAULT = "vault.json"
RECEIPTS = "tuned.jsonl"
SLUG_LENGTH = 40  # leaves room for the rest of a path on systems that allow 255 bytes a name


@dataclass(frozen=True, slots=True)
class Known:
    """A vault ragvault has met, and the folder that holds its index."""

    name: str
    root: Path
    folder: Path
    created: str  # ISO 8601, UTC


def index_folder(root: Path, data: Path) -> Path:
    """Where the index of a vault belongs. Only names it; refuses a place inside the vault."""
    real = root.resolve()
    folder = data.resolve() / "vaults" / f"{_slug(real.name)}-{_mark(real)}"
    if folder.is_relative_to(real):
        raise ConfigError(
            f"the index folder {folder} would lie inside the vault {real}",
            fix="set RAGVAULT_HOME to a folder outside the vault: nothing is written into a vault",
        )
    return folder


def tuned_file(folder: Path, profile: str) -> Path:
    """Where settings are that were tuned for a profile: they mean nothing under another."""
    return folder / f"tuned-{profile}.toml"


def remember(root: Path, data: Path, name: str = "") -> Known:
    """Make the index folder of a vault and write down whose it is; again is harmless.

    The name is the given one, else the one it has, else that of the vault's folder; one that
    another vault has gets a number behind it.
    """
    folder, real = index_folder(root, data), root.resolve()
    make_folder(folder)
    before = read(folder)
    created = before.created if before else datetime.now(timezone.utc).isoformat(timespec="seconds")
    wanted = name or (before.name if before else real.name) or str(real)
    others = [vault.name for vault in known(data) if vault.folder != folder]
    now = Known(_free(wanted, others), real, folder, created)
    if now != before:
        card = {"root": str(now.root), "name": now.name, "created": now.created}
        write_file(folder / VAULT, json.dumps(card, indent=1).encode())
    return now


def known(data: Path) -> list[Known]:
    """Every vault with an index folder, by name and then by root."""
    vaults = data.resolve() / "vaults"
    folders = vaults.iterdir() if vaults.is_dir() else ()
    found = [vault for folder in folders if (vault := read(folder))]
    return sorted(found, key=lambda vault: (vault.name.casefold(), str(vault.root)))


def read(folder: Path) -> Known | None:
    """The vault an index folder belongs to; None where vault.json is missing or damaged."""
    try:
        card = json.loads((folder / VAULT).read_bytes())
        return Known(str(card["name"]), Path(card["root"]), folder, str(card["created"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _free(name: str, taken: Iterable[str]) -> str:
    """The name, or the first of name-2, name-3, … that no other vault has in any case."""
    known = {each.casefold() for each in taken}
    numbered = (f"{name}-{number}" for number in count(2))
    return next(each for each in chain([name], numbered) if each.casefold() not in known)


def _slug(name: str) -> str:
    """Lower-case ASCII letters, digits and hyphens: safe on every file system."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain)[:SLUG_LENGTH].strip("-") or "vault"


def _mark(real: Path) -> str:
    return blake2b(fsencode(real), digest_size=4).hexdigest()
