"""The write path.

    vault -> catalogue

Whenever it is stopped, the next run goes on from there and ends with the same index.
"""

from __future__ import annotations

from pathlib import Path

from ragvault.config import Config
from ragvault.store.catalogue import Catalogue
from ragvault.write.notes import Report, Tell, follow_notes


def ingest(
    root: Path, catalogue: Catalogue, config: Config, tell: Tell = lambda *_: None
) -> Report:
    """Bring the index up to date with the vault. The caller holds the writer's lock."""
    return follow_notes(root, catalogue, config, tell)
