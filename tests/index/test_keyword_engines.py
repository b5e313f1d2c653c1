"""What is particular to the engines: choosing one, their files, the traps that are known."""

from __future__ import annotations

import ast
import re
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tantivy import TextAnalyzerBuilder, Tokenizer

import ragvault
from ragvault.config.settings import Keyword
from ragvault.errors import ConfigError
from ragvault.index.keyword import (
    DOWN,
    UP,
    choose_engine,
    keyword_recipe,
    lacks_tantivy,
    open_index,
    open_writer,
)
from ragvault.index.keyword.tantivy import spaced
from ragvault.plan import Phrase, Words
from ragvault.ports import CacheBroken
from ragvault.text.analyze import FORM
from ragvault.vault import Vault
from tests.keyword_kit import ENGINES, Shelf, note, passage


@pytest.fixture(params=ENGINES)
def shelf(request, tmp_path):
    shelf = Shelf(tmp_path / "keyword", request.param)
    yield shelf
    shelf.close()


# --- Choosing ---


@pytest.mark.parametrize(
    ("wanted", "passages", "current", "able", "chosen"),
    [
        ("auto", UP - 1, "", True, "whoosh"),
        ("auto", UP, "", True, "tantivy"),
        ("auto", UP, "whoosh", True, "tantivy"),
        ("auto", DOWN, "tantivy", True, "tantivy"),
        ("auto", DOWN - 1, "tantivy", True, "whoosh"),
        ("auto", DOWN, "whoosh", True, "whoosh"),
        ("auto", 1_000_000, "", False, "whoosh"),
        ("whoosh", 1_000_000, "tantivy", True, "whoosh"),
        ("tantivy", 1, "whoosh", True, "tantivy"),
    ],
)
def test_auto_goes_by_size_and_does_not_flutter(wanted, passages, current, able, chosen):
    assert choose_engine(Keyword(wanted), passages, current, tantivy=able) == chosen


def test_auto_takes_whoosh_for_a_language_that_only_whoosh_can_stem():
    basque = Keyword("auto", stemming="basque")
    assert choose_engine(basque, 1_000_000, "tantivy", tantivy=True) == "whoosh"


def test_tantivy_that_cannot_be_imported_is_refused_with_a_fix():
    with pytest.raises(ConfigError, match="cannot be imported") as error:
        choose_engine(Keyword("tantivy"), 1, tantivy=False)
    assert "whoosh" in error.value.fix or "auto" in error.value.fix


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_that_cannot_be_imported_is_named_with_a_fix(engine, tmp_path):
    program = f"""
import sys
sys.modules[{engine!r}] = None
from pathlib import Path
from ragvault.config.settings import Keyword
from ragvault.errors import RagvaultError
from ragvault.index.keyword import open_writer
other = {"whoosh" if engine == "tantivy" else "tantivy"!r}
if other in {ENGINES!r}:
    open_writer(Path({str(tmp_path)!r}) / other, other, Keyword()).close()
try:
    open_writer(Path({str(tmp_path)!r}) / "x", {engine!r}, Keyword())
except RagvaultError as error:
    print(error, "|", error.fix)
"""
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert f"the keyword index needs {engine}" in told.stdout
    assert "pip install" in told.stdout


def test_another_engine_or_language_is_another_recipe():
    assert keyword_recipe("whoosh", Keyword()) != keyword_recipe("tantivy", Keyword())
    assert keyword_recipe("whoosh", Keyword()) != keyword_recipe("whoosh", Keyword(stemming="none"))
    fuzzy = Keyword(fuzzy=False)  # at query time
    assert keyword_recipe("whoosh", fuzzy) == keyword_recipe("whoosh", Keyword())


@pytest.mark.skipif("tantivy" not in ENGINES, reason="needs Python 3.11")
def test_a_language_that_tantivy_cannot_stem_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="basque") as error:
        open_writer(tmp_path, "tantivy", Keyword(stemming="basque"))
    assert "whoosh" in error.value.fix


PRODUCT = Path(ragvault.__file__).parent
LIBRARIES = ("whoosh", "tantivy", "faiss", "networkx")


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_no_private_name_of_an_engine_is_imported():
    for path in PRODUCT.rglob("*.py"):
        for name in imported(ast.parse(path.read_text("utf-8"))):
            library, *rest = name.split(".")
            if library in LIBRARIES:
                assert not any(part.startswith("_") for part in rest), f"{path}: {name}"
                assert not {"codec", "filedb"}.intersection(rest), f"{path}: {name}"


# --- Files ---


def test_nothing_is_seen_before_the_commit_and_nothing_happens_without_it(shelf):
    shelf.put(note(1, "bread"), passage(1, 1, "rye"))
    writer = shelf.writer()
    writer.put([], [passage(2, 1, "wheat")])
    writer.remove([], [1])
    assert shelf.ids(Words("wheat rye")) == [1]
    writer.close()
    assert shelf.ids(Words("wheat rye")) == shelf.reopened().ids(Words("wheat rye")) == [1]


def test_an_empty_index_answers_nothing(shelf):
    shelf.put()
    assert shelf.ids(Words("bread")) == shelf.ids(Phrase("rye bread")) == []
    assert shelf.index.passages().tolist() == []
    assert shelf.index.words() == {}


def test_a_put_replaces_by_id_also_within_one_commit(shelf):
    shelf.put(note(1, "t"), passage(1, 1, "one"), passage(1, 1, "two"))
    assert (shelf.ids(Words("one")), shelf.ids(Words("two"))) == ([], [1])
    shelf.put(note(1, "u"), passage(1, 1, "three"))
    assert (shelf.ids(Words("two")), shelf.ids(Words("three"))) == ([], [1])
    assert shelf.index.passages().tolist() == [1]


def test_replaying_a_change_is_harmless(shelf):
    shelf.put(note(1, "t"), passage(1, 1, "one"), passage(2, 1, "two"))
    for _ in range(2):
        shelf.put(note(1, "t"), passage(2, 1, "three"))
        shelf.remove([9], [1, 77])
    assert shelf.index.passages().tolist() == [2]
    assert shelf.ids(Words("three")) == [2]


def test_a_removed_passage_and_a_removed_note_are_found_no_more(shelf):
    shelf.put(note(1, "bread"), note(2, "wine"), passage(1, 1, "rye"), passage(2, 1, "wheat"))
    shelf.put(passage(3, 2, "red"))
    shelf.remove([2], [1, 3])
    assert shelf.ids(Words("rye wine red")) == []
    assert shelf.ids(Words("bread")) == [2]


def test_put_after_remove_in_one_commit_is_there(shelf):
    shelf.put(note(1, "t"), passage(1, 1, "one"))
    writer = shelf.writer()
    writer.remove([], [1])
    writer.put([], [passage(1, 1, "two")])
    writer.commit()
    writer.close()
    assert (shelf.ids(Words("one")), shelf.ids(Words("two"))) == ([], [1])


def test_a_note_that_comes_later_counts_for_passages_that_were_there(shelf):
    shelf.put(passage(1, 7, "rye"))
    assert shelf.ids(Words("bread")) == []
    shelf.put(note(7, "bread"))
    assert shelf.ids(Words("bread")) == [1]


def test_a_note_and_a_passage_may_have_the_same_id(shelf):
    shelf.put(note(5, "bread"), passage(5, 5, "rye"), passage(6, 5, "wheat"))
    assert sorted(shelf.ids(Words("bread"))) == [5, 6]
    shelf.remove(passages=[5])
    assert shelf.ids(Words("bread")) == [6]


def test_many_small_commits_answer_like_one(shelf, tmp_path):
    documents = [note(1, "t"), *(passage(at, 1, f"word{at % 7} bread") for at in range(40))]
    for one in documents:
        shelf.put(one)
    whole = Shelf(tmp_path / "whole", shelf.engine).put(*documents)
    assert shelf.ids(Words("word3 bread")) == whole.ids(Words("word3 bread"))
    whole.close()


def test_words_are_counted_and_looked_up(shelf):
    shelf.put(note(1, "t"), passage(1, 1, "Rye bread"), passage(2, 1, "rye flour"))
    assert shelf.index.words() == {"rye": 2, "bread": 1, "flour": 1}
    assert (shelf.index.holders("rye"), shelf.index.holders("oats")) == (2, 0)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("how", ["absent", "empty", "garbage", "cut"])
def test_what_cannot_be_read_is_a_broken_cache(engine, tmp_path, how):
    shelf = Shelf(tmp_path, engine)
    if how != "absent":
        shelf.put(note(1, "bread"), *(passage(at, 1, f"rye number{at}") for at in range(50)))
        for path in tmp_path.iterdir():
            if path.is_file() and "lock" not in path.name.lower():
                whole = path.read_bytes()
                broken = {
                    "empty": b"",
                    "garbage": bytes(len(whole)),
                    "cut": whole[: len(whole) // 2],
                }
                path.write_bytes(broken[how])
    with pytest.raises(CacheBroken):
        open_index(tmp_path, engine, shelf.settings).search(Words("rye number7"), limit=5)


def test_a_reader_keeps_its_commit_until_it_looks_again(shelf):
    shelf.put(note(1, "t"), passage(1, 1, "one"))
    reader = open_index(shelf.folder, shelf.engine, shelf.settings)
    shelf.put(passage(2, 1, "one"))
    assert len(reader.search(Words("one"), limit=5).hits) == 1
    reader.refresh()
    assert len(reader.search(Words("one"), limit=5).hits) == 2
    reader.close()


def test_readers_beside_a_writer_see_whole_commits(shelf):
    shelf.put(note(1, "t"), *(passage(at, 1, "zero") for at in range(5)))
    wrong: list[object] = []
    done = threading.Event()

    def read():
        reader = open_index(shelf.folder, shelf.engine, shelf.settings)
        while not done.is_set():
            try:
                reader.refresh()
                found = len(reader.search(Words("zero"), limit=50).hits)
            except Exception as error:
                found = repr(error)
            if found != 5:
                wrong.append(found)
        reader.close()

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(12):
        shelf.put(*(passage(at, 1, "zero") for at in range(5)))
    done.set()
    for thread in threads:
        thread.join()
    assert wrong == []


# --- Traps of the engines ---


def test_removed_documents_count_in_rarity_until_the_engine_merges_and_never_in_hits(shelf):
    shelf.put(note(1, "t"), *(passage(at, 1, "rye bread") for at in range(20)))
    shelf.put(passage(50, 1, "rye bread"))
    shelf.remove(passages=range(20))
    assert shelf.ids(Words("rye")) == [50]
    assert shelf.index.passages().tolist() == [50]
    (hit,) = shelf.ask(Words("rye")).hits
    assert 0 < hit.score < shelf.ask(Words("rye")).bound


@pytest.mark.skipif("tantivy" not in ENGINES, reason="needs Python 3.11")
def test_tantivy_deletes_nothing_by_a_number_as_a_term_and_all_by_a_query(tmp_path):
    """Why we delete by query. When the first half fails, tantivy has mended it."""
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("id", indexed=True, fast=True)
    index = tantivy.Index(builder.build(), path=str(tmp_path))
    writer = index.writer(num_threads=1)
    writer.add_document(tantivy.Document.from_dict({"id": 7}, index.schema))
    writer.commit()
    writer.delete_documents_by_term("id", 7)
    writer.commit()
    index.reload()
    assert index.searcher().num_docs == 1
    writer.delete_documents_by_query(tantivy.Query.term_set_query(index.schema, "id", [7]))
    writer.commit()
    index.reload()
    assert index.searcher().num_docs == 0


def test_a_reopened_index_cuts_words_as_before(shelf):
    shelf.put(note(1, "t"), passage(1, 1, "Configuring Node.js"))
    again = shelf.reopened()
    assert again.ids(Words("configuration")) == again.ids(Words("nodejs")) == [1]
    again.put(passage(2, 1, "configured"))
    assert sorted(again.ids(Words("configuration"))) == [1, 2]


@given(st.text(alphabet=st.sampled_from("aB1 ._-'’sTé黑\n\t\x0b\x1e\x1f\u00a0"), max_size=40))
def test_words_cut_by_spaces_are_those_that_the_expression_cuts(text):
    words = re.findall(rf"{FORM}|[\x1e\x1f]", text)
    assert TextAnalyzerBuilder(Tokenizer.whitespace()).build().analyze(spaced(text)) == words


def test_equal_scores_go_by_id_however_many_there_are(shelf, monkeypatch):
    monkeypatch.setattr("ragvault.index.keyword.index.FETCH", 16)
    shelf.put(note(1, "t"), *(passage(at, 1, "rye") for at in range(300, 0, -1)))
    assert shelf.ids(Words("rye"), limit=5) == [1, 2, 3, 4, 5]


def test_a_whole_page_as_a_query_answers(shelf):
    shelf.put(note(1, "t"), passage(1, 1, "rye"))
    page = " ".join(f"word{at}-part{at} wordAndHump{at}" for at in range(2000))
    assert shelf.ids(Words(f"rye {page}"), fuzzy=False) == [1]


def test_files_are_the_owners_alone(shelf):
    shelf.put(note(1, "t"), passage(1, 1, "rye"))
    assert stat.S_IMODE(shelf.folder.stat().st_mode) == 0o700


def test_auto_misses_tantivy_only_in_a_large_vault_without_it(monkeypatch):
    monkeypatch.setattr("ragvault.index.keyword.find_spec", lambda name: None)
    assert lacks_tantivy(Keyword("auto"), UP)
    assert not lacks_tantivy(Keyword("auto"), UP - 1)
    assert not lacks_tantivy(Keyword("whoosh"), UP)
    assert not lacks_tantivy(Keyword("auto", stemming="basque"), UP)
    monkeypatch.setattr("ragvault.index.keyword.find_spec", lambda name: object())
    assert not lacks_tantivy(Keyword("auto"), UP)


def test_without_whoosh_an_index_warns_and_vectors_answer(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "whoosh", None)
    monkeypatch.delitem(sys.modules, "ragvault.index.keyword.whoosh", raising=False)
    for name in ("EMBEDDER", "STATIC"):
        monkeypatch.setenv(f"RAGVAULT_MODELS__{name}", "fake")
    monkeypatch.setenv("RAGVAULT_HOME", str(tmp_path / "home"))
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "rye.md").write_text("# Rye\n\nRye bread is dense.")
    vault = Vault.open(tmp_path / "vault")

    report = vault.index()
    found = vault.search("dense rye bread")

    assert ["pip install whoosh3" in line for line in report.warnings] == [True]
    assert [each.note for each in found.results] == ["rye.md"]
    assert "keyword" in found.failed
