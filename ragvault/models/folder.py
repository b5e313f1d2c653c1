"""Models that are not in the registry: a folder of yours, or an id of the hub.

    /path, ~/path, ./path     a folder that is there; it is read and never changed
    OWNER/NAME                the hub's newest revision, fetched once into <models>/hub/OWNER--NAME

Nobody has named their bytes beforehand, so choosing one is trusting it. What can be done is done:
only safetensors, JSON and vocabularies are fetched or accepted, never a pickle; weights from the
hub must have the hash the hub names; and the full name holds a hash of every file, so vectors of
a model that changed are never mixed with older ones.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ragvault.errors import ModelUnavailable, ModelUnusable
from ragvault.models import shelf as shelves
from ragvault.models.failure import SourceError
from ragvault.models.fetch import Ways, alone, incoming
from ragvault.models.hub import download, hub_address, read_json

# Vocabularies of older models are text files or, for sentencepiece, a .model.
_KEPT = (".safetensors", ".json", ".txt", ".model")
_PICKLES = ("*.bin", "*.pt", "*.pkl", "*.pickle", "*.ckpt")
_ID = re.compile(r"[\w][\w.-]*/[\w][\w.-]*")
_PATH = re.compile(r"^(~?[/\\]|~[\w.-]*[/\\]|\.{1,2}([/\\]|$)|[A-Za-z]:[/\\])")


def is_path(name: str) -> bool:
    """Whether a name is a folder. A bare `a/b` is an id, even where such a folder lies: what is
    loaded must not depend on the folder a command was typed in."""
    return bool(_PATH.match(name))


def is_hub_id(name: str) -> bool:
    return bool(_ID.fullmatch(name))


def locate(name: str, shelf: Path, ways: Ways) -> Path:
    """The folder of this model, fetched if need be. Raises ModelUnavailable or ModelUnusable."""
    if is_path(name):
        folder = Path(name).expanduser()
        if not folder.is_dir():
            raise ModelUnusable(name, "there is no such folder", fix="check the path")
        return folder
    folder = shelf / "hub" / name.replace("/", "--")
    return folder if folder.is_dir() else _pull(name, folder, shelf, ways)


def full_name(name: str, folder: Path) -> str:
    """The name its vectors are kept under. Raises ModelUnusable where it is no model we open."""
    _refuse_pickles(name, folder)
    seen = hashlib.sha256()
    for path in _kept_files(folder):
        seen.update(f"{path.relative_to(folder).as_posix()}\0{shelves.digest(path)}\0".encode())
    return f"{name}@{seen.hexdigest()[:12]}"


def _refuse_pickles(name: str, folder: Path) -> None:
    if not any(folder.rglob("*.safetensors")):
        raise ModelUnusable(
            name,
            f"{folder} has no .safetensors, and weights in other formats are not opened",
            fix="save the model again with safe_serialization=True, or choose another",
        )
    for pattern in _PICKLES:
        for path in folder.rglob(pattern):
            if not any(path.parent.glob("*.safetensors")):
                why = f"{path} is a pickle, which could run code, with no .safetensors beside it"
                raise ModelUnusable(name, why, fix="save that part again as safetensors")


def _kept_files(folder: Path) -> Iterator[Path]:
    # Not .txt: a folder may hold a log or a licence, which change nothing.
    kept = (p for p in folder.rglob("*") if p.suffix in _KEPT or p.name == "vocab.txt")
    return iter(sorted(path for path in kept if path.is_file()))


def _pull(name: str, folder: Path, shelf: Path, ways: Ways) -> Path:
    if ways.offline:
        raise ModelUnavailable(name, [(f"hub {name}", "not asked, because of offline")])
    lock = folder.name
    with alone(lock, shelf, ways.talk), incoming(lock, shelf) as room:
        if folder.is_dir():
            return folder
        try:
            ways.talk.say(f"fetching {name} from the hub")
            _fetch(name, room / "files", ways)
        except SourceError as error:
            raise ModelUnavailable(name, [(f"hub {name}", str(error))]) from error
        finally:
            ways.talk.close()
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        (room / "files").replace(folder)
    return folder


def _fetch(name: str, files: Path, ways: Ways) -> None:
    listing = read_json(hub_address(f"api/models/{name}/revision/main?blobs=true"))
    wanted = [each for each in listing.get("siblings", []) if _is_wanted(each)]
    total, done = sum(int(each.get("size") or 0) for each in wanted), 0
    for each in wanted:
        path = each["rfilename"]
        address = hub_address(f"{name}/resolve/{listing['sha']}/{quote(path)}")
        done = download(address, files / path, done, total, ways.talk)
        _check(files / path, each)


def _is_wanted(entry: dict[str, Any]) -> bool:
    path = str(entry.get("rfilename", ""))
    inside = not path.startswith(("onnx/", "openvino/", "/")) and ".." not in path.split("/")
    return inside and path.endswith(_KEPT)


def _check(path: Path, entry: dict[str, Any]) -> None:
    named = (entry.get("lfs") or {}).get("sha256")
    if named and shelves.digest(path) != named:
        raise SourceError(f"{path.name} is not what the hub names (SHA-256 {named})")
    if path.suffix == ".json":
        try:
            json.loads(path.read_bytes())
        except ValueError as error:
            raise SourceError(f"{path.name} is not JSON ({error})") from error
