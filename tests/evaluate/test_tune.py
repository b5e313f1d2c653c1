"""Tuning: finds a gain that is there, and changes nothing where there is none."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from evaluate_kit import FAKE, GARDEN, NOW, question, vault_of, with_flags
from msgspec.structs import replace

from ragvault.cli.main import main
from ragvault.config import profiles
from ragvault.config.settings import Config, Weights
from ragvault.errors import UsageError
from ragvault.evaluate.probes import probes
from ragvault.evaluate.questions import write_questions
from ragvault.evaluate.report import ScoredAnswer, score
from ragvault.evaluate.run import Replay, with_values
from ragvault.evaluate.tune import (
    MIN_QUESTIONS,
    Knob,
    check_questions,
    halves,
    knobs,
    setting_value,
    tune,
)
from ragvault.vault import Vault

PARTS = ("vector", "code", "name", "graph", "keyword")
KINDS = ("keyword", "question", "typo", "paraphrase")


# The scores of an answer by the rank of the one right note; 11 is absent.
BY_RANK = {
    rank: score([*"123456789X"[: rank - 1], "right"][:10], {"right": 3}) for rank in range(1, 12)
}


class Simulated:
    """Questions with candidates whose evidence is known: ranked by its weighted sum, at once.

    `signal` is how far the right note stands out in each part of the evidence; shuffled labels
    are right notes that stand out in none.
    """

    def __init__(self, count: int, seed: int, **signal: float) -> None:
        chance = np.random.default_rng(seed)
        self.evidence = chance.normal(0.5, 0.15, (count, 30, len(PARTS)))
        self.right = right = chance.integers(0, 30, count)
        for part, shift in signal.items():
            self.evidence[np.arange(count), right, PARTS.index(part)] += shift
        self.questions = [
            question(f"q{at}", f"{note}.md", kind=KINDS[at % len(KINDS)])
            for at, note in enumerate(right)
        ]
        self.config = plain()

    def answers(self, config, only=None):
        places = np.arange(len(self.questions)) if only is None else np.array(only)
        weights = [getattr(config.fuse.weights, part) for part in PARTS]
        sums = self.evidence[places] @ np.array(weights)
        # Where the right note stands: one more than there are better ones.
        ranks = 1 + (sums > sums[np.arange(len(places)), self.right[places], None]).sum(axis=1)
        return [
            ScoredAnswer(self.questions[at], BY_RANK[min(rank, 11)])
            for at, rank in zip(places.tolist(), ranks.tolist(), strict=True)
        ]


def plain() -> Config:
    """Without boosts: a simulation has no notes to boost. Every leg has a weight."""
    config = profiles.config("default")
    weights = Weights(keyword=0.4, code=0.1, name=0.2, graph=0.2)
    return replace(
        config,
        boost=replace(config.boost, enabled=False),
        fuse=replace(config.fuse, weights=weights),
    )


def test_on_shuffled_labels_nothing_is_changed_in_95_of_100_runs():
    runs, changed = 100, 0
    for seed in range(runs):
        ranking = Simulated(60, 10_000 + seed)  # of another seed than the draws of the judge
        changed += tune(ranking, seed=seed)["accepted"]
    assert changed <= runs * 0.05


def test_a_gain_that_is_there_is_found_and_kept():
    ranking = Simulated(120, 1, vector=0.05, graph=0.4)

    found = tune(ranking)

    assert found["accepted"], found["refusal"]
    assert found["judged"]["low"] > 0
    before, after = found["settings"]["fuse.weights.graph"]
    assert after > before


def test_a_gain_for_most_that_costs_one_kind_is_refused():
    """Links say where the answer is, but for paraphrases they lead astray."""
    ranking = Simulated(160, 2, vector=0.2, graph=0.3)
    right = ranking.right
    for at, each in enumerate(ranking.questions):
        if each.kind == "paraphrase":
            ranking.evidence[at, right[at], PARTS.index("graph")] -= 0.8

    found = tune(ranking)

    assert found["searched"]["gain"] > 0
    assert not found["accepted"]
    assert "paraphrase" in found["refusal"] or "within chance" in found["refusal"]


def test_what_is_set_above_the_tuning_is_not_turned():
    ranking = Simulated(120, 1, vector=0.05, graph=0.4)
    found = tune(ranking, fixed={"fuse.weights.graph"})
    assert "fuse.weights.graph" not in found["settings"]


def test_the_same_seed_finds_the_same():
    ranking = Simulated(80, 5, graph=0.3)
    one, other = (tune(ranking, seed=3) for _ in range(2))
    assert one == other


def test_halves_share_every_kind_and_no_question():
    ranking = Simulated(61, 0)
    first, second = halves(ranking.questions, 7)
    assert sorted([*first, *second]) == list(range(61))
    assert abs(len(first) - len(second)) <= 1
    for kind in KINDS:
        both = [sum(ranking.questions[at].kind == kind for at in half) for half in (first, second)]
        assert abs(both[0] - both[1]) <= 1


def test_too_few_questions_are_refused():
    ranking = Simulated(MIN_QUESTIONS - 1, 0)
    with pytest.raises(UsageError, match="too few"):
        check_questions(ranking.questions, plain())


def test_every_knob_is_a_setting_and_stays_within_its_bounds():
    for name in ("rrf", "weighted", "features"):
        config = replace(
            profiles.config("default"), fuse=replace(profiles.config("default").fuse, method=name)
        )
        for knob in knobs(config):
            here = setting_value(config, knob.key)
            for number in knob.near(here):
                assert knob.low <= number <= knob.high
                assert number != here
                assert setting_value(with_values(config, {knob.key: number}), knob.key) == number


def test_a_knob_at_zero_can_be_turned_on_and_off_again():
    assert list(Knob("x").near(0.0)) == [0.05]
    assert 0.0 in list(Knob("x").near(0.2))


# --- The command, on a vault whose exam is easy to better ---


@pytest.fixture(scope="module")
def vault(tmp_path_factory):
    return vault_of(tmp_path_factory.mktemp("tune") / "garden", GARDEN)


@pytest.fixture
def run(vault, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("RAGVAULT_HOME", str(vault.folder.parent.parent))
    flags = [part for flag in FAKE for part in ("--set", flag)]

    def call(*args: str) -> tuple[int, str]:
        code = main(["tune", *args, "--vault", str(vault.root), *flags])
        return code, capsys.readouterr().out

    yield call
    for path in vault.folder.glob("tuned*"):
        path.unlink()


@pytest.fixture(scope="module")
def exam(vault, tmp_path_factory):
    with vault.catalogue() as catalogue:
        questions = probes(catalogue, 48)
    path = tmp_path_factory.mktemp("exam") / "exam.jsonl"
    write_questions(path, questions)
    return path


def origins(vault: Vault) -> dict[str, str]:
    environ = {"RAGVAULT_HOME": str(vault.folder.parent.parent)}
    return dict(Vault.open(vault.root, flags=FAKE, environ=environ).settings.origin)


# Weights that leave out all that is known: easy to better.
BAD = [
    *("--set", "fuse.exact=0"),
    *("--set", "fuse.weights.vector=0"),
    *("--set", "fuse.weights.keyword=0"),
    *("--set", "fuse.weights.code=0"),
    *("--set", "fuse.weights.graph=0"),
]


def test_a_tuning_is_kept_beside_the_index_with_its_receipt_and_taken_back(vault, exam, run):
    before = sorted(path.name for path in vault.root.rglob("*"))

    code, out = run(str(exam), *BAD, "--json")
    receipt = json.loads(out)

    assert code == 0, receipt["refusal"]
    assert receipt["accepted"]
    assert {"before", "after", "seed", "revision", "settings", "judged"} <= set(receipt)
    assert sorted(path.name for path in vault.root.rglob("*")) == before
    key = next(iter(receipt["settings"]))
    assert origins(vault)[key].startswith("tuned file ")
    assert (vault.folder / "tuned.jsonl").read_text().count("\n") == 1
    words = (vault.folder / "tuned.jsonl").read_text() + (
        vault.folder / "tuned-default.toml"
    ).read_text()
    assert "Compost" not in words

    code, out = run("--revert")

    assert (code, key in out) == (0, True)
    assert not origins(vault)[key].startswith("tuned")
    assert run("--revert")[0] == 2


def test_a_dry_run_writes_nothing(vault, exam, run):
    code, out = run(str(exam), *BAD, "--dry-run")
    assert code == 0
    assert "kept your current settings: --dry-run" in out
    assert not list(vault.folder.glob("tuned*"))


def test_what_is_tuned_for_one_profile_leaves_the_others_alone(vault):
    environ = {"RAGVAULT_HOME": str(vault.folder.parent.parent)}
    tuned = vault.folder / "tuned-default.toml"
    tuned.write_text("boost.max_rise = 0.5\n")
    try:
        ours = Vault.open(vault.root, environ=environ).settings
        other = Vault.open(vault.root, flags=["search.profile=ragdocs"], environ=environ).settings
    finally:
        tuned.unlink()
    assert ours.config.boost.max_rise == 0.5
    assert not other.origin["boost.max_rise"].startswith("tuned")


def test_the_vaults_own_file_and_flags_stand_above_what_was_tuned(vault):
    environ = {"RAGVAULT_HOME": str(vault.folder.parent.parent)}
    tuned, own = vault.folder / "tuned-default.toml", vault.root / ".ragvault.toml"
    tuned.write_text("boost.max_rise = 0.5\nfuse.k = 7\n")
    own.write_text("[boost]\nmax_rise = 0.6\n")
    try:
        settings = Vault.open(vault.root, flags=["fuse.k=9"], environ=environ).settings
    finally:
        tuned.unlink()
        own.unlink()
    assert (settings.config.boost.max_rise, settings.config.fuse.k) == (0.6, 9)


@pytest.mark.slow
def test_shuffled_answers_on_a_real_ranking_change_nothing(vault, exam):
    """The same law with real candidates, for a few seeds."""
    with vault.catalogue() as catalogue:
        asked = probes(catalogue, 60)
    asked = [each for each in asked if each.relevant]
    changed = 0
    for seed in range(5):
        answers = [each.relevant for each in asked]
        random.Random(seed).shuffle(answers)
        mixed = [
            type(each)(each.id, each.query, relevant, each.kind)
            for each, relevant in zip(asked, answers, strict=True)
        ]
        with Replay(with_flags(vault), mixed, NOW) as replay:
            changed += tune(replay, seed=seed)["accepted"]
    assert changed == 0
