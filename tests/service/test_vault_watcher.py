"""What happens to files, seen by a watcher over a real file system, is what a search finds."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragvault.engines import Engines
from ragvault.errors import EngineMissing
from ragvault.models.load import ModelPool
from ragvault.service import vault_watcher
from ragvault.service.idle import Machine
from ragvault.service.vault_watcher import ChangeBatch, VaultWatcher
from ragvault.service.watcher import Watcher
from ragvault.update import compact
from ragvault.vault import Vault
from tests.watch_kit import SMALL, Watched, soon
from tests.write_kit import Heard, Models, write

WAITS = (0.3, 5.0)  # debounce and patience, in seconds


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
    assert soon(lambda: any("nothing is removed" in line for line in watched.heard.lines))
    watched.root.rmdir()
    aside.rename(watched.root)
    (watched.root / "returned.md").write_text("zorilla\n")

    assert watched.finds("zorilla", "returned.md")
    assert watched.finds("beginning", "first.md")
    (watched.root / "returned.md").write_text("zander\n")
    assert watched.finds("zander", "returned.md")


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
        found[-1].listen()
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
        two.add_change()  # which nothing can be done about now
        one.unfinished = True
        watcher.wake()

        assert soon(lambda: not one.unfinished)
    finally:
        watcher.stop()
        thread.join()


@pytest.fixture
def backlog(tmp_path, monkeypatch):
    """A vault whose full vectors are missing, and the load of its machine."""
    for name, value in {**SMALL, "RAGVAULT_HOME": str(tmp_path / "home")}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("RAGVAULT_MODELS__STATIC", "other")
    monkeypatch.setenv("RAGVAULT_WATCH__BACKLOG", "idle")
    monkeypatch.setattr(vault_watcher, "BACKLOG", 1)
    monkeypatch.setattr(vault_watcher, "EMBED_SLICE", 1)
    known = Models()
    monkeypatch.setattr(
        Engines, "embedder", lambda self, name, offline=False: known.open(self, name)
    )
    root = tmp_path / "vault"
    write(root, {f"{at}.md": f"About {at}." for at in range(4)})
    load = [9.0]
    machine = Machine(lambda: load[0], lambda: False, cores=2, own_seconds=lambda: 0.0)
    watcher = VaultWatcher(Vault.open(root), Heard(), ModelPool(), machine=machine)
    watcher.listen()
    watcher.update(lambda: False)
    yield watcher, load, known["fake"]
    watcher.stop_listening()


def test_a_backlog_waits_for_an_idle_machine_and_says_so(backlog):
    watcher, load, full = backlog
    watcher.check()
    assert watcher.unfinished
    assert not watcher.can_finish
    assert watcher._progress.lines[-1].endswith("machine is idle (other programs are busy)")

    load[0] = 0.1
    watcher.check()
    assert watcher.can_finish
    assert watcher._progress.lines[-1].endswith("the machine is idle; embedding goes on")
    watcher.finish(lambda: False)
    assert (watcher.unfinished, watcher.has_backlog) == (False, False)
    own = [text for text in full.seen if text.startswith("About")]  # other watchers run meanwhile
    assert sorted(own) == [f"About {at}." for at in range(4)]


def test_a_machine_that_becomes_busy_stops_the_backlog_and_nothing_is_embedded_twice(backlog):
    watcher, load, full = backlog
    load[0] = 0.1
    real = full.embed

    def embed(texts, kind):
        load[0] = 9.0
        return real(texts, kind)

    full.embed = embed
    rounds = 0
    while watcher.unfinished:
        load[0], rounds = 0.1, rounds + 1
        try:
            watcher.finish(lambda: False)
        except vault_watcher.Interrupted:
            assert not watcher.can_finish
    assert rounds > 3
    about = [text for text in full.seen if text.startswith("About")]
    assert sorted(about) == [f"About {at}." for at in range(4)]


def test_removed_notes_are_compacted_though_the_backlog_waits(backlog, monkeypatch):
    watcher, _, full = backlog
    monkeypatch.setattr(vault_watcher, "TIDY_SECONDS", 0.0)
    watcher.stop_listening()  # no event comes between
    (watcher.root / "0.md").unlink()
    watcher.update(lambda: False)
    assert watcher.untidy
    assert watcher.can_tidy
    watcher.tidy(lambda: False)
    assert full.seen == []
    assert watcher.unfinished


@pytest.mark.parametrize("setting", ["always", "off"])
def test_the_backlog_can_be_embedded_always_or_not_at_all(backlog, monkeypatch, setting):
    watcher, _, full = backlog
    monkeypatch.setenv("RAGVAULT_WATCH__BACKLOG", setting)
    watcher.update(lambda: False)
    if watcher.can_finish:
        watcher.finish(lambda: False)
    about = [text for text in full.seen if text.startswith("About")]
    assert len(about) == (4 if setting == "always" else 0)
    assert not watcher.unfinished


def test_a_static_vault_gets_no_full_vector_from_a_watcher_or_a_search(
    backlog, tmp_path, monkeypatch
):
    _, load, full = backlog
    load[0] = 0.1
    monkeypatch.setenv("RAGVAULT_SEARCH__UPDATE", "30s")
    root = tmp_path / "static"
    write(root, {"old.md": "An okapi."})
    vault = Vault.open(root)
    vault.index("static")
    write(root, {"searched.md": "A quokka."})
    assert [each.note for each in vault.search('"quokka"').results] == ["searched.md"]

    watcher = VaultWatcher(vault, Heard(), ModelPool())
    watcher.listen()
    write(root, {"watched.md": "A wombat."})
    watcher.update(lambda: False)
    watcher.finish(lambda: False)
    watcher.tidy(lambda: False)
    watcher.stop_listening()

    assert (vault.tier, vault.status().tiers["static"]) == ("static", 3)
    assert full.seen == []


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
    monkeypatch.setenv("RAGVAULT_WATCH__POLLING", "0.1")
    root = tmp_path / "vault"
    Path(root).mkdir()
    (root / "first.md").write_text("first\n")
    with Watched(root) as watched:
        assert bool(watched.vault_watcher.polling_reason) == (events == "polling")
        (root / "second.md").write_text("bilby\n")
        assert watched.finds("bilby", "second.md")


# --- batches ---


def test_work_begins_when_it_is_quiet():
    batch = ChangeBatch(*WAITS)
    assert batch.due(0.0) == math.inf
    batch.add(10.0)

    assert batch.due(10.0) == pytest.approx(0.3)
    batch.add(10.2)
    assert batch.due(10.3) == pytest.approx(0.2)
    assert batch.due(10.6) == 0


def test_work_begins_although_it_is_never_quiet():
    batch = ChangeBatch(*WAITS)
    for tick in range(100):
        batch.add(tick / 10)

    assert batch.due(4.9) > 0
    assert batch.due(5.0) == 0


def test_what_comes_while_it_works_is_another_batch():
    batch = ChangeBatch(*WAITS)
    batch.add(1.0)
    batch.take()
    assert not batch.waiting
    batch.add(1.1)

    assert batch.waiting


def test_some_changes_need_no_waiting():
    batch = ChangeBatch(*WAITS)
    batch.add(1.0, at_once=True)

    assert batch.due(1.0) == 0


@given(st.lists(st.floats(0, 100), min_size=1).map(sorted))
def test_no_change_waits_longer_than_patience(times):
    batch = ChangeBatch(*WAITS)
    for now in times:
        batch.add(now)

    assert batch.due(times[0] + WAITS[1]) == 0


# --- what can wait ---


@pytest.fixture
def lone(tmp_path, monkeypatch):
    """A watcher of one vault, which is told what to do when."""
    for name, value in {**SMALL, "RAGVAULT_HOME": str(tmp_path / "home")}.items():
        monkeypatch.setenv(name, value)
    root = tmp_path / "vault"
    root.mkdir()
    for number in range(20):
        (root / f"{number}.md").write_text(f"# Note {number}\n\nA llama, see [[{number // 2}]].\n")
    heard = Heard()
    watcher = VaultWatcher(Vault.open(root), heard, ModelPool())
    watcher.update(lambda: False)
    watcher.finish(lambda: False)
    return watcher, heard


def test_an_edit_never_waits_for_compaction(lone, monkeypatch):
    watcher, _ = lone
    compacted = []
    real = compact.compact_caches

    def compact_and_count(catalogue, engines):
        if catalogue.folder == watcher.vault.folder:  # another watcher of this module may run
            compacted.append(1)
        real(catalogue, engines)

    monkeypatch.setattr(compact, "compact_caches", compact_and_count)
    for number in range(10):
        (watcher.root / f"{number}.md").unlink()
    watcher.listen()
    watcher.update(lambda: False)
    watcher.finish(lambda: False)
    watcher.stop_listening()

    assert not compacted
    assert not watcher.can_tidy  # the next edit may come any moment
    monkeypatch.setattr("ragvault.service.vault_watcher.TIDY_SECONDS", 0.0)
    assert watcher.can_tidy
    watcher.batch.add(0.0)
    assert not watcher.can_tidy  # an edit waits
    watcher.batch.take()
    watcher.tidy(lambda: False)
    assert compacted
    assert not watcher.can_tidy


def test_a_vault_that_is_quiet_is_compacted(watched, monkeypatch):
    monkeypatch.setattr("ragvault.service.vault_watcher.TIDY_SECONDS", 0.1)
    (watched.root / "brief.md").write_text("nightjar\n")
    assert watched.finds("nightjar", "brief.md")
    (watched.root / "brief.md").unlink()

    assert watched.finds("nightjar")
    assert soon(lambda: not watched.vault_watcher.untidy and watched.is_done())
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
        watcher._rewalk.mark_changed("")
        watcher.update(lambda: False)
        watcher.finish(lambda: False)

    assert sum("networkx" in line for line in heard.lines) == 1
