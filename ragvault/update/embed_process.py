"""Elsewhere: texts are embedded in a process of their own.

    for keys, vectors in embedded(folder, embedder, pages):     a page after the other, in order

Words are indexed meanwhile, which is Python from end to end, and so is most of what a static model
does: in two threads they would share one core. The process reads the catalogue and writes nothing:
what it made is stored by the one that holds the writer's lock, so it may be killed at any moment.
Whatever it cannot do it leaves undone, and the caller, who does it then, meets the reason.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ragvault.models.embed import longest_first
from ragvault.notes.chunk import embedding_text
from ragvault.ports import Embedder
from ragvault.store.catalogue import Catalogue
from ragvault.update.workers import live_with_the_parent, starting

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    import numpy as np
    from numpy.typing import NDArray

    Embedded = tuple[list[bytes], NDArray[np.float32]]

GIVES_WAY = 5  # words take longer, so where cores are few they go first
AHEAD = 2  # pages the process is given before the first is asked back: it never waits for us
BROKEN = (EOFError, OSError)  # what a pipe says when there is nobody at its other end


def new_texts(catalogue: Catalogue, ids: Sequence[int], seen: set[bytes]) -> dict[bytes, str]:
    """What is to be embedded of these passages, by its key: what was `seen` before is not."""
    texts = {said.hash: embedding_text(said) for said in catalogue.said(ids)}
    new = {key: text for key, text in texts.items() if key not in seen}
    seen.update(new)
    return new


def embedded(
    folder: Path, opened: Callable[[], Embedder], pages: Sequence[Sequence[int]]
) -> Generator[Embedded, None, None]:
    """The keys and vectors of the texts of each page; fewer pages where the process ends early."""
    with _process(folder, opened) as pipe:
        if pipe is None:
            return
        try:
            for page in pages[:AHEAD]:
                pipe.send(page)
            for done in range(len(pages)):
                made = pipe.recv()
                pipe.send(pages[done + AHEAD] if done + AHEAD < len(pages) else None)
                yield made
        except BROKEN:
            return


@contextmanager
def _process(folder: Path, opened: Callable[[], Embedder]) -> Iterator[Connection | None]:
    """Our end of a pipe to a process that embeds; none where no process can be started."""
    from multiprocessing import get_context

    spawn = get_context("spawn")
    ours, its = spawn.Pipe()
    process = spawn.Process(target=_serve, args=(its, folder, opened), daemon=True)
    with closing(ours):
        try:
            with closing(its), starting():
                process.start()
        except (OSError, AssertionError):  # the second in a process that may have none of its own
            yield None
            return
        try:
            yield ours
        finally:
            process.kill()  # nothing is lost, and a run that is stopped need not wait for it
            process.join()
            process.close()


def _serve(pipe: Connection, folder: Path, opened: Callable[[], Embedder]) -> None:
    live_with_the_parent()
    if hasattr(os, "nice"):
        os.nice(GIVES_WAY)
    seen: set[bytes] = set()
    try:
        with Catalogue.open(folder) as catalogue:
            embedder = opened()
            while (page := pipe.recv()) is not None:
                texts = longest_first(new_texts(catalogue, page, seen))
                vectors = embedder.embed([text for _, text in texts], "passage")
                pipe.send(([key for key, _ in texts], vectors))
    except Exception:
        return  # the caller meets the same, where it can be told
