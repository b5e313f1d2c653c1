"""Layers: who decides whether a path is ignored, the strongest first.

    .ragignore            nested: the nearest file wins
    .gitignore            nested as well, unless walk.gitignore is off
    userIgnoreFilters     of .obsidian/app.json, unless walk.obsidian_ignore is off
    walk.exclude          the settings

Each folder has the layers of the folder above it and those of its own ignore files. The first
layer that speaks of a path decides. Ignore files above the vault are not the vault's, and not read.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, Protocol

from ragvault.config import settings as config
from ragvault.notes import obsidian
from ragvault.notes.ignore import Rules
from ragvault.notes.read import read_small

GITIGNORE, RAGIGNORE = ".gitignore", ".ragignore"


class Verdict(Protocol):
    """Anything that can be asked about an entry of the vault."""

    def decide(self, path: str, name: str, folder: bool) -> bool | None:
        """True: ignored. False: asked back. None: nothing is said about it."""
        ...


class Layer(NamedTuple):
    """Rules, and how many characters of a path lie above the folder they stand in."""

    above: int
    rules: Verdict


class Layers(NamedTuple):
    """What decides in one folder; `order` is all of them, the strongest first."""

    rag: tuple[Layer, ...]
    git: tuple[Layer, ...]
    base: tuple[Layer, ...]
    order: tuple[Layer, ...]

    def ignore(self, path: str, name: str, *, folder: bool) -> bool:
        for above, rules in self.order:
            verdict = rules.decide(path[above:], name, folder)
            if verdict is not None:
                return verdict
        return False


def base_layers(root: str, settings: config.Walk) -> tuple[Layers, list[str]]:
    """What is decided for the vault as a whole, and sentences on what could not be used."""
    excluded = Layer(0, Rules(settings.exclude))
    filters, warnings = obsidian.filters(root) if settings.obsidian_ignore else (None, [])
    base = (Layer(0, filters), excluded) if filters else (excluded,)
    return Layers((), (), base, base), warnings


def ignore_files(settings: config.Walk) -> frozenset[str]:
    """The names of the files that hold rules."""
    return frozenset((RAGIGNORE, GITIGNORE) if settings.gitignore else (RAGIGNORE,))


def with_file(layers: Layers, file: Path, folder: str) -> Layers:
    """The layers of a folder that has this ignore file. Raises OSError where it cannot be read."""
    own = Layer(len(folder), Rules((read_small(file) or "").split("\n")))
    rag, git = layers.rag, layers.git
    if file.name == RAGIGNORE:
        rag = (own, *rag)
    else:
        git = (own, *git)
    return Layers(rag, git, layers.base, rag + git + layers.base)
