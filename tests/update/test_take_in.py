"""A search takes in the few files that have changed, and nothing else."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from write_kit import notes, write

from ragvault.cli.search import answer_search, parse_search
from ragvault.cli.start import Reply, this_caller
from ragvault.errors import IndexLocked
from ragvault.ports import Interrupted
from ragvault.store.files import BRIEF, WriterLock
from ragvault.update.freshness import MAX_FILES, patience
from ragvault.vault import Vault


@pytest.fixture
def root(tmp_path, monkeypatch) -> Path:
    """A vault of some notes, indexed with words alone."""
    monkeypatch.setenv("RAGVAULT_HOME", str(tmp_path / "home"))
    write(tmp_path / "vault", notes(30))
    Vault.open(tmp_path / "vault").index("keyword")
    return tmp_path / "vault"


def search(root: Path, query: str, *how: str) -> Reply:
    caller = this_caller()
    args = ["search", query, "--vault", str(root), "--format", "paths", *how]
    return answer_search(parse_search(args), caller)


def revision(root: Path) -> int:
    with Vault.open(root).catalogue() as catalogue:
        return catalogue.revision


def new(root: Path, count: int = 1) -> None:
    write(root, {f"new {number}.md": f"A quokka, number {number}.\n" for number in range(count)})


@pytest.mark.parametrize("how", [(), ("-q",), ("--require-fresh",)])
def test_what_is_new_changed_and_gone_is_so_in_the_next_search(root, how):
    new(root)
    (root / "0001.md").write_text("A wombat.\n")
    (root / "0002.md").unlink()

    assert search(root, '"quokka"', *how).out.endswith("new 0.md\n")
    assert search(root, '"wombat"', *how).out.endswith("0001.md\n")
    assert not search(root, "path:0002", *how).out
    assert search(root, '"quokka"', *how).err == ()


def test_as_many_files_as_may_be_are_taken_in_and_one_more_is_left_to_index(root):
    new(root, MAX_FILES + 1)
    before = revision(root)
    reply = search(root, '"quokka"', "-n", "99")

    assert not reply.out
    assert reply.err[0] == "21 files have changed since the last index; run: ragvault index"
    assert revision(root) == before
    (root / "new 20.md").unlink()
    assert len(search(root, '"quokka"', "-n", "99").out.splitlines()) == MAX_FILES


def test_a_large_file_is_left_to_index(root):
    (root / "large.md").write_text("quokka " * 100_000)
    reply = search(root, '"quokka"')

    assert not reply.out
    assert reply.err[0] == "1 file has changed since the last index; run: ragvault index"


def test_off_means_that_a_search_never_writes(root):
    new(root)
    before = revision(root)

    assert not search(root, '"quokka"', "--set", "search.update=off").out
    assert revision(root) == before


def test_a_vault_cannot_decide_it(root):
    (root / ".ragvault.toml").write_text('[search]\nupdate = "1h"\n')
    reply = search(root, "bread")

    assert reply.code == 2
    assert "it decides when a search writes" in "".join(reply.err)


@pytest.mark.parametrize("owner", ["ragvault index", BRIEF])
def test_while_another_process_writes_files_are_pending_and_nobody_waits(root, owner):
    new(root)
    with WriterLock(Vault.open(root).folder, owner):
        reply = search(root, '"quokka"')

    assert not reply.out
    assert reply.err[0] == "1 file has changed since the last index; indexing now"


def test_index_waits_for_a_search_that_writes_and_for_nobody_else(root):
    folder, over = Vault.open(root).folder, threading.Event()

    def index() -> None:
        with WriterLock(folder, "ragvault index"):
            over.set()

    with WriterLock(folder, "ragvault index"), pytest.raises(IndexLocked):
        WriterLock(folder, "ragvault forget").acquire()
    waiting = threading.Thread(target=index)
    with WriterLock(folder, BRIEF):
        waiting.start()
        waiting.join(0.1)
        assert waiting.is_alive()
    waiting.join()
    assert over.is_set()


def test_a_note_that_was_forgotten_does_not_come_back_by_a_search(root):
    Vault.open(root).forget("0003.md")
    new(root)

    assert search(root, '"quokka"').out
    assert not search(root, "path:0003").out
    Vault.open(root).index("keyword")
    assert search(root, "path:0003").out


@pytest.mark.parametrize("edited", ["before", "after"])
def test_an_edit_does_not_bring_a_forgotten_note_back_and_index_does(root, edited):
    note, vault = root / "0003.md", Vault.open(root)
    if edited == "before":
        note.write_text("ocelot\n")
    vault.forget("0003.md")
    if edited == "after":
        note.write_text("ocelot\n")

    found = [vault.search("ocelot") for _ in range(2)]
    assert not any(each.note == "0003.md" for response in found for each in response.results)
    vault.index()
    assert vault.search("ocelot").results[0].note == "0003.md"


def test_settings_that_are_for_one_search_change_no_index(root):
    (root / "list.txt").write_text("A quokka.\n")
    before = revision(root)
    search(root, '"quokka"', "--set", 'walk.extensions=[".md", ".txt"]')
    search(root, '"quokka"', "--set", "chunk.child_target=300")

    assert revision(root) == before


def test_an_index_whose_first_run_did_not_end_is_left_to_index(root):
    with Vault.open(root).catalogue(write=True) as catalogue:
        catalogue.set_facts(last_run={})
    new(root)

    assert not search(root, '"quokka"').out


def test_it_fetches_no_model_and_embeds_no_backlog(root, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("nothing may be fetched")

    monkeypatch.setattr("ragvault.models.install.install_model", refuse)
    new(root)

    assert search(root, '"quokka"').out
    with Vault.open(root).catalogue() as catalogue:
        assert not catalogue.tier_model("static")


def test_with_vectors_the_new_note_gets_a_static_one(tmp_path, monkeypatch):
    monkeypatch.setenv("RAGVAULT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("RAGVAULT_MODELS__EMBEDDER", "fake")
    monkeypatch.setenv("RAGVAULT_MODELS__STATIC", "fake")
    write(tmp_path / "vault", notes(5))
    Vault.open(tmp_path / "vault").index()
    new(tmp_path / "vault")
    search(tmp_path / "vault", "quokka")

    with Vault.open(tmp_path / "vault").catalogue() as catalogue:
        assert not catalogue.has_unembedded(catalogue.tier_model("full"))


def test_a_run_that_takes_far_too_long_is_stopped():
    patient, over = patience(3600), patience(0.001)
    patient.checkpoint()
    time.sleep(0.01)

    with pytest.raises(Interrupted):
        over.step("embedding")
