"""The write path: from scratch equals by edits, nothing is read twice, the vault is untouched."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from store_builders import passages
from write_kit import OnStep, without_processes

from ragvault.config.settings import Chunk, Config, Links
from ragvault.errors import VaultEmptied
from ragvault.ingest import update_catalogue
from ragvault.notes.walk import walk
from ragvault.ports import Progress
from ragvault.store.catalogue import Catalogue
from ragvault.update import notes as write_path
from ragvault.update import prepare, workers
from ragvault.update.notes import Report

SAMPLE = Path(__file__).parents[2] / "sample_vault"
LONG_AGO = 1_600_000_000  # so that no file is as young as the clock's tick


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        os.utime(path, (LONG_AGO, LONG_AGO))


def index(root: Path, folder: Path, config: Config = Config()) -> Report:  # noqa: B008
    with Catalogue.open(folder, write=True) as catalogue:
        return update_catalogue(root, catalogue, config, Progress(), allow_empty=True)


def answers(folder: Path) -> dict[str, object]:
    """Everything that can be asked of an index, without ids and revisions."""
    with Catalogue.open(folder) as catalogue:
        paths = sorted(catalogue.files())
        return {
            "notes": [catalogue.note(path) for path in paths],
            "dates": [(s.file, s.dates) for s in catalogue.stored_notes()],
            "passages": [[passage[2:] for passage in passages(catalogue, path)] for path in paths],
            "outgoing": [catalogue.outgoing(path) for path in paths],
            "incoming": [sorted(map(repr, catalogue.incoming(path))) for path in paths],
            "skipped": catalogue.skipped(),
        }


def tree(root: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(root)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "index"


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    root = tmp_path / "vault"
    root.mkdir()
    return root


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The paths of the files that are opened to be read."""
    opened: list[str] = []
    real_read, real_digest = prepare.read_file, write_path.digest
    with monkeypatch.context() as patch:
        without_processes(patch)
        patch.setattr(prepare, "read_file", lambda *a: opened.append(a[1].path) or real_read(*a))
        patch.setattr(write_path, "digest", lambda *a: opened.append(a[1].path) or real_digest(*a))
        yield opened


NAMES = ("A.md", "B.md", "sub/A.md", "sub/deep/C.md", "sub/index.md", "D.markdown")
TEXTS = (
    "# One\n\n[[A]] and [[B#Two]] and [[sub/A|label]] and [x](sub/)\n",
    "---\naliases: [Bee, A]\ntags: t\n---\n## Two\n\n[[Bee]] [[C]] ![[D]] ^id\n",
    "Plain words. [[index]] [[../B]] [[#Two]] [[B#^id]]\n",
    "---\ndate: 2024-01-02\nrelated: '[[Bee]]'\n---\n%%hidden%%\n",
    "",
)
OPERATIONS = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(NAMES), st.sampled_from(TEXTS)),
    st.tuples(st.just("delete"), st.sampled_from(NAMES), st.none()),
    st.tuples(st.just("rename"), st.sampled_from(NAMES), st.sampled_from(NAMES)),
    st.tuples(st.just("touch"), st.sampled_from(NAMES), st.none()),
    st.tuples(st.just("index"), st.none(), st.none()),
)


def do(root: Path, what: str, name: str | None, other: str | None, tick: int) -> None:
    path = root / (name or "")
    if what == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(other or "", encoding="utf-8")
        os.utime(path, (LONG_AGO + tick, LONG_AGO + tick))
    elif what == "delete":
        path.unlink(missing_ok=True)
    elif what == "touch" and path.exists():
        os.utime(path, (LONG_AGO + 500 + tick, LONG_AGO + 500 + tick))
    elif what == "rename" and path.exists() and other:
        (root / other).parent.mkdir(parents=True, exist_ok=True)
        path.replace(root / other)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(OPERATIONS, max_size=14))
@example([("write", "A.md", TEXTS[0]), ("index", None, None), ("write", "sub/index.md", "")])
def test_indexing_by_any_edits_equals_indexing_from_scratch(operations):
    with TemporaryDirectory() as temporary:
        root, by_edits, by_names, scratch = (
            Path(temporary, name) for name in ("v", "edits", "names", "scratch")
        )
        root.mkdir()
        index(root, by_names)
        changed: set[str] = set()
        for tick, (what, name, other) in enumerate([*operations, ("index", None, None)]):
            do(root, what, name, other, tick)
            changed.update({name, other} & set(NAMES))
            if what == "index":
                index(root, by_edits)
                index_only(root, by_names, changed)
                changed.clear()
        index(root, scratch)
        assert answers(by_edits) == answers(scratch)
        assert answers(by_names) == answers(scratch)


def index_only(root: Path, folder: Path, paths: set[str]) -> Report:
    """As a watcher does, which knows what has changed."""
    walked = walk(root, Config().walk, paths)
    with Catalogue.open(folder, write=True) as catalogue:
        catalogue.set_facts(last_run={"ended": 0.0})
        return update_catalogue(
            root, catalogue, Config(), Progress(), walked=walked, allow_empty=True
        )


def test_a_run_of_some_files_leaves_the_others_and_what_is_known_of_them(
    vault, folder, monkeypatch
):
    write(vault, {"a.md": "one", "b.md": "two", "c.md": "three"})
    for name in ("d.md", "e.md"):
        (vault / name).write_bytes(bytes(range(256)))
        os.utime(vault / name, (LONG_AGO, LONG_AGO))
    index(vault, folder)
    write(vault, {"a.md": "another", "b.md": "another", "e.md": "words at last"})
    (vault / "c.md").unlink()
    (vault / "b.md").rename(vault / "f.md")

    with counted(monkeypatch) as opened:
        report = index_only(vault, folder, {"a.md", "c.md", "e.md", "nowhere.md"})

    assert set(opened) == {"a.md", "e.md"}
    assert (report.added, report.changed, report.removed) == (1, 1, 1)
    assert report.unchanged == 1  # b.md, whatever it is now
    assert [skip.path for skip in report.skipped] == ["d.md"]
    with counted(monkeypatch) as opened:
        rest = index(vault, folder)
    assert opened == ["f.md"]  # d.md is still known
    assert (rest.added, rest.removed, rest.unchanged) == (1, 1, 2)


def test_a_run_of_some_files_indexes_all_where_no_run_has_ended(vault, folder):
    write(vault, {"a.md": "one", "b.md": "two"})
    walked = walk(vault, Config().walk, {"a.md"})
    with Catalogue.open(folder, write=True) as catalogue:
        report = update_catalogue(vault, catalogue, Config(), Progress(), walked=walked)

    assert report.added == 2


def test_the_last_note_is_not_removed_by_its_name_either(vault, folder):
    write(vault, {"a.md": "one", "b.md": "two"})
    index(vault, folder)
    (vault / "a.md").unlink()
    assert index_only(vault, folder, {"a.md"}).removed == 1
    (vault / "b.md").unlink()
    with Catalogue.open(folder, write=True) as catalogue:
        catalogue.set_facts(last_run={"ended": 0.0})
        walked = walk(vault, Config().walk, {"b.md"})
        with pytest.raises(VaultEmptied):
            update_catalogue(vault, catalogue, Config(), Progress(), walked=walked)


def test_the_vault_is_identical_before_and_after(tmp_path, folder):
    root = tmp_path / "vault"
    shutil.copytree(SAMPLE, root)
    before = tree(root)

    report = index(root, folder)
    index(root, folder)

    assert report.added == 44
    assert tree(root) == before


def test_an_unchanged_vault_is_confirmed_without_reading_it(vault, folder, monkeypatch):
    write(vault, {"a.md": "one", "b.md": "two"})
    index(vault, folder)

    with counted(monkeypatch) as opened:
        report = index(vault, folder)

    assert opened == []
    assert (report.unchanged, report.anything) == (2, False)


def test_only_the_changed_file_is_read(vault, folder, monkeypatch):
    write(vault, {"a.md": "one", "b.md": "two"})
    index(vault, folder)
    (vault / "a.md").write_text("another")

    with counted(monkeypatch) as opened:
        report = index(vault, folder)

    assert set(opened) == {"a.md"}
    assert (report.changed, report.unchanged) == (1, 1)


def test_a_rename_keeps_ids_and_takes_the_links_along(vault, folder):
    write(vault, {"a.md": "text of a note", "b.md": "[[a]] [[c]]"})
    index(vault, folder)
    with Catalogue.open(folder) as catalogue:
        before = [passage.id for passage in passages(catalogue, "a.md")]
    (vault / "a.md").rename(vault / "c.md")

    report = index(vault, folder)

    with Catalogue.open(folder) as catalogue:
        assert [passage.id for passage in passages(catalogue, "c.md")] == before
        assert catalogue.note("c.md").title == "c"
        meant = [target.path for _, target in catalogue.outgoing("b.md")]
    assert report.moved == 1
    assert meant == [None, "c.md"]


def test_with_a_changed_setting_every_note_is_cut_again_once(vault, folder, monkeypatch):
    write(vault, {"a.md": "words and more words. " * 200})
    index(vault, folder)
    smaller = Config(chunk=Chunk(child_target=200, child_min=100))

    with counted(monkeypatch) as opened:
        report = index(vault, folder, smaller)

    assert (report.recut, opened) == (1, ["a.md"])
    assert index(vault, folder, smaller).recut == 0
    scratch = folder.parent / "scratch"
    index(vault, scratch, smaller)
    assert answers(folder) == answers(scratch)


def test_another_link_order_is_applied_to_what_is_stored(vault, folder):
    write(vault, {"a.md": "[[some words|b]]", "b.md": ""})
    assert index(vault, folder).added == 2
    index(vault, folder, Config(links=Links(order="label-first")))
    with Catalogue.open(folder) as catalogue:
        [(_, target)] = catalogue.outgoing("a.md")
    assert target is not None
    assert target.path == "b.md"


def test_what_cannot_be_read_is_told_and_the_rest_goes_on(vault, folder):
    write(vault, {"a.md": "fine", "big.md": "x" * 100})
    (vault / "binary.md").write_bytes(bytes(range(256)) * 20)
    os.mkfifo(vault / "pipe.md")
    config = Config(walk=Config().walk.__class__(max_bytes=90_000))

    report = index(vault, folder, config)

    assert report.added == 2
    assert {skip.path: skip.reason for skip in report.skipped} == {
        "binary.md": "binary",
        "pipe.md": "special",
    }


def test_a_file_that_holds_no_text_is_read_once(vault, folder, monkeypatch):
    write(vault, {"a.md": "fine", "b.md": ""})
    (vault / "b.md").write_bytes(bytes(range(256)))
    os.utime(vault / "b.md", (LONG_AGO, LONG_AGO))
    first = index(vault, folder)

    with counted(monkeypatch) as opened:
        again = index(vault, folder)

    assert opened == []
    assert again.skipped == first.skipped
    assert (again.added, again.unchanged) == (0, 1)
    assert [skip.path for skip in first.skipped] == ["b.md"]


def test_a_file_that_held_no_text_is_read_when_it_changes_and_forgotten_when_it_goes(vault, folder):
    for name in ("b.md", "c.md"):
        (vault / name).write_bytes(bytes(range(256)))
        os.utime(vault / name, (LONG_AGO, LONG_AGO))
    index(vault, folder)
    (vault / "b.md").write_text("words at last")
    (vault / "c.md").unlink()

    report = index(vault, folder)

    assert (report.added, report.removed, report.skipped) == (1, 0, ())
    with Catalogue.open(folder) as catalogue:
        assert "c.md" not in catalogue.facts.unusable


def test_a_note_that_becomes_binary_is_told_in_every_run(vault, folder):
    write(vault, {"a.md": "fine"})
    index(vault, folder)
    (vault / "a.md").write_bytes(bytes(range(256)))
    os.utime(vault / "a.md", (LONG_AGO, LONG_AGO))

    runs = [index(vault, folder) for _ in range(3)]

    assert {run.removed for run in runs} == {0}
    assert {run.skipped for run in runs} == {runs[0].skipped}


def test_a_file_that_vanishes_between_walk_and_read_is_skipped(vault, folder, monkeypatch):
    write(vault, {"a.md": "here", "b.md": "gone soon"})
    real = prepare.read_file

    def vanish(root, file, limit):
        (vault / "b.md").unlink(missing_ok=True)
        return real(root, file, limit)

    without_processes(monkeypatch)
    monkeypatch.setattr(prepare, "read_file", vanish)
    report = index(vault, folder)

    assert report.added == 1
    assert [skip.reason for skip in report.skipped] == ["vanished"]


def test_a_run_that_stops_halfway_goes_on_from_there(vault, folder, monkeypatch):
    write(vault, {f"{i:03}.md": f"note {i} [[{i + 1:03}]]" for i in range(200)})

    def stop(what, done, total):
        if what == "reading notes" and done >= 64:
            raise KeyboardInterrupt

    with Catalogue.open(folder, write=True) as catalogue, pytest.raises(KeyboardInterrupt):
        update_catalogue(vault, catalogue, Config(), OnStep(stop))
    with Catalogue.open(folder) as catalogue:
        done = len(catalogue.files())
    report = index(vault, folder)

    assert 0 < done < 200
    assert report.added == 200 - done
    scratch = folder.parent / "scratch"
    index(vault, scratch)
    assert answers(folder) == answers(scratch)


def test_many_files_are_prepared_in_processes_with_the_same_result(vault, folder, monkeypatch):
    write(vault, {f"{i:03}.md": f"# Note {i}\n\nWords {i}. [[{i // 2:03}]]\n" for i in range(90)})
    index(vault, folder)
    monkeypatch.setattr(workers, "MANY", 10)
    monkeypatch.setattr(workers, "BATCH", 7)
    scratch = folder.parent / "scratch"
    index(vault, scratch)

    assert answers(folder) == answers(scratch)
