"""From a name to a loaded model, and which model a vault uses.

    fake                     the small model without weights, for tests
    NAME, NAME@FINGERPRINT   a model of the registry, or exactly one build of it
    OWNER/NAME, /a/folder    anything sentence-transformers can load (needs the extra)

Opening a model makes sure that its weights are installed, and fetches them if that is allowed. The
weights are loaded when the first text comes. `ModelPool` shares loaded models within a process.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ragvault.config import folders
from ragvault.errors import ModelUnusable, UsageError, in_shell
from ragvault.ports import Embedder, Progress, Reranker

if TYPE_CHECKING:
    from ragvault.config.settings import Models
    from ragvault.models.registry import Build, Model

AnyModel = TypeVar("AnyModel", Embedder, Reranker)
FAKE_NAMES = ("fake", "fake@1")  # of fake.py, which a search with real models does not import
POOLED = 2  # settings of [models] whose weights stay in memory: up to 230 MB each
_FULL_NAME = re.compile(r"(.+)@[0-9a-f]{12}")
_HUB_ID = re.compile(r"[\w][\w.-]*/[\w][\w.-]*")
_PATH = re.compile(r"^(~?[/\\]|~[\w.-]*[/\\]|\.{1,2}([/\\]|$)|[A-Za-z]:[/\\])")


# --- Which model a vault uses ---


def choose_model(*, stored: str, configured: str, explicit: bool) -> str:
    """The model to embed with: a short name, or a full one that must be kept.

    The vault has vectors of `stored`, or none if that is empty; the settings name `configured`.

    A vault keeps the model it was indexed with, so a new default in a new release changes nothing
    for it. `explicit` means that the user named the model, by a flag, the environment or a file.
    Then the vault changes its model, and the old vectors are searched until the new ones are
    complete.
    """
    if stored and (not explicit or same_model(stored, configured)):
        return stored
    return configured


def same_model(stored: str, configured: str) -> bool:
    """Whether a setting means the stored full name: `bge` means any `bge@…`, `bge@1` only that."""
    return configured in (stored, stored.rpartition("@")[0])


# --- Opening a model by its name ---


@dataclass(frozen=True)
class LoadOptions:
    """How models are opened: where they are installed, how they may be fetched, how they run.

    `offline` forbids every download; `copies` are folders that are tried before the registry's
    sources.
    """

    models_dir: Path
    offline: bool = False
    copies: Sequence[Path] = ()
    reporter: Progress = field(default_factory=Progress)
    threads: int = 0


def load_options(settings: Models, reporter: Progress, *, offline: bool = False) -> LoadOptions:
    """The options that the settings ask for; `offline` is a command's flag."""
    copies = [Path(settings.folder).expanduser()] if settings.folder else []
    offline = offline or settings.offline
    return LoadOptions(folders.models_dir(), offline, copies, reporter, settings.threads)


def open_embedder(name: str, options: LoadOptions) -> Embedder:
    """The embedder of that name. Raises ModelUnknown, ModelUnavailable or ModelUnusable."""
    if name in FAKE_NAMES:
        from ragvault.models.fake import FakeEmbedder

        return FakeEmbedder()
    if is_unlisted(name):
        from ragvault.models.sentence_transformers import SentenceEmbedder

        full, short, folder = _locate_unlisted(name, options)
        return SentenceEmbedder(full, lambda: folder, label=short, threads=options.threads)
    return _listed_embedder(_listed_build(name, "embedder", options), options)


def open_reranker(name: str, options: LoadOptions) -> Reranker:
    """The reranker of that name. Raises ModelUnknown, ModelUnavailable or ModelUnusable."""
    if name in FAKE_NAMES:
        from ragvault.models.fake import FakeReranker

        return FakeReranker()
    if is_unlisted(name):
        from ragvault.models.sentence_transformers import SentenceReranker

        full, short, folder = _locate_unlisted(name, options)
        return SentenceReranker(full, lambda: folder, label=short, threads=options.threads)
    from ragvault.models.onnx import OnnxReranker

    build = _listed_build(name, "reranker", options)
    return OnnxReranker(build, options.models_dir, threads=options.threads)


def is_unlisted(name: str) -> bool:
    """Whether this is a folder or a hub id, and not a name of the registry."""
    short = short_name(name)
    return is_path(short) or is_hub_id(short)


def is_path(name: str) -> bool:
    """Whether a name is a folder. A bare `a/b` is a hub id, even if such a folder exists: what is
    loaded must not depend on the current folder."""
    return bool(_PATH.match(name))


def is_hub_id(name: str) -> bool:
    return bool(_HUB_ID.fullmatch(name))


def short_name(name: str) -> str:
    """The name without its fingerprint."""
    full = _FULL_NAME.fullmatch(name)
    return full[1] if full else name


def _listed_build(name: str, role: str, options: LoadOptions) -> Build:
    from ragvault.models import registry

    model, builds = registry.find_model(name)
    if model.role != role:
        raise UsageError(
            f"{model.name} cannot be used as {role}: it is of the kind {model.role}",
            fix="ragvault models list shows the kind of each model",
        )
    return ensure_installed(model, builds, options)


def ensure_installed(model: Model, builds: Sequence[Build], options: LoadOptions) -> Build:
    """One of these builds, installed now if none is yet. Raises ModelUnavailable."""
    from ragvault.models import registry

    present = registry.installed(builds, options.models_dir)
    if present:
        return present
    from ragvault.models import install  # only a download needs it

    return install.install_model(model, builds, options)


def _listed_embedder(build: Build, options: LoadOptions) -> Embedder:
    if build.model.engine == "static":
        from ragvault.models.static import StaticEmbedder

        return StaticEmbedder(build, options.models_dir)
    if build.model.engine == "onnx":
        from ragvault.models.onnx import OnnxEmbedder

        return OnnxEmbedder(build, options.models_dir, threads=options.threads)
    from ragvault.models.registry import verified_folder
    from ragvault.models.sentence_transformers import SentenceEmbedder

    return SentenceEmbedder(
        build.full_name,
        lambda: verified_folder(build, options.models_dir),
        label=build.model.name,
        threads=options.threads,
    )


def _locate_unlisted(name: str, options: LoadOptions) -> tuple[str, str, Path]:
    """The full name, the short name and the folder of a model that the registry does not list."""
    from ragvault.models import install

    short = short_name(name)
    folder = install.unlisted_folder(short, options)
    full = install.unlisted_full_name(short, folder)
    if name not in (short, full):
        raise ModelUnusable(
            short,
            f"{folder} was changed: it is now {full}, and the index needs {name}",
            fix=f"embed the vault again with: ragvault index --model {in_shell(short)}",
        )
    return full, short, folder


# --- Sharing loaded models ---


class ModelPool:
    """Opens each model once per process, for all vaults and threads.

    Models may be used by several threads at once. Models opened with other settings of [models]
    are separate; those of the last POOLED settings stay in memory.
    """

    def __init__(self) -> None:
        self._embedders: dict[tuple[str, str], Embedder] = {}
        self._rerankers: dict[tuple[str, str], Reranker] = {}
        self._opening: dict[tuple[str, str, int], threading.Lock] = {}
        self._used: dict[str, None] = {}  # settings, least recently used first
        self._lock = threading.Lock()

    def embedder(self, name: str, settings: Models, options: LoadOptions) -> Embedder:
        """Raises what `open_embedder` raises; the next call tries again."""
        return self._get(self._embedders, name, settings, lambda: open_embedder(name, options))

    def reranker(self, name: str, settings: Models, options: LoadOptions) -> Reranker:
        """Raises what `open_reranker` raises; the next call tries again."""
        return self._get(self._rerankers, name, settings, lambda: open_reranker(name, options))

    def _get(
        self,
        pool: dict[tuple[str, str], AnyModel],
        name: str,
        settings: Models,
        opened: Callable[[], AnyModel],
    ) -> AnyModel:
        self.use(settings)
        how = repr(settings)
        model = pool.get((name, how))
        if model is not None:
            return model
        with self._lock_for(name, how, id(pool)):
            model = pool.get((name, how))
            if model is None:
                model = opened()
                # Under its full name too, which the catalogue uses. If the model is already open
                # under that name, both names share it.
                model = pool[name, how] = pool.setdefault((model.name, how), model)
            return model

    def use(self, settings: Models) -> None:
        """Mark these settings as used, and drop the models of the least recently used ones."""
        how = repr(settings)
        with self._lock:
            self._used.pop(how, None)
            self._used[how] = None
            for old in list(self._used)[:-POOLED]:
                del self._used[old]
                self._drop(self._embedders, old)
                self._drop(self._rerankers, old)

    def keeps(self, settings: Models) -> bool:
        """Whether models of these settings stay in memory."""
        return repr(settings) in self._used

    def _drop(self, pool: dict[tuple[str, str], AnyModel], how: str) -> None:
        for key in [key for key in list(pool) if key[1] == how]:
            del pool[key]

    def _lock_for(self, name: str, how: str, kind: int) -> threading.Lock:
        """One lock per model: nobody waits for the download of another one."""
        with self._lock:
            return self._opening.setdefault((name, how, kind), threading.Lock())
