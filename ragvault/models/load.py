"""A name becomes an Embedder or a Reranker.

    fake                     the small one without weights, for tests
    NAME, NAME@PRINT         a model of the registry, or exactly one build of it
    OWNER/NAME, /a/folder    anything sentence-transformers can load (needs the extra)

Opening makes sure that the weights are here, fetching them where that is allowed; they are loaded
when the first text comes. Which of the names a vault uses is decided in choose.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ragvault.config import folders
from ragvault.errors import ModelUnusable, UsageError
from ragvault.models import fake, fetch, registry
from ragvault.models import folder as folders_of_yours
from ragvault.models import shelf as shelves
from ragvault.models.registry import Build
from ragvault.models.talk import Talk
from ragvault.ports import Embedder, Reranker

if TYPE_CHECKING:
    from ragvault.config.settings import Models

_PINNED = re.compile(r"(.+)@[0-9a-f]{12}")


@dataclass(frozen=True)
class Opening:
    """How models are opened: where they lie, what may be done to get them, how they run."""

    shelf: Path
    ways: fetch.Ways
    threads: int = 0
    batch: int = 32


def opening(settings: Models, talk: Talk, *, offline: bool = False) -> Opening:
    """What the settings say about opening models; `offline` is the flag of a command."""
    copies = [Path(settings.folder).expanduser()] if settings.folder else []
    ways = fetch.Ways(offline or settings.offline, copies, talk)
    return Opening(folders.models_dir(), ways, settings.threads, settings.batch)


def open_embedder(name: str, how: Opening) -> Embedder:
    """The embedder of that name. Raises ModelUnknown, ModelUnavailable or ModelUnusable."""
    if name in (fake.NAME, fake.FakeEmbedder.name):
        return fake.FakeEmbedder()
    if is_foreign(name):
        from ragvault.models.sentence import SentenceEmbedder

        full, short, folder = _foreign(name, how)
        return SentenceEmbedder(
            full, lambda: folder, label=short, threads=how.threads, batch=how.batch
        )
    return _embedder(_build(name, "embedder", how), how)


def open_reranker(name: str, how: Opening) -> Reranker:
    """The reranker of that name. Raises ModelUnknown, ModelUnavailable or ModelUnusable."""
    if name in (fake.NAME, fake.FakeReranker.name):
        return fake.FakeReranker()
    if is_foreign(name):
        from ragvault.models.sentence import SentenceReranker

        full, short, folder = _foreign(name, how)
        return SentenceReranker(
            full, lambda: folder, label=short, threads=how.threads, batch=how.batch
        )
    from ragvault.models.onnx import OnnxReranker

    return OnnxReranker(_build(name, "reranker", how), how.shelf, threads=how.threads)


def is_foreign(name: str) -> bool:
    """Whether this is a folder or an id of the hub, and not a name of the registry."""
    short = short_name(name)
    return folders_of_yours.is_path(short) or folders_of_yours.is_hub_id(short)


def short_name(name: str) -> str:
    """The name without its print."""
    pinned = _PINNED.fullmatch(name)
    return pinned[1] if pinned else name


def _build(name: str, role: str, how: Opening) -> Build:
    model, builds = registry.find(name)
    if model.role != role:
        raise UsageError(
            f"{model.name} is a model of the kind {model.role}, and {role} is wanted here",
            fix="ragvault models list shows the kind of each",
        )
    return fetch.ensure(model, builds, how.shelf, how.ways)


def _embedder(build: Build, how: Opening) -> Embedder:
    if build.model.engine == "static":
        from ragvault.models.static import StaticEmbedder

        return StaticEmbedder(build, how.shelf)
    if build.model.engine == "onnx":
        from ragvault.models.onnx import OnnxEmbedder

        return OnnxEmbedder(build, how.shelf, threads=how.threads)
    from ragvault.models.sentence import SentenceEmbedder

    return SentenceEmbedder(
        build.full_name,
        lambda: shelves.require_sound(build, how.shelf),
        label=build.model.name,
        threads=how.threads,
        batch=how.batch,
    )


def _foreign(name: str, how: Opening) -> tuple[str, str, Path]:
    """The full name, the short one and the folder of a model that the registry does not have."""
    short = short_name(name)
    folder = folders_of_yours.locate(short, how.shelf, how.ways)
    full = folders_of_yours.full_name(short, folder)
    if name not in (short, full):
        raise ModelUnusable(
            short,
            f"{folder} was changed: it is now {full}, and {name} is wanted",
            fix=f"ragvault index --model {short} makes the vectors again",
        )
    return full, short, folder
