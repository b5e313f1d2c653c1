"""A model hub as a source: plain HTTPS to one revision of one repository.

HF_ENDPOINT names another hub of the same kind, and HF_HUB_OFFLINE forbids asking, as for every
other program that talks to it. The usual proxy variables hold. Files are hashed by the caller.
What speaks HTTP is imported when something is downloaded: a search that has its model waits 50 ms
less.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ragvault.models.failure import SourceError
from ragvault.models.registry import Source
from ragvault.models.talk import Talk

if TYPE_CHECKING:
    from http.client import HTTPResponse

HUB = "https://huggingface.co"
TIMEOUT_S = 30  # of silence, not of the whole download
_PIECE = 1 << 18
_MOST_JSON = 1 << 26
_YES = {"1", "true", "yes", "on"}


def hub_is_forbidden(environ: Mapping[str, str] | None = None) -> bool:
    """Whether HF_HUB_OFFLINE says that the hub may not be asked."""
    environ = os.environ if environ is None else environ
    return environ.get("HF_HUB_OFFLINE", "").lower() in _YES


def fetch_from_hub(source: Source, room: Path, talk: Talk) -> None:
    """Download the files of this source into room/files. Raises SourceError."""
    done = 0
    for name, file in source.files.items():
        address = hub_address(f"{source.repo}/resolve/{source.revision}/{quote(file.at)}")
        done = download(address, room / "files" / name, done, source.bytes, talk)


def hub_address(path: str) -> str:
    """The address of something on the hub. Raises SourceError where it may not be asked."""
    if hub_is_forbidden():
        raise SourceError("not asked, because HF_HUB_OFFLINE is set")
    hub = os.environ.get("HF_ENDPOINT") or HUB
    if not hub.startswith(("https://", "http://")):
        raise SourceError(f"HF_ENDPOINT is {hub!r}, which is no web address")
    return f"{hub.rstrip('/')}/{path}"


def download(address: str, target: Path, done: int, total: int, talk: Talk) -> int:
    """Stream one file to disk; `done` counts the bytes of all files so far. Raises SourceError."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with _reasons(address), _opened(address) as answer, target.open("wb") as out:
        while piece := answer.read(_PIECE):
            out.write(piece)
            done += len(piece)
            talk.progress(done, total)
    return done


def read_json(address: str) -> dict[str, Any]:
    """What the hub says about a repository. Raises SourceError."""
    with _reasons(address), _opened(address) as answer:
        said: dict[str, Any] = json.loads(answer.read(_MOST_JSON))
        return said


def _opened(address: str) -> HTTPResponse:
    from urllib.request import Request, urlopen

    request = Request(address, headers={"User-Agent": "ragvault"})
    answer: HTTPResponse = urlopen(request, timeout=TIMEOUT_S)
    return answer


@contextmanager
def _reasons(address: str) -> Iterator[None]:
    """Whatever goes wrong on the way, in words."""
    from http.client import HTTPException
    from urllib.error import HTTPError, URLError

    name = address.rpartition("/")[2]
    try:
        yield
    except HTTPError as error:
        raise SourceError(f"{name}: the hub answered {error.code} {error.reason}") from error
    except URLError as error:
        raise SourceError(f"the hub cannot be reached ({error.reason})") from error
    except (HTTPException, TimeoutError, ConnectionError, ValueError) as error:
        raise SourceError(f"{name}: the download broke off ({error})") from error
