"""What links say of notes, as indexing stores it: at once, and communities when they are due."""

from __future__ import annotations

import math
import sys

import pytest
from watch_kit import SMALL, Watched, soon
from write_kit import OnStep, models, opened, write

from ragvault.index import graph as link_graph
from ragvault.update import graph, workers
from ragvault.update.graph import REGROUP, LinkGraph

pytestmark = pytest.mark.usefixtures("models")
__all__ = ["models"]


def clusters(count, size=4):
    """Notes in rings: each links to every other of its ring, and to the next ring."""
    return {
        f"{ring}-{member}.md": "".join(
            f"[[{ring}-{other}]]\n" for other in range(size) if other != member
        )
        + (f"[[{ring + 1}-0]]\n" if member == 0 and ring + 1 < count else "")
        for ring in range(count)
        for member in range(size)
    }


@pytest.fixture
def vault(tmp_path):
    write(tmp_path / "vault", clusters(10))
    found = opened(tmp_path / "vault", tmp_path / "home")
    found.index("keyword")
    return found


def standing(vault, path):
    with vault.catalogue() as catalogue:
        return catalogue.link_stats([catalogue.note_id(path)]).get(catalogue.note_id(path))


def stored(vault):
    with vault.catalogue() as catalogue:
        paths = dict(catalogue.notes_since(0))
        return {paths[note]: place for note, place in catalogue.link_stats().items()}


@pytest.fixture
def computed(monkeypatch):
    """How often communities were computed."""
    calls = []
    real = link_graph.communities
    monkeypatch.setattr(link_graph, "communities", lambda *args: calls.append(1) or real(*args))
    return calls


def test_each_ring_is_a_community(vault):
    found = {path: place.community for path, place in stored(vault).items()}
    assert len(set(found.values())) == 10
    assert all(found[path] == found[f"{path[0]}-0.md"] for path in found)


def test_nothing_is_computed_again_while_links_are_the_same(vault, computed):
    write(vault.root, {"0-1.md": "New words.\n\n" + clusters(10)["0-1.md"]})
    vault.index("keyword")
    assert not computed


def test_index_computes_communities_when_one_link_changed(vault, computed):
    write(vault.root, {"new.md": "[[3-1]]"})
    assert vault.index("keyword").communities_due is False
    assert len(computed) == 1


def test_a_watcher_leaves_them_and_a_new_note_takes_the_majority(vault, computed):
    write(vault.root, {"new.md": "[[3-1]] [[3-2]] [[5-0]]"})
    report = vault.index("keyword", regroup=math.inf)

    assert not computed
    assert standing(vault, "new.md").community == standing(vault, "3-1.md").community
    assert standing(vault, "3-1.md").linking_notes == 4  # backlinks are current at once
    assert report.communities_due  # three links of 129 are more than 1 %


def test_few_changed_links_are_not_due_and_add_up(vault, computed):
    with vault.catalogue() as catalogue:
        ties = len(catalogue.ties())
    assert ties == 129
    write(vault.root, {"one.md": "[[3-1]]"})
    assert not vault.index("keyword", regroup=REGROUP).communities_due
    assert not computed
    write(vault.root, {"two.md": "[[4-1]]"})
    assert vault.index("keyword", regroup=math.inf).communities_due
    assert not vault.index("keyword", regroup=REGROUP).communities_due
    assert len(computed) == 1


def test_a_watcher_computes_them_after_what_was_edited_can_be_found(tmp_path, monkeypatch):
    for name, value in {**SMALL, "RAGVAULT_HOME": str(tmp_path / "home")}.items():
        monkeypatch.setenv(name, value)
    write(tmp_path / "vault", clusters(10))
    real, searchable = link_graph.communities, []
    with Watched(tmp_path / "vault") as watched:

        def communities(*args):
            searchable.append(watched.found("quokka"))
            return real(*args)

        monkeypatch.setattr(link_graph, "communities", communities)
        write(watched.root, {"one.md": "wombat [[3-1]]"})
        assert watched.finds("wombat", "one.md")
        assert soon(watched.is_done)
        assert searchable == []  # one link of 129 is less than 1 %
        write(watched.root, {"two.md": "quokka [[3-1]] [[3-2]]"})
        assert soon(lambda: searchable)
        assert soon(watched.is_done)
        places = stored(watched.vault_watcher.vault)
    assert searchable == [["two.md"]]
    assert places["two.md"].community == places["3-1.md"].community


def test_after_index_an_index_that_grew_is_as_one_made_from_scratch(vault, tmp_path):
    write(vault.root, {"new.md": "[[3-1]] [[3-2]] [[5-0]] [[5-1]] [[5-2]]"})
    vault.index("keyword", regroup=math.inf)
    vault.index("keyword")
    clean = opened(vault.root, tmp_path / "clean")
    clean.index("keyword")

    def groups(found):
        places = stored(found)
        return {
            frozenset(path for path in places if places[path].community == place.community)
            for place in places.values()
        }

    assert groups(vault) == groups(clean)


def test_in_a_process_of_its_own_the_communities_are_the_same(vault, tmp_path, monkeypatch):
    here = {path: place.community for path, place in stored(vault).items()}
    monkeypatch.setattr(graph, "MANY", 1)
    other = opened(vault.root, tmp_path / "other")
    other.index("keyword")
    assert {path: place.community for path, place in stored(other).items()} == here


def test_the_work_of_a_process_can_be_left(vault, monkeypatch):
    class Left(Exception):
        pass

    began = []

    def leave(*step):
        if began:  # first it says what it begins
            raise Left
        began.append(step)

    monkeypatch.setattr(graph, "MANY", 1)
    write(vault.root, {"new.md": "[[3-1]] [[3-2]]"})
    vault.index("keyword", regroup=math.inf)
    with vault.catalogue(write=True) as catalogue:
        links = LinkGraph(catalogue)
        with pytest.raises(Left):
            links.update_communities(OnStep(leave))
        assert links.is_due(REGROUP)


def test_a_process_that_dies_is_done_without(vault, monkeypatch):
    monkeypatch.setattr(graph, "MANY", 1)
    monkeypatch.setattr(workers, "serve_jobs", _die)
    write(vault.root, {"new.md": "[[3-1]] [[3-2]]"})
    assert not vault.index("keyword").communities_due
    assert standing(vault, "new.md").community == standing(vault, "3-1.md").community


def _die(*_):
    sys.exit(1)


def test_without_networkx_one_warning_names_the_fix_and_the_rest_works(vault, monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    assert vault.index("keyword").warnings == ()  # nothing to compute
    write(vault.root, {"new.md": "Bread. [[3-1]] [[3-2]]"})

    report = vault.index("keyword")

    (warning,) = report.warnings
    assert "networkx" in warning
    assert "pip install networkx" in warning
    assert standing(vault, "3-1.md").linking_notes == 4
    assert standing(vault, "new.md").community == standing(vault, "3-1.md").community
    assert vault.search("bread").results
    monkeypatch.undo()
    assert vault.index("keyword").warnings == ()


def test_a_vault_without_links_needs_no_networkx(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    write(tmp_path / "vault", {"a.md": "Alone."})
    assert opened(tmp_path / "vault", tmp_path / "home").index("keyword").warnings == ()
