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
    wanted = ("vector", "keyword", "code", "graph", "backlinks", "recency", "importance", "aliases")
    assert {found[name].state for name in wanted} == {"alive"}
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
    assert all(each.moved <= each.fired for each in found.values())


def test_templates_are_a_signal_where_there_are_any(garden, tmp_path):
    form = {"Templates/Harvest.md": "# Harvest\n\nWhat was picked, when, and how much of it.\n"}

    assert signals(garden, 7)["templates"].state == "idle"
    assert signals(vault_of(tmp_path / "forms", GARDEN | form), 7)["templates"].state == "alive"


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
