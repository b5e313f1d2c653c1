"""The keyword index on disk: commits, damage, killed writers, readers beside a writer."""

from __future__ import annotations

import errno
import gc
import os
import shutil
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ragvault.config.settings import Keyword
from ragvault.errors import IndexUnusable
from ragvault.index import keyword_changes, keyword_shelf
from ragvault.index.keyword_damage import damage_told
from ragvault.index.keyword_open import open_keyword, wipe
from ragvault.index.keyword_segment import Segment
from ragvault.ports import CacheBroken
from ragvault.sought import Phrase, Words
from tests.keyword_shelves import ENGINES, Shelf, note, passage

CANARY = "xylocanaryphone"


def name(number):
    """A word of its own for each number, of letters only."""
    return "n" + "".join(chr(ord("a") + int(digit)) for digit in f"{number:03}") + "word"


@pytest.fixture(params=ENGINES)
def engine(request):
    return request.param


@pytest.fixture
def shelf(engine, tmp_path):
    shelf = Shelf(tmp_path, Keyword(engine=engine))
    shelf.put(note(1, "Bread"), *(passage(id_, 1, f"bread {name(id_)}") for id_ in range(20)))
    yield shelf
    shelf.index.close()


def files(folder):
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]


def holds(folder, text):
    return any(text.encode() in path.read_bytes() for path in files(folder))


def test_a_commit_survives_and_is_stamped(shelf):
    assert shelf.reopened().ids(Words(name(7))) == [7]
    assert shelf.index.revision == 1


def test_an_empty_index_answers_nothing_at_revision_0(engine, tmp_path):
    index = open_keyword(tmp_path, Keyword(engine=engine))
    assert index.revision == 0
    assert index.search(Words("bread"), limit=5).hits == ()
    index.close()


def test_nothing_is_seen_before_the_commit(shelf):
    shelf.put(passage(50, 1, "fresh"), commit=False)
    assert shelf.ids(Words("fresh")) == []
    assert shelf.commit().ids(Words("fresh")) == [50]


def test_what_was_not_committed_is_gone(shelf):
    shelf.put(passage(50, 1, "fresh"), commit=False)
    assert shelf.reopened().ids(Words("fresh")) == []
    assert shelf.commit().ids(Words("fresh")) == []


def test_a_put_replaces_by_id_also_within_one_commit(shelf):
    shelf.put(passage(7, 1, "first"), passage(7, 1, "second"))
    assert shelf.ids(Words(f"{name(7)} first second"), fuzzy=False) == [7]
    assert shelf.ids(Words("first"), fuzzy=False) == []


def test_a_removed_passage_and_a_removed_note_are_found_no_more(shelf):
    shelf.remove(passages=[7, 999])
    assert shelf.ids(Words(name(7)), fuzzy=False) == []
    shelf.remove(notes=[1])
    assert all(not hit.note_score for hit in shelf.ask(Words("bread")).hits)


def test_put_after_remove_in_one_commit_is_there(shelf):
    shelf.index.remove([], [7])
    shelf.put(passage(7, 1, "again"))
    assert shelf.ids(Words("again")) == [7]
    shelf.index.put([], [passage(8, 1, "shortlived")])
    shelf.index.remove([], [8])
    assert shelf.commit().ids(Words("shortlived"), fuzzy=False) == []


def test_a_note_that_comes_later_counts_for_passages_that_were_there(shelf):
    shelf.put(passage(60, 9, "orphan"))
    assert shelf.ids(Words("latecomer")) == []
    shelf.put(note(9, "Latecomer"))
    assert shelf.ids(Words("latecomer")) == [60]


def test_compaction_leaves_no_byte_of_what_was_removed(shelf):
    shelf.put(note(2, CANARY), passage(70, 2, f"the {CANARY} sang"))
    shelf.put(passage(71, 1, "a neighbour of the bread"))
    before = {hit.passage: hit.note for hit in shelf.ask(Words("bread")).hits}
    shelf.remove(notes=[2], passages=[70])
    shelf.compact()
    assert not holds(shelf.folder, CANARY[:8])
    assert {hit.passage: hit.note for hit in shelf.ask(Words("bread")).hits} == before
    assert shelf.reopened().index.revision == shelf.revision


def test_rubbish_is_what_compaction_would_write_again(shelf):
    assert shelf.index.rubbish() == 0
    shelf.remove(passages=[7])
    whole = sum(path.stat().st_size for path in files(shelf.folder))
    assert 0 < shelf.index.rubbish() <= whole
    assert shelf.compact().index.rubbish() == 0


def test_compaction_of_everything_leaves_an_index_that_can_be_filled_again(shelf):
    shelf.remove(notes=[1], passages=range(20)).compact()
    assert shelf.ids(Words("bread")) == []
    assert shelf.put(note(1, "Bread"), passage(1, 1, "bread")).ids(Words("bread")) == [1]


def test_many_small_commits_are_merged_and_answer_the_same(shelf):
    for id_ in range(20, 45):
        shelf.put(passage(id_, 1, f"bread {name(id_)} in a row"))
    assert len(shelf.ids(Words("bread"))) == 45
    assert shelf.ids(Phrase(f"{name(33)} in a row")) == [33]
    assert shelf.reopened().ids(Words(name(44))) == [44]
    assert len(files(shelf.folder)) < 60


def test_a_small_change_writes_little(shelf):
    shelf.put(*(passage(id_, 1, f"word{id_ % 500} " * 40) for id_ in range(100, 2000)))
    before = {path: path.stat().st_mtime_ns for path in files(shelf.folder)}
    shelf.put(note(1, "Changed"), passage(100, 1, "changed"))
    fresh = [path for path in files(shelf.folder) if before.get(path) != path.stat().st_mtime_ns]
    assert 0 < sum(path.stat().st_size for path in fresh) < 300_000


def test_files_are_the_owners_alone(shelf):
    for path in shelf.folder.rglob("*"):
        if path.is_file() and path.suffix not in (".json", ".lock"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name
    assert {stat.S_IMODE(p.stat().st_mode) for p in shelf.folder.rglob("*") if p.is_dir()} == {
        0o700
    }


def test_terms_are_counted_through_all_segments_and_exactly_once_they_are_compact(shelf):
    shelf.put(note(2, "Title"), passage(70, 2, "bread oven", "Heading"))
    assert shelf.index.words()["bread"] == shelf.index.holders("bread") == 21
    assert not {"title", "heading", "\x00"} & shelf.index.words().keys()
    shelf.remove(passages=[70]).compact()
    assert (shelf.index.holders("oven"), shelf.index.holders("bread")) == (0, 20)
    assert "oven" not in shelf.index.words()
    assert shelf.index.words()[name(7)] == 1


# --- Damage ---


def damaging(how, path):
    data = path.read_bytes()
    if how == "deleted":
        path.unlink()
    elif how == "truncated":
        path.write_bytes(data[: len(data) // 2])
    else:
        middle = len(data) // 2
        path.write_bytes(data[:middle] + bytes([data[middle] ^ 0xFF]) + data[middle + 1 :])
        os.utime(path, ns=(1, 1))


@pytest.mark.parametrize("how", ["deleted", "truncated", "changed"])
def test_a_damaged_file_is_met_when_the_index_is_opened(engine, tmp_path, how):
    model = Shelf(tmp_path / "model", Keyword(engine=engine))
    model.put(note(1, "Bread"), passage(1, 1, "bread and wine")).index.close()
    # Without a manifest there is no index; tantivy's own lists hold no word and no checksum.
    spared = {"deleted": {"manifest"}, "changed": {"meta.json"}}.get(how, set())
    for at, path in enumerate(files(model.folder)):
        if path.suffix == ".lock" or path.name in {".managed.json", *spared}:
            continue
        copy = tmp_path / str(at)
        shutil.copytree(model.folder, copy)
        damaging(how, files(copy)[at])
        with pytest.raises(CacheBroken):
            pytest.fail(f"{path.name} {how}: {Shelf(copy, model.settings)}")


def test_a_broken_index_is_wiped_and_made_again(shelf):
    damaging("truncated", shelf.folder / shelf.settings.engine / "manifest")
    wipe(shelf.folder)
    shelf.reopened()
    assert shelf.index.revision == 0
    assert shelf.put(note(1, "x"), passage(1, 1, "wine")).ids(Words("wine")) == [1]


def test_an_index_of_other_settings_is_made_again(shelf):
    with pytest.raises(CacheBroken, match="other settings"):
        open_keyword(shelf.folder, Keyword(engine=shelf.settings.engine, stemming="none"))


def test_a_touched_file_is_not_damaged(shelf):
    for path in files(shelf.folder):
        os.utime(path)
    assert shelf.reopened().ids(Words(name(7))) == [7]


def test_what_a_killed_writer_left_is_swept_away(tmp_path, monkeypatch):
    shelf = Shelf(tmp_path, Keyword()).put(note(1, "Bread"), passage(1, 1, "bread"))
    monkeypatch.setattr(keyword_shelf, "write", killed)
    with pytest.raises(KeyboardInterrupt):
        shelf.put(passage(2, 1, "half written"))
    monkeypatch.undo()
    left = len(files(tmp_path))
    assert shelf.reopened().ids(Words("half bread")) == [1]
    assert shelf.put(passage(3, 1, "whole")).ids(Words("whole half")) == [3]
    assert len(files(tmp_path)) <= left
    shelf.index.close()


def killed(*_):
    raise KeyboardInterrupt


def test_a_full_disk_is_said_and_the_old_index_answers(tmp_path, monkeypatch):
    shelf = Shelf(tmp_path, Keyword()).put(note(1, "Bread"), passage(1, 1, "bread"))

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(keyword_changes, "write", full)
    with pytest.raises(IndexUnusable, match="the disk is full"):
        shelf.put(passage(2, 1, "more bread"))
    assert shelf.ids(Words("bread")) == [1]
    shelf.index.close()


def test_large_drafts_become_several_segments(tmp_path, monkeypatch):
    monkeypatch.setattr(keyword_changes, "DRAFT_DOCS", 10)
    shelf = Shelf(tmp_path, Keyword())
    shelf.put(note(1), *(passage(id_, 1, f"bread {name(id_)}") for id_ in range(35)), commit=False)
    shelf.put(passage(3, 1, "replaced"))
    assert len(shelf.ids(Words("bread"))) == 34
    assert shelf.ids(Words("replaced")) == [3]
    assert shelf.ids(Words(name(3)), fuzzy=False) == []
    shelf.index.close()


def test_segments_that_are_merged_hold_no_more_than_their_numbers_reach(tmp_path):
    """Documents are numbered in 16 bits, and a thousand short passages fit into 5 KB."""
    index = open_keyword(tmp_path, Keyword())
    for revision, ids in enumerate((range(33_000), range(33_000, 66_000)), 1):
        index.put([], [passage(id_, 1, "bread" if id_ % 2 else "salt") for id_ in ids])
        index.commit(revision)
    index.compact(lambda *_: ([], []))
    hits = index.search(Words("bread"), limit=66_000, fuzzy=False, seconds=60).hits
    assert {hit.passage for hit in hits} == set(range(1, 66_000, 2))
    index.close()


def test_a_dead_writer_does_not_block_the_next(shelf):
    script = (
        "import os, sys; from pathlib import Path; from ragvault.config.settings import Keyword\n"
        "from ragvault.index.keyword_open import open_keyword\n"
        "from tests.keyword_shelves import passage\n"
        "index = open_keyword(Path(sys.argv[1]), Keyword(engine=sys.argv[2]))\n"
        "index.put([], [passage(90, 1, 'never committed')])\n"
        "os.kill(os.getpid(), 9)\n"
    )
    shelf.index.close()
    arguments = [sys.executable, "-c", script, str(shelf.folder), shelf.settings.engine]
    assert subprocess.run(arguments, check=False).returncode == -9
    shelf.reopened().put(passage(91, 1, "written after"))
    assert shelf.ids(Words("written committed"), fuzzy=False) == [91]


# --- Readers and a writer ---


def test_a_reader_keeps_its_commit_until_it_looks_again(shelf):
    reader = open_keyword(shelf.folder, shelf.settings)
    shelf.put(passage(50, 1, "fresh"))
    assert not reader.search(Words("fresh"), limit=5, fuzzy=False).hits
    assert reader.search(Words(name(7)), limit=5).hits[0].passage == 7
    reader.refresh()
    assert reader.search(Words("fresh"), limit=5).hits[0].passage == 50
    assert reader.revision == 2
    reader.close()


def test_readers_beside_a_writer_see_whole_commits(shelf):
    """Each commit holds as many passages as its number says, so a mixture would show."""
    stop, wrong = threading.Event(), []

    def look():
        reader = open_keyword(shelf.folder, shelf.settings)
        try:
            while not stop.is_set():
                reader.refresh()
                found = len(reader.search(Words("counted"), limit=500).hits)
                same = len(reader.search(Words(name(500 + found)), limit=500, fuzzy=False).hits)
                if found > 0 and found != same:
                    wrong.append((found, same))
        except Exception as error:
            wrong.append(error)
        reader.close()

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for turn in range(1, 16):
        shelf.put(*(passage(100 + id_, 1, f"counted {name(500 + turn)}") for id_ in range(turn)))
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(shelf.ids(Words(name(515)), fuzzy=False)) == 15


def test_a_segment_of_which_a_file_was_swept_away_leaves_no_file_open(tmp_path):
    shelf = Shelf(tmp_path, Keyword())
    shelf.put(note(1, "Bread"), passage(1, 1, "bread"))
    shelf.index.close()
    [posts] = tmp_path.rglob("*.pst")
    posts.unlink()

    with pytest.raises(FileNotFoundError):
        Segment(posts.parent, posts.stem)

    gc.collect()  # a file that was left open is a ResourceWarning, and so an error


def test_a_segment_is_on_disk_before_a_manifest_names_it(tmp_path, monkeypatch):
    events = []
    sync, replace = os.fsync, keyword_shelf.replace

    def synced(handle):
        events.append(os.fstat(handle).st_ino)
        sync(handle)

    def named(fresh, manifest):
        events.append("named")
        replace(fresh, manifest)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(keyword_shelf, "replace", named)
    shelf = Shelf(tmp_path, Keyword()).put(note(1, "Bread"), passage(1, 1, "loaf"))
    shelf.index.close()

    before = events[: events.index("named")]
    parts = [path for path in files(tmp_path) if path.name.startswith(keyword_shelf.INDEX)]
    assert parts
    assert {path.stat().st_ino for path in parts} <= set(before)


@pytest.mark.parametrize(
    ("error", "told_as"),
    [
        (OSError(errno.ENOSPC, "full"), OSError),
        (MemoryError(), MemoryError),
        (KeyboardInterrupt(), KeyboardInterrupt),
        (OSError(errno.EIO, "a bad block"), CacheBroken),
        (KeyError("a block"), CacheBroken),
    ],
)
def test_a_full_disk_is_no_damage(error, told_as):
    @damage_told
    def fails():
        raise error

    with pytest.raises(told_as):
        fails()


def test_a_lock_that_appears_while_an_index_is_deleted_is_no_harm(shelf, monkeypatch):
    """Of somebody who has it open, and looks at it at that very moment."""
    real = Path.rmdir

    def rmdir(path):
        (path / ".lock").touch()
        real(path)

    monkeypatch.setattr(Path, "rmdir", rmdir)
    wipe(shelf.folder)

    assert {path.name for path in files(shelf.folder)} <= {".lock"}
    shelf.reopened()
    assert shelf.put(note(1, "x"), passage(1, 1, "wine")).ids(Words("wine")) == [1]
