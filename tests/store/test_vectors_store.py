"""The vectors of the catalogue: embedded once, found by hash, given back in order."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_builders import digest, note, put

from ragvault.store.catalogue import Catalogue
from ragvault.store.vectors import Chosen

np = pytest.importorskip("numpy")

TEXTS = ["one", "two", "three"]
HASHES = [digest(text) for text in TEXTS]


@pytest.fixture
def catalogue(tmp_path):
    with Catalogue.open(tmp_path, write=True) as opened:
        yield opened


def unit(count, dim=8, seed=0):
    rows = np.random.default_rng(seed).normal(size=(count, dim)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_vectors_come_back_in_the_order_asked_for(catalogue):
    matrix = unit(3)
    catalogue.put_vectors("m", 8, HASHES, matrix, "float32")

    wanted = [HASHES[2], HASHES[0], HASHES[2]]
    assert (catalogue.get_vectors("m", wanted) == matrix[[2, 0, 2]]).all()


@pytest.mark.parametrize(("dtype", "error", "size"), [("float16", 5e-4, 16), ("float32", 0, 32)])
def test_what_is_returned_is_float32_whatever_was_stored(catalogue, dtype, error, size):
    matrix = unit(3)
    catalogue.put_vectors("m", 8, HASHES, matrix, dtype)

    found = catalogue.get_vectors("m", HASHES)

    assert found.dtype == np.float32
    assert found.flags.c_contiguous
    assert found.flags.writeable
    assert np.abs(found - matrix).max() <= error
    query = "SELECT DISTINCT length(vector) FROM vectors"
    assert catalogue._db.execute(query).fetchall() == [(size,)]


def test_vectors_take_half_the_room_unless_asked_otherwise(catalogue):
    catalogue.put_vectors("m", 8, HASHES, unit(3))
    assert catalogue._db.execute("SELECT dtype FROM models").fetchall() == [("float16",)]


def test_a_model_keeps_the_precision_it_began_with(catalogue):
    catalogue.put_vectors("m", 8, HASHES[:1], unit(1), "float32")
    catalogue.put_vectors("m", 8, HASHES[1:], unit(2, seed=1), "float16")
    assert (catalogue.get_vectors("m", HASHES[1:]) == unit(2, seed=1)).all()


def test_a_model_knows_only_its_own_vectors(catalogue):
    catalogue.put_vectors("a", 8, HASHES[:2], unit(2))
    catalogue.put_vectors("b", 4, HASHES[2:], unit(1, 4))

    assert catalogue.have("a", HASHES) == set(HASHES[:2])
    assert catalogue.have("b", HASHES) == {HASHES[2]}
    assert catalogue.have("c", HASHES) == set()
    assert catalogue.counts().vectors == {"a": 2, "b": 1}


def test_a_text_without_a_vector_is_named(catalogue):
    catalogue.put_vectors("m", 8, HASHES[:2], unit(2))
    with pytest.raises(KeyError):
        catalogue.get_vectors("m", HASHES)
    with pytest.raises(KeyError):
        catalogue.get_vectors("other", HASHES)


def test_no_texts_have_no_vectors(catalogue):
    assert catalogue.get_vectors("m", []).shape[0] == 0
    assert catalogue.have("m", []) == set()


def test_a_text_that_has_a_vector_keeps_it(catalogue):
    catalogue.put_vectors("m", 8, HASHES, unit(3), "float32")
    catalogue.put_vectors("m", 8, HASHES, unit(3, seed=9), "float32")
    assert (catalogue.get_vectors("m", HASHES) == unit(3)).all()


@pytest.mark.parametrize("matrix", [unit(2), unit(3, 7), unit(3).ravel()])
def test_a_matrix_of_the_wrong_shape_is_refused(catalogue, matrix):
    with pytest.raises(ValueError, match="matrix"):
        catalogue.put_vectors("m", 8, HASHES, matrix)


def test_a_model_that_changed_its_dimension_is_refused(catalogue):
    catalogue.put_vectors("m", 8, HASHES[:1], unit(1))
    with pytest.raises(ValueError, match="8 dimensions here, not 4"):
        catalogue.put_vectors("m", 4, HASHES[1:], unit(2, 4))


def test_storing_vectors_is_no_change_of_the_notes(catalogue):
    put(catalogue, note("a.md"))
    catalogue.put_vectors("m", 8, HASHES, unit(3))
    assert catalogue.revision == 1


def test_vectors_no_passage_needs_are_dropped_and_the_others_kept(catalogue):
    put(catalogue, note("a.md", "one\ntwo"))
    put(catalogue, note("b.md", "two"))
    catalogue.put_vectors("m", 8, HASHES, unit(3), "float32")
    catalogue.put_vectors("old", 8, HASHES[2:], unit(1))

    catalogue.remove("a.md")

    assert catalogue.drop_unused_vectors() == 3
    assert catalogue.have("m", HASHES) == {HASHES[1]}
    assert (catalogue.get_vectors("m", HASHES[1:2]) == unit(3)[1:2]).all()
    assert catalogue.counts().vectors == {"m": 1}


def test_a_moved_note_and_a_copied_text_have_their_vectors_already(catalogue):
    put(catalogue, note("a.md", "one\ntwo"))
    catalogue.put_vectors("m", 8, HASHES[:2], unit(2))
    put(catalogue, note("copy.md", "two\none"))

    added = [ref.hash for ref in catalogue.passages_since(1)]
    assert catalogue.have("m", added) == set(added)


@given(st.lists(st.integers(0, 2500), max_size=2100))
@settings(max_examples=15, deadline=None)
def test_any_number_of_texts_in_any_order(tmp_path_factory, wanted):
    with Catalogue.open(tmp_path_factory.mktemp("index"), write=True) as catalogue:
        known = [digest(str(i)) for i in range(2000)]
        matrix = np.arange(2000, dtype=np.float32).reshape(-1, 1)
        catalogue.put_vectors("m", 1, known, matrix, "float32")

        there = [i for i in wanted if i < 2000]
        assert catalogue.have("m", [digest(str(i)) for i in wanted]) == {known[i] for i in there}
        assert catalogue.get_vectors("m", [known[i] for i in there]).ravel().tolist() == there


def test_what_a_search_or_a_refresh_asks_takes_no_look_at_every_vector(catalogue):
    """Counted in steps of SQLite: a plan that goes through a whole table takes thousands."""
    texts = [f"text {number}" for number in range(9000)]
    put(catalogue, note("many.md", "\n".join(texts)))
    catalogue.put_vectors("m", 8, [digest(text) for text in texts], unit(len(texts)))
    ids = catalogue.passage_ids()
    revision, last = catalogue.revision, catalogue.last_vector()
    put(catalogue, note("new.md", "new\ntext 7"))
    catalogue.put_vectors("m", 8, [digest("new")], unit(1))
    for analysed in (False, True):
        if analysed:
            catalogue._db.execute("ANALYZE")
        asked = {
            "fetch": lambda: catalogue.passage_vectors("m", ids[::1800]),
            "fetch many": lambda: catalogue.passage_vectors("m", ids[:850]),
            "since": lambda: catalogue.vectors_since("m", revision, last - 2),
            "count": lambda: catalogue.count_vectors_since("m", revision, last - 2),
            "moment": catalogue.last_vector,
        }
        for what, ask in asked.items():
            steps = []
            catalogue._db.set_progress_handler(lambda steps=steps: steps.append(1) and None, 100)
            ask()
            catalogue._db.set_progress_handler(None, 0)
            assert len(steps) < (200 if what == "fetch many" else 10), (what, analysed, len(steps))
    assert len(catalogue.vectors_since("m", revision, last - 2)[0]) == 4


@pytest.mark.parametrize("wrong", [60000.0, 1.5, np.inf, np.nan, -0.0])
def test_a_damaged_vector_counts_as_none(catalogue, wrong):
    """Its product with a query would be no cosine, and the note the best answer to everything."""
    put(catalogue, note("a.md", "one\ntwo\nthree"))
    catalogue.put_vectors("m", 8, HASHES, matrix := unit(3))
    catalogue.change_vocabulary(Chosen(1, 3, "m"), ["a", "b"], unit(2), [])
    row = np.array([wrong, *[0.0] * 7], "<f2").tobytes()
    catalogue._db.execute("UPDATE vectors SET vector = ? WHERE text_hash = ?", (row, HASHES[1]))
    catalogue._db.execute("UPDATE terms SET vector = ? WHERE term = 'a'", (row,))

    ids = catalogue.passage_ids()
    rows = catalogue.passage_vectors("m", ids)
    assert np.isnan(rows).any(axis=1).tolist() == [False, True, False]
    since, vectors = catalogue.vectors_since("m", 0, 0)
    assert since.tolist() == [ids[0], ids[2]]
    assert np.allclose(vectors, matrix[[0, 2]], atol=1e-3)
    assert catalogue.vocabulary().terms == ("b",)
