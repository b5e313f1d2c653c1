"""Machine: what ragvault stands on, whatever the vault.

Libraries are imported for real, because a wheel that was built for another processor or lacks a
system library fails at that moment and not before. Models are hashed, not loaded.
"""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from ragvault import __version__
from ragvault.config import folders
from ragvault.config.settings import Config, Walk
from ragvault.doctor.findings import Finding, fine
from ragvault.errors import RagvaultError
from ragvault.notes.rewalk import Rewalk

LIBRARIES = {  # module: what it is for
    "numpy": "vectors",
    "faiss": "finding by meaning",
    "whoosh": "finding by word",
    "networkx": "links",
    "onnxruntime": "models",
    "tokenizers": "models",
    "safetensors": "models",
    "pyromark": "reading Markdown",
    "Stemmer": "stems of words",
    "yaml": "frontmatter",
}
LEAST_FREE = 200_000_000  # bytes: below it an index of a middling vault does not fit
INOTIFY = Path("/proc/sys/fs/inotify/max_user_watches")


def machine(config: Config, needed: frozenset[str] = frozenset()) -> Iterator[Finding]:
    """Everything but the index. `needed` are full names of models that an index cannot do without.

    Imports the libraries, which takes a second.
    """
    where = f"{platform.system()} {platform.machine()}"
    yield fine(
        "python",
        f"ragvault {__version__}, Python {platform.python_version()},"
        f" SQLite {sqlite3.sqlite_version}, {where}",
    )
    yield from libraries(config)
    yield from models(config, needed)
    yield from _folders(config)


def libraries(config: Config) -> Iterator[Finding]:
    """Whether each library can be imported, those of the extras where settings ask for them."""
    wanted = dict(LIBRARIES)
    if config.keyword.engine == "tantivy":
        wanted["tantivy"] = "finding by word"
    failed = [(name, why) for name in wanted if (why := _failure(name))]
    for name, why in failed:
        yield Finding("libraries", "broken", f"{name} ({wanted[name]}): {why}", _cure(name, why))
    if not failed:
        yield fine("libraries", f"all {len(wanted)} can be imported")


def _failure(name: str) -> str:
    try:
        import_module(name)
    except Exception as error:  # a broken wheel raises whatever its loader does
        return " ".join(str(error).split()) or type(error).__name__
    return ""


def _cure(name: str, why: str) -> str:
    if name == "tantivy":
        return "pip install 'ragvault[tantivy]', or set keyword.engine to whoosh"
    if "libomp" in why or "libgomp" in why:
        # The wheel of FAISS brings its own; a build from source takes the system's.
        system = "brew install libomp" if sys.platform == "darwin" else "install libgomp1"
        return f"{system}, then: pip install --force-reinstall faiss-cpu"
    return "pip install --force-reinstall ragvault"


def models(config: Config, needed: frozenset[str]) -> Iterator[Finding]:
    """Whether the models are here and their bytes are the ones that are named."""
    settings = config.models
    wanted = {*needed, settings.embedder, settings.static}
    if config.rerank.enabled:
        wanted.add(settings.reranker)
    short = {name.partition("@")[0] for name in needed if "@" in name}
    # A vault keeps the build it was made with; the name in the settings is then the same model.
    for name in sorted(wanted - short):
        yield _model(name, name in needed)


def _model(name: str, needed: bool) -> Finding:
    from ragvault.models import load, registry
    from ragvault.models import shelf as shelves

    part, shelf = "model", folders.models_dir()
    if name.startswith("fake"):
        return Finding(part, "note", f"{name} is for tests: it knows next to nothing of meaning")
    if load.is_foreign(name):
        return Finding(part, "note", f"{name} is your own: its bytes are not known beforehand")
    try:
        build = shelves.installed(registry.find(name)[1], shelf)
    except RagvaultError as error:
        return Finding(part, "broken", str(error), error.fix)
    pull = f"ragvault models pull {name.partition('@')[0]}"
    if build is None and needed:
        return Finding(part, "broken", f"{name} is not here, and the index needs it", pull)
    if build is None:
        return Finding(part, "note", f"{name} is not here; it is fetched when first needed", pull)
    wrong = shelves.faults(build, shelf)
    if wrong:
        return Finding(part, "broken", f"{name}: {'; '.join(wrong)}", pull)
    return fine(part, f"{name} is here, and every byte is right")


def _folders(config: Config) -> Iterator[Finding]:
    data = folders.data_dir(override=config.paths.data)
    yield _folder("data folder", data)
    yield _folder("models folder", folders.models_dir())
    above = _existing(data)
    free = shutil.disk_usage(above).free
    if free < LEAST_FREE:
        said = f"{free / 1e6:.0f} MB are free where {data} is"
        yield Finding("disk", "broken", said, "make room, or set paths.data to another disk")
    else:
        yield fine("disk", f"{free / 1e9:.1f} GB are free")


def _folder(part: str, folder: Path) -> Finding:
    above = _existing(folder)
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        said = f"{above} cannot be written to"
        return Finding(part, "broken", said, f"chmod u+rwx {above}, or set RAGVAULT_HOME")
    if not folder.exists():
        return fine(part, f"{folder} will be made when it is needed")
    if os.name == "posix" and part == "data folder" and _is_open(folder / "vaults"):
        said = f"{folder / 'vaults'} can be read by other users, and an index repeats your notes"
        return Finding(part, "broken", said, f"chmod 700 {folder / 'vaults'}")
    return fine(part, f"{folder} can be written to, by you alone")


def _is_open(folder: Path) -> bool:
    return folder.exists() and bool(folder.stat().st_mode & 0o077)


def _existing(folder: Path) -> Path:
    return next(above for above in (folder, *folder.parents) if above.exists())


def watching(root: Path, settings: Walk) -> Finding:
    """Whether the system lets a watcher see every folder of a vault that is not ignored."""
    if sys.platform != "linux" or not INOTIFY.exists():
        return fine("watching", "this system tells of changes by itself")
    limit = int(INOTIFY.read_text())
    seen = Rewalk(root, settings)
    seen.walk()
    count = seen.folders
    if count > limit // 2:  # other programs of the same user share the limit
        said = f"{count:,} folders, and the system allows {limit:,} watches; ragvault watch polls"
        cure = f"sudo sysctl fs.inotify.max_user_watches={max(count * 4, 524_288)}"
        return Finding("watching", "note", said, cure)
    return fine("watching", f"{count:,} folders of {limit:,} that may be watched")
