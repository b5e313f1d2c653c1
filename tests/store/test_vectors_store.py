"""The vectors of the catalogue: embedded once, found by hash, given back in order."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_builders import digest, note, put

from ragvault.store.catalogue import Catalogue

np = pytest.importorskip("numpy")

TEXTS = ["one", "two", "three"]
HASHES = [digest(text) for text in TEXTS]


@pytest.fixture
def catalogue(tmp_path):
    with Catalogue.open(tmp_path, write=True) as opened:
        yield opened


def rows_of(catalogue, model, hashes):
    """The vectors of texts, by their hashes, as they were stored."""
    query = """
        SELECT vector FROM vectors JOIN models ON models.id = model
        WHERE name = ? AND text_hash = ?"""
    found = [catalogue._db.execute(query, (model, each)).fetchone()[0] for each in hashes]
    return np.frombuffer(b"".join(found), "<f2").astype(np.float32).reshape(len(hashes), -1)


def near(found, wanted):
    return found.shape == wanted.shape and bool(np.abs(found - wanted).max() <= 5e-4)


def unit(count, dim=8, seed=0):
    rows = np.random.default_rng(seed).normal(size=(count, dim)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_vectors_come_back_in_the_order_asked_for_and_with_half_the_digits(catalogue):
    put(catalogue, note("a.md", "\n".join(TEXTS)))
    matrix = unit(3)
    catalogue.put_vectors("m", 8, HASHES, matrix)
    ids = catalogue.passage_ids()

    found = catalogue.passage_vectors("m", ids[[2, 0, 2]])

    assert near(found, matrix[[2, 0, 2]])
    assert found.dtype == np.float32
    assert found.flags.c_contiguous
    assert found.flags.writeable
    query = "SELECT DISTINCT length(vector) FROM vectors"
    assert catalogue._db.execute(query).fetchall() == [(16,)]


def test_a_model_knows_only_its_own_vectors(catalogue):
    catalogue.put_vectors("a", 8, HASHES[:2], unit(2))
    catalogue.put_vectors("b", 4, HASHES[2:], unit(1, 4))

    assert catalogue.have("a", HASHES) == set(HASHES[:2])
    assert catalogue.have("b", HASHES) == {HASHES[2]}
    assert catalogue.have("c", HASHES) == set()
    assert catalogue.counts().vectors == {"a": 2, "b": 1}


def test_a_passage_without_a_vector_is_a_row_of_nan(catalogue):
    put(catalogue, note("a.md", "one\ntwo"))
    catalogue.put_vectors("m", 8, HASHES[:1], unit(1))
    ids = catalogue.passage_ids()
    assert np.isnan(catalogue.passage_vectors("m", ids)).any(axis=1).tolist() == [False, True]
    assert np.isnan(catalogue.passage_vectors("other", ids)).all()
    assert catalogue.passage_vectors("m", ids[:0]).shape == (0, 8)
    assert catalogue.have("m", []) == set()


def test_a_text_that_has_a_vector_keeps_it(catalogue):
    catalogue.put_vectors("m", 8, HASHES, unit(3))
    catalogue.put_vectors("m", 8, HASHES, unit(3, seed=9))
    assert near(rows_of(catalogue, "m", HASHES), unit(3))


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
    catalogue.put_vectors("m", 8, HASHES, unit(3))
    catalogue.put_vectors("old", 8, HASHES[2:], unit(1))

    catalogue.remove("a.md")

    assert catalogue.drop_unused_vectors() == 3
    assert catalogue.have("m", HASHES) == {HASHES[1]}
    assert near(rows_of(catalogue, "m", HASHES[1:2]), unit(3)[1:2])
    assert catalogue.counts().vectors == {"m": 1}


def test_a_moved_note_and_a_copied_text_have_their_vectors_already(catalogue):
    put(catalogue, note("a.md", "one\ntwo"))
    catalogue.put_vectors("m", 8, HASHES[:2], unit(2))
    put(catalogue, note("copy.md", "two\none"))

    added = catalogue.passage_texts(catalogue.passages_since(1))
    assert catalogue.have("m", [each.hash for each in added]) == {each.hash for each in added}


@given(st.lists(st.integers(0, 2500), max_size=2100))
@settings(max_examples=15, deadline=None)
def test_any_number_of_texts_in_any_order(tmp_path_factory, wanted):
    with Catalogue.open(tmp_path_factory.mktemp("index"), write=True) as catalogue:
        known = [digest(str(i)) for i in range(2000)]
        catalogue.put_vectors("m", 1, known, np.ones((2000, 1), np.float32))

        there = [i for i in wanted if i < 2000]
        assert catalogue.have("m", [digest(str(i)) for i in wanted]) == {known[i] for i in there}


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
    catalogue.change_terms(["a", "b"], unit(2), [])
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
