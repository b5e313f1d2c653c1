"""How often notes were opened: counted only where it is wanted, and in a file of its own."""

from __future__ import annotations

import shutil
from datetime import datetime, timezone
from pathlib import Path

import pytest

from ragvault.answer.results import VaultAnswer
from ragvault.cli.search import answer_search, parse_search
from ragvault.cli.start import this_caller
from ragvault.config.load import load_settings
from ragvault.corpus import LocalCorpus
from ragvault.engines import Engines
from ragvault.errors import IndexUnusable
from ragvault.search import search
from ragvault.store import access
from ragvault.types import SearchRequest
from ragvault.vault import Vault

SAMPLE = Path(__file__).parents[2] / "sample_vault"
NOW = datetime(2026, 3, 1, tzinfo=timezone.utc)
FAKE = ("models.static=fake", "models.embedder=fake")


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    root = tmp_path / "vault"
    shutil.copytree(SAMPLE / "Science", root)
    opened = Vault.open(root, flags=FAKE)
    opened.index("keyword")
    return opened


def ask(vault: Vault, query: str, *flags: str) -> VaultAnswer:
    loaded = load_settings(vault.root, flags=[*FAKE, *flags])
    with LocalCorpus(vault.root, vault.catalogue(), Engines(vault.folder, loaded)) as index:
        return search(SearchRequest(query, NOW, 20), index)


def type_(vault: Vault, *args: str) -> None:
    around = this_caller()
    ask = parse_search(["search", *args, "--vault", str(vault.root), "-q"])
    assert answer_search(ask, around).code == 0


def opened(folder: Path) -> dict[str, tuple[int, float]]:
    """What was recorded of three notes."""
    known = access.read_accesses(folder)
    names = {access.path_digest(name): name for name in ("a.md", "b.md", "c.md")}
    return {names[digest]: times for digest, times in known.items()}


def test_each_recording_counts_once_more(tmp_path):
    access.record_accesses(tmp_path, ["a.md", "b.md", "b.md"], 10.0)
    access.record_accesses(tmp_path, ["b.md"], 20.0)

    assert opened(tmp_path) == {"a.md": (1, 10.0), "b.md": (2, 20.0)}


def test_no_name_of_a_note_is_stored(tmp_path):
    access.record_accesses(tmp_path, ["quokka.md"], 10.0)

    assert b"quokka" not in (tmp_path / access.FILE).read_bytes()


def test_a_count_goes_with_a_note_that_is_moved(tmp_path):
    access.move_access(tmp_path, "a.md", "b.md")
    assert list(tmp_path.iterdir()) == []
    access.record_accesses(tmp_path, ["a.md", "b.md"], 10.0)
    access.move_access(tmp_path, "a.md", "b.md")  # over another
    access.move_access(tmp_path, "b.md", "c.md")

    assert opened(tmp_path) == {"c.md": (1, 10.0)}


def test_reading_what_is_not_there_makes_no_file(tmp_path):
    assert access.read_accesses(tmp_path) == {}
    access.forget_accesses(tmp_path, ["a.md"])
    assert list(tmp_path.iterdir()) == []


def test_the_file_is_its_owners_alone(tmp_path):
    access.record_accesses(tmp_path, ["a.md"], 10.0)
    assert (tmp_path / access.FILE).stat().st_mode & 0o777 == 0o600


def test_a_damaged_file_says_what_may_be_done_with_it(tmp_path):
    (tmp_path / access.FILE).write_bytes(b"no database" * 100)
    with pytest.raises(IndexUnusable) as raised:
        access.read_accesses(tmp_path)
    assert raised.value.fix.startswith("delete ")


def test_a_search_goes_on_without_a_damaged_file_and_says_so(vault):
    (vault.folder / access.FILE).write_bytes(b"no database" * 100)
    response = ask(vault, "gluten", "boost.access.enabled=true")

    assert response.results
    assert "delete " in response.failed["access"]


@pytest.mark.parametrize(
    ("args", "counted"),
    [
        (["gluten", "--format", "context"], 0),  # off by default
        (["gluten", "--set", "access.record=true"], 0),  # a list is not read
        (["gluten", "--set", "access.record=true", "--format", "paths"], 0),
        (["gluten", "--set", "access.record=true", "--format", "context", "-n", "1"], 1),
    ],
)
def test_only_what_is_handed_over_is_counted_and_only_where_it_is_wanted(vault, args, counted):
    type_(vault, *args)
    known = access.read_accesses(vault.folder)
    assert known.get(access.path_digest("Gluten.md"), (0, 0))[0] == counted
    assert (vault.folder / access.FILE).exists() == bool(counted)


def test_a_vault_may_not_ask_to_record(vault):
    (vault.root / ".ragvault.toml").write_text("[access]\nrecord = true\n")
    around = this_caller()
    typed = parse_search(["search", "gluten", "--vault", str(vault.root)])
    reply = answer_search(typed, around)
    assert reply.code == 2
    assert "access" in reply.err[0]


def test_what_was_opened_is_a_boost_a_list_and_a_window(vault):
    access.record_accesses(vault.folder, ["Staling.md"], 10.0)
    with vault.catalogue() as catalogue:
        staling = catalogue.note_id("Staling.md")

    boosted = ask(vault, "starch", "boost.access.enabled=true")
    found = next(each for each in boosted.results if each.note.id == staling)
    assert found.note.access == 1
    assert "access" in {term.name for step in found.steps for term in step.terms}

    listed = ask(vault, "starch", 'retrieve.lists=["access"]')
    assert {each.ranks["access"] for each in listed.results if each.note.id == staling} == {1}

    inside = ask(vault, "starch", "retrieve.window=1", "retrieve.outside=drop")
    assert {each.note.id for each in inside.results} == {staling}


def test_what_lies_outside_of_the_window_is_lost_from_the_best_and_not_replaced(vault):
    """As the seed has it: so many keyword hits of all notes, and then those in the window."""
    access.record_accesses(vault.folder, ["Staling.md"], 10.0)
    window = ("retrieve.window=1", "retrieve.outside=drop", 'retrieve.legs=["keyword"]')
    window = (*window, "retrieve.fill=[]")  # the leg's own ranks

    ranks = {each.ranks["keyword"] for each in ask(vault, "gluten starch", *window).results}
    assert min(ranks) > 1, "it keeps its place in the list of all"
    first = (f"retrieve.keyword={min(ranks) - 1}", "retrieve.widen=false")
    assert ask(vault, "gluten starch", *window, *first, "limit.n=20").results == ()


def test_counts_outlive_a_move_and_a_catalogue_that_is_made_again(vault):
    access.record_accesses(vault.folder, ["Staling.md"], 10.0)
    (vault.root / "Staling.md").rename(vault.root / "Stale.md")
    vault.index("keyword")
    (vault.folder / "catalogue.sqlite").write_bytes(b"no database" * 100)
    vault.index("keyword", rebuild=True)

    found = ask(vault, "starch", "boost.access.enabled=true").results
    assert {each.note.path for each in found if each.note.access} == {"Stale.md"}


def test_a_forgotten_note_is_forgotten_here_too(vault):
    access.record_accesses(vault.folder, ["Staling.md", "elsewhere.md"], 10.0)
    vault.forget("Staling.md")

    assert set(access.read_accesses(vault.folder)) == {access.path_digest("elsewhere.md")}
