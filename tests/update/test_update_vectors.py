"""Writing vector files from a real catalogue: seldom, beside the old one, again after damage."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from store_builders import digest, note, put
from vector_shelf import brute_force, found, vector_of

from ragvault.config.settings import Vector
from ragvault.index import vector as vector_module
from ragvault.index.vector import FILE, FaissVectors
from ragvault.models.fake import FakeEmbedder
from ragvault.notes.chunk import embedding_text
from ragvault.ports import CacheBroken, Progress
from ragvault.store.catalogue import Catalogue
from ragvault.store.schema import vector_cache
from ragvault.store.vectors import ModelVectors
from ragvault.update.vectors import embed_all, update_vectors

DIM = 16


@pytest.fixture
def catalogue(tmp_path):
    with Catalogue.open(tmp_path, write=True) as opened:
        yield opened


def store(catalogue, path, words, model="m"):
    """A note with a passage a word, and their vectors."""
    put(catalogue, note(path, "\n".join(words)))
    embed(catalogue, words, model)


def embed(catalogue, words, model="m"):
    words = list(dict.fromkeys(words))
    rows = np.stack([vector_of(word, DIM) for word in words])
    catalogue.put_vectors(model, DIM, [digest(word) for word in words], rows)


def words(first, count):
    return [f"word {n}" for n in range(first, first + count)]


def row(catalogue, model="m"):
    return catalogue.cache(vector_cache(model))


def reader(catalogue, model="m"):
    return FaissVectors(ModelVectors(catalogue, model, DIM))


def truth(catalogue, model="m"):
    ids = catalogue.embedded_passages(model)
    return dict(zip(ids.tolist(), catalogue.passage_vectors(model, ids), strict=True))


def check(catalogue, index, model="m"):
    index.refresh()
    rows = truth(catalogue, model)
    assert index.ids().tolist() == sorted(rows)
    query = vector_of("word 3", DIM)
    assert found(index, query, 9) == brute_force(rows, query, 9)


def test_an_edit_writes_no_file_and_is_found(catalogue):
    store(catalogue, "a.md", words(0, 50))
    assert update_vectors(catalogue, "m", Vector())
    index, before = reader(catalogue), row(catalogue)
    store(catalogue, "b.md", words(40, 30))
    store(catalogue, "a.md", words(5, 45))
    assert not update_vectors(catalogue, "m", Vector())
    assert row(catalogue) == before
    check(catalogue, index)
    check(catalogue, reader(catalogue))
    assert index.tail > 0


def test_passages_that_get_their_vector_later_are_found(catalogue):
    store(catalogue, "a.md", words(0, 10))
    update_vectors(catalogue, "m", Vector())
    put(catalogue, note("b.md", "\n".join(words(5, 20))))
    index = reader(catalogue)
    assert len(index) == 15
    embed(catalogue, words(10, 15))
    check(catalogue, index)
    assert len(index) == 30
    check(catalogue, reader(catalogue))


def test_a_new_file_is_written_beside_and_the_old_one_goes(catalogue, monkeypatch):
    store(catalogue, "a.md", words(0, 30))
    update_vectors(catalogue, "m", Vector())
    index, old = reader(catalogue), catalogue.cache_folder(row(catalogue))
    monkeypatch.setattr("ragvault.index.vector.SMALL_TAIL", 10)
    store(catalogue, "b.md", words(100, 20))
    index.refresh()
    assert update_vectors(catalogue, "m", Vector())
    assert not old.exists()
    assert len(found(index, vector_of("word 3", DIM), 99)) == 50
    check(catalogue, index)
    assert index.tail == 0


def test_when_much_was_removed_a_new_file_is_written(catalogue):
    store(catalogue, "a.md", words(0, 30))
    store(catalogue, "b.md", words(100, 9))
    update_vectors(catalogue, "m", Vector())
    index = reader(catalogue)
    catalogue.remove("b.md")
    catalogue.drop_removals(catalogue.revision)
    check(catalogue, index)
    assert update_vectors(catalogue, "m", Vector())
    check(catalogue, index)


def test_cleaning_leaves_no_removed_passage_in_the_file_and_is_done_once(catalogue):
    store(catalogue, "a.md", words(0, 30))
    store(catalogue, "b.md", ["secret"])
    update_vectors(catalogue, "m", Vector())
    catalogue.remove("b.md")
    assert not update_vectors(catalogue, "m", Vector())
    assert update_vectors(catalogue, "m", Vector(), clean=True)
    assert not update_vectors(catalogue, "m", Vector(), clean=True)
    check(catalogue, reader(catalogue))


def test_other_settings_write_another_file(catalogue):
    store(catalogue, "a.md", words(0, 40))
    update_vectors(catalogue, "m", Vector())
    assert not update_vectors(catalogue, "m", Vector(probe=0.5))
    assert update_vectors(catalogue, "m", Vector(exact_max=0))
    check(catalogue, reader(catalogue))


def test_a_model_that_was_dropped_has_no_file(catalogue):
    store(catalogue, "a.md", words(0, 4))
    update_vectors(catalogue, "m", Vector())
    catalogue.drop_model("m")
    update_vectors(catalogue, "m", Vector())
    assert row(catalogue) is None


# --- Damage and death ---


def test_a_file_cut_at_any_byte_is_known_to_be_broken_and_rebuilt(catalogue):
    store(catalogue, "a.md", words(0, 10))
    update_vectors(catalogue, "m", Vector())
    path = catalogue.cache_folder(row(catalogue)) / FILE
    for size in reversed(range(0, path.stat().st_size, 3)):
        os.truncate(path, size)
        with pytest.raises(CacheBroken):
            reader(catalogue)
        with pytest.raises(CacheBroken):
            update_vectors(catalogue, "m", Vector())
    update_vectors(catalogue, "m", Vector(), rebuild=True)
    check(catalogue, reader(catalogue))


@given(st.floats(0, 1, exclude_max=True), st.integers(1, 255))
def test_with_a_changed_byte_anywhere_a_score_is_a_true_cosine_or_the_file_is_known_to_be_broken(
    tmp_path_factory, place, change
):
    with Catalogue.open(tmp_path_factory.mktemp("index"), write=True) as catalogue:
        store(catalogue, "a.md", words(0, 10))
        update_vectors(catalogue, "m", Vector())
        path = catalogue.cache_folder(row(catalogue)) / FILE
        contents = bytearray(path.read_bytes())
        contents[int(place * len(contents))] ^= change
        path.unlink()
        path.write_bytes(contents)
        try:
            index = reader(catalogue)
        except CacheBroken:
            return
        query, rows = vector_of("word 3", DIM), truth(catalogue)
        for passage, score in zip(*index.search(query, limit=9), strict=True):
            assert abs(rows[passage] @ query - score) < 1e-5


def test_a_missing_folder_is_known_to_be_missing(catalogue):
    store(catalogue, "a.md", words(0, 10))
    update_vectors(catalogue, "m", Vector())
    shutil.rmtree(catalogue.cache_folder(row(catalogue)))
    with pytest.raises(CacheBroken):
        reader(catalogue)


def test_a_writer_that_dies_leaves_the_old_file(catalogue, monkeypatch):
    store(catalogue, "a.md", words(0, 10))
    update_vectors(catalogue, "m", Vector())
    before, index = row(catalogue), reader(catalogue)
    store(catalogue, "b.md", words(100, 3))

    class Killed(BaseException):
        pass

    def die(*_):
        raise Killed

    for name in ("write_index", "fsync"):
        with monkeypatch.context() as patched:
            owner = vector_module.load_faiss() if name == "write_index" else os
            patched.setattr(owner, name, die)
            with pytest.raises(Killed):
                update_vectors(catalogue, "m", Vector(), rebuild=True)
        assert row(catalogue) == before
        check(catalogue, index)
    assert update_vectors(catalogue, "m", Vector(), rebuild=True)
    check(catalogue, index)


# --- Any history, against the catalogue itself ---

changes = st.lists(
    st.tuples(
        st.sampled_from(["put", "put only", "embed", "remove", "write", "forget", "open"]),
        st.integers(0, 3),
        st.integers(0, 60),
        st.integers(1, 12),
    ),
    max_size=15,
)


@given(changes)
def test_any_history_of_a_catalogue_is_followed(tmp_path_factory, history):
    with Catalogue.open(tmp_path_factory.mktemp("index"), write=True) as catalogue:
        store(catalogue, "a.md", words(0, 5))
        index, waiting = reader(catalogue), []
        for what, number, first, count in history:
            path = f"{number}.md"
            if what == "put":
                store(catalogue, path, words(first, count))
            elif what == "put only":
                put(catalogue, note(path, "\n".join(words(first, count))))
                waiting += words(first, count)
            elif what == "embed" and waiting:
                embed(catalogue, waiting)
            elif what == "remove":
                catalogue.remove(path)
            elif what == "write":
                update_vectors(catalogue, "m", Vector(), rebuild=True)
            elif what == "forget":
                catalogue.drop_removals(catalogue.revision)
            elif what == "open":
                index = reader(catalogue)
            check(catalogue, index)


def test_pages_are_streamed(catalogue, monkeypatch):
    monkeypatch.setattr("ragvault.index.vector.PAGE", 7)
    store(catalogue, "a.md", words(0, 30))
    read, whole = [], type(catalogue).passage_vectors
    monkeypatch.setattr(
        type(catalogue), "passage_vectors", lambda s, m, i: read.append(len(i)) or whole(s, m, i)
    )
    update_vectors(catalogue, "m", Vector())
    assert read == [30, 7, 7, 7, 7, 2]  # a sample first


class Slow(FakeEmbedder):
    """Embeds twelve texts, and is interrupted then."""

    def __init__(self, most=12):
        self.left = most

    def embed(self, texts, kind):
        self.left -= len(texts)
        if self.left < 0:
            raise KeyboardInterrupt
        return super().embed(texts, kind)


def unembedded(catalogue):
    return len(catalogue.unembedded(FakeEmbedder.name))


def test_a_run_that_is_stopped_keeps_every_finished_slab(catalogue):
    put(catalogue, note("a.md", "\n".join(words(0, 20))))
    with pytest.raises(KeyboardInterrupt):
        embed_all(catalogue, Slow(), Progress(), slab=5)
    assert unembedded(catalogue) == 10

    assert embed_all(catalogue, Slow(10), Progress()) == 10
    assert unembedded(catalogue) == 0


def test_a_run_whose_time_is_up_ends_after_a_slab(catalogue):
    put(catalogue, note("a.md", "\n".join(words(0, 20))))

    assert embed_all(catalogue, FakeEmbedder(), Progress(), slab=5, until=0.0) == 20
    assert unembedded(catalogue) == 15


def test_every_text_gets_the_embedders_own_vector_once(catalogue):
    put(catalogue, note("a.md", "\n".join(words(0, 20))))
    put(catalogue, note("b.md", "\n".join(words(10, 20))))
    embed_all(catalogue, Slow(30), Progress(), slab=7)

    ids = catalogue.passage_ids()
    rows = catalogue.passage_vectors(FakeEmbedder.name, ids)
    texts = [embedding_text(each) for each in catalogue.passage_texts(ids.tolist())]
    assert np.allclose(rows, FakeEmbedder().embed(texts, "passage"), atol=1e-3)
