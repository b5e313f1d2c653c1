"""The vector index: the nearest by true cosine, in the file or the tail, under any filter."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from vector_shelf import (
    DIM,
    MODEL,
    WORDS,
    Shelf,
    brute_force,
    found,
    in_file,
    in_tail,
    rows_of,
    vector_of,
    vectors_of,
)

from ragvault.config.settings import Vector
from ragvault.errors import EngineMissing
from ragvault.index import vector as vector_module
from ragvault.index.vector import FaissVectors, vectors_are_due

LISTS = Vector(exact_max=0, probe=1.0)
PLACES = ("file", "lists", "tail", "both")


def index_of(place, home, rows):
    """The same passages in the file, in a file with lists, in the tail, or in both."""
    if place == "tail":
        return in_tail(rows)
    if place != "both":
        return in_file(home, rows, LISTS if place == "lists" else None)
    half = dict(list(rows.items())[::2])
    shelf, index = in_file(home, half)
    shelf.put({i: row for i, row in rows.items() if i not in half})
    index.refresh()
    assert 0 < index.tail < len(index)
    return shelf, index


@pytest.fixture(params=PLACES)
def made(request, tmp_path):
    return lambda rows: index_of(request.param, tmp_path, rows)


# --- One body of promises, wherever a passage is ---


def test_the_nearest_are_found_with_their_true_cosines(made):
    shelf, index = made(rows_of(200))
    for query in vectors_of(WORDS):
        assert found(index, query, 10) == brute_force(shelf.rows, query, 10)
        assert found(index, query, 500) == brute_force(shelf.rows, query, 200)
    assert found(index, vector_of("rye"), 0) == []


def test_equal_scores_are_in_the_order_of_their_ids(made):
    same = vector_of("bread salt")
    _, index = made(dict.fromkeys((90, 3, 41, 7, *range(100, 400)), same))
    assert [i for i, _ in found(index, vector_of("bread"), 3)] == [3, 7, 41]


def test_many_alike_passages_do_not_push_a_better_one_out(made):
    query = vector_of("bread salt")
    near = query + np.float32(1e-4) * rows_of(1)[0]
    copies = {i: (near / np.linalg.norm(near)).astype(np.float32) for i in range(300)}
    shelf, index = made(copies | {999: query} | rows_of(80, 2000))
    assert found(index, query, 3) == brute_force(shelf.rows, query, 3)


def test_what_8_bits_cannot_tell_apart_is_ranked_by_the_truth(made):
    """Passages closer to each other than the steps of their stored numbers."""
    query = vector_of("bread")
    shift = np.float32(2e-3) * vectors_of(str(i) for i in range(400))
    rows = (query + shift) / np.linalg.norm(query + shift, axis=1, keepdims=True)
    shelf, index = made(dict(enumerate(rows)) | rows_of(200, 1000))
    assert found(index, query, 10) == brute_force(shelf.rows, query, 10)


def test_a_filter_keeps_what_it_allows_and_nothing_else(made):
    shelf, index = made(rows_of(300))
    query = vector_of("oven heat")
    for step in (1, 2, 11, 100):
        allowed = set(range(0, 300, step)) | {-5, 2**40}
        kept = {i: row for i, row in shelf.rows.items() if i in allowed}
        assert found(index, query, 6, allowed) == brute_force(kept, query, 6)
        others = {i: row for i, row in shelf.rows.items() if i not in allowed}
        assert found(index, query, 6, others) == brute_force(others, query, 6)
    assert found(index, query, 5, set()) == []


def test_a_removed_passage_is_not_found(made):
    shelf, index = made(rows_of(120))
    query = vector_of("bread salt")
    best = [i for i, _ in found(index, query, 5)]
    shelf.remove(best)
    index.refresh()
    assert found(index, query, 9) == brute_force(shelf.rows, query, 9)
    assert not set(best) & set(index.ids().tolist())


def test_a_passage_that_the_catalogue_lost_since_gives_its_place_to_another(made):
    shelf, index = made(rows_of(60))
    query = vector_of("bread salt 0")
    best = found(index, query, 1)[0][0]
    del shelf.rows[best]
    expected = brute_force(shelf.rows, query, 5)
    if best in index._state.tail:  # read before it was lost
        index = FaissVectors(shelf)
    assert found(index, query, 5) == expected


def test_scores_of_gives_true_cosines_and_nan_for_strangers(made):
    shelf, index = made(rows_of(40))
    query = vector_of("oven heat")
    scores = index.scores_of(query, [31, 999, 4])
    truth = dict(brute_force(shelf.rows, query, 40))
    assert scores[[0, 2]].tolist() == [truth[31], truth[4]]
    assert np.isnan(scores[1])
    assert np.array_equal(index.vectors_of([31]), shelf.rows[31][np.newaxis])


@pytest.mark.parametrize("bad", [np.zeros(DIM), np.full(DIM, np.nan), np.ones(DIM), np.ones(3)])
def test_a_query_that_is_no_unit_vector_is_refused(made, bad):
    _, index = made(rows_of(9))
    with pytest.raises(ValueError, match=r"length 1|numbers"):
        index.search(bad.astype(np.float32), limit=1)


def test_it_keeps_the_promises_of_the_port_when_it_is_empty():
    index = FaissVectors(Shelf())
    assert (index.model, index.dim, index.revision, len(index)) == (MODEL, DIM, 0, 0)
    assert found(index, vector_of("bread")) == []
    assert found(index, vector_of("bread"), allowed={3}) == []


def test_few_vectors_are_read_to_score_an_answer(tmp_path):
    shelf, index = in_file(tmp_path, {i: vector_of(f"{i} {i // 9}", 64) for i in range(600)})
    shelf.read = 0
    query = vector_of("7 0", 64)
    assert found(index, query, 10) == brute_force(shelf.rows, query, 10)
    assert shelf.read < 60


# --- The law: any history comes to the same as brute force on what is left ---

ids = st.integers(1, 60) | st.just(2**62)
texts = st.lists(st.sampled_from(WORDS), max_size=3).map(" ".join)


class AnyHistory(RuleBasedStateMachine):
    """Passages come, get vectors and go; files are written; readers refresh or open anew."""

    config = Vector()

    @initialize()
    def begin(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path, self.shelf = Path(self.folder.name) / "files", Shelf()
        self.index = FaissVectors(self.shelf, self.config)
        self.used = set()

    @rule(new=st.dictionaries(ids, texts, min_size=1, max_size=30))
    def put(self, new):
        self.shelf.put({i: vector_of(text) for i, text in self._unused(new).items()})

    @rule(new=st.dictionaries(ids, texts, min_size=1, max_size=30))
    def add_and_embed_later(self, new):
        new = self._unused(new)
        self.shelf.add(new)
        self.index.refresh()
        self.shelf.embed({i: vector_of(text) for i, text in new.items()})

    def _unused(self, new):
        """An id belongs to one text for ever."""
        new = {i: text for i, text in new.items() if i not in self.used}
        self.used |= set(new)
        return new

    @rule(old=st.sets(ids))
    def remove(self, old):
        self.shelf.remove(old)

    @rule()
    def forget_removals(self):
        self.shelf.forget_removals()

    @rule()
    def write(self):
        if self.shelf.rows:
            self.shelf.write(self.path, self.config)

    @rule(old=st.sets(ids))
    def write_while_something_is_removed(self, old):
        """A file may reach further than its row says."""
        moment = self.shelf.moment()
        self.shelf.remove(old)
        if self.shelf.rows:
            self.shelf.write(self.path, self.config)
            self.shelf.row = self.shelf.row._replace(revision=moment[0], upto=moment[1])

    @rule()
    def open_anew(self):
        self.index.close()
        self.index = FaissVectors(self.shelf, self.config)

    @invariant()
    def equals_brute_force(self):
        if not hasattr(self, "index"):
            return
        self.index.refresh()
        assert self.index.ids().tolist() == sorted(self.shelf.rows)
        assert self.index.revision == self.shelf.revision
        query = vector_of("bread rye")
        assert found(self.index, query, 7) == brute_force(self.shelf.rows, query, 7)

    def teardown(self):
        if hasattr(self, "folder"):
            self.index.close()
            self.folder.cleanup()


class AnyHistoryInLists(AnyHistory):
    """The same with lists, all of them probed."""

    config = LISTS


TestAnyHistory = AnyHistory.TestCase
TestAnyHistoryInLists = AnyHistoryInLists.TestCase
TestAnyHistory.settings = settings(stateful_step_count=25)
TestAnyHistoryInLists.settings = TestAnyHistory.settings


# --- Lists ---


def in_lists(home, probe=0.1, count=3000):
    texts = [f"{i % 17} {i}" for i in range(count)]
    return in_file(home, dict(enumerate(vectors_of(texts))), Vector(exact_max=0, probe=probe))


@pytest.mark.parametrize(("step", "probe"), [(1000, 0.1), (11, 0.5)])
def test_a_filter_that_keeps_little_still_equals_brute_force(tmp_path, step, probe):
    """Less than is asked for; and more, so that the lists near the query would fill the page."""
    shelf, index = in_lists(tmp_path, probe)
    assert index._state.file.lists > 1
    for start in range(11):
        allowed = set(range(start, 3000, step))
        query = vector_of(f"oven heat {start}")
        kept = {i: shelf.rows[i] for i in allowed}
        assert found(index, query, 4, allowed) == brute_force(kept, query, 4)


def test_a_filter_never_empties_a_page_that_could_be_filled(tmp_path):
    """Half of the passages are allowed, and none of them is in the lists near the query."""
    texts = [("bread " if i % 2 else "steam ") * 9 + str(i) for i in range(3000)]
    rows = dict(enumerate(vectors_of(texts)))
    _, index = in_file(tmp_path, rows, Vector(exact_max=0, probe=0.1))
    allowed = set(range(0, 3000, 2))
    hits = found(index, vector_of("bread"), 50, allowed)
    assert len(hits) == 50
    assert {i for i, _ in hits} <= allowed


def test_lists_find_nearly_all_that_an_exact_search_finds(tmp_path, monkeypatch):
    """Real paragraphs, jittered to make more of them; with the share that is the default."""
    monkeypatch.setattr("ragvault.index.vector.ROWS_A_LIST", 64)  # many lists, as of a million
    vault = Path(__file__).parents[2] / "sample_vault"
    notes = "\n\n".join(sorted(path.read_text("utf-8") for path in vault.rglob("*.md")))
    real = vectors_of([text for text in notes.lower().split("\n\n") if len(text) > 80][:400], 64)
    jitter = np.random.default_rng(1).normal(0, 0.05, (20, *real.shape))
    many = (real + jitter).reshape(-1, 64)
    many = (many / np.linalg.norm(many, axis=1, keepdims=True)).astype(np.float32)
    shelf, index = in_file(tmp_path, dict(enumerate(many)), Vector(exact_max=0))
    assert index._state.file.lists > 100
    recall = [
        len({i for i, _ in found(index, q)} & {i for i, _ in brute_force(shelf.rows, q, 10)}) / 10
        for q in real[::20]
    ]
    assert np.mean(recall) >= 0.98


# --- When a new file is written ---


def test_a_file_is_due_when_much_has_changed_and_not_for_an_edit():
    assert not vectors_are_due(0, 0, 0)
    assert vectors_are_due(0, 1, 0)  # there is none yet
    assert not vectors_are_due(1_000, 2_000, 100)
    assert vectors_are_due(1_000, 2_001, 0)
    assert not vectors_are_due(100_000, 10_000, 20_000)
    assert vectors_are_due(100_000, 10_001, 0)
    assert vectors_are_due(100_000, 0, 20_001)
    assert vectors_are_due(10_000_000, 50_001, 0)  # memory is bounded


# --- Readers beside a writer ---


def test_a_search_sees_one_moment_whole_while_the_index_is_refreshed(tmp_path):
    """Each step replaces every passage, so a mixed answer would hold two generations."""
    shelf = Shelf()
    shelf.put(rows_of(20))
    kept = dict(shelf.rows)
    index, mixed, done = FaissVectors(shelf), [], threading.Event()
    every = {g: rows_of(20, g * 100) for g in range(40)}
    fetched = {i: row for rows in every.values() for i, row in rows.items()}
    # The catalogue has the vectors of removed texts for a while.
    shelf.fetch = lambda ids: np.array([fetched[i] for i in ids.tolist()]).reshape(-1, DIM)

    def read():
        while not done.is_set():
            ids, _ = index.search(vector_of("bread"), limit=50)
            if len(ids) != 20 or len(set(ids // 100)) != 1:
                mixed.append(ids)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    old = kept
    for g in range(1, 40):
        shelf.remove(old)
        shelf.put(every[g])
        old = every[g]
        if g % 5 == 0:
            shelf.write(tmp_path / "files")
        index.refresh()
    done.set()
    for thread in threads:
        thread.join()
    assert mixed == []


def test_a_reader_keeps_what_it_has_open_until_it_refreshes(tmp_path):
    shelf, reader = in_file(tmp_path / "files", rows_of(60))
    rows, first = dict(shelf.rows), shelf.row.folder
    shelf.remove(range(50))
    shelf.write(tmp_path / "files")
    for path in first.iterdir():
        path.unlink()
    current, shelf.rows = shelf.rows, rows
    assert len(found(reader, vector_of("rye"), 60)) == 60
    shelf.rows = current
    reader.refresh()
    assert len(found(reader, vector_of("rye"), 60)) == 10


# --- FAISS itself ---


def test_faiss_is_imported_when_it_is_needed_and_warns_of_nothing(tmp_path):
    program = (
        "import sys; from pathlib import Path\n"
        "import numpy as np\n"
        "from ragvault.config.settings import Vector\n"
        "from ragvault.index.vector import write_file\n"
        "from ragvault.index.vector import FaissVectors\n"
        "assert 'faiss' not in sys.modules\n"
        "fetch = lambda ids: np.array([[1, 0]], np.float32)\n"
        "write_file(Path(sys.argv[1]), np.array([1]), fetch, 2, Vector())\n"
        "assert 'faiss' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", program, tmp_path], check=True)


def test_without_faiss_the_vector_index_names_what_is_missing(tmp_path, monkeypatch):
    shelf, _ = in_file(tmp_path, rows_of(3))
    monkeypatch.setitem(sys.modules, "faiss", None)
    monkeypatch.setattr(vector_module, "_loaded", {})
    with pytest.raises(EngineMissing, match="faiss-cpu") as missing:
        FaissVectors(shelf)
    assert "pip install" in missing.value.fix


def test_only_the_one_known_warning_of_an_import_is_ignored(tmp_path, monkeypatch):
    (tmp_path / "faiss.py").write_text(
        "import warnings\n"
        "def say(what): warnings.warn(what, DeprecationWarning, stacklevel=2)\n"
        "say('builtin type swigvarlink has no __module__ attribute')\n"
        "say('something else')\n"
        "def omp_set_num_threads(n): pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "faiss", raising=False)
    monkeypatch.setattr(vector_module, "_loaded", {})
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        vector_module.load_faiss()
    monkeypatch.delitem(sys.modules, "faiss")
    assert [str(warning.message) for warning in heard] == ["something else"]


def test_each_thread_searches_with_the_threads_that_are_set(tmp_path):
    """OpenMP keeps the number per thread: one that was never told would take every core."""
    _, index = in_file(tmp_path, rows_of(50))
    counts = []

    def search():
        found(index, vector_of("rye"))
        counts.append(vector_module._imported().omp_get_max_threads())

    thread = threading.Thread(target=search)
    thread.start()
    thread.join()
    assert counts == [1]


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4), st.integers(0, 2**32 - 1))
def test_a_score_of_the_file_is_no_further_from_the_truth_than_it_says(words, seed):
    some = np.random.default_rng(seed)
    rows = vectors_of(" ".join(some.choice(WORDS, some.integers(1, 5))) for _ in range(80))
    rows[:, some.integers(DIM)] = 0.0  # a dimension in which all are alike
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    query = vector_of(" ".join(words))
    with tempfile.TemporaryDirectory() as folder:
        _, index = in_file(Path(folder), dict(enumerate(rows)))
        file = index._state.file
        at, scores = file.nearest(query, 80, None, Vector())
        assert np.abs(scores - rows[at] @ query).max() <= file.rounding
