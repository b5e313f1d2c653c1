"""Examine: everything the doctor looks at, part by part, the ground first.

A part that cannot be looked at because one before it is broken is left out: there is one finding
for one fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from ragvault.config.load import load_settings
from ragvault.doctor import alive
from ragvault.doctor.findings import Finding
from ragvault.doctor.machine import machine, watching
from ragvault.errors import IndexMissing, RagvaultError, VaultNotFound
from ragvault.vault import Vault


def examine(where: str | None, now: datetime) -> tuple[str | None, list[Finding]]:
    """The name of the vault, and what was found; without any vault, the machine alone.

    Raises VaultNotFound for one that was named, and ConfigError.
    """
    try:
        vault = Vault.open(where)
    except VaultNotFound as unknown:
        if where is not None:
            raise
        config = load_settings().config
        return None, [*machine(config), Finding("vault", "behind", str(unknown), unknown.fix)]
    return vault.name, list(_vault(vault, now))


def _vault(vault: Vault, now: datetime) -> Iterator[Finding]:
    """Look at the machine, then at the index of one vault."""
    config = vault.settings.config
    try:
        catalogue = vault.catalogue()
    except IndexMissing as missing:
        yield from machine(config)
        yield Finding("index", "behind", str(missing), missing.fix)
        return
    except RagvaultError as error:
        yield from machine(config)
        yield Finding("index", "broken", str(error), error.fix)
        return
    with catalogue:
        needed = frozenset(name for tier in ("full", "static") if (name := catalogue.fact(tier)))
    yield from machine(config, needed)
    yield from _index(vault, now)


def _index(vault: Vault, now: datetime) -> Iterator[Finding]:
    from ragvault.doctor.integrity import integrity
    from ragvault.engines import Engines

    engines = Engines(vault.folder, vault.settings)
    status = vault.status()
    if not status.pending.why:
        yield watching(Path(status.root), vault.settings.config.walk)
    with vault.catalogue() as catalogue:
        found = list(integrity(catalogue, engines, status))
    yield from found
    if any(each.part == "catalogue" and each.state == "broken" for each in found):
        return
    # A leg whose index is broken finds nothing: that has been said.
    silent = {each.part.removesuffix(" index") for each in found if each.state == "broken"}
    with vault.reading() as index:
        yield from (each for each in alive.alive(index, now) if each.part not in silent)
