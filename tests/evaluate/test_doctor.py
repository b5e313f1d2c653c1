"""ragvault doctor: what is well is said to be well, and every fault is found with its cure."""

from __future__ import annotations

import re
import shutil
import sqlite3
from pathlib import Path

import pytest
from evaluate_kit import GARDEN, vault_of, with_flags
from evaluate_kit import NOW as GARDEN_DAY
from vault_kit import FAKE, indexed_sample, ragvault, sample, vault

from ragvault.config import profiles
from ragvault.evaluate import doctor
from ragvault.evaluate.doctor import Finding, exit_code, fine
from ragvault.index.vector import FaissVectors
from ragvault.vault import Vault

__all__ = ["indexed_sample", "sample", "vault"]


def folder_of(root: Path) -> Path:
    return Vault.open(root).folder


def found(*args: str) -> tuple[int, dict[str, dict[str, str]]]:
    said = ragvault("doctor", "--json", *args)
    return said.code, {each["part"]: each for each in said.json["findings"]}


@pytest.mark.slow  # tests/transcripts/doctor.txt has the same vault
def test_a_vault_in_which_all_is_well(sample):
    code, parts = found()

    assert code == 0
    for part in ("libraries", "catalogue", "keyword index", "vector index"):
        assert parts[part]["state"] == "fine"
    for signal in ("vector", "keyword", "code", "graph", "backlinks", "community"):
        assert parts[signal]["state"] == "fine", parts[signal]
    assert parts["vault"]["message"] == "every file is indexed as it is now"


def test_quiet_tells_nothing_where_nothing_is_wrong(vault):
    assert ragvault("doctor", "-q").out == ""
    assert "fine    catalogue: 3 notes" in ragvault("doctor", "-v").out


def test_a_file_that_changed_is_behind_and_index_cures_it(vault):
    (vault / "a.md").write_text("# A\n\nSomething else entirely.\n")

    code, parts = found()

    assert (code, parts["vault"]["state"], parts["vault"]["fix"]) == (
        3,
        "behind",
        "ragvault index",
    )
    ragvault("index", vault, "-q")
    assert found()[0] == 0


def test_a_vault_without_an_index_is_behind(tmp_path, vault):
    (tmp_path / "new").mkdir()

    code, parts = found("--vault", str(tmp_path / "new"))

    assert code == 3
    assert parts["index"]["fix"] == f"ragvault index {tmp_path / 'new'}"


def test_without_any_vault_the_machine_is_looked_at(tmp_path, monkeypatch):
    monkeypatch.setenv("RAGVAULT_HOME", str(tmp_path / "home"))

    code, parts = found()

    assert code == 3
    assert parts["libraries"]["state"] == "fine"
    assert parts["vault"]["fix"] == "ragvault index FOLDER"
    assert ragvault("doctor", "--vault", "nowhere").code == 2


def test_a_keyword_index_that_lost_its_files_is_found_and_index_cures_it(vault):
    for path in (folder_of(vault) / "caches").glob("keyword-*/*"):
        path.write_bytes(b"")

    code, parts = found()

    assert code in (3, 4)
    assert parts["keyword index"]["state"] in ("broken", "behind")
    assert parts["keyword index"]["fix"].startswith("ragvault index")
    assert "code" not in parts  # the same fault is reported once
    ragvault("index", vault, "-q")
    assert found()[0] == 0


def test_a_vector_index_that_is_gone_is_found_and_index_cures_it(vault):
    shutil.rmtree(next((folder_of(vault) / "caches").glob("vector-*")))

    code, parts = found()

    assert (code, parts["vector index"]["state"]) == (4, "broken")
    ragvault("index", vault, "-q")
    assert found()[0] == 0


def test_passages_missing_from_an_index_are_counted(vault):
    """An index that says it is of this revision, and is not."""
    opened = Vault.open(vault)
    from ragvault.engines import Engines
    from ragvault.index.keyword import open_writer

    engines = Engines(opened.folder, opened.settings)
    with opened.catalogue(write=True) as catalogue:
        cache = catalogue.cache("keyword")
        home = catalogue.cache_folder(cache)
        writer = open_writer(home, cache.engine, engines.config.keyword)
        writer.remove([], [int(catalogue.passage_ids()[0])])
        writer.commit()
        writer.close()

    code, parts = found()

    assert code == 3
    assert parts["keyword index"]["message"].startswith(
        "whoosh: 1 passages are missing and 0 are not"
    )
    assert "--rebuild" in parts["keyword index"]["fix"]
    ragvault("index", vault, "--rebuild", "-q")
    assert found()[0] == 0


def test_a_damaged_catalogue_is_broken_and_a_rebuild_cures_it(vault):
    path = folder_of(vault) / "catalogue.sqlite"
    with sqlite3.connect(path) as db:
        page = db.execute("PRAGMA page_size").fetchone()[0]
    db.close()
    data = bytearray(path.read_bytes())
    data[4 * page : 9 * page] = b"\xff" * (5 * page)
    path.write_bytes(bytes(data))

    said = ragvault("doctor", "-q")

    assert said.code == 4
    assert "ragvault index --rebuild" in said.out
    assert ragvault("index", vault, "--rebuild", "-q").code == 0
    assert ragvault("doctor", "-q").code == 0


def test_a_vault_that_is_gone_is_told(vault):
    vault.rename(vault.with_name("elsewhere"))

    code, parts = found("--vault", "vault")

    assert code == 4
    assert parts["vault"]["state"] == "broken"


def test_an_index_that_others_can_read_is_broken(vault):
    vaults = folder_of(vault).parent
    vaults.chmod(0o755)

    code, parts = found()

    assert (code, parts["data folder"]["fix"]) == (4, f"chmod 700 {vaults}")


# The machine


def test_a_model_the_index_needs_is_broken_when_it_is_not_here(tmp_path, monkeypatch):
    monkeypatch.setenv("RAGVAULT_HOME", str(tmp_path))
    config = profiles.config("default")

    wanted = doctor.check_models(config, frozenset())
    needed = doctor.check_models(config, frozenset({"potion-base-8M"}))

    assert {each.state for each in wanted} == {"note"}
    assert [each.state for each in needed if "potion" in each.message] == ["broken"]


def test_a_changed_byte_of_a_model_is_found(tmp_path, monkeypatch):
    from ragvault.models import registry

    monkeypatch.setenv("RAGVAULT_HOME", str(tmp_path))
    build = registry.find_model("potion-base-8M")[1][0]
    folder = registry.build_folder(build, tmp_path / "models")
    for name in build.files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"something else")

    states = {
        each.state: each.fix
        for each in doctor.check_models(profiles.config("default"), frozenset())
    }

    assert states["broken"] == "ragvault models pull potion-base-8M"


def test_a_library_that_cannot_be_imported_is_broken(monkeypatch):
    def refuse(name):
        raise ImportError(f"{name}: libomp.dylib not found")

    monkeypatch.setattr(doctor, "import_module", refuse)
    (first, *_) = doctor.check_libraries(profiles.config("default"))

    assert first.state == "broken"
    assert "--force-reinstall" in first.fix


def test_a_vault_with_more_folders_than_may_be_watched_is_told(tmp_path, monkeypatch):
    limit = tmp_path / "limit"
    limit.write_text("4\n")
    for name in "abc":
        (tmp_path / name).mkdir()
    monkeypatch.setattr(doctor, "INOTIFY", limit)
    monkeypatch.setattr(doctor.sys, "platform", "linux")

    finding = doctor.check_watching(tmp_path)

    assert finding.state == "note"
    assert "sysctl" in finding.fix


def test_ignored_folders_are_watched_as_well(tmp_path, monkeypatch):
    limit = tmp_path / "limit"
    limit.write_text("24\n")
    for name in ("notes", "node_modules/a/b/c/d", ".git/objects/00"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setattr(doctor, "INOTIFY", limit)
    monkeypatch.setattr(doctor.sys, "platform", "linux")

    found = doctor.check_watching(tmp_path)
    assert "10 folders; the system allows 24 watches" in found.message


def test_the_worst_finding_is_the_exit_code():
    note, behind = Finding("a", "note", ""), Finding("b", "behind", "")

    assert exit_code([]) == exit_code([fine("a", ""), note]) == 0
    assert exit_code([behind, note]) == 3
    assert exit_code([behind, Finding("c", "broken", "")]) == 4


# Links


@pytest.mark.parametrize(("written", "said"), [("Label|note{}", True), ("gone{}|Label", False)])
def test_doctor_tells_when_broken_links_work_the_other_way_round(
    tmp_path, monkeypatch, written, said
):
    for name, value in {**FAKE, "RAGVAULT_HOME": str(tmp_path / "home")}.items():
        monkeypatch.setenv(name, value)
    root = tmp_path / "vault"
    root.mkdir()
    for at in range(12):
        text = "".join(f"[[{written.format(to)}]]\n" for to in range(12))
        (root / f"note{at}.md").write_text(f"# Note {at}\n\n{text}")
    assert ragvault("index", root, "-q").code == 0
    assert ('label-first"' in ragvault("doctor", "--vault", root).out) == said
    assert "144 broken" in ragvault("status", "--vault", root).out
    if said:
        (root / "dendron.yml").write_text("")
        assert ragvault("index", root, "-q").code == 0
        assert "label-first" not in ragvault("doctor", "--vault", root).out
        assert "144 resolved" in ragvault("status", "--vault", root).out


# Signals


def signals(vault: Vault, count: int = 42) -> dict[str, Finding]:
    return {each.part: each for each in doctor.check_signals(vault, GARDEN_DAY, count)}


def broken(found: dict[str, Finding]) -> set[str]:
    return {name for name, each in found.items() if each.state == "broken"}


@pytest.fixture
def garden(tmp_path):
    return vault_of(tmp_path / "garden", GARDEN)


def change(vault: Vault, *statements: str) -> None:
    db = sqlite3.connect(vault.folder / "catalogue.sqlite")
    with db:
        for statement in statements:
            db.execute(statement)
    db.close()


def test_in_a_sound_vault_every_signal_that_changes_an_order_is_fine(garden):
    found = signals(garden)

    wanted = ("name", "vector", "keyword", "graph", "backlinks", "importance")
    assert {found[name].state for name in wanted} == {"fine"}
    assert found["keyword"].message.endswith("and changed an order")
    assert broken(found) == set()
    assert set(found) == set(doctor.SIGNALS)


def test_what_is_off_is_not_called_dead(garden):
    flags = "boost.backlinks.enabled=false", 'retrieve.legs=["keyword"]'
    found = signals(with_flags(garden, *flags), 14)

    assert {found[name].state for name in ("backlinks", "vector")} == {"note"}
    assert found["backlinks"].message == "off in your settings"
    assert found["keyword"].state == "fine"  # the only leg cannot be switched off
    boosts = signals(with_flags(garden, "boost.enabled=false"), 14)
    assert boosts["recency"].message == "off in your settings"


def test_a_signal_without_cause_is_worth_a_note_that_says_what_was_not_found(vault):
    found = signals(Vault.open(vault), 14)["importance"]

    assert found.state == "note"
    assert re.fullmatch(
        r"\d+ test searches found no notes with an importance property", found.message
    )


def test_a_signal_that_runs_and_changes_no_order_is_worth_a_note_that_says_so(tmp_path):
    """Weights so small that the boost is on and never decides."""
    weak = vault_of(tmp_path / "garden", GARDEN, "boost.backlinks.weight=0.0000001")
    found = signals(weak)["backlinks"]

    assert found.state == "note"
    assert re.fullmatch(r"no effect in \d+ test searches", found.message)


def test_expansion_is_fine_only_if_it_changes_an_answer(tmp_path):
    method = "query.expand.method=similarity"
    strong = signals(vault_of(tmp_path / "a", GARDEN, method, "query.expand.similarity=0.2"))
    weak = signals(vault_of(tmp_path / "b", GARDEN, method, "query.expand.similarity=1"))

    assert (strong["expansion"].state, weak["expansion"].state) == ("fine", "note")
    assert weak["expansion"].message.endswith("found no near words in the vault")


def test_an_empty_link_table_is_caught(garden):
    change(garden, "DELETE FROM links", "DELETE FROM link_stats")

    found = signals(garden)

    assert broken(found) == {"graph", "backlinks"}
    assert "--rebuild" in found["backlinks"].fix


@pytest.mark.parametrize("name", ["vector", "backlinks"])
def test_mismatched_keys_are_caught(garden, name, monkeypatch):
    if name == "vector":
        real = FaissVectors.search

        def shifted(self, *args, **named):
            ids, scores = real(self, *args, **named)
            return ids + 1_000_000, scores

        monkeypatch.setattr(FaissVectors, "search", shifted)
    else:
        change(garden, "UPDATE link_stats SET note_id = note_id + 1000000")

    assert broken(signals(garden)) == {name}


def test_a_leg_that_fails_is_broken_with_its_reason(garden, monkeypatch):
    def fail(self, *args, **named):
        raise OSError("the disk is on fire")

    monkeypatch.setattr(FaissVectors, "search", fail)
    found = signals(garden)["vector"]

    assert found.state == "broken"
    assert "the disk is on fire" in found.message


def test_a_vault_without_links_has_no_broken_graph(tmp_path):
    notes = {f"{n}.md": f"# Thing {n}\n\nSome words about the thing of today." for n in range(14)}

    found = signals(vault_of(tmp_path / "plain", notes, tier="keyword"), 20)

    assert broken(found) == set()
    assert {found[name].state for name in ("graph", "backlinks", "vector")} == {"note"}
