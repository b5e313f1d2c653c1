"""No single note of at most 5 MB makes any search slower than 1 s, the index slower than 10 s, or
the index more than 10 times as large as the note; and searches of other vaults never notice.

Seconds are of the CPU, those of workers too: how busy the machine is should say nothing. Embedding
is not measured: it takes as long as any text of that length.
"""

from __future__ import annotations

import base64
import json
import random
import resource
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from cost_shapes import FRONTMATTER, SHAPES
from vault_kit import FAKE

from ragvault.models import fake
from ragvault.models.fake import FakeEmbedder
from ragvault.update import workers
from ragvault.vault import Vault

pytestmark = pytest.mark.slow

MOST = 4_990_000  # bytes: a little below the default of walk.max_bytes
SEARCH = 1.0  # seconds
INDEX = 15.0  # CPU seconds: 10 s on a quiet machine; where two share a core each takes longer
TIMES = 10  # the size of the note
DIM = 384  # of the default model

dice = random.Random(27)
# Where no space parts the words, and where words are many or strange.
MORE: dict[str, Callable[[int], str]] = {
    "Chinese": lambda n: "".join(chr(0x4E00 + at * 7919 % 20_000) for at in range(n)),
    "Thai": lambda n: "".join(chr(0x0E01 + at * 31 % 46) for at in range(n)),
    "Hebrew": lambda n: "שלום " * (n // 5),
    "marks of direction": lambda n: "\u202ea\u202c \u2066" * (n // 5),
    "emoji": lambda n: "".join(chr(0x1F600 + at % 80) for at in range(n)),
    "joined emoji": lambda n: "\U0001f468\u200d\U0001f469\u200d" * (n // 4),
    "marks on one letter": lambda n: "a" + "\u0301" * n,
    "ligatures": lambda n: "\ufdfa" * n,
    "line separators": lambda n: "a\u2028" * (n // 2),
    "controls": lambda n: "\x1b[2Ja\x0b\x0c" * (n // 7),
    "one word": lambda n: "x" * n,
    "one word of parts": lambda n: "camelCase_" * (n // 10),
    "different words": lambda n: " ".join(f"{dice.randrange(36**5):x}" for _ in range(n // 6)),
    "numbers": lambda n: "".join(f"{at} " for at in range(n // 7)),
    "base64": lambda n: base64.b64encode(dice.randbytes(n * 3 // 4)).decode(),
    "lines of one letter": lambda n: "a\n" * (n // 2),
    "paragraphs of one letter": lambda n: "a\n\n" * (n // 3),
    "headings of numbers": lambda n: "".join(f"# h {at}\n" for at in range(n // 11)),
    "long headings": lambda n: ("# " + "title " * 48 + "\nx\n") * (n // 293),
    "six long headings": lambda n: (
        "".join("#" * level + " " + "a" * 290 + "\n" for level in range(1, 7)) + "x\n\n" * (n // 3)
    ),
    "uses of one reference": lambda n: "[a]: b.md\n\n" + "[a] " * (n // 4),
    "deep quotations": lambda n: "".join("> " * at + "a\n" for at in range(int(n**0.5))),
    "a deep list": lambda n: "".join("  " * at + "- a\n" for at in range(int(n**0.5))),
    "entities": lambda n: "&amp;" * (n // 5),
    "fields in a line": lambda n: "".join(f"[w{at}:: v{at}]" for at in range(n // 16)),
    "commented lines": lambda n: "%%\n" * (n // 3),
}
FILES: dict[str, Callable[[], str]] = {
    **{name: lambda make=make: whole(make) for name, make in {**SHAPES, **MORE}.items()},
    **{
        f"frontmatter: {name}": lambda make=make: f"---\n{make(60_000)}---\n" + "word " * 980_000
        for name, make in FRONTMATTER.items()
    },
}
CANVAS = {"id": "a", "type": "text", "x": 0, "y": 0, "width": 9, "height": 9}


def whole(make: Callable[[int], str]) -> str:
    """5 MB of a shape: made at once, so that one run of a character is as long."""
    text = make(MOST).encode("utf-8", "replace")[:MOST]
    times = MOST // max(len(text), 1)
    return (text * times).decode("utf-8", "ignore")


class QuickEmbedder(FakeEmbedder):
    """Vectors as long as those of the default model, for nothing."""

    dim = DIM

    def embed(self, texts, kind):
        rows = np.random.default_rng(len(texts)).standard_normal((len(texts), DIM))
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name, value in {**FAKE, "RAGVAULT_HOME": str(tmp_path / "home")}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(fake, "FakeEmbedder", QuickEmbedder)
    monkeypatch.setattr(workers, "idle_workers", [])
    vault(tmp_path / "vault")
    yield tmp_path / "vault"
    end_workers()


def vault(root: Path) -> None:
    root.mkdir()
    (root / "a.md").write_text("# A\n\nBread. [[b]] [[nowhere]]\n")
    (root / "b.md").write_text("# B\n\nFlour and water, see [[a]] and [[large]].\n")


def end_workers() -> None:
    while workers.idle_workers:
        workers.idle_workers.pop().end()


def cpu_seconds(work: Callable[[], object]) -> float:
    """Of this process and its workers."""

    def used() -> float:
        end_workers()
        both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(each.ru_utime + each.ru_stime for each in both)

    start = used()
    work()
    return used() - start


def obey(root: Path, file: Path) -> None:
    """Index a vault and search it, within the law."""
    opened = Vault.open(root)
    assert cpu_seconds(opened.index) < INDEX
    size = sum(each.stat().st_size for each in opened.folder.rglob("*") if each.is_file())
    assert size < TIMES * file.stat().st_size
    middle = file.read_text("utf-8")[1_000_000:1_000_100]
    queries = (
        *("bread flour", "large", "a", "x y", '"a a"', "bred flor", "has:task", "since:2000"),
        " ".join("".join(char if char.isalnum() else " " for char in middle).split())[:60] or "b",
    )
    with opened:
        opened.search("warm")
        for query in queries:
            assert cpu_seconds(lambda query=query: opened.search(query)) < SEARCH, query
        assert "a.md" in [each.note for each in opened.search("bread").results]
        file.touch()  # one that has changed is not read again for each search
        with file.open("a") as end:
            end.write("more")
        assert cpu_seconds(lambda: opened.search("large bread")) < SEARCH
    assert opened.read("large", budget=100).text is not None


@pytest.mark.parametrize("shape", FILES)
def test_no_note_costs_more_than_the_law_allows(shape, root):
    file = root / "large.md"
    file.write_text(FILES[shape](), "utf-8")
    obey(root, file)


@pytest.mark.parametrize("shape", ["spaces between two words", "Chinese", "one word", "numbers"])
@pytest.mark.parametrize("suffix", [".txt", ".canvas"])
def test_nor_does_a_text_file_or_a_canvas(shape, suffix, root):
    text = FILES[shape]()[: MOST // 2]
    if suffix == ".canvas":
        nodes = [{**CANVAS, "text": text}]
        text = json.dumps({"nodes": nodes, "edges": []}, ensure_ascii=False)
    file = root / f"large{suffix}"
    file.write_text(text, "utf-8")
    obey(root, file)


def test_searches_of_other_vaults_do_not_wait_for_it(root, tmp_path):
    (root / "large.md").write_text(whole(MORE["different words"]), "utf-8")
    vault(tmp_path / "other")
    hostile, other = Vault.open(root), Vault.open(tmp_path / "other")
    hostile.index()
    other.index()
    done = threading.Event()

    def ask_again_and_again() -> None:
        while not done.is_set():
            hostile.search("large bred flor")

    with hostile, other:
        other.search("bread")
        asking = threading.Thread(target=ask_again_and_again)
        asking.start()
        try:
            for _ in range(20):
                start = time.thread_time(), time.monotonic()
                other.search("bread")
                assert time.monotonic() - start[1] < 2 * SEARCH
        finally:
            done.set()
            asking.join()
