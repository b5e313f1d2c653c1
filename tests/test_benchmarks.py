"""Benchmarks: their tables are made of results, and documents go through the real paths."""

from __future__ import annotations

import json
import re

import pytest
from evaluate_kit import GARDEN, NOW, vault_of, with_flags

from benchmarks import (
    beir,
    compare_states,
    corpora,
    plot,
    process,
    quality,
    readers,
    record,
    tables,
)
from ragvault.evaluate.probes import probes
from ragvault.evaluate.questions import Judged, Question
from ragvault.evaluate.report import ScoredAnswer
from ragvault.search import search
from ragvault.types import SearchRequest


@pytest.mark.parametrize("page", tables.PAGES, ids=["benchmarks", "top"])
def test_every_table_of_the_page_has_somebody_who_writes_it(page):
    named = re.findall(r"<!-- table: ([\w-]+) -->", page.read_text("utf-8"))
    assert named
    assert {name.replace("-sample", "") for name in named} <= set(tables.TABLES)


@pytest.mark.parametrize("page", tables.PAGES, ids=["benchmarks", "top"])
def test_the_page_is_what_the_results_say(page):
    text = page.read_text("utf-8")
    assert tables.rewritten(text) == text


def test_a_command_is_told_without_the_folders_of_a_machine(monkeypatch):
    monkeypatch.setattr("sys.argv", ["/a/b/benchmarks/peers.py", "--venv", "/a/b/venv", "ir/med"])
    assert record.command() == "python -m benchmarks.peers --venv …/venv ir/med"


def test_rewriting_twice_is_rewriting_once(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "RESULTS", tmp_path)
    rows = [
        {"step": "one", "mrr@10": 0.5, "p@3": 0.3, "ndcg@10": 0.4, "better": [], "worse": ["q"]}
    ]
    machine = {"cores": 2, "cpu": "x", "memory_gib": 8, "python": "3", "load": 0.1}
    told = {"when": "2026-01-01", "commit": "abc", "command": "c", "machine": machine, "rows": rows}
    (tmp_path / "components.json").write_text(json.dumps(told))
    page = "<!-- table: components -->\nold\n<!-- end -->"

    once = tables.rewritten(page)

    assert "| one | 0.500 |" in once
    assert "old" not in once
    assert tables.rewritten(once) == once


def test_a_run_that_was_kept_is_the_table_that_was_printed():
    ran = [
        process.Ran(seconds, megabytes, b"") for seconds, megabytes in ((2, 10), (1, 30), (4, 20))
    ]
    rows = json.loads(json.dumps([process.row("cold", ran)]))

    assert tables.TABLES["process"](rows).splitlines()[2:] == [
        "| cold | 2.000 | 1.000 | 4.000 | 30 |"
    ]


def test_a_summary_replaces_the_last_one_and_has_no_single_questions(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "RESULTS", tmp_path / "benchmarks" / "results")
    monkeypatch.setattr(record, "HERE", tmp_path / "benchmarks")
    monkeypatch.setenv("RAGVAULT_BENCH_HOME", str(tmp_path / "home"))
    record.RESULTS.mkdir(parents=True)
    row = {"profile": "default", "ndcg@10": 0.5, "against": {"mean": 0.1, "regressions": ["q1"]}}

    record.save("x", [row | {"ndcg@10": 0.4}])
    record.save("x", [row], corpora={"sample": 10})

    assert [path.name for path in record.RESULTS.iterdir()] == ["x.json"]
    assert record.latest("x")["corpora"] == {"sample": 10}
    assert record.latest("x")["rows"] == [
        {"profile": "default", "ndcg@10": 0.5, "against": {"mean": 0.1}}
    ]
    (whole,) = (tmp_path / "home").rglob("x.json")
    assert json.loads(whole.read_text("utf-8"))["rows"] == [row]
    assert record.latest("y") is None


@pytest.fixture
def collection(tmp_path, monkeypatch):
    folder = tmp_path / "data" / "ir" / "tiny"
    (folder / "qrels").mkdir(parents=True)
    documents = [
        ("d/1", "Bread", "Flour and water."),
        ("d2", "", "The sea at night."),
        ("d3", "Salt", "x"),
    ]
    (folder / "corpus.jsonl").write_text(
        "".join(json.dumps({"_id": i, "title": t, "text": b}) + "\n" for i, t, b in documents)
    )
    (folder / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": "flour"}) + "\n")
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\td/1\t1\n")
    (folder / "exclude.tsv").write_text("query-id\tcorpus-id\nq\td3\n")
    monkeypatch.setenv("RAGVAULT_BENCH_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("RAGVAULT_BENCH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("RAGVAULT_HOME", "")  # set by corpus(), and put back after the test
    return corpora.corpus("ir/tiny")


def test_a_collection_has_the_documents_and_the_questions_that_are_judged(collection, tmp_path):
    folder = tmp_path / "data" / "ir" / "tiny"
    with (folder / "queries.jsonl").open("a") as queries:
        queries.write(json.dumps({"_id": "nobody judged this", "text": "salt"}) + "\n")

    found = beir.read_beir(folder)

    assert [each.whole for each in found.documents][:2] == [
        "Bread\nFlour and water.",
        "The sea at night.",
    ]
    assert [(each.query, each.grades) for each in found.questions] == [("flour", {"d/1": 1})]
    (folder / "qrels" / "test.tsv").write_text("unknown\td/1\t1\n")
    with pytest.raises(SystemExit, match="unknown"):
        beir.read_beir(folder)


def test_a_document_becomes_a_note_that_is_found(collection):
    fake = ("models.static=fake", "models.embedder=fake")
    collection.index(*fake)

    (found,) = collection.ask(*fake)

    assert (collection.root / "000000.md").read_text() == "# Bread\n\nFlour and water.\n"
    assert found.notes[0] == "000000.md"
    assert found.scores["mrr@10"] == 1
    assert "000002.md" not in found.notes


def test_a_part_of_a_collection_holds_all_that_is_judged(collection):
    """Two of three documents: the one that answers, and always the same other one."""
    one, again = (corpora.corpus("ir/tiny@2") for _ in range(2))
    kept = sorted(path.name for path in one.root.iterdir())

    assert len(kept) == 2
    assert "000000.md" in kept
    assert one == again
    assert one.root != collection.root


def answer(corpus, name, value):
    return ScoredAnswer(Question(f"{corpus}:{name}", "?", (Judged("a.md", 1),)), {"ndcg@10": value})


def test_a_gain_on_one_collection_does_not_hide_a_loss_on_another():
    ours = {"up": [answer("up", n, 0.8) for n in "abc"], "down": [answer("down", "d", 0.2)]}
    other = {"up": [answer("up", n, 0.5) for n in "abc"], "down": [answer("down", "d", 0.4)]}
    found = quality.collection_rows({name: {"a": ours[name], "b": other[name]} for name in ours})

    lines = quality.collection_table(found).splitlines()

    assert lines[0] == "| nDCG@10 | up (3) | down (1) | all (4) |"
    assert lines[2] == "| a | 0.800 | 0.200 | 0.650 |"
    assert [cell.split(" [")[0].strip() for cell in lines[3].split("|")[2:5]] == [
        "0.500, -0.300",
        "0.400, +0.200",
        "0.475, -0.175",
    ]


def test_a_leg_alone_is_the_list_of_that_leg(tmp_path):
    """No other leg, no name, no boost and no other stage has a say in the order."""
    vault = vault_of(tmp_path / "garden", GARDEN)
    with vault.catalogue() as catalogue:
        exam = probes(catalogue, 12)
    with with_flags(vault, *quality.leg_alone("keyword")).corpus() as index:
        for each in exam:
            response = search(SearchRequest(each.query, NOW, 10, widen=False), index)
            ranks = [found.ranks for found in response.results]
            assert all(set(of) <= {"keyword"} for of in ranks)
            own = [of["keyword"] for of in ranks if of]
            assert own == sorted(own)


def test_pictures_of_nothing_are_not_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "RESULTS", tmp_path)
    assert not plot.quality(tmp_path / "q.svg")
    assert not plot.growth(tmp_path / "g.svg")


def test_two_states_are_asked_every_query_and_their_differences_are_told():
    def state(ms, *found):
        return lambda number: {"search": ms + number, "stages": 1.0, "found": found[number]}

    states = {"old": state(9.0, [1], [2]), "now": state(4.0, [1], [3])}
    times, same = compare_states.in_turns(states, 2)

    assert (
        sorted(times["old"]["search"])
        == [9.0] * compare_states.ROUNDS + [10.0] * compare_states.ROUNDS
    )
    lines = compare_states.table(times, same).splitlines()
    assert lines[2].startswith("| old | 9.5 | 10.0 | +0.00 | 1.0 |")
    assert lines[3].startswith("| now | 4.5 | 5.0 | -5.00 | 1.0 |")
    assert lines[-1] == "3 of 6 answers are the same"


def test_a_load_run_counts_what_was_wrong_and_not_what_changed_meanwhile():
    writes = [
        readers.Write(0.0, 0.1, "a.md", 1),
        readers.Write(1.0, 1.1, "a.md", 2),
        readers.Write(3.0, 3.1, "a.md", readers.GONE),
    ]
    searches = [
        readers.Search(0.5, 0.6, [("a.md", [1])]),
        readers.Search(1.05, 1.2, [("a.md", [1])]),  # written meanwhile: either is right
        readers.Search(2.0, 2.1, [("a.md", [1])]),
        readers.Search(2.0, 2.1, [("a.md", [1, 2])]),
        readers.Search(4.0, 4.1, [("a.md", [2])]),
        readers.Search(4.0, 4.1, error="it failed"),
    ]

    wrong = readers.judge(searches, writes)

    assert {name: len(each) for name, each in wrong.items()} == {
        "errors": 1,
        "torn": 1,
        "ghosts": 1,
        "old": 1,
    }
