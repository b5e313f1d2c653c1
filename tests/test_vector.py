"""The vector index: exact, whatever came in and went out, under any filter, beside a writer."""

from __future__ import annotations

import itertools
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
    create,
    fill,
    found,
    reopen,
    rows_of,
    vector_of,
    vectors_of,
)

from ragvault.config.settings import Vector
from ragvault.index import vector_faiss, vector_segment
from ragvault.index.vector_write import Limits
from ragvault.ports import VectorIndex


@pytest.fixture
def shelf():
    return Shelf()


def test_it_keeps_the_promises_of_the_port(tmp_path, shelf):
    index: VectorIndex = create(tmp_path, shelf)
    assert (index.model, index.dim, index.revision, len(index)) == (MODEL, DIM, 0, 0)


def test_an_empty_index_finds_nothing(tmp_path, shelf):
    assert found(create(tmp_path, shelf), vector_of("bread")) == []


def test_a_commit_makes_changes_visible_and_nothing_else_does(tmp_path, shelf):
    index = create(tmp_path, shelf)
    rows = rows_of(3)
    shelf.put(rows)
    index.add(list(rows), np.stack(list(rows.values())))
    assert len(index) == 0
    index.commit(7)
    assert index.ids().tolist() == [0, 1, 2]
    assert index.revision == reopen(tmp_path, shelf).revision == 7


def test_equal_scores_are_in_the_order_of_their_ids(tmp_path, shelf):
    index = create(tmp_path, shelf)
    same = vector_of("bread salt")
    fill(index, shelf, dict.fromkeys((90, 3, 41, 7), same))
    assert [i for i, _ in found(index, vector_of("bread"))] == [3, 7, 41, 90]


def test_many_alike_passages_do_not_push_a_better_one_out(tmp_path, shelf):
    """More near-copies than a first scan brings: the proof fails and the scan goes on."""
    index = create(tmp_path, shelf, limits=Limits(log_bytes=0))
    query = vector_of("bread salt")
    near = query + np.float32(1e-4) * rows_of(1)[0]
    copies = {i: (near / np.linalg.norm(near)).astype(np.float32) for i in range(300)}
    fill(index, shelf, copies | {999: query} | rows_of(80, 2000))
    assert found(index, query, 3) == brute_force(shelf.rows, query, 3)


def test_what_8_bits_cannot_tell_apart_is_ranked_by_the_truth(tmp_path, shelf):
    """Passages closer to each other than the steps of their stored numbers."""
    index = create(tmp_path, shelf, limits=Limits(log_bytes=0))
    query = vector_of("bread")
    shift = np.float32(2e-3) * vectors_of(str(i) for i in range(400))
    rows = (query + shift) / np.linalg.norm(query + shift, axis=1, keepdims=True)
    fill(index, shelf, dict(enumerate(rows)) | rows_of(200, 1000))
    assert found(index, query, 10) == brute_force(shelf.rows, query, 10)


def test_a_passage_the_catalogue_no_longer_knows_is_left_out(tmp_path, shelf):
    index = create(tmp_path, shelf)
    fill(index, shelf, rows_of(60))
    query = vector_of("bread salt 0")
    best = found(index, query, 1)[0][0]
    del shelf.rows[best]
    assert found(index, query, 5) == brute_force(shelf.rows, query, 5)


def test_few_vectors_are_read_to_prove_an_answer(tmp_path, shelf):
    index = create(tmp_path, shelf, limits=Limits(log_bytes=0))
    fill(index, shelf, {i: vector_of(f"{i} {i // 9}") for i in range(600)})
    shelf.read = 0
    assert found(index, vector_of("7 0"), 10) == brute_force(shelf.rows, vector_of("7 0"), 10)
    assert shelf.read < 120


def test_scores_of_gives_true_cosines_and_nan_for_strangers(tmp_path, shelf):
    index = create(tmp_path, shelf)
    fill(index, shelf, rows_of(40))
    query = vector_of("oven heat")
    scores = index.scores_of(query, [31, 999, 4])
    truth = dict(brute_force(shelf.rows, query, 40))
    assert scores[[0, 2]].tolist() == [truth[31], truth[4]]
    assert np.isnan(scores[1])


def test_half_precision_in_the_catalogue_changes_no_answer(tmp_path, shelf):
    """The index is given full precision and the catalogue keeps half: the proof still holds."""
    index = create(tmp_path, shelf, limits=Limits(log_bytes=0))
    fill(index, shelf, {i: vector_of(f"{i % 40} {i}") for i in range(400)})
    shelf.rows = {i: row.astype(np.float16).astype(np.float32) for i, row in shelf.rows.items()}
    for query in vectors_of(f"{i} {i + 40}" for i in range(10)):
        assert found(index, query, 20) == brute_force(shelf.rows, query, 20)


@pytest.mark.parametrize("bad", [np.zeros(DIM), np.full(DIM, np.nan), np.ones(DIM), np.ones(3)])
def test_what_is_no_unit_vector_is_refused(tmp_path, shelf, bad):
    index = create(tmp_path, shelf)
    with pytest.raises(ValueError, match=r"length 1|numbers"):
        index.add([1], bad.astype(np.float32))
    with pytest.raises(ValueError, match=r"length 1|numbers"):
        index.search(bad.astype(np.float32), limit=1)


# --- The law: any history comes to the same as brute force on what is left ---

ids = st.integers(-3, 60) | st.just(2**62)
texts = st.lists(st.sampled_from(WORDS), max_size=3).map(" ".join)


class AnyHistory(RuleBasedStateMachine):
    """Every change and every tidying, in any order, against a dict."""

    config = Vector()

    @initialize()
    def begin(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path, self.shelf, self.revision = Path(self.folder.name), Shelf(), 0
        self.index = create(self.path, self.shelf, config=self.config)
        self.true, self.asked = {}, {}

    @rule(new=st.dictionaries(ids, texts, min_size=1, max_size=30))
    def add(self, new):
        rows = {i: vector_of(text) for i, text in new.items()}
        self.index.add(list(rows), np.stack(list(rows.values())))
        self.asked |= rows

    @rule(old=st.sets(ids))
    def remove(self, old):
        self.index.remove(sorted(old))
        self.asked = {i: row for i, row in self.asked.items() if i not in old}

    @rule()
    def commit(self):
        self.revision += 1
        self.true = dict(self.asked)
        self.shelf.rows = dict(self.true)
        self.index.commit(self.revision)

    @rule()
    def merge(self):
        self.index.merge()

    @rule()
    def compact(self):
        self.index.compact()

    @rule()
    def refresh(self):
        self.index.refresh()

    @rule()
    def die(self):
        """Nothing that was not committed survives, and everything that was does."""
        self.index = reopen(self.path, self.shelf, config=self.config)
        self.asked = dict(self.true)

    @invariant()
    def equals_brute_force(self):
        if not hasattr(self, "index"):
            return
        assert self.index.ids().tolist() == sorted(self.true)
        assert (len(self.index), self.index.revision) == (len(self.true), self.revision)
        query = vector_of("bread rye")
        assert found(self.index, query, 7) == brute_force(self.true, query, 7)

    def teardown(self):
        if hasattr(self, "folder"):
            self.index.close()
            self.folder.cleanup()


class AnyHistoryInLists(AnyHistory):
    """The same with lists, all of them probed."""

    config = Vector(exact_max=0, probe=1.0)


TestAnyHistory = AnyHistory.TestCase
TestAnyHistoryInLists = AnyHistoryInLists.TestCase
TestAnyHistory.settings = settings(max_examples=25, stateful_step_count=25)
TestAnyHistoryInLists.settings = TestAnyHistory.settings


@settings(max_examples=25)
@given(order=st.permutations(range(60)), cuts=st.sets(st.integers(1, 59)))
def test_answers_do_not_depend_on_how_passages_came_in(order, cuts):
    shelf, rows, query = Shelf(), rows_of(60), vector_of("bread salt")
    with tempfile.TemporaryDirectory() as folder:
        index = create(Path(folder), shelf)
        edges = [0, *sorted(cuts), 60]
        for first, last in itertools.pairwise(edges):
            fill(index, shelf, {i: rows[i] for i in order[first:last]})
        assert found(index, query, 60) == brute_force(rows, query, 60)


# --- Filters ---


def in_lists(tmp_path, shelf, count=3000, probe=0.1):
    """An index with lists, and the filter's and the query's worst case: nearly all is elsewhere."""
    config = Vector(exact_max=0, probe=probe)
    index = create(tmp_path, shelf, limits=Limits(full_in_lists=1024, log_bytes=0), config=config)
    for first in range(0, count, 300):
        texts = [f"{i % 17} {i}" for i in range(first, first + 300)]
        fill(index, shelf, dict(enumerate(vectors_of(texts), first)))
    while index.merge():
        pass
    assert not index.exact
    return index


def every_form(allowed, count):
    bitmap = np.zeros(count, bool)
    bitmap[sorted(allowed)] = True
    yield np.array(sorted(allowed, reverse=True), np.int64)
    yield bitmap
    yield lambda ids: np.isin(ids, sorted(allowed))


@pytest.mark.parametrize(("step", "probe"), [(1000, 0.1), (11, 0.5)])
def test_a_filter_that_keeps_little_still_equals_brute_force(tmp_path, shelf, step, probe):
    """Less than is asked for; and more, so that the lists near the query would fill the page."""
    index = in_lists(tmp_path, shelf, probe=probe)
    for start in range(11):
        allowed = set(range(start, 3000, step))
        query = vector_of(f"oven heat {start}")
        kept = {i: shelf.rows[i] for i in allowed}
        for form in every_form(allowed, 3000):
            assert found(index, query, 4, form) == brute_force(kept, query, 4)


def test_a_filter_never_empties_a_page_that_could_be_filled(tmp_path, shelf):
    """Half of the passages are allowed, and none of them is in the lists near the query."""
    config = Vector(exact_max=0, probe=0.1)
    index = create(tmp_path, shelf, limits=Limits(full_in_lists=1024, log_bytes=0), config=config)
    texts = [("bread " if i % 2 else "steam ") * 9 + str(i) for i in range(1000)]
    for first in range(0, 1000, 250):
        fill(index, shelf, dict(enumerate(vectors_of(texts[first : first + 250]), first)))
    assert index.merge()
    assert not index.exact
    allowed = set(range(0, 1000, 2))
    for form in every_form(allowed, 1000):
        hits = found(index, vector_of("bread"), 50, form)
        assert len(hits) == 50
        assert {i for i, _ in hits} <= allowed


def test_nothing_allowed_is_nothing_found(tmp_path, shelf):
    index = create(tmp_path, shelf)
    fill(index, shelf, rows_of(30))
    nothing = [np.empty(0, np.int64), np.zeros(0, bool), lambda ids: np.zeros(len(ids), bool)]
    assert [found(index, vector_of("bread"), 5, form) for form in nothing] == [[], [], []]


def test_lists_find_nearly_all_that_an_exact_search_finds(tmp_path):
    """Real paragraphs, jittered to make more of them; with the share that is the default."""
    shelf = Shelf(64)
    vault = Path(__file__).parent.parent / "sample_vault"
    notes = "\n\n".join(sorted(path.read_text("utf-8") for path in vault.rglob("*.md")))
    real = vectors_of([text for text in notes.lower().split("\n\n") if len(text) > 80][:400], 64)
    jitter = np.random.default_rng(1).normal(0, 0.05, (10, *real.shape))
    many = (real + jitter).reshape(-1, 64)
    many = (many / np.linalg.norm(many, axis=1, keepdims=True)).astype(np.float32)
    limits = Limits(full_in_lists=4096, log_bytes=0)
    index = create(tmp_path, shelf, limits=limits, config=Vector(exact_max=0))
    for first in range(0, len(many), 1000):
        fill(index, shelf, dict(enumerate(many[first : first + 1000], first)))
    while index.merge():
        pass
    assert not index.exact
    recall = [
        len({i for i, _ in found(index, q)} & {i for i, _ in brute_force(shelf.rows, q, 10)}) / 10
        for q in real[::20]
    ]
    assert np.mean(recall) >= 0.98


# --- Readers beside a writer ---


def test_readers_see_one_commit_whole_while_a_writer_works(tmp_path, shelf):
    """Each commit replaces every passage, so a mixed answer would hold two generations."""
    writer, mixed, done = create(tmp_path, shelf), [], threading.Event()
    generations = {g: rows_of(20, g * 100) for g in range(40)}
    for rows in generations.values():
        shelf.put(rows)
    fill(writer, shelf, generations[0])

    def read():
        reader = reopen(tmp_path, shelf)
        while not done.is_set():
            reader.refresh()
            for index in (reader, writer):
                ids, _ = index.search(vector_of("bread"), limit=50)
                if len(ids) != 20 or len(set(ids // 100)) != 1:
                    mixed.append(ids)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for g in range(1, 40):
        writer.remove(list(generations[g - 1]))
        fill(writer, shelf, generations[g], revision=g)
        writer.merge()
    done.set()
    for thread in threads:
        thread.join()
    assert mixed == []


def test_a_reader_keeps_what_it_has_open_until_it_refreshes(tmp_path, shelf):
    writer = create(tmp_path, shelf)
    fill(writer, shelf, rows_of(60))
    reader = reopen(tmp_path, shelf)
    writer.remove(range(50))
    writer.commit(2)
    writer.compact()
    assert len(found(reader, vector_of("rye"), 60)) == 60
    reader.refresh()
    assert len(found(reader, vector_of("rye"), 60)) == 10


# --- FAISS itself ---


def test_faiss_is_imported_when_it_is_needed_and_warns_of_nothing(tmp_path):
    program = (
        "import sys, numpy as np\n"
        "from pathlib import Path\n"
        "from ragvault.index.vector import FaissIndex\n"
        "assert 'faiss' not in sys.modules\n"
        "index = FaissIndex.create(Path(sys.argv[1]), model='m', dim=2, fetch=None)\n"
        "assert 'faiss' not in sys.modules\n"
        "index.add([1], np.array([[1, 0]], np.float32)); index.commit(1); index.ids()\n"
        "assert 'faiss' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", program, tmp_path], check=True)


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
    monkeypatch.setattr(vector_faiss, "_loaded", {})
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        vector_faiss.load()
    monkeypatch.delitem(sys.modules, "faiss")
    assert [str(warning.message) for warning in heard] == ["something else"]


def test_each_thread_searches_with_the_threads_that_are_set(tmp_path, shelf):
    """OpenMP keeps the number per thread: one that was never told would take every core."""
    index = create(tmp_path, shelf, config=Vector(threads=1))
    fill(index, shelf, rows_of(50))
    counts = []

    def search():
        found(index, vector_of("rye"))
        counts.append(vector_faiss._imported().omp_get_max_threads())

    thread = threading.Thread(target=search)
    thread.start()
    thread.join()
    assert counts == [1]


def segment_of(tmp_path, rows, **kwargs):
    contents, error = vector_segment.build(np.arange(len(rows)), rows, threads=1, **kwargs)
    (tmp_path / "segment").write_bytes(contents)
    return vector_segment.load(tmp_path / "segment", 1, error, DIM)


def test_the_error_of_a_segment_bounds_every_score(tmp_path):
    rows, query = vectors_of([f"{i} {i % 7}" for i in range(500)]), vector_of("3 4")
    segment = segment_of(tmp_path, rows, in_lists=False)
    look = segment.scan(query, 500, None, probe=1.0, threads=1)
    assert len(look.rows) == 500
    assert np.abs(look.scores - rows[look.rows] @ query).max() <= look.slack
    sharp = segment.sharpened(look, 300)
    assert sharp.rows.tolist() == look.rows[:300].tolist()
    assert np.abs(sharp.scores - rows[sharp.rows] @ query).max() <= segment.error < look.slack


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_whole_numbers_move_a_score_no_further_than_they_say(words, seed):
    some = np.random.default_rng(seed)
    texts = [" ".join(some.choice(WORDS, some.integers(1, 5))) for _ in range(80)]
    rows, query = vectors_of(texts), vector_of(" ".join(words))
    rows[:, some.integers(DIM)] = 0.0  # a dimension in which all are alike
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    with tempfile.TemporaryDirectory() as folder:
        segment = segment_of(Path(folder), rows, in_lists=False)
        look = segment.scan(query, 80, None, probe=1.0, threads=1)
        assert np.abs(look.scores - rows[look.rows] @ query).max() <= look.slack


def test_of_a_small_filter_every_list_is_searched_whatever_share_is_set(tmp_path):
    rows = vectors_of([f"{i} {i % 7}" for i in range(1024)])
    segment = segment_of(tmp_path, rows, in_lists=True)
    keep = np.arange(1024) % 20 == 0
    for query in rows[:300:3]:
        every = segment.scan(query, 1, keep, probe=1.0, threads=1)
        few = segment.scan(query, 1, keep, probe=0.1, threads=1)
        assert few.rows == every.rows


def test_several_threads_give_the_same_answer(tmp_path, shelf):
    index = create(tmp_path, shelf)
    for part in range(4):
        fill(index, shelf, rows_of(40, first=40 * part), revision=part + 1)
    several = reopen(tmp_path, shelf, config=Vector(threads=3))
    assert len(several._state.parts) > 1
    for word in WORDS[:5]:
        assert found(several, vector_of(word)) == found(index, vector_of(word))
