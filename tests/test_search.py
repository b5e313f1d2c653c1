"""The read path, whole, on the sample vault with the small fake model."""

from __future__ import annotations

import json
import random
import shutil
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyword_kit import ENGINES
from vector_shelf import DIM, WORDS, brute_force, in_file, vector_of

from ragvault.answer.results import VaultAnswer
from ragvault.config import profiles
from ragvault.config.load import load_settings
from ragvault.config.settings import Vector
from ragvault.corpus import LocalCorpus, NoteTexts
from ragvault.engines import Engines
from ragvault.errors import RagvaultError, UsageError
from ragvault.plan import QueryPlan
from ragvault.ports import CacheBroken, VaultFacts
from ragvault.query.understand import understand
from ragvault.retrieve.gather import SEARCHES, code_leg, keyword_leg, vector_leg
from ragvault.search import search
from ragvault.types import SearchRequest
from ragvault.vault import Vault

SAMPLE = Path(__file__).parent.parent / "sample_vault"
NOW = datetime(2026, 3, 1, tzinfo=timezone.utc)
FAKE = ("models.static=fake", "models.embedder=fake", "models.reranker=fake")


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Vault:
    root = tmp_path_factory.mktemp("search") / "vault"
    shutil.copytree(SAMPLE, root)
    opened = Vault.open(root, flags=FAKE)
    opened.index()
    return opened


@pytest.fixture(scope="module")
def index(vault: Vault) -> Iterator[LocalCorpus]:
    with vault.corpus() as opened:
        yield opened


def ask(index: LocalCorpus, query: str, limit: int = 10, **how: str) -> VaultAnswer:
    return search(SearchRequest(query, NOW, limit, **how), index)


def paths(response: VaultAnswer) -> list[str]:
    return [each.note.path for each in response.results]


def with_settings(vault: Vault, *flags: str) -> LocalCorpus:
    loaded = load_settings(vault.root, flags=[*FAKE, *flags])
    return LocalCorpus(vault.root, vault.catalogue(), Engines(vault.folder, loaded))


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("Staling", "Science/Staling.md"),
        ("gluten", "Science/Gluten.md"),
        ("Flour Types", "Reference/Flour Types.md"),
        ("brühstück und kochstück", "Deutsch/Brühstück und Kochstück.md"),
        ("levain", "Technique/Sourdough Starter.md"),
        ("mother culture", "Technique/Sourdough Starter.md"),
    ],
)
def test_an_exact_title_or_alias_comes_first(index, query, first):
    assert paths(ask(index, query))[0] == first


def test_a_quoted_phrase_is_in_every_result(index):
    response = ask(index, '"falling number"')
    assert response.results
    assert all("falling number" in each.passage.text.casefold() for each in response.results)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("W-280", "Reference/Flour Types.md"),
        ("scale_recipe", "Reference/Bakers Percentages.md"),
        ("bakersPercentage", "Reference/Bakers Percentages.md"),
        ("autolise flour watter", "Technique/Autolyse.md"),
        ("C. humilis", "Science/Starter Microbes.md"),
    ],
)
def test_identifiers_and_typos_are_found_by_word(index, query, found):
    assert found in paths(ask(index, query))[:3]


def test_a_filter_holds_for_every_leg(index):
    response = ask(index, "dough path:Recipes", limit=50)
    assert response.results
    assert all(path.startswith("Recipes/") for path in paths(response))
    assert not any(path.startswith("Recipes/") for path in paths(ask(index, "dough -path:Recipes")))


def test_a_filter_alone_lists_notes_by_date(index):
    dates = [each.note.date for each in ask(index, "tag:recipe", limit=30).results]
    assert len(dates) > 3
    # Files of one moment were copied: theirs is no date of their own.
    assert dates == sorted(dates, key=lambda date: (date.source == "mtime", -date.at))


def test_a_superseded_note_stands_behind_its_successor(index):
    found = paths(ask(index, "feeding the starter", limit=30))
    old, new = "Technique/Feeding Routine 2023.md", "Technique/Sourdough Starter.md"
    assert found.index(new) < found.index(old)


def test_every_result_says_why_and_the_sums_check_out(index):
    response = ask(index, "why is the crumb tight")
    for each in response.results:
        assert each.steps[0].stage == "fuse"
        for step in each.steps:
            if step.terms:
                assert step.total == pytest.approx(step.score, abs=1e-9)
    for before, after in pairwise(response.stages):
        assert len(before.ranked) == len(after.ranked) + len(after.ranked.removed)


def test_the_same_index_query_and_clock_give_the_same_answer(index):
    one, other = ask(index, "rye and acid"), ask(index, "rye and acid")
    assert [(c.id, c.score, c.steps) for c in one.results] == [
        (c.id, c.score, c.steps) for c in other.results
    ]


@pytest.mark.parametrize(
    "query",
    ["a", "🍞", "the of and", "x" * 10_000, "word " * 2000, "'; DROP TABLE notes; --", "[[", "???"],
    ids=["one letter", "emoji", "stop words", "long word", "long text", "SQL", "brackets", "marks"],
)
def test_odd_queries_answer_or_say_why_not(index, query):
    response, refused = None, None
    try:
        response = ask(index, query)
    except UsageError as error:
        refused = error

    assert not response.failed if response else refused.fix


def test_an_empty_query_says_why_not(index):
    with pytest.raises(UsageError, match="nothing to search for"):
        ask(index, "   ")


def test_a_leg_that_fails_is_named_and_the_search_goes_on(vault, monkeypatch):
    def broken(*_: object) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setitem(SEARCHES, "vector", broken)
    with with_settings(vault) as index:
        response = ask(index, "gluten")
    assert "the disk is gone" in response.failed["vector"]
    assert paths(response)[0] == "Science/Gluten.md"


@pytest.mark.parametrize("leg", ["vector", "keyword"])
def test_a_leg_that_breaks_after_its_answer_is_named_and_keeps_its_hits(vault, monkeypatch, leg):
    def broken(*_: object, **__: object) -> None:
        raise CacheBroken("a file is gone")

    with with_settings(vault) as index:
        before = ask(index, "gluten")
        if leg == "vector":
            monkeypatch.setattr(LocalCorpus, "cosines", broken)
        else:
            monkeypatch.setattr(type(index.keyword), "score_of", broken)
        response = ask(index, "gluten")
    assert "a file is gone" in response.failed[leg]
    assert paths(response)[0] == paths(before)[0]
    assert {run.leg for run in response.runs if run.hits} >= {"vector", "keyword"}


def test_a_leg_that_hangs_does_not_hold_up_the_next_searches(vault, monkeypatch):
    waiting = threading.Event()
    with with_settings(vault, "retrieve.seconds=2") as index:
        assert ask(index, "gluten").results  # models are loaded
        monkeypatch.setitem(SEARCHES, "code", lambda *a: waiting.wait(30) and code_leg(*a))
        hung = [ask(index, "gluten") for _ in range(3)]
        waiting.set()
    assert [set(response.failed) for response in hung] == [{"code"}] * 3


def test_a_leg_that_is_late_is_named_and_the_search_goes_on(vault, monkeypatch):
    monkeypatch.setitem(SEARCHES, "keyword", lambda *a: time.sleep(2.5) or keyword_leg(*a))
    with with_settings(vault, "retrieve.seconds=1") as index:
        assert index.embed_query("loaded", "query").size
        response = ask(index, "gluten")
    assert "no answer within 1 s" in response.failed["keyword"]
    assert response.results


def test_only_the_leg_with_a_model_may_take_as_long_as_loading_it(vault, monkeypatch):
    waiting = threading.Event()
    monkeypatch.setitem(SEARCHES, "code", lambda *a: waiting.wait(30))
    with with_settings(vault, "retrieve.seconds=1") as index:
        response = ask(index, "gluten")  # the first, which loads the model
        waiting.set()
    assert response.failed == {"code": "no answer within 1 s"}
    assert response.results


def test_a_hypothesis_is_embedded_in_place_of_the_query(index):
    guess = "Starch takes water from the crumb and turns firm while bread cools and ages"
    plain, guessed = ask(index, "why"), ask(index, "why", hypothesis=guess)
    assert paths(plain) != paths(guessed)


def test_embedding_overlaps_keyword_search(index, monkeypatch):
    monkeypatch.setitem(SEARCHES, "vector", lambda *a: time.sleep(0.2) or vector_leg(*a))
    runs = {run.leg: run for run in ask(index, "sourdough starter").runs}
    assert set(runs) == {"name", "vector", "keyword", "code", "graph"}
    assert runs["graph"].start >= max(runs["vector"].end, runs["keyword"].end)
    assert runs["keyword"].start < runs["vector"].end


@pytest.mark.parametrize("name", profiles.names())
def test_every_profile_answers(vault, name):
    with with_settings(vault, f"search.profile={name}") as index:
        response = search(SearchRequest("how do I feed a starter", NOW), index)
    assert not response.failed
    assert response.stages[0].stage == "fuse"
    assert 0 < len(response.results) <= profiles.config(name).limit.n
    assert "starter" in " ".join(each.text for each in response.results).lower()
    assert all(each.confidence is not None and each.band for each in response.results)


def test_a_vaults_own_file_switches_recency_off(vault):
    with with_settings(vault, "search.profile=ragtriever") as index:
        loud = ask(index, "bread")
    (vault.root / ".ragvault.toml").write_text("[boost.recency]\nenabled = false\n")
    try:
        with with_settings(vault, "search.profile=ragtriever") as index:
            quiet = ask(index, "bread")
    finally:
        (vault.root / ".ragvault.toml").unlink()

    def terms(response: VaultAnswer) -> set[str]:
        return {t.name for each in response.results for s in each.steps for t in s.terms}

    assert "recency" in terms(loud)
    assert "recency" not in terms(quiet)


def test_neighbours_of_hits_come_by_links(vault):
    with with_settings(vault, 'retrieve.legs=["keyword", "graph"]') as index:
        response = ask(index, "Feeding Routine 2023", limit=30)
        linked = {row[1] for row in index.catalogue.link_rows()}
    by_link = [each for each in response.results if set(each.ranks) == {"graph"}]
    assert by_link
    assert any(each.note.id in linked for each in by_link)


def test_neighbours_that_the_filter_excludes_take_no_place_of_others(tmp_path):
    names = [f"plain {at:03}" for at in range(120)]
    for name in names:
        (tmp_path / f"{name}.md").write_text("Nothing of interest.")
    links = "\n".join(f"[[{name}]]" for name in [*names, "zlast"])
    (tmp_path / "Hub.md").write_text(f"#keep The quokka.\n\n{links}")
    (tmp_path / "zlast.md").write_text("#keep Something else.")
    vault = Vault.open(tmp_path, flags=FAKE)
    vault.index()
    with with_settings(vault, 'retrieve.legs=["keyword", "graph"]') as index:
        response = ask(index, "quokka tag:keep")
    assert set(paths(response)) == {"Hub.md", "zlast.md"}


def test_sections_are_shown_and_passages_on_request(vault):
    with with_settings(vault) as index:
        sections = ask(index, "underfermentation")
    with with_settings(vault, "parents.unit=passage") as index:
        passages = ask(index, "underfermentation")
    assert all(each.passage.text.strip() in each.text for each in sections.results)
    assert len(sections.results[0].text) > len(passages.results[0].text)


@pytest.mark.parametrize("unit", ["section", "passage"])
def test_neighbours_are_joined_as_far_as_there_are_any(vault, unit):
    with with_settings(vault, f"parents.unit={unit}") as index:
        alone = ask(index, "underfermentation")
    with with_settings(vault, f"parents.unit={unit}", "parents.neighbours=20") as index:
        joined = ask(index, "underfermentation")
    note = (vault.root / joined.results[0].note.path).read_text()
    assert len(joined.results[0].text) > len(alone.results[0].text)
    assert note.rstrip().endswith(joined.results[0].text.rstrip()[-40:])


def test_a_budget_is_kept_and_what_was_left_out_is_said(vault):
    with with_settings(vault, "budget.enabled=true", "budget.tokens=300") as index:
        response = ask(index, "bread dough")
    assert sum(len(each.text) for each in response.results) <= 300 * 4
    assert any("left out" in line or "cut" in line for line in response.warnings)


def test_results_stand_at_their_lines_in_the_file(vault, index):
    for each in ask(index, "crust and steam").results:
        lines = (vault.root / each.note.path).read_text().split("\n")
        shown = "\n".join(lines[each.lines[0] - 1 : each.lines[1]])
        first = each.text.strip().split("\n")[0]
        assert first in shown


def test_words_of_the_vaults_vocabulary_are_added_where_settings_want_them(vault):
    near = ("query.expand.method=similarity", "query.expand.similarity=0.3")
    with with_settings(vault) as index:
        plain = ask(index, "sour dough starters")
    with with_settings(vault, *near) as index:
        known = index.vocabulary()
        wide = ask(index, "sour dough starters")
        exactly = ask(index, "scale_recipe")
        quoted = ask(index, '"falling number"')
    assert not plain.plan.expansions
    assert 1 <= len(wide.plan.expansions) <= 3
    assert {each.term for each in wide.plan.expansions} <= set(known.terms)
    assert all(each.term in wide.plan.parse for each in wide.plan.expansions)
    assert not exactly.plan.expansions
    assert not quoted.plan.expansions


def test_an_expansion_that_lacks_its_model_is_named_and_the_search_goes_on(vault, monkeypatch):
    def gone(*_: object, **__: object) -> None:
        raise RagvaultError("no such model", fix="ragvault models pull")

    with with_settings(vault, "query.expand.method=similarity") as index:
        assert index.vocabulary().terms
        index.embed_query("loaded", "query")
        monkeypatch.setattr(index.engines, "embedder", gone)
        response = ask(index, "sour dough starters")
    assert response.failed["expand"] == "no such model; ragvault models pull"
    assert response.results


def test_who_wants_more_results_gets_more_candidates(vault):
    with with_settings(vault, "retrieve.vector=5", "retrieve.keyword=5", "limit.n=5") as index:
        few, many = ask(index, "bread", limit=5), ask(index, "bread", limit=20)
    assert len(few.results) <= 5 < len(many.results)


def test_a_list_by_date_says_of_how_many_notes_it_is(index):
    response = ask(index, "tag:recipe", limit=2)
    assert len(response.results) == 2
    assert any(line.startswith("the newest 2 of ") for line in response.warnings)


@pytest.mark.parametrize("exact_max", [250_000, 0], ids=["compared with all", "in lists"])
def test_a_filter_that_keeps_one_passage_in_a_thousand_leaves_the_vector_leg_exact(
    tmp_path, exact_max
):
    """Twelve of 12,000, in an order that a list near the query would not have by chance."""
    chance = np.random.default_rng(0)
    rows = chance.standard_normal((12_000, DIM)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    settings = Vector(exact_max=exact_max, probe=0.1)
    _, made = in_file(tmp_path, dict(enumerate(rows)), settings)
    for turn in range(20):
        kept = np.sort(chance.choice(12_000, 12, replace=False))
        query = vector_of(f"{WORDS[turn % 11]} {turn}")
        plan = QueryPlan("sour dough", text="sour dough")
        hits = vector_leg(OneTier(made, query), plan, 10, kept).hits
        best = brute_force({int(id_): rows[id_] for id_ in kept}, query, 10)
        assert len(best) == 10
        assert [hit.passage for hit in hits] == [id_ for id_, _ in best]
        assert [hit.score for hit in hits] == pytest.approx([score for _, score in best], abs=1e-6)


class OneTier:
    """A corpus with the vectors of one model, for which every query has the same vector."""

    facts = VaultFacts(tier="full")

    def __init__(self, vectors: Any, query: np.ndarray) -> None:
        self.vectors, self.query = vectors, query

    def embed_query(self, text: str, role: str) -> np.ndarray:
        return self.query

    def nearest(self, vector: np.ndarray, limit: int, scope: np.ndarray) -> tuple:
        return self.vectors.search(vector, limit=limit, allowed=scope)


@pytest.mark.parametrize("leg", ["vector", "keyword", "code", "graph"])
@pytest.mark.parametrize(
    "condition",
    ["tag:recipe", "path:Science", "-path:Recipes", "has:table OR has:code", "since:2024"],
)
def test_no_leg_returns_what_the_filter_excludes(vault, leg, condition):
    legs = [leg] if leg != "graph" else ["keyword", "graph"]
    with with_settings(vault, f"retrieve.legs={json.dumps(legs)}") as index:
        plan = understand(condition, index.config.query, now=NOW)
        kept = set(index.catalogue.filtered_passages(plan.filter).tolist())
        found = search(SearchRequest(f"flour water salt scale ({condition})", NOW, 500), index)
    seen = {each.id for each in found.stages[0].ranked}
    assert seen <= kept
    if leg == "vector":  # which has a place for every passage: nothing that is kept is lost
        assert seen == kept


@pytest.fixture(scope="module")
def in_code(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCorpus]:
    """Three notes with the same name in their code, in three languages."""
    root = tmp_path_factory.mktemp("code") / "vault"
    root.mkdir()
    for name, lang in (("one", "python"), ("two", "rust"), ("three", "js")):
        (root / f"{name}.md").write_text(f"# {name}\n\n```{lang}\nparse_thing({name})\n```\n")
    vault = Vault.open(root, flags=FAKE)
    vault.index()
    with vault.corpus() as opened:
        yield opened


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("lang:rust", {"two.md"}),
        ("-lang:rust", {"one.md", "three.md"}),
        ("(lang:python OR path:three)", {"one.md", "three.md"}),
        ("-(lang:python OR lang:rust)", {"three.md"}),
        ("(lang:python OR lang:rust)", {"one.md", "two.md"}),
    ],
)
def test_a_language_in_a_filter_leaves_the_code_leg_all_that_the_filter_keeps(
    in_code, condition, kept
):
    response = ask(in_code, f"parse_thing {condition}")

    ranked = {each.note.path for each in response.results if "code" in each.ranks}
    assert ranked == set(paths(response)) == kept


@pytest.mark.parametrize("engine", ENGINES)
def test_code_in_a_list_a_quote_and_a_callout_is_found_by_the_code_leg(tmp_path, engine):
    root = tmp_path / "vault"
    root.mkdir()
    for name, lead in (("list", "  "), ("quote", "> "), ("callout", "> ")):
        first = {"list": "- Run:\n", "quote": "> Run:\n", "callout": "> [!tip]\n"}[name]
        fence = "".join(f"{lead}{line}\n" for line in ("```ts", "getUserById(1)", "```"))
        (root / f"{name}.md").write_text(f"# {name}\n\n{first}{fence}")
    vault = Vault.open(root, flags=[*FAKE, f"keyword.engine={engine}"])
    vault.index()
    with vault.corpus() as index:
        for query in ("get_user_by_id", "getUserById lang:typescript"):
            found = {each.note.path for each in ask(index, query).results if "code" in each.ranks}
            assert found == {"list.md", "quote.md", "callout.md"}
        assert paths(ask(index, "getUserById -lang:ts")) == []


def test_one_leg_is_enough_to_pass_a_floor(vault):
    with with_settings(vault, 'retrieve.legs=["keyword"]', "calibrate.floor=0.3") as index:
        assert paths(ask(index, "falling number enzymes"))


def test_a_response_may_be_read_after_its_index_is_closed(vault):
    with with_settings(vault, "dedup.enabled=false") as index:
        response = ask(index, "bread", limit=3)
        texts = [each.passage.text for each in response.results]
    assert all(texts)
    assert [each.passage.text for each in response.results] == texts
    assert all(isinstance(each.passage.text, str) for each in response.stages[0].ranked)


def hits_of(response: VaultAnswer) -> dict[str, int]:
    return {run.leg: run.hits for run in response.runs if run.leg in ("vector", "keyword")}


def test_who_wants_more_results_gets_more_candidates_however_it_was_said(vault):
    few = ("retrieve.vector=5", "retrieve.keyword=5")
    with with_settings(vault, *few) as index:
        assert hits_of(ask(index, "bread")) == {"vector": 5, "keyword": 5}
        assert hits_of(ask(index, "bread", limit=20)) == {"vector": 10, "keyword": 10}
        same = search(SearchRequest("bread", NOW, 20, widen=False), index)
        assert hits_of(same) == {"vector": 5, "keyword": 5}
    with with_settings(vault, *few, "limit.n=20") as index:
        assert hits_of(search(SearchRequest("bread", NOW), index)) == {"vector": 10, "keyword": 10}


@pytest.mark.parametrize("name", ["lightrag", "recollection", "ragtriever", "ragdocs"])
def test_a_seeds_limits_hold_however_many_results_are_wanted(vault, name):
    """So the first of many results are those of few."""
    with with_settings(vault, f"search.profile={name}", "rerank.enabled=false") as index:
        few, many = ask(index, "feeding a starter", limit=3), ask(index, "feeding a starter", 30)
    assert hits_of(few) == hits_of(many)
    assert len(many.results) > 3
    assert [each.id for each in many.results[:3]] == [each.id for each in few.results]


def test_a_condition_that_there_was_no_time_to_look_up_is_an_error(vault):
    for query in ("bread -starter", '-starter path:"Recipes"'):
        with (
            with_settings(vault, "keyword.seconds=0.0000001") as index,
            pytest.raises(RagvaultError, match="had no time") as told,
        ):
            ask(index, query)
        assert "keyword.seconds" in told.value.fix


def test_a_list_by_date_wants_no_reranker(vault):
    settings = ("rerank.enabled=true", "models.reranker=nowhere")
    with with_settings(vault, *settings) as index:
        assert "rerank" in ask(index, "bread").failed
        assert not ask(index, "tag:recipe").failed


def test_a_search_in_one_long_note_is_no_shorter_than_others(tmp_path):
    chance = random.Random(0)
    days = (" ".join(f"{chance.randrange(16**9):x} budget." for _ in range(90)) for _ in range(40))
    log = "\n\n".join(f"## Day {at}\n\n{said}" for at, said in enumerate(days))
    (tmp_path / "Log.md").write_text(log)
    vault = Vault.open(tmp_path, flags=FAKE)
    vault.index()
    with with_settings(vault) as index:
        assert len(ask(index, "budget path:Log", limit=12).results) == 12
    with with_settings(vault, "diversify.relax=false") as index:
        assert len(ask(index, "budget path:Log", limit=12).results) == 3


def test_a_text_too_long_to_stay_in_memory_is_read_once_for_all_its_passages():
    read: list[int] = []

    def bodies(notes):
        read.extend(notes)
        return dict.fromkeys(notes, ("x" * 50, ()))

    texts = NoteTexts(bodies, max_characters=10)
    for note in (1, 1, 1, 2, 2, 1):
        assert texts(note) == ("x" * 50, ())

    assert read == [1, 2, 1]
