"""Eight readers beside one writer: every answer is whole, and nobody waits for anybody."""

from __future__ import annotations

import re
import threading
from datetime import datetime, timezone

import pytest
from write_kit import models, notes, opened, prose, write

from ragvault.config.settings import Vector
from ragvault.search import search
from ragvault.store.catalogue import Catalogue
from ragvault.store.vectors import ModelVectors
from ragvault.types import SearchRequest
from ragvault.update import keyword
from ragvault.update.vectors import update_vectors
from tests.keyword_kit import ENGINES

pytestmark = pytest.mark.usefixtures("models")
__all__ = ["models"]

READERS = 8
MARK = re.compile(r"v\d+mark")
SIZES = [
    *(pytest.param(engine, 12, 2, id=engine) for engine in ENGINES),
    *(
        pytest.param(engine, 1000, 2, id=f"{engine}-1000", marks=pytest.mark.slow)
        for engine in ENGINES
    ),
]


def note(number, version):
    """One version's mark in every sentence: a mixture of two would show."""
    said = " ".join(f"Bread {number} v{version}mark." for _ in range(12))
    return f"# Note {number}\n\n{said}\n\n{prose((number, version))} v{version}mark\n"


class Reader(threading.Thread):
    """Searches until it is stopped, and keeps what was wrong."""

    def __init__(self, vault, stop):
        super().__init__(daemon=True)
        self.vault, self.stop = vault, stop
        self.wrong, self.answered, self.seen = [], 0, set()

    def run(self):
        try:
            while not self.stop.is_set():
                self.look(self.vault.search("bread mark"))
        except Exception as error:
            self.wrong.append(repr(error))

    def look(self, response):
        self.answered += 1
        if not response.results:
            self.wrong.append("nothing was found")
        if response.failed:
            self.wrong.append(response.failed)
        for result in response.results:
            marks = set(MARK.findall(result.passage))
            self.seen |= marks
            if len(marks) != 1 and result.note != "still.md":
                self.wrong.append((result.note, marks))


@pytest.mark.parametrize(("engine", "count", "versions"), SIZES)
def test_eight_readers_beside_a_writer_meet_no_error_and_nothing_half_written(
    tmp_path, engine, count, versions
):
    root = tmp_path / "vault"
    write(root, {f"{number:04}.md": note(number, 0) for number in range(count)})
    # A note whose passages have just been replaced cannot be found until its words follow; this
    # one can be found all the time.
    write(root, {"still.md": "Bread that nobody touches."})
    vault = opened(root, tmp_path / "home", f"keyword.engine={engine}", "dedup.enabled=false")
    vault.index()
    stop = threading.Event()
    readers = [Reader(vault, stop) for _ in range(READERS)]
    for reader in readers:
        reader.start()
    answered = []
    for version in range(1, versions + 1):
        write(root, {f"{number:04}.md": note(number, version) for number in range(count)})
        before = sum(reader.answered for reader in readers)
        vault.index()
        answered.append(sum(reader.answered for reader in readers) - before)
    stop.set()
    for reader in readers:
        reader.join()
    assert [reader.wrong for reader in readers if reader.wrong] == []
    # They went on answering while the writer was at work.
    assert all(answered)
    final = Reader(vault, stop)
    final.look(vault.search("bread mark"))
    assert final.seen == {f"v{versions}mark"}


def test_an_index_that_stays_open_follows_when_a_better_tier_replaces_the_one_it_knew(tmp_path):
    """The rough vectors are deleted as soon as every passage has a good one."""
    write(tmp_path / "vault", {f"{number}.md": note(number, 0) for number in range(3)})
    vault = opened(tmp_path / "vault", tmp_path / "home")
    vault.index("static")
    asked = SearchRequest("bread mark", datetime.now(timezone.utc))
    with vault.corpus() as index:
        assert search(asked, index).facts.tier == "static"
        vault.index("full")
        answer = search(asked, index)
    assert (answer.facts.tier, answer.failed) == ("full", {})
    assert all("vector" in result.scores for result in answer.results)


def rebuilt_vectors(vault, model):
    """Rewrite the vector file of a model, as a writer in another thread does."""

    def rebuild():
        with Catalogue.open(vault.folder, write=True) as catalogue:
            update_vectors(catalogue, model, Vector(), rebuild=True)

    thread = threading.Thread(target=rebuild)
    thread.start()
    thread.join()


def test_a_search_in_a_snapshot_uses_the_vectors_it_has_when_a_writer_deletes_their_file(tmp_path):
    write(tmp_path / "vault", notes(4))
    vault = opened(tmp_path / "vault", tmp_path / "home")
    vault.index()
    asked = SearchRequest("bread flour winter", datetime.now(timezone.utc))
    with vault.corpus() as index:
        before = search(asked, index)
        with index.snapshot():
            assert index.facts.notes == 4  # the moment of a snapshot is that of its first look
            rebuilt_vectors(vault, index.catalogue.tier_model("full"))
            during = search(asked, index)
        after = search(asked, index)

    for each in (before, during, after):
        assert each.failed == {}
        assert [r.id for r in each.results] == [r.id for r in before.results]


def test_opening_finds_the_vectors_however_often_a_writer_rebuilds_them_meanwhile(
    tmp_path, monkeypatch
):
    """A reader reads which files are current; before it opens them, a rebuild deletes them."""
    write(tmp_path / "vault", notes(4))
    vault = opened(tmp_path / "vault", tmp_path / "home")
    vault.index()
    real, rebuilds = ModelVectors.file, iter(range(3))

    def rebuilt_first(vectors):
        if next(rebuilds, None) is not None:
            rebuilt_vectors(vault, vectors.model)
        return real(vectors)

    monkeypatch.setattr(ModelVectors, "file", rebuilt_first)
    with vault.corpus() as index:
        assert index.missing == {}
        assert index.facts.tier == "full"
    assert next(rebuilds, None) is None


@pytest.mark.parametrize("engine", ENGINES)
def test_searches_during_a_rebuild_are_answered_by_the_index_there_was(
    tmp_path, monkeypatch, models, engine
):
    write(tmp_path / "vault", notes(4))
    vault = opened(tmp_path / "vault", tmp_path / "home", f"keyword.engine={engine}")
    vault.index("static")
    asked = SearchRequest("bread flour winter", datetime.now(timezone.utc))
    real, during = keyword._write, []

    def write_slowly(*arguments):
        real(*arguments)  # all is written, and nothing has switched yet
        with vault.corpus() as fresh:
            during.append(search(asked, fresh))
        during.append(search(asked, index))

    monkeypatch.setattr(keyword, "_write", write_slowly)
    with vault.corpus() as index:
        before = search(asked, index)
        vault.index("static", rebuild=True)
        after = search(asked, index)

    assert len(during) == 2
    for each in (before, *during, after):
        assert not each.failed
        assert [r.id for r in each.results] == [r.id for r in before.results]


def test_readers_of_one_vault_share_the_names_of_its_notes_until_one_changes(tmp_path):
    write(tmp_path / "vault", {"rye.md": "# Rye\n\nBread.", "oat.md": "# Oat\n\nPorridge."})
    vault = opened(tmp_path / "vault", tmp_path / "home")
    vault.index("keyword")
    with vault.corpus() as one, vault.corpus() as other:
        before = one.names()
        assert other.names() is before
        write(tmp_path / "vault", {"oat.md": "# Oats\n\nPorridge."})
        vault.index("keyword")
        for each in (one, other):
            with each.snapshot():
                assert {row.title for row in each.names().rows} == {"Rye", "Oats"}
        assert one.names() is other.names() is not before
