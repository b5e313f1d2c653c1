"""What happens to files, seen by a watcher over a real file system, is what a search finds."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragvault.engines import Engines
from ragvault.errors import EngineMissing, VaultUnreadable
from ragvault.models.load import ModelPool
from ragvault.service.vault_watcher import (
    MANY_EVENTS,
    PATIENCE,
    POLLING_SHARE,
    ChangeBatch,
    VaultWatcher,
)
from ragvault.service.watcher import Watcher
from ragvault.update import upkeep
from ragvault.vault import Vault, known
from tests.watch_kit import SMALL, Watched, soon
from tests.write_kit import Heard, Models, write

DEBOUNCE = 0.3  # seconds


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    base = tmp_path_factory.mktemp("watched")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**SMALL, "RAGVAULT_HOME": str(base / "home")}.items():
            patch.setenv(name, value)
        root = base / "vault"
        root.mkdir()
        (root / "first.md").write_text("# First\n\nthe beginning\n")
        (root / ".gitignore").write_text("drafts/\n")
        with Watched(root) as found:
            yield found


def test_what_was_there_before_is_indexed(watched):
    assert watched.finds("beginning", "first.md")


def test_a_new_note_is_found(watched):
    (watched.root / "new.md").write_text("aardvark\n")

    assert watched.finds("aardvark", "new.md")


def test_an_edited_note_is_found_by_its_new_words_and_not_by_its_old_ones(watched):
    note = watched.root / "edited.md"
    note.write_text("before badger\n")
    assert watched.finds("badger", "edited.md")
    note.write_text("after capybara\n")

    assert watched.finds("capybara", "edited.md")
    assert watched.finds("badger")


def test_a_note_saved_by_renaming_over_it_is_found(watched):
    """vim and most editors write another file, and then give it the name."""
    note, partial = watched.root / "atomic.md", watched.root / ".atomic.md.swp"
    note.write_text("dromedary\n")
    assert watched.finds("dromedary", "atomic.md")
    partial.write_text("echidna\n")
    partial.replace(note)

    assert watched.finds("echidna", "atomic.md")
    assert watched.finds("dromedary")


def test_a_note_saved_by_moving_the_old_one_away_is_found(watched):
    """Emacs and vim with backups rename the old file and write a new one of its name."""
    note = watched.root / "backup.md"
    note.write_text("flamingo\n")
    assert watched.finds("flamingo", "backup.md")
    note.rename(watched.root / "backup.md~")
    note.write_text("gazelle\n")

    assert watched.finds("gazelle", "backup.md")
    assert watched.finds("flamingo")


def test_a_renamed_note_is_found_under_its_name(watched):
    (watched.root / "old name.md").write_text("hedgehog\n")
    assert watched.finds("hedgehog", "old name.md")
    (watched.root / "old name.md").rename(watched.root / "new name.md")

    assert watched.finds("hedgehog", "new name.md")


def test_a_deleted_note_is_not_found(watched):
    (watched.root / "deleted.md").write_text("ibex\n")
    assert watched.finds("ibex", "deleted.md")
    (watched.root / "deleted.md").unlink()

    assert watched.finds("ibex")


def test_a_note_in_new_folders_is_found(watched):
    (watched.root / "a" / "b" / "c").mkdir(parents=True)
    (watched.root / "a" / "b" / "c" / "deep.md").write_text("jackal\n")

    assert watched.finds("jackal", "a/b/c/deep.md")


def test_a_moved_folder_is_found_where_it_is_and_heard_there(watched):
    old, new = watched.root / "here", watched.root / "there"
    (old / "inner").mkdir(parents=True)
    (old / "inner" / "moved.md").write_text("kangaroo\n")
    assert watched.finds("kangaroo", "here/inner/moved.md")
    old.rename(new)
    assert watched.finds("kangaroo", "there/inner/moved.md")
    (new / "inner" / "moved.md").write_text("lemur\n")

    assert watched.finds("lemur", "there/inner/moved.md")


def test_a_folder_that_comes_from_outside_is_found_and_heard(watched, tmp_path):
    outside = tmp_path / "outside"
    (outside / "inner").mkdir(parents=True)
    (outside / "inner" / "guest.md").write_text("meerkat\n")
    outside.rename(watched.root / "inside")
    assert watched.finds("meerkat", "inside/inner/guest.md")
    (watched.root / "inside" / "inner" / "guest.md").write_text("narwhal\n")

    assert watched.finds("narwhal", "inside/inner/guest.md")


def test_a_folder_that_leaves_takes_its_notes(watched, tmp_path):
    (watched.root / "leaving").mkdir()
    (watched.root / "leaving" / "note.md").write_text("ocelot\n")
    assert watched.finds("ocelot", "leaving/note.md")
    (watched.root / "leaving").rename(tmp_path / "left")

    assert watched.finds("ocelot")


@pytest.mark.parametrize("name", ["Überblick.md", "日本語ノート.md", "na\u0303o.md", "emoji 🦊.md"])
def test_names_of_every_script_are_found(watched, name):
    from unicodedata import normalize

    word = f"pangolin{abs(hash(name))}"
    (watched.root / name).write_text(f"{word}\n")

    assert watched.finds(word, normalize("NFC", name))


def test_ignored_files_are_no_work(watched):
    before = watched.vault_watcher.last_change
    for folder in ("node_modules", ".git", "drafts", ".obsidian"):
        (watched.root / folder).mkdir(exist_ok=True)
        (watched.root / folder / "quokka.md").write_text("quokka\n")
    (watched.root / "picture.png").write_bytes(b"quokka")
    (watched.root / ".hidden.md").write_text("quokka\n")
    (watched.root / "seen.md").write_text("raccoon\n")

    assert watched.finds("raccoon", "seen.md")
    assert watched.found("quokka") == []
    assert soon(
        lambda: watched.vault_watcher.last_change > before
    )  # found by its words a little earlier


def test_a_link_is_not_followed_and_what_it_leads_to_is_heard_where_it_is(watched, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "note.md").write_text("serval\n")
    (watched.root / "to-outside").symlink_to(tmp_path / "elsewhere")
    (watched.root / "to-file.md").symlink_to(tmp_path / "elsewhere" / "note.md")
    (watched.root / "round").symlink_to(watched.root)
    (watched.root / "real.md").write_text("tapir\n")

    assert watched.finds("tapir", "real.md")
    assert watched.found("serval") == []


def test_a_folder_that_is_asked_back_is_found_and_heard(watched):
    """Rules decide what is listened to, so other rules mean other ears."""
    (watched.root / "drafts").mkdir(exist_ok=True)
    (watched.root / "drafts" / "asked.md").write_text("urchin\n")
    (watched.root / ".ragignore").write_text("!drafts/\n")
    assert watched.finds("urchin", "drafts/asked.md")
    (watched.root / "drafts" / "asked.md").write_text("vicuna\n")
    assert watched.finds("vicuna", "drafts/asked.md")
    (watched.root / ".ragignore").unlink()

    assert watched.finds("vicuna")


def test_a_change_in_the_settings_of_the_vault_is_taken_over(watched):
    (watched.root / "list.org").write_text("wombat\n")
    (watched.root / ".ragvault.toml").write_text('[walk]\nextensions = [".md", ".org"]\n')
    assert watched.finds("wombat", "list.org")
    (watched.root / "list.org").write_text("xerus\n")
    assert watched.finds("xerus", "list.org")
    (watched.root / ".ragvault.toml").unlink()

    assert watched.finds("xerus")


def test_the_notes_of_a_folder_that_cannot_be_read_are_kept_and_compared_when_it_can(
    watched, monkeypatch
):
    closed = watched.root / "closed"
    closed.mkdir()
    (closed / "note.md").write_text("aurochs\n")
    assert watched.finds("aurochs", "closed/note.md")
    scandir = os.scandir

    def refusing(path: object) -> object:
        if str(path).rstrip("/") == str(closed):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refusing)
        (closed / "note.md").write_text("bison\n")
        watched.vault_watcher.add_everything()
        assert soon(lambda: watched.vault_watcher._closed == {"closed/"})
        assert watched.vault_watcher.vault.status().counts.notes > 1
    assert watched.finds("bison", "closed/note.md")


def test_settings_that_make_no_sense_are_said_and_the_rest_goes_on(watched):
    file = watched.root / ".ragvault.toml"
    file.write_text("[walk]\nextensions = 3\n")
    assert soon(lambda: any("walk.extensions" in line for line in watched.heard.lines))
    file.unlink()
    (watched.root / "after.md").write_text("yak\n")

    assert watched.finds("yak", "after.md")


def test_a_burst_is_one_batch(watched):
    """Two thousand files of a checkout: taken in together, and found."""
    before = len(watched.heard.lines)
    (watched.root / "burst").mkdir()
    for number in range(200):
        (watched.root / "burst" / f"{number}.md").write_text(f"zebra{number}\n")

    assert watched.finds("zebra199", "burst/199.md")
    assert watched.finds("zebra0", "burst/0.md")
    runs = [line for line in watched.heard.lines[before:] if " added" in line]
    assert len(runs) <= 3


def test_every_passage_has_its_vector_in_the_end(watched):
    assert soon(watched.is_done)
    with watched.vault_watcher.vault.catalogue() as catalogue:
        assert not catalogue.unembedded(catalogue.tier_model("full"))


def test_a_vault_that_was_left_without_vectors_on_purpose_stays_so(watched):
    assert soon(watched.is_done)
    watched.vault_watcher.vault.index("keyword")
    (watched.root / "late.md").write_text("gnu\n")

    assert watched.finds("gnu", "late.md")
    assert soon(watched.is_done)
    with watched.vault_watcher.vault.catalogue() as catalogue:
        assert len(catalogue.unembedded(catalogue.tier_model("full"))) == 1


def test_a_vault_that_goes_and_comes_back_is_taken_up_again(watched):
    aside = watched.root.with_name("aside")
    watched.root.rename(aside)
    assert soon(lambda: watched.vault_watcher.unavailable)
    assert soon(lambda: any("is gone" in line for line in watched.heard.lines))
    watched.root.mkdir()  # an empty place where a disk was
    assert soon(lambda: any("is its disk mounted" in line for line in watched.heard.lines))
    watched.root.rmdir()
    aside.rename(watched.root)
    (watched.root / "returned.md").write_text("zorilla\n")

    assert watched.finds("zorilla", "returned.md")
    assert watched.finds("beginning", "first.md")
    (watched.root / "returned.md").write_text("zander\n")
    assert watched.finds("zander", "returned.md")


def test_a_link_in_the_place_of_a_vault_is_another_vault_that_nobody_asked_for(watched):
    aside, other = watched.root.with_name("aside"), watched.root.with_name("other")
    other.mkdir()
    (other / "secret.md").write_text("zebra\n")
    watched.root.rename(aside)
    watched.root.symlink_to(other)
    assert soon(lambda: "link" in watched.vault_watcher.unavailable)
    (other / "more.md").write_text("zebra\n")
    with pytest.raises(VaultUnreadable, match="has become a link"):
        watched.vault_watcher.vault.index()

    assert [each.root for each in known()] == [watched.root]
    watched.root.unlink()
    aside.rename(watched.root)
    assert watched.finds("beginning", "first.md")
    assert watched.found("zebra") == []


@pytest.fixture
def two_vaults(tmp_path, monkeypatch) -> Iterator[list[VaultWatcher]]:
    """Two vaults that nobody watches yet."""
    for name, value in {**SMALL, "RAGVAULT_HOME": str(tmp_path / "home")}.items():
        monkeypatch.setenv(name, value)
    found = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "note.md").write_text("a note\n")
        found.append(VaultWatcher(Vault.open(tmp_path / name), Heard(), ModelPool()))
    yield found
    for each in found:
        each.stop_listening()


def test_an_empty_place_removes_nothing_while_vectors_are_made_either(two_vaults):
    one, _ = two_vaults
    one.update(lambda: False)
    one.unfinished = True
    (one.root / "note.md").unlink()
    one.finish(lambda: False)

    with one.vault.catalogue() as catalogue:
        assert catalogue.counts().notes == 1
    assert not one.can_finish


def test_a_vault_that_is_away_does_not_keep_another_from_its_vectors(two_vaults):
    one, two = two_vaults
    watcher = Watcher(two_vaults)
    thread = threading.Thread(target=watcher.run)
    thread.start()
    try:
        assert soon(lambda: one.last_change and two.last_change and not one.unfinished)
        two.root.rename(two.root.with_name("elsewhere"))
        assert soon(lambda: two.unavailable)
        two.add_everything()  # which nothing can be done about now
        one.unfinished = True
        watcher.wake()

        assert soon(lambda: not one.unfinished)
    finally:
        watcher.stop()
        thread.join()


def test_a_static_vault_gets_no_full_vector_from_a_watcher_or_a_search(tmp_path, monkeypatch):
    for name, value in {**SMALL, "RAGVAULT_HOME": str(tmp_path / "home")}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("RAGVAULT_MODELS__STATIC", "other")
    known = Models()
    monkeypatch.setattr(
        Engines, "embedder", lambda self, name, offline=False: known.open(self, name)
    )
    monkeypatch.setenv("RAGVAULT_SEARCH__UPDATE", "30s")
    root = tmp_path / "static"
    write(root, {"old.md": "An okapi."})
    vault = Vault.open(root)
    vault.index("static")
    write(root, {"searched.md": "A quokka."})
    assert [each.note for each in vault.search('"quokka"').results] == ["searched.md"]

    watcher = VaultWatcher(vault, Heard(), ModelPool())
    write(root, {"watched.md": "A wombat."})
    watcher.update(lambda: False)
    watcher.finish(lambda: False)
    watcher.stop_listening()

    assert (vault.tier, vault.status().tiers["static"]) == ("static", 3)
    assert "fake" not in known or known["fake"].seen == []


@pytest.mark.slow
def test_a_burst_of_two_thousand_is_taken_in_whole(tmp_path, monkeypatch):
    for name, value in {**SMALL, "RAGVAULT_HOME": str(tmp_path / "home")}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("RAGVAULT_WATCH__DEBOUNCE", "0.5")
    root = tmp_path / "vault"
    root.mkdir()
    (root / "first.md").write_text("first\n")
    with Watched(root) as watched:
        before = len(watched.heard.lines)
        for number in range(2000):
            folder = root / f"{number % 40}"
            folder.mkdir(exist_ok=True)
            (folder / f"{number}.md").write_text(f"aardwolf{number}\n")

        assert watched.finds("aardwolf1999", "39/1999.md")
        assert soon(watched.is_done)
        runs = [line for line in watched.heard.lines[before:] if " added" in line]
        assert len(runs) == 1
        for number in (0, 777, 1500):
            assert watched.found(f"aardwolf{number}") == [f"{number % 40}/{number}.md"]


@pytest.mark.parametrize("events", ["native", "polling"])
def test_a_change_is_found_whether_it_is_heard_or_looked_for(tmp_path, monkeypatch, events):
    for name, value in {**SMALL, "RAGVAULT_HOME": str(tmp_path / "home")}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("RAGVAULT_WATCH__EVENTS", events)
    monkeypatch.setattr("ragvault.service.vault_watcher.POLL_EVERY", 0.1)
    root = tmp_path / "vault"
    Path(root).mkdir()
    (root / "first.md").write_text("first\n")
    with Watched(root) as watched:
        assert bool(watched.vault_watcher.polling_reason) == (events == "polling")
        (root / "second.md").write_text("bilby\n")
        assert watched.finds("bilby", "second.md")


@pytest.mark.parametrize(
    ("path", "is_folder", "changed"),
    [
        ("note.md", False, {"note.md"}),
        ("a/Note.MD", False, {"a/Note.MD"}),
        ("cafe\u0301.md", False, {"caf\u00e9.md"}),
        ("a/.Note.md.icloud", False, {"a/Note.md"}),
        ("picture.png", False, set()),
        ("node_modules/note.md", False, set()),
        ("node_modules/new", True, set()),
        ("node_modules", True, set()),
        (".git/objects/00", True, set()),
        ("node_modules/.gitignore", False, set()),
        ("a/.gitignore", False, None),
        (".ragvault.toml", False, None),
        (".obsidian/app.json", False, None),
        (".obsidian/workspace.json", False, set()),
        ("a/new", True, None),
        ("", True, None),
    ],
)
def test_an_event_names_a_note_or_is_about_the_whole_vault_or_is_no_work(
    lone, path, is_folder, changed
):
    watcher, _ = lone
    watcher.heard(path, is_folder)

    assert watcher.batch.waiting is (changed != set())
    assert watcher.batch.take() == changed


def test_what_takes_long_to_compare_is_compared_less_often(lone):
    watcher, _ = lone
    watcher.polling_reason = "no events"
    watcher._compare_later(0.5)

    assert watcher._compare_at - time.monotonic() == pytest.approx(0.5 * POLLING_SHARE, abs=1)


def test_a_change_that_no_event_reported_is_found_by_comparing_all(lone):
    watcher, _ = lone
    (watcher.root / "0.md").write_text("an unheard octopus\n")
    watcher.check()
    assert not watcher.batch.waiting
    watcher._compare_at = 0.0
    watcher.check()

    assert watcher.batch.take() is None
    watcher.check()  # not at once again
    assert not watcher.batch.waiting


def test_an_update_that_failed_is_tried_again_with_the_same_files(lone, monkeypatch):
    watcher, heard = lone
    (watcher.root / "0.md").write_text("an octopus\n")
    watcher.heard("0.md", False)
    with monkeypatch.context() as patch:
        patch.setattr(Vault, "index", lambda *_, **__: 1 / 0)
        watcher.update(lambda: False)
    assert "unexpected ZeroDivisionError" in heard.lines[-1]
    assert 25 < watcher.due(time.monotonic()) < 35
    watcher.update(lambda: False)

    assert heard.lines[-1].startswith("vault: 1 changed")
    assert not watcher.batch.waiting


def test_settings_that_changed_while_an_update_failed_are_not_forgotten(lone, monkeypatch):
    watcher, _ = lone
    (watcher.root / "list.org").write_text("an octopus\n")
    (watcher.root / ".ragvault.toml").write_text('[walk]\nextensions = [".md", ".org"]\n')
    watcher.batch.take()
    watcher.heard("0.md", False)
    with monkeypatch.context() as patch:
        patch.setattr(Vault, "index", lambda *_, **__: 1 / 0)
        watcher.update(lambda: False)
    watcher.update(lambda: False)

    with watcher.vault.catalogue() as catalogue:
        assert "list.org" in catalogue.files()


# --- batches ---


def test_work_begins_when_it_is_quiet():
    batch = ChangeBatch(DEBOUNCE)
    assert batch.due(0.0) == math.inf
    batch.add(10.0, None)

    assert batch.due(10.0) == pytest.approx(0.3)
    batch.add(10.2, ("a.md",))
    assert batch.due(10.3) == pytest.approx(0.2)
    assert batch.due(10.6) == 0


def test_work_begins_although_it_is_never_quiet():
    batch = ChangeBatch(DEBOUNCE)
    for tick in range(100):
        batch.add(tick / 10, ("a.md",))

    assert batch.due(4.9) > 0
    assert batch.due(5.0) == 0


def test_what_comes_while_it_works_is_another_batch():
    batch = ChangeBatch(DEBOUNCE)
    batch.add(1.0, ("a.md",))
    batch.take()
    assert not batch.waiting
    batch.add(1.1, ("a.md",))

    assert batch.waiting


def test_what_changed_is_known_by_name_unless_there_is_too_much():
    batch = ChangeBatch(DEBOUNCE)
    batch.add(1.0, ("a.md",))
    batch.add(1.0, ("b.md",))
    assert batch.take() == {"a.md", "b.md"}
    batch.add(2.0, ("a.md",))
    batch.add(2.0, None)
    batch.add(2.0, ("b.md",))
    assert batch.take() is None
    for _ in range(MANY_EVENTS + 1):  # more than the system's queue may have held
        batch.add(3.0, ())
    assert batch.take() is None
    assert batch.take() == set()


def test_what_changes_no_note_is_no_work():
    batch = ChangeBatch(DEBOUNCE)
    batch.add(1.0, ())

    assert not batch.waiting


@given(st.lists(st.floats(0, 100), min_size=1).map(sorted))
def test_no_change_waits_longer_than_patience(times):
    batch = ChangeBatch(DEBOUNCE)
    for now in times:
        batch.add(now, ("a.md",))

    assert batch.due(times[0] + PATIENCE) == 0


# --- what can wait ---


@pytest.fixture
def lone(tmp_path, monkeypatch):
    """A watcher of one vault, which is told what to do when."""
    for name, value in {**SMALL, "RAGVAULT_HOME": str(tmp_path / "home")}.items():
        monkeypatch.setenv(name, value)
    root = tmp_path / "vault"
    root.mkdir()
    for folder in ("node_modules", ".git", ".obsidian"):
        (root / folder).mkdir()
    for number in range(20):
        (root / f"{number}.md").write_text(f"# Note {number}\n\nA llama, see [[{number // 2}]].\n")
    heard = Heard()
    watcher = VaultWatcher(Vault.open(root), heard, ModelPool())
    watcher.update(lambda: False)
    watcher.finish(lambda: False)
    watcher.stop_listening()  # no event comes between
    yield watcher, heard
    watcher.stop_listening()


def test_the_vectors_of_many_new_notes_do_not_hold_up_edits(lone, monkeypatch):
    watcher, _ = lone
    monkeypatch.setattr("ragvault.service.vault_watcher.EDIT_SECONDS", 0.0)
    for number in range(20, 40):
        (watcher.root / f"{number}.md").write_text(f"# Note {number}\n\nAn okapi, {number}.\n")
    watcher.add_everything()

    def unembedded():
        with watcher.vault.catalogue() as catalogue:
            return len(catalogue.unembedded(catalogue.tier_model("full")))

    watcher.update(lambda: False)
    assert unembedded()
    assert watcher.can_finish
    watcher.finish(lambda: False)
    assert not unembedded()


def test_an_edit_never_waits_for_compaction(lone, monkeypatch):
    watcher, _ = lone
    compacted = []
    real = upkeep.compact_caches

    def compact_and_count(catalogue, engines):
        if catalogue.folder == watcher.vault.folder:  # another watcher of this module may run
            compacted.append(1)
        real(catalogue, engines)

    monkeypatch.setattr(upkeep, "compact_caches", compact_and_count)
    for number in range(10):
        (watcher.root / f"{number}.md").unlink()
    watcher.add_everything()
    watcher.update(lambda: False)
    assert not compacted
    assert watcher.can_finish
    watcher.finish(lambda: False)
    watcher.stop_listening()

    assert compacted
    assert not watcher.can_finish


def test_removed_notes_are_compacted(watched):
    (watched.root / "brief.md").write_text("nightjar\n")
    assert watched.finds("nightjar", "brief.md")
    (watched.root / "brief.md").unlink()

    assert watched.finds("nightjar")
    assert soon(watched.is_done)
    assert not Vault.open(watched.root).status().removed


def test_a_missing_library_is_reported_once_and_not_after_every_edit(lone, monkeypatch):
    watcher, heard = lone

    def missing() -> None:
        raise EngineMissing("the graph of links", "networkx", "No module named 'networkx'")

    monkeypatch.setattr("ragvault.index.graph.demand_networkx", missing)
    for number in range(3):
        for edited in range(10):  # enough links for new communities
            links = " ".join(f"[[{(edited + number + step) % 20}]]" for step in range(1, 9))
            (watcher.root / f"{edited}.md").write_text(f"# Note {edited}\n\n{number} {links}\n")
        watcher.add_everything()
        watcher.update(lambda: False)
        watcher.finish(lambda: False)

    assert sum("networkx" in line for line in heard.lines) == 1
