"""An index of every released format opens, answers, and is brought up to date without embedding.

tests/formats/N.tar.xz holds a small vault and its index as a release of format N wrote it.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from vault_kit import FAKE, ragvault
from write_kit import Heard

from ragvault.store import layout
from ragvault.store.catalogue import Catalogue
from ragvault.store.schema import MIGRATIONS
from ragvault.vault import Vault

FORMATS = Path(__file__).parents[1] / "formats"
sys.path.insert(0, str(FORMATS))
from make import NOTES, unpacked  # noqa: E402

KEPT = sorted(FORMATS.glob("*.tar.xz"), key=lambda path: int(path.name.partition(".")[0]))


@pytest.fixture(params=KEPT, ids=lambda path: path.name)
def old(request, tmp_path, monkeypatch) -> Vault:
    """A vault whose index was made by a release, found again where this one would put it."""
    for name, value in {**FAKE, "RAGVAULT_HOME": str(tmp_path / "home")}.items():
        monkeypatch.setenv(name, value)
    unpacked(request.param.read_bytes(), tmp_path)
    vault = Vault.open(tmp_path / "vault")
    vault.folder.parent.mkdir(mode=0o700, parents=True)
    shutil.move(tmp_path / "index", vault.folder)
    layout.register_vault(vault.root, vault.folder.parent.parent)
    return vault


def test_every_format_there_has_been_is_kept():
    names = [path.name for path in KEPT]

    assert names == [f"{built}.tar.xz" for built in range(1, len(MIGRATIONS) + 1)]


def test_an_old_index_opens_with_everything_in_it(old):
    with Catalogue.open(old.folder, write=True) as catalogue:
        assert catalogue.counts().format == len(MIGRATIONS)
        assert catalogue.check() == ""
        assert sorted(catalogue.files()) == sorted(NOTES)
        assert catalogue.note("Bread.md").text == NOTES["Bread.md"]
        assert catalogue.unembedded(catalogue.tier_model("full")) == []


def test_an_old_index_is_brought_up_to_date_without_embedding_and_answers(old):
    report = old.index()

    assert (report.embedded, report.added, report.changed) == (0, 0, 0)
    assert report.unchanged + report.touched == 3
    assert best(old, "hot stone") == "Oven.md"
    assert best(old, "lang:py") == "Oven.md"
    assert ragvault("links", "Oven", "--json").json["broken"][0]["target"] == "Nobody"
    assert ragvault("doctor", "-q").code == 0


@pytest.mark.parametrize("old", KEPT[:2], indirect=True)
def test_an_index_that_knows_no_inodes_reads_no_note_again_and_learns_them(old, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr("ragvault.update.notes.digest", lambda *_: pytest.fail("a note was read"))
        report = old.index()

    assert (report.unchanged, report.touched) == (3, 0)
    with old.catalogue() as catalogue:
        status = (old.root / "Oven.md").stat()
        known = catalogue.files()["Oven.md"]
        assert (known.ctime_ns, known.inode) == (status.st_ctime_ns, status.st_ino)


@pytest.mark.parametrize("old", KEPT[1:2], indirect=True)
def test_an_index_of_the_second_format_is_upgraded_without_a_word(old):
    heard = Heard()

    report = old.index(progress=heard)

    assert not any("format" in line for line in heard.lines)
    assert report.embedded == 0
    assert best(old, "hot stone") == "Oven.md"


@pytest.mark.parametrize("old", KEPT[:1], indirect=True)
def test_an_index_of_the_first_format_is_rebuilt_with_one_line(old):
    heard = Heard()

    old.index(progress=heard)

    assert [line for line in heard.lines if "older format" in line] == [
        "the index has an older format; rebuilding it (nothing is embedded again)"
    ]
    assert not any((old.folder / name).exists() for name in ("keyword", "code", "vectors"))


@pytest.mark.parametrize("old", KEPT[-1:], indirect=True)
def test_an_index_of_the_newest_format_answers_as_it_is(old):
    assert best(old, "the crumb") == "Journal/2024-03-01.md"
    assert best(old, "lang:py") == "Oven.md"


def best(vault: Vault, query: str) -> str:
    return vault.search(query).results[0].note
