"""Questions asked under different settings: what is compared is what a search would answer."""

from __future__ import annotations

import json

import pytest
from evaluate_kit import FAKE, GARDEN, NOW, evaluator, question, vault_of

from ragvault.cli.main import main
from ragvault.cli.render import evaluation
from ragvault.evaluate.evaluator import evaluate_profiles, leg_alone, variants
from ragvault.evaluate.probes import probes
from ragvault.evaluate.run import run_questions
from ragvault.search import search
from ragvault.types import SearchRequest


@pytest.fixture(scope="module")
def vault(tmp_path_factory):
    return vault_of(tmp_path_factory.mktemp("evaluate") / "garden", GARDEN)


@pytest.fixture(scope="module")
def exam(vault):
    with vault.catalogue() as catalogue:
        return probes(catalogue, 25)


@pytest.fixture(scope="module")
def found(vault, exam):
    return evaluate_profiles(
        evaluator(vault, exam), ["default", "ragdocs"], ablate=True, signals=True
    )


def test_ranking_again_is_searching_again(vault, exam):
    """The law that lets an ablation and a tuning search once and rank often."""
    asking = evaluator(vault, exam)
    with asking.replay() as replay:
        tried = 0
        wanted = ("fuse", "exact", "backlinks", "boost", "dedup", "parents")
        for variant in variants(replay.config):
            config = asking.settings(*variant.flags)
            if variant.name not in wanted or not replay.can_rank(config):
                continue
            tried += 1
            for again, searched in zip(
                replay.answers(config), asking.run(*variant.flags), strict=True
            ):
                assert again.notes == searched.notes, (variant.name, again.question)
                assert again.scores == searched.scores
                assert (again.held_back, again.tokens) == (searched.held_back, searched.tokens)
    assert tried == 6


def test_settings_that_change_what_is_found_need_a_new_search(vault, exam):
    asking = evaluator(vault, exam)
    with asking.replay() as replay:
        assert replay.can_rank(asking.settings("fuse.k=20", "boost.enabled=false"))
        for flag in ("retrieve.vector=10", 'retrieve.legs=["keyword"]', "rerank.enabled=true"):
            assert not replay.can_rank(asking.settings(flag))


def test_a_report_compares_every_profile_with_the_first(found):
    assert found["profile"] == "default"
    assert set(found["profiles"]) == {"default", "ragdocs"}
    assert found["overall"] == found["profiles"]["default"]["overall"]
    assert [each["name"] for each in found["comparisons"]] == ["ragdocs"]
    wanted = {"mrr@10", "success@1", "p@3", "p@5", "ndcg@10", "recall@10", "n", "latency_ms"}
    assert wanted | {"context_precision", "context_recall", "tokens"} <= set(found["overall"])


def test_the_first_profile_comes_first_and_the_others_by_score(vault, exam):
    names = ["default", "lightrag-mix", "policy", "ragtriever", "research"]
    told = evaluate_profiles(evaluator(vault, exam), names)
    first, *others = told["profiles"]
    scores = [told["profiles"][name]["overall"]["ndcg@10"] for name in others]

    assert first == "default"
    assert scores == sorted(scores, reverse=True)
    assert [each["name"] for each in told["comparisons"]] == others
    assert evaluation.evaluation(told, full=False).index("\ndefault ") < min(
        evaluation.evaluation(told, full=False).index(f"\n{name} ") for name in others
    )


def test_a_report_says_whether_the_first_profile_wins(vault, exam):
    best = evaluate_profiles(evaluator(vault, exam), ["default", "lightrag-mix"])
    beaten = evaluate_profiles(evaluator(vault, exam), ["lightrag-mix", "default"])
    gain = beaten["comparisons"][0]

    assert "no profile scores higher than default" in evaluation.evaluation(best, full=False)
    assert gain["mean"] > 0
    assert (
        f"default scores higher than lightrag-mix: {gain['mean']:+.3f} "
        f"[{gain['low']:+.3f}, {gain['high']:+.3f}], "
    ) in evaluation.evaluation(beaten, full=False)


def test_each_kind_has_an_interval_for_every_part_and_every_leg(found):
    keyword = next(each for each in found["ablations"] if each["part"] == "keyword")
    text = evaluation.evaluation(found, full=False)

    assert set(keyword["kinds"]) == set(found["kinds"]) - {"nonsense"}
    for shift in keyword["kinds"].values():
        assert shift["low"] <= shift["mean"] <= shift["high"]
    assert [each["leg"] for each in found["legs"]] == ["vector", "keyword"]
    for each in found["legs"]:
        assert set(each["kinds"]) == set(keyword["kinds"])
        whole = each["alone"]["overall"]["ndcg@10"] + each["mean"]
        assert whole == pytest.approx(found["overall"]["ndcg@10"])
        assert f"{each['leg']} leg alone" in text


def test_a_leg_alone_is_the_list_of_that_leg(vault, exam):
    """No other leg, no name, no boost and no other stage has a say in the order."""
    asking = evaluator(vault, exam, *leg_alone("keyword"))
    with asking.opened() as index:
        for each in exam[:10]:
            response = search(SearchRequest(each.query, NOW, 10, widen=False), index)
            ranks = [found.ranks for found in response.results]
            assert all(set(of) <= {"keyword"} for of in ranks)
            own = [of["keyword"] for of in ranks if of]
            assert own == sorted(own)


def test_a_part_that_changes_no_order_is_not_worth_zero_by_chance(found):
    same = [each for each in found["ablations"] if not each["changed"]]
    text = evaluation.evaluation(found, full=False)

    assert same
    assert all((each["mean"], each["low"], each["high"]) == (0, 0, 0) for each in same)
    assert text.count("changes no order") == len(same)


def test_every_part_that_is_on_is_taken_away_in_turn(found):
    parts = {each["part"]: each for each in found["ablations"]}
    legs = {"name", "vector", "keyword", "code", "graph"}
    assert {*legs, "backlinks", "recency", "dedup"} <= set(parts)
    assert {"access", "rerank"} <= set(found["off"])
    assert not set(found["off"]) & set(parts)
    assert parts["fuse"]["mean"] > 0
    assert parts["fuse"]["helps"]


def test_every_signal_is_counted_on_the_exam(found):
    states = {each["name"]: each["state"] for each in found["signals"]}
    assert states["keyword"] == "alive"
    assert states["rerank"] == "off"


def test_judged_notes_that_are_not_there_are_named(vault):
    asked = [question("q", "gone.md", "Tools.md", query="spade")]
    assert evaluate_profiles(evaluator(vault, asked), ["default"])["unknown_notes"] == ["gone.md"]


def test_a_query_that_cannot_be_asked_found_nothing_and_is_named(vault):
    asked = [question("bad", "Tools.md", query="((("), question("good", "Tools.md", query="spade")]
    told = evaluate_profiles(evaluator(vault, asked), ["default"])
    assert set(told["refused"]) == {"bad"}
    assert told["overall"]["n"] == 2


def test_the_note_a_probe_is_from_is_left_out_before_scoring(vault):
    with vault.corpus() as index:
        text = next(iter(index.catalogue.files()))
        plain_one = question("a", text, query="spade and fork")
        without = type(plain_one)("b", "spade and fork", (), "", tuple(index.catalogue.files()))
        now = evaluator(vault, []).now
        seen, hidden = run_questions([plain_one, without], index, now)
    assert seen.notes
    assert not hidden.notes


@pytest.mark.parametrize("name", ["report.svg", "report.png"])
def test_a_picture_is_drawn(found, tmp_path, name):
    evaluation.draw_report(found | {"vault": "sample"}, tmp_path / name)
    content = (tmp_path / name).read_bytes()
    assert content.startswith((b"<?xml", b"\x89PNG"))
    if name.endswith("svg"):
        assert b"what each part is worth" in content or len(content) > 20_000


def test_the_command_writes_one_object_of_the_contract(vault, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("RAGVAULT_HOME", str(vault.folder.parent.parent))
    flags = [part for flag in FAKE for part in ("--set", flag)]
    kept = tmp_path / "exam.jsonl"
    where = ["--vault", str(vault.root), *flags]
    assert main(["eval", *where, "--probes", "12", "--write", str(kept), "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert main(["eval", str(kept), *where, "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    for told in (first, again):
        told["overall"].pop("latency_ms")
    assert first["overall"] == again["overall"]
    assert first["questions"] == {"probes": len(kept.read_text().splitlines()), "seed": 0}
