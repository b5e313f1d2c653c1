"""ragvault doctor: what is well is said to be well, and every fault is found with its cure."""

from __future__ import annotations

import re
import shutil
import sqlite3
from datetime import datetime, timezone
from pathlib import Path

from vault_kit import indexed_sample, ragvault, sample, vault

from ragvault.config.settings import Config, Walk
from ragvault.evaluate import doctor
from ragvault.evaluate.doctor import Finding, exit_code, fine
from ragvault.vault import Vault

__all__ = ["indexed_sample", "sample", "vault"]
NOW = datetime(2026, 11, 16, tzinfo=timezone.utc)


def folder_of(root: Path) -> Path:
    return Vault.open(root).folder


def found(*args: str) -> tuple[int, dict[str, dict[str, str]]]:
    said = ragvault("doctor", "--json", *args)
    return said.code, {each["part"]: each for each in said.json["findings"]}


def test_a_vault_in_which_all_is_well(sample):
    code, parts = found()

    assert code == 0
    for part in ("libraries", "catalogue", "keyword index", "vector index"):
        assert parts[part]["state"] == "fine"
    for signal in ("vector", "keyword", "code", "graph", "aliases", "backlinks", "community"):
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
    config = Config()

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

    states = {each.state: each.fix for each in doctor.check_models(Config(), frozenset())}

    assert states["broken"] == "ragvault models pull potion-base-8M"


def test_a_library_that_cannot_be_imported_is_broken(monkeypatch):
    def refuse(name):
        raise ImportError(f"{name}: libomp.dylib not found")

    monkeypatch.setattr(doctor, "import_module", refuse)
    (first, *_) = doctor.check_libraries(Config())

    assert first.state == "broken"
    assert "--force-reinstall" in first.fix


def test_a_vault_with_more_folders_than_may_be_watched_is_told(tmp_path, monkeypatch):
    limit = tmp_path / "limit"
    limit.write_text("4\n")
    for name in "abc":
        (tmp_path / name).mkdir()
    monkeypatch.setattr(doctor, "INOTIFY", limit)
    monkeypatch.setattr(doctor.sys, "platform", "linux")

    finding = doctor.check_watching(tmp_path, Walk())

    assert finding.state == "note"
    assert "sysctl" in finding.fix


def test_ignored_folders_are_none_that_are_watched(tmp_path, monkeypatch):
    limit = tmp_path / "limit"
    limit.write_text("8\n")
    for name in ("notes", "node_modules/a/b/c/d", ".git/objects/00"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setattr(doctor, "INOTIFY", limit)
    monkeypatch.setattr(doctor.sys, "platform", "linux")

    assert (
        "2 folders; the system allows 8 watches" in doctor.check_watching(tmp_path, Walk()).message
    )


def test_the_worst_finding_is_the_exit_code():
    note, behind = Finding("a", "note", ""), Finding("b", "behind", "")

    assert exit_code([]) == exit_code([fine("a", ""), note]) == 0
    assert exit_code([behind, note]) == 3
    assert exit_code([behind, Finding("c", "broken", "")]) == 4


# Signals


def signals(root: Path, *flags: str) -> dict[str, Finding]:
    with Vault.open(root, flags=flags).corpus() as index:
        return {each.part: each for each in doctor.check_signals(index, NOW, 14)}


def test_what_is_off_is_not_called_dead(sample):
    found = signals(sample, "boost.backlinks.enabled=false", 'retrieve.legs=["keyword"]')

    assert (found["backlinks"].state, found["vector"].state) == ("note", "note")
    assert found["backlinks"].message == "off in your settings"


def test_a_signal_without_cause_is_worth_a_note(vault):
    found = signals(vault)

    assert found["importance"].state == "note"
    assert found["importance"].message == "unused (no note has an importance property)"


def test_a_signal_that_changes_an_order_is_fine(sample):
    found = signals(sample)

    assert {found[name].state for name in ("vector", "keyword", "graph")} == {"fine"}
    assert found["keyword"].message.endswith("and changed an order")


def test_a_signal_that_runs_and_changes_no_order_is_worth_a_note_that_says_so(vault):
    """The only note with code is found by its words as well, so the leg decides nothing."""
    found = signals(vault)["code"]

    assert found.state == "note"
    assert re.fullmatch(r"no effect in \d+ test searches", found.message)


def test_a_signal_that_never_fires_is_broken(vault):
    with sqlite3.connect(folder_of(vault) / "catalogue.sqlite") as db:
        db.execute("DELETE FROM link_stats")
    db.close()

    found = signals(vault)

    assert found["backlinks"].state == "broken"
    assert "--rebuild" in found["backlinks"].fix


def test_a_leg_that_fails_is_broken_with_its_reason(vault, monkeypatch):
    from ragvault.index.tiers import Tiers

    def fail(self, *args, **named):
        raise OSError("the disk is on fire")

    monkeypatch.setattr(Tiers, "search", fail)
    found = signals(vault)

    assert found["vector"].state == "broken"
    assert "the disk is on fire" in found["vector"].message


def test_filters_that_work_share_a_line(vault):
    assert "alias" in signals(vault)["filters"].message
