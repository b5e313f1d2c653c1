"""Sieve: which paths of a vault can matter to its index.

The same rules as the walk's, asked about one path at a time: what happens in an ignored folder is
nobody's work, and such a folder is not watched at all. Rules are read once a folder, and again
after `forget`, when an ignore file has changed or the folder has come or gone. Paths are relative
to the vault, as the disk has them.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from unicodedata import normalize

from ragvault.config import settings as config
from ragvault.config.load import VAULT_FILE
from ragvault.notes.layers import Layers, base_layers, ignore_files, with_file


class Sieve:
    """Asked from several threads."""

    def __init__(self, root: Path, settings: config.Walk) -> None:
        self._root, self._settings = str(root), settings
        self._extensions = tuple(extension.lower() for extension in settings.extensions)
        self._rules = ignore_files(settings)
        self._known: dict[str, Layers | None] = {}
        self._lock = threading.Lock()

    def enters(self, folder: str) -> bool:
        """Whether the notes of this folder are notes; "" is the vault itself."""
        with self._lock:
            return self._layers(folder) is not None

    def matters(self, path: str, *, folder: bool) -> bool:
        """Whether the index could be another when something happened to this path."""
        above, _, disk = path.rpartition("/")
        with self._lock:
            layers = self._layers(above)
            if layers is None:
                return False
            if disk in self._rules or path == VAULT_FILE:
                return True
            name = _stubless(normalize("NFC", disk))
            if not folder and not name.lower().endswith(self._extensions):
                return False
            return not layers.ignore(_joined(normalize("NFC", above), name), name, folder=folder)

    def is_rule(self, path: str) -> bool:
        """Whether this file decides what matters."""
        return path.rpartition("/")[2] in self._rules or path == VAULT_FILE

    def forget(self, folder: str = "") -> None:
        """Read the rules again in this folder and below it; "" is the vault itself."""
        with self._lock:
            for each in list(self._known):
                if not folder or each == folder or each.startswith(f"{folder}/"):
                    del self._known[each]

    def _layers(self, folder: str) -> Layers | None:
        """The rules inside a folder; None for a folder that is ignored."""
        if folder not in self._known:
            self._known[folder] = self._read(folder)
        return self._known[folder]

    def _read(self, folder: str) -> Layers | None:
        if not folder:
            return self._with_own(base_layers(self._root, self._settings)[0], "")
        above, _, disk = folder.rpartition("/")
        layers, name = self._layers(above), normalize("NFC", disk)
        if layers is None:
            return None
        if layers.ignore(_joined(normalize("NFC", above), name), name, folder=True):
            return None
        return self._with_own(layers, folder)

    def _with_own(self, layers: Layers, folder: str) -> Layers:
        inside = f"{normalize('NFC', folder)}/" if folder else ""
        for name in sorted(self._rules):
            file = Path(self._root, folder, name)
            if os.path.lexists(file):
                try:
                    layers = with_file(layers, file, inside)
                except OSError:
                    continue  # the walk says so
        return layers


def _stubless(name: str) -> str:
    """`.Note.md.icloud` is what iCloud leaves of a note that it took away: it matters as that."""
    stub = name.startswith(".") and name.endswith(".icloud")
    return name[1 : -len(".icloud")] if stub else name


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
