"""No answer shows what is no longer so, with nobody watching the files."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
from pathlib import Path

import pytest
from write_kit import LONG_AGO, WORDS, note, notes, prose, write

from ragvault.answer import vaults
from ragvault.answer.verify import located
from ragvault.candidate import NoteFacts, PassageFacts
from ragvault.cli.search import answer_search, parse_search
from ragvault.cli.start import Reply, this_caller
from ragvault.types import Passage
from ragvault.vault import Vault

COUNT = 150
QUERIES = (*WORDS[:12], "bread and flour", "winter garden", "note 7", "get_bread_0", "path:00")


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A vault of short notes and its home, to be copied."""
    place = tmp_path_factory.mktemp("verify")
    write(place / "vault", notes(COUNT))
    environ = {"RAGVAULT_HOME": str(place / "home")}
    Vault.open(place / "vault", environ=environ).index("keyword")
    return place / "vault", place / "home"


@pytest.fixture
def vault(indexed, monkeypatch):
    """The vault as it was indexed; what a test does to it is undone.

    A search takes in no changes here: what it shows of them is what these tests are about.
    """
    root, home = indexed
    kept = root.parent / "kept"
    shutil.copytree(root, kept)
    monkeypatch.setenv("RAGVAULT_HOME", str(home))
    monkeypatch.setenv("RAGVAULT_SEARCH__UPDATE", "off")
    yield root
    shutil.rmtree(root)
    kept.rename(root)


def ask(root: Path, query: str, *how: str) -> Reply:
    around = this_caller()
    typed = parse_search(["search", query, "--vault", str(root), *how])
    return answer_search(typed, around)


def found(root: Path, query: str, *how: str) -> dict:
    return json.loads(ask(root, query, "--json", *how).out)


def edit(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    os.utime(path, (LONG_AGO + 10**6, LONG_AGO + 10**6))


def edited(number: int, text: str) -> str:
    """One of the things people do to a note."""
    return (
        f"A line on top.\n\n{text}",
        text.replace(". ", ". And then ", 2),
        note(number, version=9),
        text[: len(text) // 2],
        text + "\n## Later\n\n" + prose(("later", number)),
    )[number % 5]


def stands_in_its_file(root: Path, result: dict) -> bool:
    lines = (root / result["note"]).read_text("utf-8").split("\n")
    first, last = result["lines"]
    shown = "\n".join(lines[first - 1 : last])
    return result["text"].strip() in shown and result["passage"].strip() in "\n".join(lines)


def snippet_stands_in_its_line(root: Path, result: dict) -> bool:
    written = (root / result["note"]).read_text("utf-8")
    line = written.split("\n")[result["line"] - 1]
    said, whole = _letters(result["snippet"]), _letters(written)
    in_order = iter(whole)
    return all(word in in_order for word in said) and bool(set(_letters(line)) & set(said))


def _letters(text: str) -> list[str]:
    return re.findall(r"\w+", text)


@pytest.mark.parametrize(
    "queries", [QUERIES[::3], pytest.param(QUERIES, marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_fifty_deleted_and_fifty_edited_notes_leave_no_ghost_and_no_old_word(vault, queries):
    chance = random.Random(7)
    numbers = chance.sample(range(COUNT), 100)
    for number in numbers[:50]:
        (vault / f"{number:04}.md").unlink()
    for number in numbers[50:]:
        edit(vault / f"{number:04}.md", edited(number, note(number)))

    results = [each for query in queries for each in found(vault, query, "-n", "40")["results"]]

    assert len(results) > 12 * len(queries)
    assert all((vault / each["note"]).exists() for each in results)
    assert [each for each in results if not stands_in_its_file(vault, each)] == []
    assert [each for each in results if not snippet_stands_in_its_line(vault, each)] == []
    touched = {f"{number:04}.md" for number in numbers[50:]}
    assert {each["note"] for each in results if each["stale"]} <= touched
    assert {each["note"] for each in results} & touched


def test_a_deleted_result_is_replaced_by_the_next(vault):
    before = found(vault, "bread", "-n", "5")["results"]
    more = found(vault, "bread", "-n", "6")["results"]
    (vault / before[0]["note"]).unlink()

    after = found(vault, "bread", "-n", "5", "--explain")

    gone = before[0]["note"]
    kept = [each for each in more if each["note"] != gone]
    assert [each["note"] for each in after["results"]][: len(kept)] == [e["note"] for e in kept]
    assert len(after["results"]) == 5
    stage = next(each for each in after["explain"] if each["stage"] == "verify")
    assert {each["reason"] for each in stage["removed"]} == {"its file is gone"}


def test_stages_still_add_up_after_a_file_was_deleted(vault):
    (vault / found(vault, "bread")["results"][0]["note"]).unlink()
    stages = found(vault, "bread", "--explain")["explain"]
    kept = [each["kept"] for each in stages]
    removed = [len(each["removed"]) for each in stages]
    assert [k + r for k, r in zip(kept[1:], removed[1:], strict=True)] == kept[:-1]


def test_a_passage_that_moved_is_shown_from_where_it_is_and_is_not_stale(vault):
    first = found(vault, "bread", "-n", "1")["results"][0]
    path = vault / first["note"]
    edit(path, "One.\n\nTwo.\n\n" + path.read_text("utf-8"))

    again = next(each for each in found(vault, "bread")["results"] if each["note"] == first["note"])

    assert not again["stale"]
    assert first["passage"].strip() in again["passage"]
    assert stands_in_its_file(vault, again)


def test_a_passage_that_was_edited_is_read_from_disk_and_marked(vault):
    first = found(vault, "bread", "-n", "1", "--passages")["results"][0]
    path = vault / first["note"]
    edit(path, path.read_text("utf-8").replace("bread", "brioche"))

    again = [
        each
        for each in found(vault, "bread", "--passages", "-n", "50")["results"]
        if each["note"] == first["note"]
    ]

    assert again
    assert all(each["stale"] and "brioche" in each["passage"] for each in again)
    assert "changed since it was indexed" in ask(vault, "bread", "-n", "50").out


def test_a_changed_note_under_a_filter_is_marked_for_it_may_no_longer_meet_it(vault):
    query = f"{WORDS[0]} path:00"
    first = found(vault, query)["results"][0]["note"]
    edit(vault / first, "A line on top.\n\n" + (vault / first).read_text("utf-8"))

    assert {r["note"]: r["stale"] for r in found(vault, query)["results"]}[first]
    assert not {r["note"]: r["stale"] for r in found(vault, WORDS[0])["results"]}.get(first, False)


def test_a_note_that_was_rewritten_is_not_shown_for_what_it_said(vault):
    gone = found(vault, "bread", "-n", "1")["results"][0]["note"]
    edit(vault / gone, "# Something else\n\nNothing of what was here before.\n")
    assert gone not in [each["note"] for each in found(vault, "bread", "-n", "50")["results"]]


def test_a_note_that_was_only_touched_is_as_it_was(vault):
    before = found(vault, "bread")["results"]
    for each in before:
        os.utime(vault / each["note"])
    assert found(vault, "bread")["results"] == before


def test_a_list_by_filter_shows_no_ghost_either(vault):
    first = found(vault, "path:00", "-n", "3")["results"]
    (vault / first[1]["note"]).unlink()
    again = found(vault, "path:00", "-n", "3")["results"]
    assert first[1]["note"] not in [each["note"] for each in again]
    assert len(again) == 3


def test_neighbours_of_a_changed_note_are_its_own(vault):
    first = found(vault, "bread", "-n", "1", "--passages")["results"][0]
    edit(vault / first["note"], "A line on top.\n\n" + (vault / first["note"]).read_text("utf-8"))
    for how in (["--passages", "--neighbours", "1"], ["--sections", "--neighbours", "1"]):
        results = found(vault, "bread", *how)["results"]
        assert all(stands_in_its_file(vault, each) for each in results)


def test_the_index_says_that_it_is_behind_and_how_far(vault):
    assert found(vault, "bread")["index"]["fresh"] is True
    (vault / "0001.md").unlink()
    edit(vault / "0002.md", "# Two\n\nAnother text.\n")
    write(vault, {"new.md": "# New\n\nA new note about bread.\n"})

    state = found(vault, "bread")["index"]

    assert (state["fresh"], state["pending"]) == (False, 3)
    assert any(
        "3 files have changed since the last index" in line for line in ask(vault, "bread").err
    )
    assert not ask(vault, "bread", "-q").err


def test_a_quiet_search_of_a_large_vault_walks_it_only_if_freshness_is_required(vault, monkeypatch):
    monkeypatch.setattr(vaults, "SMALL_VAULT", 0)
    (vault / "0001.md").unlink()

    assert found(vault, "bread")["index"]["pending"] == 1
    assert found(vault, "bread", "-q")["index"]["pending"] is None
    assert found(vault, "bread", "-q")["index"]["fresh"] is None
    assert ask(vault, "bread", "-q", "--require-fresh").code == 3


def test_require_fresh_refuses_an_index_that_is_behind(vault):
    assert ask(vault, "bread", "--require-fresh").code == 0
    (vault / "0001.md").unlink()
    reply = ask(vault, "bread", "--require-fresh")
    assert (reply.out, reply.code) == ("", 3)
    assert "is out of date: 1 file has changed since the last index" in reply.err[0]
    assert "ragvault index" in reply.err[1]


def test_a_vault_whose_folder_is_gone_shows_nothing_and_says_so(vault):
    elsewhere = vault.parent / "unmounted"
    vault.rename(elsewhere)
    try:
        reply = ask(Path(vault.name), "bread")
    finally:
        elsewhere.rename(vault)
    assert (reply.out, reply.code) == ("", 4)
    assert "the folder does not exist" in reply.err[0]


def test_searching_writes_nothing(vault, indexed):
    def state(folder: Path) -> dict[str, tuple[int, int]]:
        stats = [(path, path.stat()) for path in folder.rglob("*") if path.is_file()]
        return {str(path): (each.st_size, each.st_mtime_ns) for path, each in stats}

    (vault / "0001.md").unlink()
    edit(vault / "0002.md", note(2) + "\nMore.\n")
    before = state(vault), {k: v for k, v in state(indexed[1]).items() if "sqlite-" not in k}
    found(vault, "bread", "-n", "50")
    assert (
        state(vault),
        {k: v for k, v in state(indexed[1]).items() if "sqlite-" not in k},
    ) == before


def chunk(text: str, line: int = 1) -> Passage:
    none: frozenset[str] = frozenset()
    return Passage(0, 0, (), "prose", none, none, 0, 9, (line, line), (1, 1), text)


def test_of_two_copies_of_a_passage_the_nearer_is_meant():
    facts = PassageFacts(1, NoteFacts(1, "a.md"), source="the same", lines=(30, 30))
    assert located(facts, [chunk("the same", 3), chunk("the same", 28)])[0].lines == (28, 28)


def test_a_passage_without_words_is_found_only_word_for_word():
    facts = PassageFacts(1, NoteFacts(1, "a.md"), source="---", lines=(1, 1))
    assert located(facts, [chunk("***")]) == (None, False)
    assert located(facts, [chunk("---")])[1]


def test_a_listed_note_without_text_is_as_it_is_now(vault):
    for name in ("blank-a", "blank-b", "blank-c"):
        edit(vault / f"{name}.md", "---\nstub: true\n---\n")
    Vault.open(vault).index("keyword")
    (vault / "blank-a.md").unlink()
    edit(vault / "blank-b.md", "---\nstub: true\ntitle: B\n---\n")
    edit(vault / "blank-c.md", "---\nstub: true\n---\n\nNow it says something.\n")

    told = found(vault, "[stub:true]")["results"]

    assert [(each["note"], each["title"]) for each in told] == [
        ("blank-b.md", "B"),
        ("blank-c.md", "blank-c"),
    ]
    assert [(each["text"].strip(), each["lines"], each["stale"]) for each in told] == [
        ("B\nblank-b", [1, 4], True),
        ("Now it says something.", [5, 5], True),
    ]
