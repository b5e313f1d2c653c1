"""What programs import: the public names, what they return, and that none costs anything early."""

from __future__ import annotations

import json
import pickle
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path

import pytest
from vault_kit import indexed_sample, sample, vault
from vault_kit import ragvault as run

import ragvault
from ragvault import RagvaultError, Response, Result, Vault

__all__ = ["indexed_sample", "sample", "vault"]

PAGE = (Path(__file__).parent.parent / "docs" / "python.md").read_text("utf-8")
NOW = datetime(2026, 3, 1, tzinfo=timezone.utc)


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """On a busy machine a leg may be late, and two answers would differ."""
    monkeypatch.setenv("RAGVAULT_RETRIEVE__SECONDS", "60")


@pytest.mark.parametrize("name", ragvault.__all__)
def test_every_public_name_can_be_imported(name):
    assert getattr(ragvault, name) is not None


def test_a_name_that_is_not_public_is_an_error():
    with pytest.raises(AttributeError, match="no attribute 'Volt'"):
        _ = ragvault.Volt


def test_importing_the_package_imports_no_room():
    program = "import sys, ragvault; print(*(m for m in sys.modules if m.startswith('ragvault.')))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.stdout.split() == ["ragvault.errors"]


# --- what a search returns ---


def test_a_response_is_the_json_of_the_command(sample):
    typed = run("search", "steam oven", "--also", "rye", "-n", "4", "--json").json
    found = Vault.open(sample).search("steam oven", queries=["rye"], limit=4)

    for shown in (typed, as_dict := found.to_dict()):
        shown.pop("took_ms")
    assert as_dict == typed
    assert [each.to_dict() for each in found] == typed["results"]
    assert json.dumps(found.to_dict())


def test_a_result_has_the_attributes_that_people_look_for(sample):
    (first, *_) = found = Vault.open(sample).search("steam", limit=3)

    assert isinstance(found, Response)
    assert isinstance(first, Result)
    assert (first.title, first.note) == ("Steam", "Technique/Steam.md")
    assert first.path == sample / "Technique" / "Steam.md"
    assert first.snippet
    assert first.snippet.split()[0] in first.text
    assert first.headings[0] == "Steam"
    assert first.lines[0] <= first.line <= first.lines[1]
    assert 0 <= first.confidence <= 1
    assert first.band
    assert (len(found), found[0], found[:1]) == (3, first, (first,))


def test_results_are_frozen_have_short_reprs_and_can_be_pickled(sample):
    found = Vault.open(sample).search("steam", limit=2)

    with pytest.raises(AttributeError):
        found.results[0].title = "other"
    found.results[0].to_dict()["title"] = "other"
    assert found.results[0].to_dict()["title"] == "Steam"
    assert re.fullmatch(r"<Result 1 vault/Technique/Steam\.md:\d+-\d+ \w+ [\d.]+>", repr(found[0]))
    assert repr(found) == "<Response 'steam': 2 results in vault>"
    assert pickle.loads(pickle.dumps(found)) == found


@pytest.mark.parametrize(
    ("command", "method"),
    [
        (("links", "Steam"), lambda vault: vault.links("Steam")),
        (("links", "Steam", "--path", "Home"), lambda vault: vault.link_path("Steam", "Home")),
        (("related", "Steam"), lambda vault: vault.related("Steam")),
        (("read", "Steam", "--lines", "1-3"), lambda vault: vault.read("Steam", lines="1-3")),
        (("list", "tags"), lambda vault: vault.list("tags")),
        (("status",), lambda vault: vault.status()),
    ],
)
def test_every_value_is_the_json_of_its_command(sample, command, method):
    opened = Vault.open(sample)
    assert method(opened).to_dict() == run(*command, "--json").json
    assert len(repr(method(opened))) < 120


# --- open vaults ---


def test_inside_with_the_index_is_opened_once_and_closed_at_the_end(sample, monkeypatch):
    opened = []
    corpus = Vault.corpus
    monkeypatch.setattr(
        Vault, "corpus", lambda *a, **k: opened.append(corpus(*a, **k)) or opened[-1]
    )
    with Vault.open(sample) as vault:
        first, second = vault.search("steam", now=NOW), vault.search("steam", now=NOW)
        assert len(opened) == 1
        assert first.results == second.results
    assert opened[0]._closed
    assert vault.search("steam", now=NOW).results == first.results  # opened for this search alone
    assert len(opened) == 2


def test_a_kept_index_sees_what_was_indexed_since_and_a_rebuilt_one(vault):
    with Vault.open(vault) as opened:
        assert not [each for each in opened.search("zeppelin") if "zeppelin" in each.text]
        (vault / "new.md").write_text("# New\n\nA zeppelin.\n")
        opened.index()
        assert opened.search("zeppelin")[0].note == "new.md"
        (vault / "new.md").write_text("# New\n\nAn airship.\n")
        opened.index(rebuild=True)
        assert opened.search("airship")[0].note == "new.md"


def test_a_mistake_does_not_harm_the_next_search(sample):
    with Vault.open(sample) as opened:
        with pytest.raises(RagvaultError) as error:
            opened.search("since:soon")
        assert error.value.fix
        assert opened.search("steam")


@pytest.mark.parametrize("kept", [True, False])
def test_several_threads_may_use_one_vault(sample, kept):
    opened = Vault.open(sample)
    queries = ["steam", "rye flour", "tag:recipe", "water"]
    expected = {query: opened.search(query, now=NOW).results for query in queries}
    barrier = threading.Barrier(4)

    def ask(query):
        barrier.wait(30)
        return opened.search(query, now=NOW).results, opened.read("Steam").text

    if kept:
        opened.__enter__()
    try:
        with ThreadPoolExecutor(4) as threads:
            found = list(threads.map(ask, queries))
    finally:
        opened.close()
    assert [results for results, _ in found] == [expected[query] for query in queries]
    assert len({text for _, text in found}) == 1


# --- the page ---


def test_the_page_names_every_public_name_and_method():
    for name in ragvault.__all__:
        assert f"`{name}`" in PAGE or f"`{name}(" in PAGE
    for method in (
        "open",
        "index",
        "search",
        "read",
        "related",
        "links",
        "link_path",
        "list",
        "status",
    ):
        assert f"`{method}(" in PAGE


def test_every_attribute_of_a_result_is_on_the_page():
    for name in Result.__struct_fields__:
        assert f"`{name}`" in PAGE


def test_the_first_example_of_the_page_runs(sample, monkeypatch, capsys):
    example = re.findall(r"```python\n(.*?)```", PAGE, re.S)[0]
    exec(example.replace('"~/notes"', repr(str(sample))), {})
    assert "Steam" in capsys.readouterr().out


@pytest.mark.parametrize("package", ["langchain_core", "llama_index.core"])
def test_the_retriever_examples_run_where_their_package_is_installed(package, sample):
    (example,) = (
        each for each in re.findall(r"```python\n(.*?)```", PAGE, re.S) if f"from {package}" in each
    )
    compile(example, package, "exec")
    assert len(example.splitlines()) <= 16
    pytest.importorskip(package)
    names: dict[str, object] = {}
    exec(example, names)
    with Vault.open(sample) as opened:
        retriever = names["VaultRetriever"](vault=opened)
        found = getattr(retriever, "invoke", None) or retriever.retrieve
        assert found("steam")
