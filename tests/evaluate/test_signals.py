"""Signals: one that works fires, one without cause is idle, and a planted defect is dead."""

from __future__ import annotations

import re
import sqlite3

import pytest
from evaluate_kit import GARDEN, NOW, vault_of

from ragvault.evaluate.probes import probes
from ragvault.evaluate.signals import count_signals, non_latin_scripts
from ragvault.index.tiers import Tiers
from ragvault.rank import boost
from ragvault.text import analyze
from ragvault.vault import Vault


def signals(vault: Vault, count: int = 42, moves: int = 0):
    with vault.corpus() as index:
        exam = probes(index.catalogue, count)
        return {each.name: each for each in count_signals(index, exam, NOW, moves=moves)}


def dead(found) -> set[str]:
    return {name for name, each in found.items() if each.state == "dead"}


@pytest.fixture
def garden(tmp_path):
    return vault_of(tmp_path / "garden", GARDEN)


def change(vault: Vault, *statements: str) -> None:
    db = sqlite3.connect(vault.folder / "catalogue.sqlite")
    with db:
        for statement in statements:
            db.execute(statement)
    db.close()


def test_in_a_sound_vault_nothing_is_dead(garden):
    found = signals(garden)

    assert dead(found) == set()
    wanted = ("vector", "keyword", "graph", "backlinks", "importance", "aliases")
    assert {found[name].state for name in wanted} == {"alive"}
    # Both run in thirteen notes; neither is what decides an order there.
    assert {found[name].state for name in ("code", "recency")} == {"same order"}
    assert found["keyword, Chinese"].fired == found["keyword, Chinese"].asked > 0
    filters = {name for name, each in found.items() if each.group == "filter"}
    assert {
        "tag",
        "path",
        "file",
        "title",
        "alias",
        "link",
        "linkedby",
        "heading",
        "date",
    } <= filters
    assert {"has:code", "has:table", "has:task", "has:image", "lang", "property"} <= filters


def test_what_a_signal_moves_is_counted(garden):
    found = signals(garden, 14, moves=14)

    assert found["keyword"].moved > 0
    assert all(each.moved <= each.tried for each in found.values())
    ranking = [each for each in found.values() if each.group in ("leg", "boost", "stage")]
    assert all(each.tried <= each.fired for each in ranking)


def test_a_signal_that_runs_and_changes_no_order_is_not_alive(tmp_path):
    """Weights so small that the boost is on and never decides."""
    idle = signals(vault_of(tmp_path / "garden", GARDEN, "boost.backlinks.weight=0.0000001"))

    assert idle["backlinks"].fired > 0
    assert (idle["backlinks"].moved, idle["backlinks"].state) == (0, "same order")


def test_a_signal_is_alive_by_the_last_question_as_by_the_first(garden):
    """With `moves` 0 a signal is tried until it moved one answer, and no longer."""
    few, all_ = signals(garden, 42, moves=0), signals(garden, 42, moves=100)

    assert {n: s.state for n, s in few.items()} == {n: s.state for n, s in all_.items()}
    assert few["graph"].moved == 1
    assert all_["graph"].tried == all_["graph"].fired > few["graph"].tried


def test_expansion_is_alive_only_if_it_changes_an_answer(tmp_path):
    flags = ("query.expand.method=similarity", "query.expand.similarity=0.2")
    strong = signals(vault_of(tmp_path / "a", GARDEN, *flags, "query.expand.embed=true"))
    weak = signals(vault_of(tmp_path / "b", GARDEN, *flags, "query.expand.weight=0"))

    assert strong["expansion"].fired == weak["expansion"].fired > 0
    assert (strong["expansion"].state, weak["expansion"].state) == ("alive", "same order")


def test_templates_are_a_signal_where_there_are_any(garden, tmp_path):
    form = {
        "Templates/Bed.md": "# Bed\n\nA bed of tomatoes: stake them early, water at the root.\n",
        "Templates/Heap.md": "# Heap\n\nA heap of scraps and dry leaves: air, heat, weeds.\n",
    }

    assert signals(garden, 7)["templates"].state == "idle"
    assert signals(vault_of(tmp_path / "forms", GARDEN | form))["templates"].state == "alive"


def test_an_empty_link_table_is_caught(garden):
    change(garden, "DELETE FROM links", "DELETE FROM link_stats")

    assert {"graph", "backlinks", "link", "linkedby"} <= dead(signals(garden))


@pytest.mark.parametrize("name", ["vector", "backlinks"])
def test_mismatched_keys_are_caught(garden, name, monkeypatch):
    if name == "vector":
        real = Tiers.search

        def shifted(self, *args, **named):
            lists = real(self, *args, **named)
            return {tier: (ids + 1_000_000, scores) for tier, (ids, scores) in lists.items()}

        monkeypatch.setattr(Tiers, "search", shifted)
    else:
        change(garden, "UPDATE link_stats SET note_id = note_id + 1000000")

    assert name in dead(signals(garden))


def test_a_recency_boost_that_never_fires_is_caught(garden, monkeypatch):
    monkeypatch.setattr(boost, "_recency", lambda order, ctx: lambda each: None)

    assert dead(signals(garden)) == {"recency"}


def test_recency_without_a_young_note_is_idle(tmp_path):
    notes = {name: text for name, text in GARDEN.items() if not name.startswith("Journal")}

    found = signals(vault_of(tmp_path / "garden", notes))

    assert found["recency"].state == "idle"
    assert "recent enough" in found["recency"].lacks


def test_an_analyzer_blind_to_chinese_is_caught(tmp_path, monkeypatch):
    latin = re.compile(r"[A-Za-z0-9_]+")
    monkeypatch.setattr(analyze, "run_pattern", lambda text: latin)

    found = signals(vault_of(tmp_path / "garden", GARDEN))

    assert "keyword, Chinese" in dead(found)
    assert found["keyword"].state == "alive"


def test_a_vault_without_links_has_no_dead_graph(tmp_path):
    notes = {f"{n}.md": f"# Thing {n}\n\nSome words about the thing of today." for n in range(14)}

    found = signals(vault_of(tmp_path / "plain", notes, tier="keyword"), 20)

    assert dead(found) == set()
    assert {found[name].state for name in ("graph", "backlinks", "vector")} == {"idle"}


def test_scripts_are_told_apart():
    assert non_latin_scripts("plain words") == []
    assert non_latin_scripts("麵包") == ["Chinese"]
    assert non_latin_scripts("パンの生地") == ["Japanese"]
    assert non_latin_scripts("хлеб и 빵") == ["Korean", "Cyrillic"]
