"""Every note is found by the name of its file, whatever is in it and whatever else is called so."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ragvault.answer.results import VaultAnswer
from ragvault.corpus import LocalCorpus
from ragvault.search import search
from ragvault.text.names import typed_name
from ragvault.types import SearchRequest, Tier
from ragvault.vault import Vault

NOW = datetime(2026, 3, 1, tzinfo=timezone.utc)
FAKE = ("models.static=fake", "models.embedder=fake")
TIERS: tuple[Tier, ...] = ("keyword", "static", "full")
LIMIT = 40  # more than there are notes

# Words that say little, are operators, are in every note, or are no words at all.
COMMON = ("index", "README", "a", "The", "note", "2024-01-02", "OR", "NOT that", "C", "C++", "???")
SIGNS = (
    "tag:recipe", "-rye", "Kettle -rye", "(a OR b", 'a "quote', "[status]", "#hash", "since:soon",
    "--hard", "docker run -d nginx", "title.md", "a___b", "What%3F", "50% done_now", "/regex.", "…",
    "`tick`", "ÉTÉ à la plage", "Straße (alt)", "日本語の題名", "🍞", "don't", "foo-bar", "foo bar",
)  # fmt: skip
NAMES = st.one_of(
    st.sampled_from([each.replace("/", "") for each in (*COMMON, *SIGNS)]),
    st.text(st.sampled_from("aeinrst ABC0123'().,-_+!é本"), min_size=1, max_size=24),
    st.lists(st.sampled_from(["rye", "bread", "the", "of", "Index"]), min_size=1, max_size=4).map(
        " ".join
    ),
).filter(lambda name: name.strip() == name and not name.startswith("."))
FOLDERS = st.sampled_from(["", "", "deep/", "deep/er/", "index/", "Templates/"])
SUFFIXES = st.sampled_from([".md", ".md", ".md", ".markdown", ".txt", ".canvas"])


@st.composite
def vaults(draw: st.DrawFn) -> dict[str, str]:
    """Files by path. A text may say, or be called, what another note is called."""
    names = draw(st.lists(NAMES, min_size=1, max_size=6))
    files: dict[str, str] = {}
    for name in names:
        for folder in draw(st.lists(FOLDERS, min_size=1, max_size=2, unique=True)):
            path = folder + name + draw(SUFFIXES)
            other = draw(st.sampled_from(names))
            if path.casefold() not in map(str.casefold, files):
                files[path] = draw(texts(other))
    return files


def texts(other: str) -> st.SearchStrategy[str]:
    """The text of a note, in a vault that has a note called `other`."""
    quoted = "'" + other.replace("'", "''") + "'"
    return st.sampled_from(
        [
            "",
            " \n\t\n",
            "---\nauthor: Ada\nrating: 5\n---\n",
            f"---\ntitle: {quoted}\n---\n",
            f"---\naliases: [{quoted}]\n---\nSome text.\n",
            "---\nbroken: [\n---\n",
            "---\ntitle: {{title}}\n---\n",
            "%% a comment %%\n",
            "![[picture.png]]\n",
            "```python\nrye = 1\n```\n",
            f"# {other}\n\nSome text about {other}.\n",
            f"Text first, and {other}, {other} and {other}.\n\n# {other}\n\n{other}\n",
            f"#{other} [[{other}]]\n",
            "Rye bread of the index, and of the note.\n" * 40,
        ]
    )


@contextmanager
def indexed(files: dict[str, str], tier: Tier) -> Iterator[LocalCorpus]:
    with TemporaryDirectory() as folder:
        root = Path(folder, "vault")
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        environ = {**os.environ, "RAGVAULT_HOME": str(Path(folder, "home"))}
        with Vault.open(root, flags=FAKE, environ=environ) as vault:
            vault.index(tier)
            with vault.corpus() as opened:
                yield opened


def called(index: LocalCorpus) -> dict[str, set[str]]:
    """Everything that each note is called, as it is typed."""
    found = {}
    for row in index.catalogue.names():
        name = row.path.rpartition("/")[2]
        texts = (row.title, *row.aliases, name, name.rpartition(".")[0])
        found[row.path] = {each for text in texts for each in (text, typed_name(text))}
    return found


def rows(response: VaultAnswer) -> list[list[str]]:
    """The notes of each row, best first: the one that is shown, and its copies."""
    removed = () if response.plan.listing else response.stage("dedup").removed
    copies = [(each.by.id, each.candidate.note.path) for each in removed if each.by]
    return [
        [each.note.path, *(path for original, path in copies if original == each.id)]
        for each in response.results
    ]


def first_of(response: VaultAnswer) -> list[str]:
    return [row[0] for row in rows(response)]


@given(vaults())
@settings(max_examples=12)
@example({"C.md": "---\ntitle: C++\n---\n", "C++.md": "---\ntitle: C\n---\n", "deep/C.txt": ""})
@example({f"{at}/index.md": f"# Part {at}\n\nThe index of {at}.\n" for at in range(15)})
@example({"writing.md": "", "creative.md": "---\naliases: [writing]\n---\n" + "writing " * 99})
@example({"term___page.md": "x", "term.page.md": "The page of a term, a page and a term."})
def test_every_note_is_found_by_its_file_name_first_or_beside_notes_of_the_same_name(files):
    for tier in TIERS:
        with indexed(files, tier) as index:
            names = called(index)
            assert names.keys() == files.keys()
            for path in files:
                name = path.rpartition("/")[2]
                for typed in (name, name.rpartition(".")[0], path):
                    response = search(SearchRequest(typed, NOW, LIMIT), index)
                    found = rows(response)
                    place = next((at for at, row in enumerate(found) if path in row), None)
                    assert place is not None, (tier, typed, path, found)
                    same = {typed, typed_name(typed)}
                    above = [row[0] for row in found[:place]]
                    assert all(names[each] & same for each in above), (tier, typed, path, found)
                    assert response.likely, (tier, typed, path)


def test_all_notes_of_a_name_come_before_one_that_is_about_it(tmp_path):
    files = {f"{at}/Recipe.md": f"Flour of kind {at}.\n" for at in "abc"}
    files["cooking.md"] = "# Cooking\n\n" + "A recipe, a recipe, the recipe. " * 30
    for tier in TIERS:
        with indexed(files, tier) as index:
            found = first_of(search(SearchRequest("recipe", NOW, LIMIT), index))
            assert sorted(found[:3]) == ["a/Recipe.md", "b/Recipe.md", "c/Recipe.md"]


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("Kyoto.md", "Places/Kyoto.md"),
        ("kyoto.MD", "Places/Kyoto.md"),
        ("Places/Kyoto", "Places/Kyoto.md"),
        ("places/kyoto.md", "Places/Kyoto.md"),
        ('"Kyoto.md"', "Places/Kyoto.md"),
        ("Note.v2.txt", "Note.v2.txt"),
        ("Note.v2", "Note.v2.txt"),
    ],
)
def test_a_file_name_may_have_its_suffix_and_its_folders(typed, first):
    files = {
        "Places/Kyoto.md": "A city.\n",
        "md.md": "What md is.\n",
        "Trip.md": "# Kyoto, Kyoto\n\nPlaces of Kyoto.\n",
        "Note.v2.txt": "Text.\n",
        "Note.md": "note v2\n",
    }
    with indexed(files, "static") as index:
        assert first_of(search(SearchRequest(typed, NOW, LIMIT), index))[:1] == [first]
