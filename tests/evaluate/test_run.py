"""Questions asked under different settings: what is compared is what a search would answer."""

from __future__ import annotations

import json

import pytest
from evaluate_kit import FAKE, GARDEN, NOW, question, vault_of, with_flags

from ragvault.cli import quality as evaluation
from ragvault.cli.main import main
from ragvault.evaluate.probes import probes
from ragvault.evaluate.run import Replay, ablations, evaluate, run_questions, with_values


@pytest.fixture(scope="module")
def vault(tmp_path_factory):
    return vault_of(tmp_path_factory.mktemp("evaluate") / "garden", GARDEN)


@pytest.fixture(scope="module")
def exam(vault):
    with vault.catalogue() as catalogue:
        return probes(catalogue, 25)


def evaluated(vault, questions, *profiles, ablate=False):
    vaults = {name: with_flags(vault, f"search.profile={name}") for name in profiles}
    return evaluate(vaults, questions, NOW, ablate=ablate)


@pytest.fixture(scope="module")
def found(vault, exam):
    return evaluated(vault, exam, "default", "ragdocs", ablate=True)


def test_ranking_again_is_searching_again(vault, exam):
    """The law that lets an ablation and a tuning search once and rank often."""
    tried = {
        "fuse": ("fuse.method=union",),
        "exact": ("fuse.exact=0",),
        **{name: (f"{name}.enabled=false",) for name in ("boost", "dedup", "parents")},
        "backlinks": ("boost.backlinks.enabled=false",),
    }
    with Replay(with_flags(vault), exam, NOW) as replay:
        off = {each.name: each.off for each in ablations(replay.config)}
        for name, flags in tried.items():
            config = with_values(replay.config, off[name])
            assert replay.can_rank(config)
            with with_flags(vault, *flags).corpus() as index:
                assert index.config == config
                searched = run_questions(exam, index, NOW)
                for again, one in zip(replay.answers(config), searched, strict=True):
                    assert again.notes == one.notes, (name, again.question)
                    assert again.scores == one.scores
                    assert (again.held_back, again.tokens) == (one.held_back, one.tokens)


def test_settings_that_change_what_is_found_need_a_new_search(vault, exam):
    with Replay(with_flags(vault), exam[:3], NOW) as replay:
        assert replay.can_rank(
            with_flags(vault, "fuse.k=20", "boost.enabled=false").settings.config
        )
        for flag in ("retrieve.vector=10", 'retrieve.legs=["keyword"]', "rerank.enabled=true"):
            config = with_flags(vault, flag).settings.config
            assert not replay.can_rank(config)
        config = with_values(replay.config, {"retrieve.legs": ["keyword"]})
        with with_flags(vault, 'retrieve.legs=["keyword"]').corpus() as index:
            assert [each.notes for each in replay.answers(config, [2, 0])] == [
                each.notes for each in run_questions([exam[2], exam[0]], index, NOW)
            ]


def test_a_report_compares_every_profile_with_the_first(found):
    assert found["profile"] == "default"
    assert set(found["profiles"]) == {"default", "ragdocs"}
    assert found["overall"] == found["profiles"]["default"]["overall"]
    assert [each["name"] for each in found["comparisons"]] == ["ragdocs"]
    wanted = {"mrr@10", "success@1", "p@3", "p@5", "ndcg@10", "recall@10", "n", "latency_ms"}
    assert wanted | {"context_precision", "context_recall", "tokens"} <= set(found["overall"])


def test_the_first_profile_comes_first_and_the_others_by_score(vault, exam):
    names = ["default", "lightrag-mix", "policy", "ragtriever", "research"]
    told = evaluated(vault, exam, *names)
    first, *others = told["profiles"]
    scores = [told["profiles"][name]["overall"]["ndcg@10"] for name in others]

    assert first == "default"
    assert scores == sorted(scores, reverse=True)
    assert [each["name"] for each in told["comparisons"]] == others
    assert evaluation.evaluation(told, full=False).index("\ndefault ") < min(
        evaluation.evaluation(told, full=False).index(f"\n{name} ") for name in others
    )


def test_a_report_says_whether_the_first_profile_wins(vault, exam):
    best = evaluated(vault, exam, "default", "lightrag-mix")
    beaten = evaluated(vault, exam, "lightrag-mix", "default")
    gain = beaten["comparisons"][0]

    assert "no profile scores higher than default" in evaluation.evaluation(best, full=False)
    assert gain["mean"] > 0
    assert (
        f"default scores higher than lightrag-mix: {gain['mean']:+.3f} "
        f"[{gain['low']:+.3f}, {gain['high']:+.3f}], "
    ) in evaluation.evaluation(beaten, full=False)


def test_each_kind_has_an_interval_for_every_part(found):
    keyword = next(each for each in found["ablations"] if each["part"] == "keyword")

    assert set(keyword["kinds"]) == set(found["kinds"]) - {"nonsense"}
    for shift in keyword["kinds"].values():
        assert shift["low"] <= shift["mean"] <= shift["high"]


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
    assert {"access", "expansion", "rerank"} <= set(found["off"])
    assert not set(found["off"]) & set(parts)
    assert parts["fuse"]["mean"] > 0
    assert parts["fuse"]["helps"]


def test_judged_notes_that_are_not_there_are_named(vault):
    asked = [question("q", "gone.md", "Tools.md", query="spade")]
    assert evaluated(vault, asked, "default")["unknown_notes"] == ["gone.md"]


def test_a_query_that_cannot_be_asked_found_nothing_and_is_named(vault):
    asked = [question("bad", "Tools.md", query="((("), question("good", "Tools.md", query="spade")]
    told = evaluated(vault, asked, "default")
    assert set(told["refused"]) == {"bad"}
    assert told["overall"]["n"] == 2


def test_the_note_a_probe_is_from_is_left_out_before_scoring(vault):
    with vault.corpus() as index:
        text = next(iter(index.catalogue.files()))
        plain_one = question("a", text, query="spade and fork")
        without = type(plain_one)("b", "spade and fork", (), "", tuple(index.catalogue.files()))
        seen, hidden = run_questions([plain_one, without], index, NOW)
    assert seen.notes
    assert not hidden.notes


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
