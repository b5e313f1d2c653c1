"""Small things the tests of the models room are built from: a wheel, a model, a hub."""

from __future__ import annotations

import hashlib
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from ragvault.models import registry
from ragvault.models.registry import Model, ModelSource, SourceFile

FILES = {"model.onnx": b"weights " * 5000, "tokenizer.json": b'{"words": []}'}


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def make_wheel(folder: Path, package: str = "carrier", files: Mapping[str, bytes] = FILES) -> Path:
    """A wheel that pip takes for one, with these files in it and code that must never run."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{package}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(f"{package}/{name}", content)
        archive.writestr(f"{package}/__init__.py", "raise SystemExit('the wheel was run')")
        info = f"{package}-1.0.dist-info"
        # Asks for a Python that nobody has: weights do not mind.
        asks = "Requires-Python: >=9\nRequires-Dist: nothing-like-this"
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n{asks}\n"
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return path


def named(package: str, files: Mapping[str, bytes]) -> dict[str, SourceFile]:
    return {
        name: SourceFile(f"{package}/{name}", sha256(content)) for name, content in files.items()
    }


def wheel_source(wheel: Path, files: Mapping[str, bytes] = FILES, **changes: object) -> ModelSource:
    package = wheel.name.split("-")[0]
    told = {
        "kind": "wheel", "package": package, "version": "1.0", "bytes": 1,
        "sha256": sha256(wheel.read_bytes()), "files": named(package, files),
    }  # fmt: skip
    return ModelSource(**{**told, **changes})  # type: ignore[arg-type]


def hub_source(files: Mapping[str, bytes] = FILES) -> ModelSource:
    at = {name: SourceFile(name, sha256(content)) for name, content in files.items()}
    return ModelSource(kind="hub", repo="owner/name", revision="abc", bytes=1, files=at)


def make_model(*sources: ModelSource, name: str = "tiny", **changes: object) -> Model:
    told = {
        "name": name, "role": "embedder", "engine": "onnx", "dim": 4, "max_tokens": 8,
        "licence": "MIT", "origin": "nobody", "about": "for tests", "sources": list(sources),
    }  # fmt: skip
    return Model(**{**told, **changes})  # type: ignore[arg-type]


@contextmanager
def hub(pages: Mapping[str, bytes], *, lose: int = 0) -> Iterator[tuple[str, list[str]]]:
    """A hub on this machine: its address, and what it was asked for. `lose` bytes never arrive."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            content = pages.get(self.path)
            self.send_response(200 if content is not None else 404)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            self.wfile.write((content or b"")[: len(content or b"") - lose])

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def real(name: str) -> Model:
    return registry.known_models()[name]
