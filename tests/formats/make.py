"""Make an index of the newest format, to be kept: python tests/formats/make.py

Writes tests/formats/FORMAT.tar.xz: a small vault and its whole index folder, made with the small
models. Once a release has written a format, its file here is never made again: it stands for the
indexes that people have.
"""

from __future__ import annotations

import io
import os
import tarfile
import tempfile
from pathlib import Path

FAKE = {"RAGVAULT_MODELS__EMBEDDER": "fake", "RAGVAULT_MODELS__STATIC": "fake"}
LONG_AGO = 1_600_000_000  # a whole second, which every archive keeps
NOTES = {
    "Bread.md": "---\ntags: [recipe]\naliases: [Loaf]\n---\n# Bread\n\nFlour and water. [[Oven]]\n",
    "Oven.md": "# Oven\n\nHot stone, [[Loaf]] and [[Nobody]].\n\n```python\nheat_oven(250)\n```\n",
    "Journal/2024-03-01.md": "# First of March\n\nThe crumb was open. See [[Bread#Crumb]].\n",
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update({**FAKE, "RAGVAULT_HOME": f"{folder}/home"})
        print(made(Path(folder)))


def made(folder: Path) -> Path:
    from ragvault.vault import Vault

    vault = Vault.open(written(folder / "vault"))
    vault.index()
    with vault.catalogue() as catalogue:
        built = catalogue.counts().format
    for left in ("writer.lock", "catalogue.sqlite-shm", "catalogue.sqlite-wal"):
        (vault.folder / left).unlink(missing_ok=True)
    target = Path(__file__).parent / f"{built}.tar.xz"
    with tarfile.open(target, "w:xz") as archive:
        archive.add(folder / "vault", "vault", filter=_plain)
        archive.add(vault.folder, "index", filter=_plain)
    return target


def written(root: Path) -> Path:
    for name, text in NOTES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        os.utime(path, (LONG_AGO, LONG_AGO))
    return root


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without the person and the machine that made it."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = LONG_AGO
    return entry


def unpacked(archive: bytes, folder: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(archive)) as held:
        for entry in held.getmembers():
            entry.mode = 0o700 if entry.isdir() else 0o600
            held.extract(entry, folder)


if __name__ == "__main__":
    main()
