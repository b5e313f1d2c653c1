"""ragvault links and ragvault related: every link in its place, every neighbour with a reason."""

from __future__ import annotations

import sys
from itertools import product

import pytest
from vault_kit import indexed_sample, ragvault, sample, vault

from ragvault.answer.note_lookup import find_notes
from ragvault.vault import Vault

__all__ = ["indexed_sample", "sample", "vault"]


@pytest.fixture(autouse=True)
def in_the_vault(request, monkeypatch):
    """Paths are printed for the current folder."""
    if "vault" in request.fixturenames:
        monkeypatch.chdir(request.getfixturevalue("vault"))


def test_each_link_of_a_note_is_in_one_list(sample):
    found = ragvault("links", "Journal/2025-01-19.md", "--json").json

    assert [(link["line"], link["note"]) for link in found["outgoing"]] == [
        (8, "Recipes/Rye Loaf.md")
    ]
    (ambiguous,) = found["ambiguous"]
    assert (ambiguous["line"], ambiguous["note"]) == (10, "Recipes/Rye.md")
    assert ambiguous["others"] == ["Science/Rye.md"]
    assert found["broken"] == found["waiting"] == []


def test_a_broken_link_and_a_missing_heading_are_told_with_their_lines(vault):
    assert ragvault("links", "a").out.splitlines() == [
        "a.md",
        "outgoing  line 6: b -> b.md",
        "incoming  b.md:3",
        "incoming  b.md:3",
        "broken    line 6: nowhere",
    ]
    assert "outgoing  line 3: a#Missing -> a.md (no such heading)" in ragvault("links", "b").out


def test_incoming_links_are_the_outgoing_ones_of_others(sample):
    notes = ["Technique/Steam.md", "Recipes/Baguette.md", "Home.md"]
    for note in notes:
        for link in ragvault("links", note, "--json").json["incoming"]:
            back = ragvault("links", link["note"], "--json").json
            pairs = [(out["line"], out["note"]) for out in back["outgoing"] + back["ambiguous"]]
            assert (link["line"], note) in pairs


def test_a_link_of_a_deleted_file_is_marked(vault):
    (vault / "b.md").unlink()

    said = ragvault("links", "a")

    assert "incoming  b.md:3 (file deleted; run: ragvault index)" in said.out


def test_a_note_without_links_ends_with_1(vault):
    said = ragvault("links", "c")

    assert (said.code, said.out) == (1, "sub/c.md\n")
    assert said.err == "sub/c.md has no links, and no note links to it\n"
    assert ragvault("links", "c", "-q").err == ""


@pytest.mark.parametrize("command", ["links", "related", "forget"])
@pytest.mark.parametrize(
    ("named", "message", "fix"),
    [
        ("Rye", "Rye could be Recipes/Rye.md, Science/Rye.md", "give the path of one of them"),
        (
            "Recipes/Baguete.md",
            "no note called “Recipes/Baguete.md”",
            "did you mean Recipes/Baguette.md?",
        ),
        (
            "nowhere",
            "no note called “nowhere”",
            "give the path of a note in the vault, or search: ragvault search nowhere",
        ),
    ],
)
def test_commands_agree_on_what_is_no_note(command, named, message, fix, sample):
    said = ragvault(command, named)

    assert said.code == 2
    assert said.err == f"ragvault: {message}\n     fix: {fix}\n"


def test_a_folder_is_no_note_but_may_be_forgotten(vault):
    (vault / "sub" / "d.md").write_text("# D")
    ragvault("index", vault, "-q")

    for command, named in product(("links", "related", "read", "open"), ("sub", "sub/", "./sub/")):
        said = ragvault(command, named)
        assert said.err.startswith(f"ragvault: {named} is a folder with 2 notes\n")
    assert ragvault("forget", "sub/", "-q", "--json").json["notes"] == ["sub/c.md", "sub/d.md"]
    ragvault("index", vault, "-q")
    assert ragvault("forget", "sub", "-q", "--json").json["notes"] == ["sub/c.md", "sub/d.md"]


@pytest.mark.parametrize("named", ["Technique/Steam.md", "Steam", "steam.MD", "technique/steam"])
def test_a_note_may_be_named_in_many_ways(named, sample):
    assert ragvault("links", named, "--json").json["note"] == "Technique/Steam.md"


def test_a_note_may_be_named_as_the_shell_does(sample, monkeypatch):
    monkeypatch.chdir(sample / "Technique")

    for named in ("Steam.md", "./Steam.md", "../Technique/Steam.md", str(sample / "Home.md")):
        assert ragvault("links", named).code == 0


# --path


def test_a_path_has_every_note_between_with_the_direction_and_the_lines_of_its_links(vault):
    (vault / "d.md").write_text("# D\n\n[[a]]\n")
    (vault / "e.md").write_text("# E\n\n[[b]]\n\n![[b]]\n")
    ragvault("index", vault, "-q")

    assert ragvault("links", "d", "--path", "e").out.splitlines() == [
        "d.md",
        "->  a.md (d.md:3)",
        "<-> b.md (a.md:6, b.md:3, b.md:3)",
        "<-  e.md (e.md:3, e.md:5)",
    ]
    found = ragvault("links", "e", "--path", "d", "--json").json
    assert found["notes"] == ["e.md", "b.md", "a.md", "d.md"]
    assert [step["direction"] for step in found["steps"]] == ["out", "both", "in"]
    assert found["steps"][0]["links"] == [
        {"note": "e.md", "line": 3, "target": "b", "kind": "link", "to": "b.md"},
        {"note": "e.md", "line": 5, "target": "b", "kind": "embed", "to": "b.md"},
    ]


def test_notes_that_are_not_connected_end_with_1_and_a_sentence(vault):
    said = ragvault("links", "a", "--path", "c")
    assert (said.code, said.out) == (1, "")
    assert said.err == "no links connect a.md and sub/c.md\n"
    found = ragvault("links", "a", "--path", "c", "--json", "-q")
    assert (found.code, found.err) == (1, "")
    assert found.json == {"note": "a.md", "to": "sub/c.md", "notes": [], "steps": []}


def test_a_note_is_connected_to_itself(vault):
    said = ragvault("links", "c", "--path", "c")
    assert (said.code, said.out) == (0, "sub/c.md\n")


def test_a_note_on_the_path_whose_file_is_gone_is_marked(vault):
    (vault / "b.md").unlink()
    assert "b.md" in ragvault("links", "a", "--path", "b").out
    assert "(file deleted; run: ragvault index)" in ragvault("links", "a", "--path", "b").out


@pytest.mark.parametrize("notes", [("nope", "a"), ("a", "nope")])
def test_a_path_needs_two_notes(notes, vault):
    said = ragvault("links", notes[0], "--path", notes[1])
    assert said.code == 2
    assert said.err.startswith("ragvault: no note called “nope”\n")


def test_without_networkx_a_path_fails_and_links_do_not(vault, monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    said = ragvault("links", "a", "--path", "b")
    assert said.code == 4
    assert "networkx" in said.err
    assert "fix: pip install networkx" in said.err
    assert ragvault("links", "a").code == ragvault("related", "a").code == 0


# related


def test_every_neighbour_has_its_reasons_and_none_is_the_note_itself(sample):
    found = ragvault("related", "Steam", "-n", "40", "--json").json["related"]

    assert [each["rank"] for each in found] == list(range(1, len(found) + 1))
    assert "Technique/Steam.md" not in [each["note"] for each in found]
    assert all(each["reasons"] for each in found)
    scores = [each["score"] for each in found]
    assert scores == sorted(scores, reverse=True)


def test_a_linked_note_near_by_vector_and_community_is_first(sample):
    first = ragvault("related", "Steam", "-n", "1", "--json").json["related"][0]

    assert first["note"] == "Reference/Equipment.md"
    assert [reason["by"] for reason in first["reasons"]] == ["links", "vector", "community"]


def test_who_links_to_whom_is_told(sample):
    found = ragvault("related", "Steam", "-n", "40", "--json").json["related"]
    why = {each["note"]: each["reasons"][0]["why"] for each in found}

    assert why["Recipes/Baguette.md"] == "they link to each other"
    assert why["Home.md"] == "it links to this note"
    assert why["Reference/Glossary.md"].startswith("linked via [[")


def test_near_by_vector_alone_is_enough(vault):
    (vault / "d.md").write_text("# D\n\nFlour and water, and nothing else.\n")
    ragvault("index", vault, "-q")

    found = ragvault("related", "b", "--json").json["related"]

    reasons = {each["note"]: [reason["by"] for reason in each["reasons"]] for each in found}
    assert reasons["d.md"] == ["vector"]


def test_a_deleted_note_is_never_shown(vault):
    (vault / "b.md").unlink()

    assert "b.md" not in ragvault("related", "a").out


def test_without_vectors_it_answers_by_links_and_says_so(vault, monkeypatch, tmp_path):
    monkeypatch.setenv("RAGVAULT_HOME", str(tmp_path / "other"))
    ragvault("index", vault, "--tier", "keyword", "-q")

    said = ragvault("related", "a")

    assert said.out.startswith("B\n    b.md\n    they link to each other\n")
    assert said.err == (
        "warning: vectors were not used: this note has none; run: ragvault index --tier static\n"
    )


def test_a_note_without_neighbours_ends_with_1(vault, monkeypatch, tmp_path):
    monkeypatch.setenv("RAGVAULT_HOME", str(tmp_path / "other"))
    ragvault("index", vault, "--tier", "keyword", "-q")

    assert ragvault("related", "c", "-q").code == 1


def test_related_loads_no_model(sample, monkeypatch):
    monkeypatch.delitem(sys.modules, "ragvault.models.fake", raising=False)

    assert ragvault("related", "Steam", "-q").code == 0
    assert "ragvault.models.fake" not in sys.modules


@pytest.mark.parametrize(
    ("typed", "note"),
    [
        ("Crème brûlée", "deep/er/Crème brûlée.md"),
        ("creme-brulee", "deep/er/Crème brûlée.md"),
        ("er/creme brulee", "deep/er/Crème brûlée.md"),
        ("Cooks pudding", "a.md"),
        ("dessert", "a.md"),
    ],
)
def test_a_name_means_the_same_note_at_every_door(tmp_path, monkeypatch, typed, note):
    monkeypatch.setenv("RAGVAULT_HOME", str(tmp_path / "home"))
    files = {
        "deep/er/Crème brûlée.md": "Sugar, see [[a]].\n",
        "a.md": "---\ntitle: Cook’s pudding\naliases: [Dessert]\n---\n[[Crème brûlée]]\n",
        "b.md": "Of a creme brulee and a dessert, a cooks pudding.\n",
    }
    for path, text in files.items():
        (tmp_path / "v" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "v" / path).write_text(text)
    vault = Vault.open(tmp_path / "v")
    vault.index("keyword")
    (other,) = files.keys() - {note, "b.md"}

    assert vault.search(typed).results[0].note == note
    assert [each.note for each in vault.search(f'link:"{typed}"').results] == [other]
    assert [each.note for each in vault.search(f'linkedby:"{typed}"').results] == [other]
    assert vault.place(typed).note == vault.read(typed).note == vault.links(typed).note == note
    assert vault.related(typed).note == note
    assert vault.forget(typed).notes == (note,)


NAMED_AS_A_FOLDER = {
    "Projects.md": "The note of all projects, see [[Sub]].\n",
    "Projects/Sub.md": "One project.\n",
    "Categories/Clippings.md": "All that was clipped.\n",
    "Clippings/One.md": "Clipped.\n",
    "Clippings/Two.md": "Clipped too.\n",
}


@pytest.mark.parametrize(
    ("named", "path"),
    [
        ("Projects", "Projects.md"),
        ("projects", "Projects.md"),
        ("Projects/", "Projects/Sub.md"),
        ("Clippings", "Categories/Clippings.md"),
        ("Categories", "Categories/Clippings.md"),
        ("./Projects", "Projects.md"),
        ("./projects", "Projects.md"),
        ("{here}/Projects", "Projects.md"),
        ("./Projects/", "Projects/Sub.md"),
        ("{here}/Projects/", "Projects/Sub.md"),
        ("Projects/Sub", "Projects/Sub.md"),
        ("./Categories", "Categories/Clippings.md"),
    ],
)
def test_every_command_takes_the_note_of_a_name_before_the_folder(
    tmp_path, monkeypatch, named, path
):
    monkeypatch.setenv("RAGVAULT_HOME", str(tmp_path / "home"))
    for note, text in NAMED_AS_A_FOLDER.items():
        (tmp_path / "v" / note).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "v" / note).write_text(text)
    vault = Vault.open(tmp_path / "v")
    vault.index("keyword")
    monkeypatch.chdir(vault.root)
    named = named.format(here=vault.root)

    with vault.catalogue() as catalogue:  # where `open` looks
        assert find_notes(vault.root, catalogue.names(), named)[0] == [path]
    assert vault.read(named).note == path
    assert vault.links(named).note == path
    assert vault.related(named).note == path
    assert vault.forget(named).notes == (path,)


def test_a_slash_never_means_a_note(vault):
    (vault / "alone.md").write_text("# Alone\n")
    ragvault("index", vault, "-q")

    for named in ("alone/", "./alone/"):
        assert ragvault("forget", named).code == 2, named
    assert ragvault("read", "./alone").code == 0
