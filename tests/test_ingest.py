"""The write path, tier by tier: nothing is embedded twice, and everything can be found."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import numpy as np
import pytest
from write_kit import (
    Counting,
    Heard,
    OnStep,
    answers,
    models,
    note,
    notes,
    opened,
    prose,
    without_processes,
    write,
)

from ragvault.cli.reports import index_report
from ragvault.engines import Engines
from ragvault.errors import (
    IndexUnusable,
    ModelUnusable,
    VaultEmptied,
    VaultUnreadable,
)
from ragvault.index import graph
from ragvault.index.keyword.whoosh import WhooshWriter
from ragvault.models.fake import FakeEmbedder
from ragvault.plan import HasPart, Words
from ragvault.store import layout
from ragvault.store.catalogue import Catalogue
from ragvault.store.layout import CATALOGUE
from ragvault.update import keyword, upkeep, workers
from ragvault.update.vectors import TOPICS

pytestmark = pytest.mark.usefixtures("models")
__all__ = ["models"]
SUBJECTS = (
    "walrus",
    "otter",
    "heron",
    "badger",
    "lynx",
    "gecko",
    "bison",
    "mole",
    "newt",
    "wren",
    "crane",
    "toad",
)


@pytest.fixture
def vault(tmp_path):
    write(tmp_path / "vault", notes(12))
    return opened(tmp_path / "vault", tmp_path / "home")


def tier_sizes(vault):
    engines = Engines(vault.folder, vault.settings)
    with vault.catalogue() as catalogue:
        tier, model, dim = engines.answering(catalogue)
        return {tier: len(engines.vectors(model, dim, catalogue))}


def passages(vault):
    with vault.catalogue() as catalogue:
        return len(catalogue.passage_ids())


def test_an_index_that_lost_the_headings_of_short_sections_learns_them_and_embeds_nothing(
    vault, models
):
    kinds = "".join(f"## Kind {name}\n\nFew words.\n\n" for name in ("axolotl", "capybara"))
    write(vault.root, {"short.md": f"# Animals\n\n{kinds}"})
    vault.index("full")
    with closing(sqlite3.connect(vault.folder / "catalogue.sqlite")) as db, db:
        db.execute("UPDATE passages SET subheadings = '[]'")
        db.execute("UPDATE notes SET recipe = 'of another reader'")
    models.forget()

    report = vault.index("full")

    assert (report.recut, report.embedded) == (13, 0)
    assert models.seen == []
    with vault.catalogue() as catalogue:
        ids = catalogue.passage_ids_of(catalogue.note_id("short.md"))
        (place,), (said,) = catalogue.places(ids), catalogue.passage_texts(ids)
    assert place.subheadings == said.subheadings == ("Kind axolotl", "Kind capybara")
    assert vault.search("capybara").results[0].note == "short.md"


def test_a_first_run_embeds_every_text_once_in_each_tier(vault, models):
    report = vault.index("full")

    assert report.tier == "full"
    for model in ("rough", "fine"):
        seen = models[model].seen
        assert len(seen) == len(set(seen)) == passages(vault) + len(TOPICS)


@pytest.mark.parametrize("engine", ["whoosh", "tantivy"])
def test_documents_that_workers_make_answer_like_those_made_here(
    vault, tmp_path, monkeypatch, engine
):
    vault.index("static")
    monkeypatch.setattr(keyword, "MANY", 1)
    monkeypatch.setattr(keyword, "JOB", 3)
    other = opened(vault.root, tmp_path / "other", f"keyword.engine={engine}")
    other.index("static")
    alone = opened(vault.root, tmp_path / "alone", f"keyword.engine={engine}")
    without_processes(monkeypatch)
    alone.index("static")

    assert answers(other) == answers(alone)
    with vault.catalogue() as catalogue, other.catalogue() as of_other:
        assert catalogue.passage_count() == of_other.passage_count()


def test_a_passage_whose_worker_fails_is_found_all_the_same(vault, monkeypatch):
    monkeypatch.setattr(keyword, "MANY", 1)
    monkeypatch.setattr(keyword, "run_jobs", lambda jobs: (workers.Failure("ended") for _ in jobs))
    vault.index("keyword")
    assert vault.search("bread and flour").results


def test_a_static_model_that_fails_while_words_are_indexed_costs_no_words(
    vault, models, monkeypatch
):
    def fail(*_):
        raise ModelUnusable("rough", "it is damaged")

    monkeypatch.setattr(models["rough"], "embed", fail)
    report = vault.index("static")
    assert report.tier == "keyword"
    assert any("it is damaged" in warning for warning in report.warnings)
    assert vault.search("bread and flour").results


def test_a_second_run_does_nothing(vault, models):
    vault.index("full")
    models.forget()
    before = answers(vault)

    report = vault.index("full")

    assert not report.anything
    assert models.seen == []
    assert answers(vault) == before


def test_what_has_a_good_vector_has_no_rough_one(vault):
    vault.index("static")
    assert tier_sizes(vault) == {"static": passages(vault)}

    vault.index("full")

    assert tier_sizes(vault).get("static", 0) == 0
    assert tier_sizes(vault)["full"] == passages(vault)
    with vault.catalogue() as catalogue:
        assert catalogue.counts().vectors == {"fine@1": passages(vault)}


def test_a_half_finished_upgrade_is_searched_by_its_rough_vectors(vault, models, monkeypatch):
    monkeypatch.setattr("ragvault.update.vectors.PAGE", 10)

    def stop(what, done, total):
        if what == "embedding" and done >= 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        vault.index(progress=OnStep(stop))
    assert tier_sizes(vault) == {"static": passages(vault)}
    assert 0 < vault.status().tiers["full"] < passages(vault)
    assert vault.search("bread and flour").tier == "static"
    stored = set(models["fine"].seen)
    models.forget()

    vault.index("full")

    assert stored.isdisjoint(models["fine"].seen)
    assert models["rough"].seen == []
    assert vault.search("bread and flour").tier == "full"


def test_once_all_have_full_vectors_what_is_new_gets_one_at_once(vault, models):
    vault.index("full")
    models.forget()
    write(vault.root, {"new.md": "# New\n\nA zeppelin over the lake.\n"})

    assert vault.index("static").tier == "full"

    assert models["rough"].seen == []
    assert len(models["fine"].seen) == 1
    assert tier_sizes(vault) == {"full": passages(vault)}


def test_a_run_with_a_time_limit_finishes_the_rest_and_is_continued_by_the_next(
    vault, models, monkeypatch, tmp_path
):
    monkeypatch.setattr("ragvault.update.vectors.PAGE", 8)
    first = vault.index(time_limit=1e-9)

    assert first.tier == "static"
    assert 0 < first.unembedded < first.passages
    assert vault.status().tiers["full"] == first.passages - first.unembedded
    assert tier_sizes(vault) == {"static": first.passages}
    assert "have full vectors" in index_report("vault", first)
    runs, report = 0, first
    while report.unembedded:
        report, before, runs = vault.index(time_limit=1e-9), report, runs + 1
        assert report.unembedded < before.unembedded
    assert (runs > 1, report.tier) == (True, "full")
    seen = models["fine"].seen
    assert len(seen) == len(set(seen)) == passages(vault) + len(TOPICS)
    at_once = opened(vault.root, tmp_path / "at once")
    at_once.index()
    assert answers(vault) == answers(at_once)


@pytest.mark.parametrize("tier", ["keyword", "static", "full"])
def test_going_up_in_steps_ends_where_one_run_ends(vault, tmp_path, tier):
    vault.index(tier)
    vault.index("full")
    other = opened(vault.root, tmp_path / "other")
    other.index()

    assert answers(vault) == answers(other)


def test_a_rename_embeds_nothing(vault, models):
    vault.index("full")
    models.forget()
    (vault.root / "0003.md").rename(vault.root / "renamed.md")

    assert vault.index("full").moved == 1
    assert models.seen == []
    assert vault.search("renamed").results[0].note == "renamed.md"


def test_a_touched_file_embeds_nothing(vault, models):
    vault.index("full")
    models.forget()
    os.utime(vault.root / "0003.md")

    assert vault.index("full").touched == 1
    assert models.seen == []


def test_a_git_checkout_back_and_forth_embeds_nothing(vault, models):
    def git(*words):
        identity = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
        subprocess.run(
            ["git", "-C", vault.root, *identity, *words], check=True, capture_output=True
        )

    git("init", "-b", "one")
    git("add", "-A")
    git("commit", "-m", "one")
    git("checkout", "-b", "two")
    (vault.root / "0001.md").unlink()
    (vault.root / "0002.md").write_text(note(2, version=9))
    (vault.root / "new.md").write_text(note(99))
    git("add", "-A")
    git("commit", "-m", "two")
    vault.index("full")
    git("checkout", "one")
    vault.index("full")
    before = answers(vault)
    models.forget()

    for branch in ("two", "one", "two", "one"):
        git("checkout", branch)
        vault.index("full")

    assert models.seen == []
    assert answers(vault) == before


def test_editing_one_paragraph_of_a_long_note_embeds_only_what_changed(vault, models):
    paragraphs = [prose(("long", number), sentences=8) for number in range(40)]
    write(vault.root, {"long.md": "\n\n".join(paragraphs)})
    vault.index("full")
    models.forget()
    paragraphs[20] += " Another ending."
    write(vault.root, {"long.md": "\n\n".join(paragraphs)})

    vault.index("full")

    assert 1 <= len(models["fine"].seen) <= 2
    assert all("Another ending" in text or "ending" in text for text in models["fine"].seen[:1])


def test_a_rebuild_embeds_nothing_known(vault, models):
    vault.index("full")
    before = answers(vault)
    models.forget()

    vault.index(rebuild=True)

    assert models.seen == []
    assert answers(vault) == before


def test_copies_of_a_text_are_embedded_once(vault, models):
    write(vault.root, {f"copy{i}.md": "# Same\n\nThe very same words." for i in range(5)})
    vault.index("full")

    assert sum("very same words" in text for text in models["fine"].seen) == 1


def test_communities_that_could_not_be_stored_are_found_by_the_next_run(
    vault, tmp_path, monkeypatch
):
    def full(*_):
        raise IndexUnusable(vault.folder, "the disk is full")

    monkeypatch.setattr(Catalogue, "set_link_stats", full)
    with pytest.raises(IndexUnusable):
        vault.index("full")
    monkeypatch.undo()
    vault.index("keyword")

    with vault.catalogue() as catalogue:
        groups = {place.community for place in catalogue.link_stats().values()}
    assert groups
    assert None not in groups


def communities(vault):
    """Which notes stand together, whatever their ids."""
    groups = {}
    with vault.catalogue() as catalogue:
        paths = dict(catalogue.notes_since(0))
        for note, place in catalogue.link_stats().items():
            groups.setdefault(place.community, set()).add(paths[note])
    return {frozenset(group) for group in groups.values()}


def test_communities_of_an_index_that_grew_are_those_of_a_clean_one(tmp_path):
    chance = random.Random(3)
    texts = {f"{number:02}.md": "" for number in range(60)}
    for _ in range(120):
        one, other = chance.choice(list(texts)), chance.choice(list(texts))
        texts[one] += f"See [[{other[:-3]}]].\n"
    root, home = tmp_path / "vault", tmp_path / "home"
    late_first = sorted(texts, reverse=True)

    def agree(turn):
        grown = opened(root, home)
        grown.index("keyword")
        clean = opened(root, tmp_path / f"clean{turn}")
        clean.index("keyword")
        assert communities(grown) == communities(clean)

    write(root, {name: texts[name] for name in late_first[:30]})
    agree("half")
    write(root, texts)
    agree("whole")
    write(root, {"40.md": "Now [[03]] and [[17]].\n", "07.md": texts["07.md"] + "And [[55]].\n"})
    agree("edited")
    for old, new in (("02.md", "zz.md"), ("50.md", "00a.md"), ("31.md", "31b.md")):
        (root / old).rename(root / new)
        for path in sorted(root.glob("*.md")):
            text = path.read_text("utf-8")
            path.write_text(text.replace(f"[[{old[:-3]}]]", f"[[{new[:-3]}]]"), encoding="utf-8")
    agree("renamed")


def test_a_rename_that_leaves_the_order_of_notes_finds_no_communities_again(vault, monkeypatch):
    vault.index("keyword")
    (vault.root / "0011.md").rename(vault.root / "0011b.md")  # which no other note links to
    calls = []
    monkeypatch.setattr(graph, "communities", lambda *_: calls.append(1) or [])
    vault.index("keyword")
    assert not calls


@pytest.mark.parametrize("page", [1, 2000])
def test_every_block_of_code_is_in_the_code_of_its_passage(vault, monkeypatch, page):
    monkeypatch.setattr(keyword, "PAGE", page)
    vault.index("keyword")

    with vault.catalogue() as catalogue:
        code = catalogue.filtered_passages(HasPart("code")).tolist()
        index = vault.engines().keyword(catalogue)
    found = index.search(Words("get def", field="code"), limit=1000).hits
    index.close()

    assert code
    assert sorted(hit.passage for hit in found) == code


# --- Another model ---


def test_the_old_model_answers_until_the_new_one_has_read_everything(vault, tmp_path, models):
    vault.index("full")
    old = answers(vault)
    models.forget()
    changed = opened(vault.root, tmp_path / "home", "models.embedder=newer")

    def stop(what, done, total):
        if what == "embedding" and done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        changed.index(progress=OnStep(stop))
    assert answers(vault) == old

    changed.index()

    with vault.catalogue() as catalogue:
        assert catalogue.tier_model("full") == "newer@1"
        assert list(catalogue.caches()) == ["keyword", "vector newer@1"]
    folders = (vault.folder / "caches").glob("vector*")
    assert [folder.name.startswith("vector-newer@1-") for folder in folders] == [True]
    seen = models["newer"].seen
    assert len(seen) == len(set(seen)) == passages(vault) + len(TOPICS)
    assert models["fine"].seen == []
    assert models["rough"].seen == []


def test_going_back_to_the_old_model_embeds_nothing(vault, tmp_path, models):
    vault.index("full")
    before = answers(vault)
    opened(vault.root, tmp_path / "home", "models.embedder=newer").index()
    models.forget()

    vault.index("full")

    assert models.seen == []
    assert answers(vault) == before


def held(vault):
    with vault.catalogue() as catalogue:
        return {model.partition("@")[0] for model in catalogue.model_dims()} - {"rough"}


def test_vectors_of_a_replaced_model_go_after_a_day(vault, tmp_path, monkeypatch):
    vault.index("full")
    newer = opened(vault.root, tmp_path / "home", "models.embedder=newer")
    newer.index()
    newer.index()
    assert held(vault) == {"fine", "newer"}

    now = time.time()
    monkeypatch.setattr(upkeep.time, "time", lambda: now + upkeep.GRACE + 1)
    newer.index()

    assert held(vault) == {"newer"}
    assert passages(newer) > 0
    assert newer.search("bread").tier == "full"


def test_vectors_of_a_model_that_answers_again_stay(vault, tmp_path, monkeypatch):
    vault.index("full")
    opened(vault.root, tmp_path / "home", "models.embedder=newer").index()
    vault.index("full")  # back again; now the newer one is the replaced one
    now = time.time()
    monkeypatch.setattr(upkeep.time, "time", lambda: now + upkeep.GRACE + 1)
    vault.index("full")

    assert held(vault) == {"fine"}


def test_forgetting_a_note_drops_its_vectors_and_no_others_of_a_replaced_model(vault, tmp_path):
    """A model that does not answer may be on its way: its vectors took hours, and say nothing of
    a note that was forgotten once those of its own texts are gone."""
    vault.index("full")
    newer = opened(vault.root, tmp_path / "home", "models.embedder=newer")
    newer.index()

    newer.forget("0001.md")

    for model in ("fine@1", "newer@1"):
        assert 0 < vectors_of(vault, model) == passages(vault)


def vectors_of(vault, model):
    with closing(sqlite3.connect(vault.folder / "catalogue.sqlite")) as db:
        query = "SELECT count(*) FROM vectors JOIN models ON models.id = model WHERE name = ?"
        return db.execute(query, (model,)).fetchone()[0]


def halfway(vault):
    """Index until the first vectors of the model that is wanted are there."""

    def stop(what, done, total):
        if what == "embedding" and done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        vault.index("full", progress=OnStep(stop))


def forgets(vault, monkeypatch):
    vault.forget("0001.md")
    (vault.root / "0001.md").unlink()


def indexes_a_day_later(vault, monkeypatch):
    now = time.time()
    for days in (0, 1):
        later = now + days * (upkeep.GRACE + 1)
        monkeypatch.setattr(upkeep.time, "time", lambda later=later: later)
        vault.index("full")


@pytest.mark.parametrize("meanwhile", [forgets, indexes_a_day_later])
@pytest.mark.parametrize("once", [False, True], ids=["to a new one", "back to an old one"])
def test_a_change_of_model_that_was_stopped_goes_on_where_it_was(
    vault, tmp_path, models, monkeypatch, meanwhile, once
):
    """Whoever works with other settings in between has not heard of the model at all."""
    newer = opened(vault.root, tmp_path / "home", "models.embedder=newer")
    if once:
        newer.index()
    vault.index("full")
    write(vault.root, {"late.md": note(99)})
    models.forget()
    halfway(newer)
    assert models["newer"].seen

    meanwhile(vault, monkeypatch)
    newer.index()

    seen = models["newer"].seen
    assert len(seen) == len(set(seen))
    assert vectors_of(vault, "newer@1") == passages(vault)


def test_an_edit_while_a_model_is_replaced_is_embedded_by_the_one_that_answers(
    vault, tmp_path, models
):
    vault.index("full")
    newer = opened(vault.root, tmp_path / "home", "models.embedder=newer")
    halfway(newer)
    write(vault.root, {"late.md": note(99)})
    models.forget()

    newer.index(at_most="static")  # as a watcher updates it, and a search

    assert models["newer"].seen == []
    assert vectors_of(vault, "fine@1") == passages(vault)
    with vault.catalogue() as catalogue:
        assert catalogue.tier_model("full") == "fine@1"
    newer.index()
    assert vectors_of(vault, "newer@1") == passages(vault)


def test_an_index_says_that_its_latest_changes_have_no_vectors_yet(vault):
    vault.index("full")
    write(vault.root, {"late.md": note(99)})

    vault.index(at_most="keyword")

    with vault.corpus() as corpus:
        assert corpus.facts.behind == "the latest changes have no vectors yet"
    vault.index()
    with vault.corpus() as corpus:
        assert not corpus.facts.behind


def test_a_catalogue_that_is_rebuilt_keeps_the_model_that_was_begun(vault, tmp_path):
    vault.index("static")
    halfway(opened(vault.root, tmp_path / "home", "models.embedder=newer"))
    with closing(sqlite3.connect(vault.folder / CATALOGUE)) as db:
        db.execute("PRAGMA user_version = 1")

    vault.index("static")

    with vault.catalogue() as catalogue:
        assert catalogue.full_model == "newer@1"


def test_something_is_lacking_where_anything_is(vault, tmp_path):
    write(vault.root, {"0001.md": ""})
    vault.index("static")
    halfway(opened(vault.root, tmp_path / "home", "models.embedder=newer"))
    write(vault.root, {"first.md": note(99)})
    vault.index("keyword")
    combined = [(), ("rough@1",), ("newer@1",), ("none@1",), ("rough@1", "newer@1")]

    with vault.catalogue() as catalogue:
        lacked = {models: len(catalogue.unembedded(*models)) for models in combined}
        assert len(set(lacked.values())) > 1
        assert all(catalogue.has_unembedded(*models) == bool(lacked[models]) for models in combined)
    vault.index("static")
    with vault.catalogue() as catalogue:
        assert not catalogue.has_unembedded("rough@1", "newer@1")


# --- No model ---


@pytest.mark.parametrize("missing", [{"rough", "fine"}, {"rough"}, {"fine"}])
def test_without_a_model_the_other_tiers_work_and_the_cure_is_named(vault, models, missing):
    models.missing = missing

    report = vault.index("full")

    assert len(report.warnings) == len(missing)
    assert all("models pull" in warning for warning in report.warnings)
    assert vault.search("bread").results
    with vault.catalogue() as catalogue:
        assert catalogue.link_stats()
    tier = {frozenset({"rough"}): "full", frozenset({"fine"}): "static"}
    assert report.tier == tier.get(frozenset(missing), "keyword")


def test_a_later_run_adds_what_a_missing_model_left_out(vault, tmp_path, models):
    models.missing = {"rough", "fine"}
    vault.index("full")
    models.missing = set()

    assert vault.index("full").tier == "full"

    other = opened(vault.root, tmp_path / "other")
    other.index()
    assert answers(vault) == answers(other)


# --- Messages ---


def test_each_tier_says_that_it_can_be_searched_and_a_quiet_run_says_nothing(vault):
    heard = Heard()
    vault.index(progress=heard)
    assert heard.lines == [
        "Ready: keyword search.",
        "Ready: keyword + quick semantic search. Full quality follows.",
        "Ready: keyword + full semantic search.",
    ]
    again = Heard()
    vault.index(progress=again)
    assert again.lines == []


def test_files_are_read_without_processes_where_those_cannot_be_started(vault, monkeypatch):
    without_processes(monkeypatch)

    assert vault.index("keyword").added == 12


# --- The vocabulary ---


def terms(vault):
    with vault.catalogue() as catalogue:
        return catalogue.vocabulary()


@pytest.fixture
def wordy(tmp_path):
    """A vault of one subject a note: words that are in some passages and not in most."""
    files = {
        f"{word}.md": f"# {word}\n\n"
        + "\n\n".join(f"## Part {part}\n\n{word} {prose((word, part))}" for part in range(4))
        for word in SUBJECTS
    }
    write(tmp_path / "wordy", files)
    return opened(tmp_path / "wordy", tmp_path / "home")


def test_the_words_a_vault_is_about_are_kept_with_their_vectors(wordy):
    wordy.index("static")

    found = terms(wordy)

    assert set(SUBJECTS) <= set(found.terms)
    assert found.model == "rough@1"
    rows = FakeEmbedder().embed(list(found.terms), "passage")
    assert np.abs(found.matrix - rows).max() < 1e-3
    assert wordy.corpus().vocabulary().terms == found.terms


def test_a_small_edit_chooses_no_words_anew_and_a_large_one_embeds_only_new_words(
    wordy, models, monkeypatch
):
    monkeypatch.setattr("ragvault.update.keyword.LAG", 0.05)
    wordy.index()
    with wordy.catalogue() as catalogue:
        chosen = catalogue.facts.vocabulary_revision
    write(wordy.root, {"marmot.md": "# marmot\n\nmarmot and nothing else"})
    models.forget()
    wordy.index()
    with wordy.catalogue() as catalogue:
        assert catalogue.facts.vocabulary_revision == chosen
    more = "\n\n".join(f"## Part {part}\n\nmarmot {prose(part)}" for part in range(4))
    write(wordy.root, {"marmot.md": f"# marmot\n\n{more}"})

    wordy.index()

    assert "marmot" in terms(wordy).terms
    assert [text for text in models["rough"].seen if text in terms(wordy).terms] == ["marmot"]


def test_a_word_leaves_the_vocabulary_with_its_last_note(wordy):
    wordy.index()
    (wordy.root / f"{SUBJECTS[0]}.md").unlink()
    wordy.index()
    assert SUBJECTS[0] not in terms(wordy).terms
    wordy.forget(f"{SUBJECTS[1]}.md")
    assert SUBJECTS[1] not in terms(wordy).terms
    assert SUBJECTS[2] in terms(wordy).terms


def test_another_static_model_embeds_the_words_again(wordy, tmp_path, models):
    wordy.index("static")
    other = opened(wordy.root, tmp_path / "home", "models.static=newer")
    other.index("static")
    assert terms(wordy).model == "newer@1"
    assert set(terms(wordy).terms) <= set(models["newer"].seen)


def test_engines_that_are_handed_in_open_a_model_once(vault, monkeypatch):
    from ragvault.models import load

    monkeypatch.undo()  # the kit's models stand in front of what is tested here
    opened_models = []

    def open_embedder(name, how):
        opened_models.append(name)
        return Counting(name.partition("@")[0])

    monkeypatch.setattr(load, "open_embedder", open_embedder)
    engines = vault.engines()
    for version in range(3):
        write(vault.root, {"0001.md": note(1, version)})
        vault.index(engines=engines)
    assert sorted(opened_models) == ["fine", "rough"]


@pytest.mark.parametrize("engine", ["whoosh", "tantivy"])
def test_everything_an_index_holds_is_closed_to_others(tmp_path, engine):
    write(tmp_path / "vault", notes(3))
    vault = opened(tmp_path / "vault", tmp_path / "home", f"keyword.engine={engine}")
    mask = os.umask(0o022)
    try:
        vault.index("full")
    finally:
        os.umask(mask)

    held = [vault.folder, *vault.folder.rglob("*")]
    assert {path.stat().st_mode & 0o777 for path in held if path.is_dir()} == {0o700}
    assert {path.stat().st_mode & 0o777 for path in held if path.is_file()} == {0o600}


# --- Found again while others are still being read ---


@pytest.fixture
def at_once(monkeypatch):
    """Words follow after each note that is stored."""
    monkeypatch.setattr("ragvault.update.keyword.EVERY", 0.0)
    monkeypatch.setattr("ragvault.update.notes.COMMIT_EVERY", 1)


def by_word(vault, word):
    """The notes that the keyword index finds, of those that are still as it knows them."""
    with vault.corpus() as index:
        hits = index.keyword.search(Words(word), limit=999).hits
        notes = index.catalogue.notes_of_passages([hit.passage for hit in hits]).values()
        return {row.path for row in index.catalogue.heads(sorted(set(notes)))}


def changed(numbers):
    return {f"{n:04}.md": f"{note(n, 1)}\n\nzeppelin\n" for n in numbers}


@pytest.mark.parametrize("engine", ["whoosh", "tantivy"])
def test_a_changed_note_is_found_before_the_others_have_been_read(tmp_path, at_once, engine):
    write(tmp_path / "vault", notes(12))
    vault = opened(tmp_path / "vault", tmp_path / "home", f"keyword.engine={engine}")
    vault.index("full")
    write(vault.root, changed(range(12)))
    found = []

    def look(what, done, total):
        if what == "reading notes":
            found.append(by_word(vault, "zeppelin"))

    vault.index(progress=OnStep(look))

    # As each is told of, the words of those before it have followed.
    assert found == [set(changed(range(done))) for done in range(12)]


def test_a_note_that_is_cut_anew_is_found_before_the_others_are(vault, tmp_path, at_once):
    vault.index("full")
    every = by_word(vault, "note")
    other = opened(vault.root, tmp_path / "home", "chunk.child_target=300", "chunk.child_max=400")
    found = []

    def look(what, done, total):
        if what == "reading notes":
            found.append(by_word(other, "note"))

    other.index(progress=OnStep(look))

    assert len(every) == len(found) == 12
    assert all(len(every - there) <= 1 for there in found)


def test_what_followed_meanwhile_ends_where_one_run_ends(vault, tmp_path, at_once):
    vault.index("full")
    write(vault.root, changed(range(0, 12, 2)))
    (vault.root / "0001.md").unlink()
    vault.index("full")
    other = opened(vault.root, tmp_path / "other")
    other.index()

    assert answers(vault) == answers(other)


def test_a_first_index_is_written_in_one_go(vault, tmp_path, at_once, monkeypatch):
    commits = []
    real = WhooshWriter.commit

    def commit(self):
        commits.append(self)
        real(self)

    monkeypatch.setattr(WhooshWriter, "commit", commit)
    vault.index("keyword")

    assert len(commits) == 1


# --- A disk that is not mounted ---


@pytest.mark.parametrize("rebuild", [False, True])
@pytest.mark.parametrize("left", [(), ("picture.png",)])
def test_a_folder_without_a_single_note_empties_no_index(tmp_path, rebuild, left):
    write(tmp_path / "vault", notes(3))
    vault = opened(tmp_path / "vault", tmp_path / "home")
    vault.index("full")
    before = answers(vault)
    aside = vault.root.rename(tmp_path / "aside")
    vault.root.mkdir()
    for name in left:
        (vault.root / name).touch()

    with pytest.raises(VaultEmptied, match="is its disk mounted") as refused:
        vault.index(rebuild=rebuild)

    assert refused.value.exit_code == 4
    assert "--allow-empty" in refused.value.fix
    assert answers(vault) == before
    shutil.rmtree(vault.root)
    aside.rename(vault.root)
    assert vault.index("full").unchanged == 3


def test_a_search_of_an_empty_folder_asks_whether_it_is_mounted(tmp_path):
    write(tmp_path / "vault", notes(3))
    vault = opened(tmp_path / "vault", tmp_path / "home")
    vault.index("keyword")
    shutil.rmtree(vault.root)
    vault.root.mkdir()

    with pytest.raises(VaultUnreadable, match="is its disk mounted"):
        vault.search("bread")
    assert "is its disk mounted" in vault.status().pending.why


def test_notes_that_are_gone_for_good_are_taken_over_when_that_is_said(tmp_path):
    write(tmp_path / "vault", notes(3))
    vault = opened(tmp_path / "vault", tmp_path / "home")
    vault.index("keyword")
    shutil.rmtree(vault.root)
    vault.root.mkdir()

    assert vault.index("keyword", allow_empty=True).removed == 3
    assert vault.index("keyword").removed == 0
    assert vault.search("bread").results == ()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="no tantivy")
def test_a_vault_of_little_text_in_long_passages_has_the_fast_engine(tmp_path):
    write(tmp_path / "vault", {"a.md": "".join(chr(0x4E00 + at % 3000) for at in range(280_000))})
    vault = opened(tmp_path / "vault", tmp_path / "home")
    vault.index("keyword")

    with vault.catalogue() as catalogue:
        assert catalogue.passage_count() < 2_000
        assert catalogue.cache("keyword").engine == "tantivy"


# --- A vault that was moved ---


@pytest.fixture
def moved(tmp_path, models):
    """A vault whose folder has another name by now."""
    write(tmp_path / "old", notes(5))
    vault = opened(tmp_path / "old", tmp_path / "home")
    vault.index("full")
    (vault.folder / "tuned-default.toml").write_text("")
    layout.set_default_vault(layout.vault_of(vault.folder))
    models.forget()
    vault.root.rename(tmp_path / "new")
    return vault


def test_a_vault_that_was_moved_keeps_its_index_and_embeds_nothing(moved, models, tmp_path):
    before, heard = answers(moved), Heard()
    write(tmp_path / "new", {"later.md": "# Later"})
    vault = opened(tmp_path / "new", tmp_path / "home")

    report = vault.index(progress=heard)

    (tmp_path / "new" / "later.md").unlink()
    vault.index("full")
    assert (report.added, report.unchanged) == (1, 5)
    assert [text for text in models.seen if "Later" not in text] == []
    assert answers(vault) == before
    assert sum("continuing with its index" in line for line in heard.lines) == 1
    assert [(known.name, known.root) for known in layout.known_vaults(tmp_path / "home")] == [
        ("new", tmp_path / "new")
    ]
    assert layout.default_vault(tmp_path / "home").folder == vault.folder
    assert (vault.folder / "tuned-default.toml").exists()


def test_another_vault_does_not_get_the_index_of_one_that_is_gone(moved, models, tmp_path):
    write(tmp_path / "other", notes(5, version=1))
    write(tmp_path / "other", {f"{name}.md": name for name in "abc"})
    heard = Heard()

    report = opened(tmp_path / "other", tmp_path / "home").index(progress=heard)

    assert report.added == 8
    assert models.seen
    assert [line for line in heard.lines if "ragvault vaults remove" in line] == [
        "the folder of old is gone; to delete an index: ragvault vaults remove NAME"
    ]
    assert moved.folder.exists()


def test_a_part_of_a_vault_that_is_gone_is_a_vault_of_its_own(moved, tmp_path):
    write(tmp_path / "part", notes(2))
    assert opened(tmp_path / "part", tmp_path / "home").index("keyword").added == 2
    assert moved.folder.exists()


def test_a_copy_is_a_vault_of_its_own_while_the_first_is_there(moved, tmp_path):
    shutil.copytree(tmp_path / "new", moved.root)
    assert opened(tmp_path / "new", tmp_path / "home").index("keyword").added == 5
    assert moved.folder.exists()


# --- An edit that keeps size and time ---


def edit_in_place(path, old, new):
    """Another content of the same size, under the same modification time."""
    status = path.stat()
    text = path.read_text(encoding="utf-8")
    assert old in text
    assert len(old) == len(new)
    path.write_text(text.replace(old, new), encoding="utf-8")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (status.st_size, status.st_mtime_ns)


@pytest.fixture
def edited(vault):
    write(vault.root, {"quiet.md": "# Quiet\n\nzeppelin over the harbour\n"})
    vault.index("full")
    edit_in_place(vault.root / "quiet.md", "zeppelin", "aeroplan")
    return vault


def test_an_edit_that_keeps_size_and_time_is_noticed_by_the_next_index(edited):
    assert by_word(edited, "zeppelin") == {"quiet.md"}

    assert edited.index().changed == 1

    assert by_word(edited, "zeppelin") == set()
    assert by_word(edited, "aeroplan") == {"quiet.md"}
    assert edited.index().unchanged == 13


def test_an_edit_that_keeps_size_and_time_is_pending_and_never_shown_as_it_was(edited):
    assert edited.status().pending.changed == 1

    shown = [each for each in edited.search("zeppelin").results if each.note == "quiet.md"]

    assert all("zeppelin" not in each.passage for each in shown)


def test_a_changed_mode_is_recorded_and_nothing_is_embedded(vault, models):
    vault.index("full")
    models.forget()
    (vault.root / "0003.md").chmod(0o640)

    report = vault.index("full")

    assert (report.changed, report.touched, report.unchanged) == (0, 1, 11)
    assert models.seen == []
    assert vault.index("full").unchanged == 12


# --- The report ---


def test_a_passage_is_counted_once_however_many_tiers_embed_it(vault):
    report = vault.index("full")

    assert report.embedded == report.passages == passages(vault)
    assert report.notes == 12
    text = index_report("notes", report)
    assert text == f"Indexed notes: 12 notes, {report.passages} passages ({report.seconds:.1f} s)."


def test_an_empty_folder_is_told_with_the_extensions_looked_for(tmp_path):
    empty = opened(tmp_path / "emptyv", tmp_path / "home")

    text = index_report("emptyv", empty.index(), (".md", ".markdown"))

    assert text == "No Markdown files found in emptyv (looked for .md, .markdown)."


# --- Compaction waits for edits ---


def test_compaction_can_be_postponed_and_is_due_until_it_is_done(vault):
    vault.index("full")
    (vault.root / "0003.md").unlink()
    with vault.catalogue() as catalogue:
        before = catalogue.cache("keyword").number

    postponed = vault.index(postpone_compact=True)

    with vault.catalogue() as catalogue:
        assert catalogue.cache("keyword").number == before
    assert postponed.compact_due
    assert not vault.index("full").compact_due
    with vault.catalogue() as catalogue:
        assert catalogue.cache("keyword").number > before
    assert not vault.index(postpone_compact=True).compact_due


def test_compaction_can_be_cancelled_and_is_still_due(vault):
    vault.index("full")
    (vault.root / "0003.md").unlink()
    vault.index(postpone_compact=True)

    def stop(what, done, total):
        if what == "indexing keywords":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        vault.index(progress=OnStep(stop))

    assert vault.index(postpone_compact=True).compact_due
    vault.index("full")
    assert answers(vault) == answers(scratch_of(vault))


def scratch_of(vault):
    scratch = opened(vault.root, vault.folder.parent.parent.parent / "scratch")
    scratch.index()
    return scratch


@pytest.mark.parametrize("asked", ["keyword", "static"])
def test_a_vault_stays_in_the_tier_that_was_asked_for(vault, asked):
    write(vault.root, {"a.md": "Apples"})
    assert vault.tier == "full"
    vault.index(asked)
    write(vault.root, {"b.md": "Bananas"})

    assert vault.index().tier == asked
    found = vault.status()
    assert found.tiers[asked] == found.counts.passages
    assert not found.pending
    vault.index(at_most="keyword")
    assert vault.tier == asked, "how far one run goes is not what was asked for"
    assert vault.index("full").tier == vault.index().tier == "full"


def test_a_first_run_that_was_stopped_before_its_full_vectors_goes_on_with_them(
    vault, models, monkeypatch
):
    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("ragvault.ingest._Caches.update_full", stop)
        with pytest.raises(KeyboardInterrupt):
            vault.index()
    with vault.catalogue() as catalogue:
        assert (catalogue.tier_model("full"), catalogue.tier_model("static")) == ("", "rough@1")
    assert vault.index().tier == "full"


def test_a_static_vault_that_was_moved_stays_static(vault, models, tmp_path):
    vault.index("static")
    vault.root.rename(tmp_path / "new")
    moved = opened(tmp_path / "new", tmp_path / "home")

    assert moved.index().tier == moved.tier == "static"
    assert models["fine"].seen == []
