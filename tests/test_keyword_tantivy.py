"""What tantivy cuts out of our text is what our analyzer found in it."""

import gc
import json
import re
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st
from keyword_shelves import Shelf, note, passage

from ragvault.config.settings import Keyword
from ragvault.index.analyze import Analyzer
from ragvault.index.code import CodeAnalyzer
from ragvault.index.keyword_open import open_keyword
from ragvault.ports import CacheBroken
from ragvault.sought import Phrase, Words

pytest.importorskip("tantivy")
engine = pytest.importorskip("ragvault.index.tantivy_engine")
draft = pytest.importorskip("ragvault.index.keyword_tantivy_draft")
Stamps = pytest.importorskip("ragvault.index.keyword_tantivy_files").Stamps

signs = st.sampled_from("aB1 ._-/+#'@&é黑豹ส\u0301नम्\nC~\x01\x00ﷺ\u00ad\u200b🎉")
texts = st.text(signs, max_size=40) | st.text(max_size=40)
ANALYZERS = {"words": Analyzer(), "code": CodeAnalyzer()}


@pytest.mark.parametrize("name", ANALYZERS)
@given(found=st.lists(texts, max_size=3))
def test_tantivy_cuts_out_every_term_and_no_other(name, found):
    waiting = draft.Draft(draft.Written(ANALYZERS[name]), ["body"])
    text = waiting._chunks.text(found)

    cut = waiting._cutter().analyze(text)

    terms = [term for term, _ in ANALYZERS[name].tokens(found)]
    assert cut == (terms or [draft.ABSENT])  # which stands where there is no term, and only there


@pytest.mark.parametrize(
    ("phrase", "found"),
    [
        ("the Node.js server", [1]),
        ("the node js server", [1]),
        ("node.js server", [1]),
        ("js the", []),
        ("user manual", [2]),
        ("user's manual", [2]),
        ("résumé of it", [3]),
        ("resume of it", [3]),
    ],
)
def test_terms_of_one_place_are_in_one_place(tmp_path, phrase, found):
    shelf = Shelf(tmp_path, Keyword(engine="tantivy"))
    shelf.put(
        note(1),
        passage(1, 1, "runs the Node.js server"),
        passage(2, 1, "a user's manual"),
        passage(3, 1, "the Résumé of it"),
    )

    assert shelf.ids(Phrase(phrase)) == found
    shelf.index.close()


def test_compaction_in_slices_loses_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "SLICE", 3)
    shelf = Shelf(tmp_path, Keyword(engine="tantivy"))
    shelf.put(note(1, "Bread"), note(2, "Canary"), *(passage(i, 1, "loaf") for i in range(10)))
    shelf.remove(notes=[2], passages=[4]).compact()

    assert sorted(shelf.ids(Words("loaf"))) == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    assert shelf.index.rubbish() == 0
    shelf.index.close()


def test_a_reader_between_a_commit_and_its_stamp_finds_nothing_broken(tmp_path, monkeypatch):
    shelf = Shelf(tmp_path, Keyword(engine="tantivy"))
    shelf.put(*(note(at, "bread") for at in range(30)), *(passage(at, at, "x") for at in range(30)))
    shelf.remove(notes=[1], passages=[1])  # what is removed has a file of its own now
    reader = open_keyword(shelf.folder, shelf.settings)
    write, seen = Stamps.write, []

    def late(self, *given):
        reader.refresh()
        opened = open_keyword(shelf.folder, shelf.settings)
        seen.append(len(opened.search(Words("bread"), limit=50).hits))
        return write(self, *given)

    monkeypatch.setattr(Stamps, "write", late)
    shelf.remove(notes=[2], passages=[2])  # … and another one
    assert seen


def test_an_outdated_searcher_is_let_go_without_the_collector(tmp_path):
    shelf = Shelf(tmp_path, Keyword(engine="tantivy"))
    shelf.put(note(1, "bread"), passage(1, 1, "salt"))
    shelf.ask(Words("bread"))
    gc.disable()
    try:
        outdated = weakref.ref(shelf.index._asking.passages)
        shelf.put(passage(2, 1, "rye"))
        shelf.ask(Words("rye"))
        assert outdated() is None
    finally:
        gc.enable()


def harmed(tmp_path, level, change):
    """An index of two commits, one of which removed something, whose list says something else."""
    settings = Keyword(engine="tantivy")
    shelf = Shelf(tmp_path, settings)
    shelf.put(note(1, "Bread"), note(2, "Rye"), passage(1, 1, "loaf"), passage(2, 2, "loaf"))
    shelf.remove(notes=[2], passages=[2])
    shelf.put(note(3, "Oats"), passage(3, 3, "loaf"))
    shelf.index.close()
    (path,) = tmp_path.rglob(f"{level}/meta.json")
    path.write_text(change(path.read_text()))
    return path, settings


@pytest.mark.parametrize("level", ["note", "passage"])
@pytest.mark.parametrize(
    "change",
    [
        lambda meta: meta.replace('"deletes"', '"demetes"'),
        lambda meta: json.dumps({**json.loads(meta), "segments": []}),
        lambda meta: re.sub(r'"max_doc":\s*2', '"max_doc": 3', meta),
    ],
    ids=["what was removed", "every segment", "a number"],
)
def test_a_list_of_segments_that_says_something_else_is_met_by_the_next_writer(
    tmp_path, level, change
):
    path, settings = harmed(tmp_path, level, change)

    with pytest.raises(CacheBroken):
        open_keyword(path.parents[2], settings).verify()


@pytest.mark.parametrize(
    "change",
    [
        lambda meta: meta.replace("segment_id", "segment_hd"),
        lambda meta: meta[: len(meta) // 2],
        lambda meta: json.dumps({**json.loads(meta), "segments": "none"}),
        lambda meta: meta.replace('"max_doc"', '"max_hoc"'),
    ],
)
def test_a_list_of_segments_that_cannot_be_read_is_damage(tmp_path, change):
    path, settings = harmed(tmp_path, "passage", change)

    with pytest.raises(CacheBroken, match=r"meta\.json cannot be read"):
        open_keyword(path.parents[2], settings)
