"""What happens to the files of an index: damaged ones are made again, a full disk costs nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from write_kit import QUERIES, Heard, answers, models, notes, opened, write

from ragvault.cli.reports import index_report
from ragvault.evaluate.doctor import check_index
from tests.keyword_kit import ENGINES

pytestmark = pytest.mark.usefixtures("models")
__all__ = ["models"]


SLOW = pytest.mark.slow  # tantivy's two indexes have thirty files, and each is damaged in turn
BOTH = [pytest.param(name, marks=SLOW if name == "tantivy" else ()) for name in ENGINES]


@pytest.fixture(params=BOTH)
def vault(request, tmp_path):
    write(tmp_path / "vault", notes(6))
    return opened(tmp_path / "vault", tmp_path / "home", f"keyword.engine={request.param}")


# --- Damage ---


def delete(path: Path) -> None:
    path.unlink()


def truncate(path: Path) -> None:
    data = path.read_bytes()
    path.unlink()  # cut in place, it would end a process that still maps it (SIGBUS)
    path.write_bytes(data[: len(data) // 2])


def flip(path: Path, where: float) -> None:
    """As a disk does: neither size nor time is another."""
    before = path.stat()
    data = bytearray(path.read_bytes())
    data[int(where * (len(data) - 1))] ^= 0xFF
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def become(path: Path, other: Path) -> None:
    """As a sync program may do it: another file of the index is here."""
    before = path.stat()
    shutil.copyfile(other, path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def empty(path: Path) -> None:
    path.write_bytes(b"")


def caches(folder: Path, tier: str) -> list[str]:
    """Every file that answers and can be rebuilt, by its path in the index folder."""
    held = (folder / "caches").rglob("*")
    # Locks are empty, and tantivy's list of managed files is about files to delete.
    spared = ("MAIN_WRITELOCK", ".tantivy-meta.lock", ".tantivy-writer.lock", ".managed.json")
    names = [str(p.relative_to(folder)) for p in held if p.is_file() and p.name not in spared]
    # Rough vectors of passages that all have good ones answer nothing.
    return [name for name in names if tier == "static" or "rough" not in name]


def cache_of(vault, name: str) -> Path:
    """The folder of the keyword or the vector index."""
    (found,) = (vault.folder / "caches").glob(f"{name}-*")
    return found


CACHES = ("keyword", "vector")


HARM = [
    pytest.param(delete, "static", 3, id="delete-some"),
    pytest.param(truncate, "static", 3, id="truncate-some"),
    pytest.param(delete, "static", 1, id="delete", marks=SLOW),
    pytest.param(truncate, "static", 1, id="truncate", marks=SLOW),
    pytest.param(empty, "full", 1, id="empty", marks=SLOW),
]


@pytest.mark.parametrize(("damage", "tier", "every"), HARM)
def test_a_damaged_cache_is_rebuilt_from_the_catalogue_with_one_line(
    vault, models, damage, tier, every
):
    vault.index(tier)
    before = answers(vault)
    saved = shutil.copytree(vault.folder, vault.folder.with_name("saved"))
    models.forget()
    wrong = []
    for name in caches(saved, tier)[::every]:
        shutil.rmtree(vault.folder)
        shutil.copytree(saved, vault.folder)
        damage(vault.folder / name)
        heard = Heard()

        vault.index(tier, progress=heard)

        said = [line for line in heard.lines if "rebuilding" in line]
        if answers(vault) != before or models.seen or len(said) != 1:
            wrong.append((name, heard.lines, models.seen))
    assert wrong == []


# Whoosh does not close what it opened of a damaged index; the collector does, and complains.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.parametrize(
    ("places", "every"),
    [((0.08,), 2), pytest.param((0.0, 0.08, 0.5, 0.99), 1, marks=SLOW)],
    ids=["some", "all"],
)
def test_a_search_that_meets_damage_names_the_leg_and_a_rebuild_mends_it(vault, places, every):
    vault.index()
    before = {query: _found(vault, query) for query in QUERIES}
    saved = shutil.copytree(vault.folder, vault.folder.with_name("saved"))
    held = cache_of(vault, "keyword").relative_to(vault.folder)
    files = sorted(path for path in (saved / held).rglob("*") if path.stat().st_size > 40)
    files = [path for path in files if path.is_file()]
    flips = [partial(flip, where=where) for where in places]
    wrong = []
    for path, other in [*zip(files, [*files[1:], files[0]], strict=True)][::every]:
        for damage in (*flips, partial(become, other=other)):
            shutil.rmtree(vault.folder)
            shutil.copytree(saved, vault.folder)
            damage(vault.folder / path.relative_to(saved))

            failed = {leg for query in QUERIES for leg in vault.search(query).failed}
            vault.index(rebuild=True)

            known = failed <= {"keyword", "code"}
            if not known or {query: _found(vault, query) for query in QUERIES} != before:
                wrong.append((path.name, damage, failed))
    assert wrong == []


def _found(vault, query):
    response = vault.search(query)
    return [(each.note, each.passage) for each in response.results], response.failed


@pytest.mark.parametrize("name", CACHES)
def test_damage_is_reported_with_the_name_of_the_index_and_found_by_the_doctor(vault, name):
    vault.index()
    files = [path for path in cache_of(vault, name).rglob("*") if path.is_file()]
    truncate(max(files, key=lambda path: path.stat().st_size))
    with vault.catalogue() as catalogue:
        found = list(check_index(catalogue, vault.engines(), vault.status()))
    heard = Heard()

    vault.index(progress=heard)

    assert [each.part for each in found if each.state == "broken"] == [f"{name} index"]
    assert len(heard.lines) == 1
    assert heard.lines[0].startswith(f"{name} index")


def test_when_all_caches_are_gone_each_is_rebuilt_and_named(vault, models):
    vault.index()
    before = answers(vault)
    models.forget()
    shutil.rmtree(vault.folder / "caches")
    heard = Heard()

    vault.index(progress=heard)

    assert answers(vault) == before
    assert models.seen == []
    assert [line.partition(":")[0].split(" of ")[0] for line in heard.lines] == [
        "keyword index",
        "vector index",
    ]


def test_an_index_whose_first_run_was_stopped_before_its_words_is_not_called_lost(
    vault, monkeypatch
):
    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("ragvault.update.keyword.update_keyword", stop)
        with pytest.raises(KeyboardInterrupt):
            vault.index()
    heard = Heard()

    vault.index(progress=heard)

    assert [line for line in heard.lines if "rebuilding" in line] == []


@pytest.mark.parametrize("flags", [{"rebuild": True}, {}])
def test_what_is_made_again_is_reported_and_not_called_nothing(vault, flags):
    vault.index()
    other = "whoosh" if vault.settings.config.keyword.engine == "tantivy" else "tantivy"
    if not flags:  # another engine
        pytest.importorskip("tantivy")
        home = vault.folder.parent.parent
        vault = opened(vault.root, home, f"keyword.engine={other}")

    report = vault.index(**flags)

    assert report.rebuilt == (("keyword", "vectors") if flags else ("keyword",))
    rebuilt = f"rebuilt {' and '.join(report.rebuilt)}; now 6 notes"
    assert rebuilt in index_report("notes", report)
    assert vault.index().rebuilt == ()


def test_a_rebuild_says_once_what_it_does_and_nothing_of_what_it_deleted(vault):
    vault.index()
    heard = Heard()
    vault.index(rebuild=True, progress=heard)
    assert heard.lines == ["rebuilding all indexes from the catalogue"]


# --- A full disk ---

SMALL = "mount -t tmpfs -o size=8m none {home} && exec {python} {script} {arguments}"


def on_a_small_disk(home, *arguments):
    """Run full_disk.py with a file system of 8 MB at `home`, where that is allowed."""
    here = Path(__file__).parents[1]
    command = SMALL.format(
        home=home,
        python=sys.executable,
        script=here / "full_disk.py",
        arguments=" ".join(arguments),
    )
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(here), str(here.parent)])}
    return subprocess.run(
        ["unshare", "-rm", "sh", "-c", command],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )


def may_mount():
    try:
        return (
            subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode
            == 0
        )
    except OSError:
        return False


@pytest.mark.skipif(not may_mount(), reason="needs the right to mount a small file system")
@pytest.mark.parametrize("engine", BOTH)
def test_a_full_disk_is_said_and_the_old_index_answers_and_goes_on_later(tmp_path, engine):
    home = tmp_path / "home"
    home.mkdir()
    done = on_a_small_disk(
        home, str(tmp_path / "vault"), str(home), str(tmp_path / "other"), engine
    )
    assert done.returncode == 0, done.stderr
    said = [line for line in json.loads(done.stdout) if line]
    assert len(said) >= 3
    assert all("full" in line or "No space left" in line for line in said), said
    assert all("fix: " in line and "is unharmed" in line for line in said)
