"""What is deleted is gone: from every answer at once, and then from every file."""

from __future__ import annotations

import time

import numpy as np
import pytest
from write_kit import answers, holders, models, notes, opened, prose, write

from ragvault.errors import IndexUnusable, UsageError
from ragvault.models.fake import FakeEmbedder
from ragvault.store.catalogue import OLD, Catalogue
from ragvault.update import upkeep
from tests.keyword_kit import ENGINES

pytestmark = pytest.mark.usefixtures("models")
__all__ = ["models"]

CANARY = "xylocanaryphone"
NAME = "quokkafile"
LATE = "zorillacanary"
SECRET = f"""---
title: {CANARY}title
aliases: [{CANARY}alias]
tags: [{CANARY}tag]
{CANARY}key: {CANARY}value
---
# {CANARY}head

The {CANARY} sang. [[{CANARY}target]] {{prose}}

```python
def {CANARY}_code(): ...
```
"""


@pytest.fixture(params=ENGINES)
def vault(request, tmp_path):
    write(tmp_path / "vault", notes(30))
    # Three passages and more, so that the word is in the vocabulary too.
    parts = "\n\n".join(f"## Part {part}\n\n{CANARY} {prose(part)}" for part in range(4))
    secret = SECRET.replace("{prose}", prose("secret")) + parts
    write(tmp_path / "vault", {f"{NAME}.md": secret, "other.md": f"See [[{NAME}]]."})
    return opened(tmp_path / "vault", tmp_path / "home", f"keyword.engine={request.param}")


def traces(vault, *needles):
    """Every file of the home that holds one of these, in any case and in UTF-16 too."""
    words = [word for needle in needles for word in (needle, needle.upper(), needle.title())]
    coded = [word.encode(how) for word in words for how in ("utf-8", "utf-16-le", "utf-16-be")]
    return holders(vault.folder.parent.parent, coded)


def found(vault, query):
    """The names of the notes that answer, in one string."""
    return " ".join(result.note for result in vault.search(query).results)


def words_of(vault):
    """The terms of both word indexes that tell the secret, also where files hold them in pieces."""
    with vault.catalogue() as catalogue:
        index = vault.engines().keyword(catalogue)
    words = [word for word in index.words() if CANARY in word]
    index.close()
    return words


def secret_vectors(vault):
    """The vectors of the secret texts, as any file could hold them."""
    with vault.catalogue() as catalogue:
        ids = catalogue.passage_ids_of(catalogue.note_id(f"{NAME}.md"))
        rows = catalogue.passage_vectors("fine@1", np.array(ids, np.int64))
    terms = FakeEmbedder().embed([CANARY], "passage")
    every = np.concatenate([rows, terms])
    return [row.astype(kind).tobytes() for row in every for kind in ("<f2", "<f4")]


def test_the_canary_is_there_before_it_is_forgotten(vault):
    """Otherwise the tests below would find nothing because they look in the wrong place."""
    vault.index()
    held = traces(vault, CANARY[:9], NAME)
    vectors = holders(vault.folder, secret_vectors(vault))
    assert any(name.endswith("catalogue.sqlite") for name in held)
    assert words_of(vault)
    if engine_of(vault) == "whoosh":  # tantivy writes a word in pieces
        assert any("/keyword-" in name for name in held)
    assert {"catalogue.sqlite"} <= vectors.keys()
    assert NAME in found(vault, f"{CANARY} sang")
    with vault.catalogue() as catalogue:
        assert CANARY in catalogue.terms()


def test_forget_leaves_no_byte_in_any_file(vault):
    vault.index()
    vectors = secret_vectors(vault)

    forgotten = vault.forget(NAME)

    assert forgotten.notes == (f"{NAME}.md",)
    # The note that links to it says its name, and stays; so does its file in the vault.
    assert traces(vault, CANARY[:9]) == {}
    assert words_of(vault) == []
    assert holders(vault.folder, vectors) == {}
    assert forgotten.still_there == (f"{NAME}.md",)
    assert (vault.root / f"{NAME}.md").exists()


def test_a_deleted_note_is_in_no_answer_and_then_in_no_file(vault, monkeypatch):
    vault.index()
    vectors = secret_vectors(vault)
    (vault.root / f"{NAME}.md").unlink()
    (vault.root / "other.md").unlink()

    vault.index()

    assert NAME not in found(vault, f"{CANARY} sang")
    assert traces(vault, CANARY[:9], NAME) == {}
    assert words_of(vault) == []
    # Its vectors wait a day, by hash, for a text that comes back.
    monkeypatch.setattr(upkeep, "GRACE", -1.0)
    vault.index()
    assert holders(vault.folder, vectors) == {}


def test_a_run_by_keyword_alone_leaves_no_vector_of_a_deleted_note(vault, monkeypatch):
    vault.index()
    vectors = secret_vectors(vault)
    (vault.root / f"{NAME}.md").unlink()
    monkeypatch.setattr(upkeep, "GRACE", -1.0)
    vault.index("keyword")
    assert holders(vault.folder, vectors) == {}


def test_a_note_that_was_edited_leaves_nothing_behind_when_it_is_compacted(vault):
    vault.index()
    write(vault.root, {f"{NAME}.md": "# Harmless\n\nNothing is said here any more."})
    vault.index()
    vault.forget("0001.md")
    assert traces(vault, CANARY[:9]) == {}


def test_what_is_left_answers_as_if_the_note_had_never_been(vault, tmp_path):
    vault.index()
    (vault.root / f"{NAME}.md").unlink()
    vault.forget(f"{NAME}.md")
    other = opened(vault.root, tmp_path / "other", f"keyword.engine={engine_of(vault)}")
    other.index()
    assert answers(vault) == answers(other)


def engine_of(vault):
    return vault.settings.config.keyword.engine


def test_a_folder_is_forgotten_with_all_its_notes(vault):
    write(vault.root, {f"journal/{day}.md": f"{CANARY} {day}" for day in range(3)})
    vault.index()
    assert len(vault.forget("journal").notes) == 3
    with vault.catalogue() as catalogue:
        assert not [path for path in catalogue.files() if path.startswith("journal")]


def test_a_name_that_means_nothing_or_two_things_is_refused(vault):
    write(vault.root, {"a/same.md": "one", "b/same.md": "two"})
    vault.index()
    with pytest.raises(UsageError, match=r"a/same.md, b/same.md"):
        vault.forget("same")
    with pytest.raises(UsageError, match="no note called “nowhere”"):
        vault.forget("nowhere")


def test_what_a_search_still_read_goes_with_the_next_run(vault, monkeypatch):
    """It is removed all the same, and cannot be named a second time."""
    vacuumed = []
    vacuum = Catalogue.vacuum
    monkeypatch.setattr(Catalogue, "vacuum", lambda self: vacuumed.append(vacuum(self)))
    vault.index()
    (vault.root / f"{NAME}.md").unlink()
    with vault.catalogue() as reader, reader.snapshot(), monkeypatch.context() as patch:
        patch.setattr("ragvault.store.database.BUSY_MS", 50)
        assert reader.files()
        with pytest.raises(IndexUnusable, match="still reads deleted text") as refused:
            vault.forget(NAME)
    assert "ragvault index" in refused.value.fix
    assert vacuumed == []
    vault.index()
    assert len(vacuumed) == 1
    assert traces(vault, CANARY[:9]) == {}
    vault.index()
    assert len(vacuumed) == 1


# --- When it happens by itself ---


def test_nothing_is_forgotten_while_an_old_catalogue_is_still_to_be_taken_over(vault, models):
    """It has the text of the notes, and vectors that are not to be embedded again."""
    vault.index()
    write(vault.root, {"late.md": f"# {LATE}\n\n{prose('late')}"})
    vault.index()
    models.forget()
    (vault.folder / "catalogue.sqlite").replace(vault.folder / OLD)
    Catalogue.open(vault.folder, write=True).close()  # and then it was killed
    with pytest.raises(IndexUnusable, match="was stopped") as refused:
        vault.forget("late.md")
    assert "ragvault index" in refused.value.fix
    assert OLD in " ".join(traces(vault, LATE[:9]))

    vault.index()
    assert vault.forget("late.md").notes == ("late.md",)

    assert traces(vault, LATE[:9]) == {}
    assert models.seen == []


def test_in_a_large_vault_a_removed_note_waits_until_a_day_has_passed(vault, monkeypatch):
    vault.index()
    monkeypatch.setattr(upkeep, "SMALL_INDEX", 0)
    monkeypatch.setattr(upkeep, "MANY_REMOVED", 0.9)
    (vault.root / f"{NAME}.md").unlink()
    (vault.root / "other.md").unlink()
    vault.index()
    assert NAME not in found(vault, CANARY)
    if engine_of(vault) == "whoosh":  # tantivy may have merged it away by itself
        assert any("/keyword-" in name for name in traces(vault, CANARY[:9]))

    tomorrow = time.time() + 90_000
    monkeypatch.setattr(time, "time", lambda: tomorrow)
    vault.index()

    assert traces(vault, CANARY[:9], NAME) == {}


def test_much_that_was_removed_goes_at_once(vault, monkeypatch):
    vault.index()
    monkeypatch.setattr(upkeep, "SMALL_INDEX", 0)
    for number in range(6):
        (vault.root / f"{number:04}.md").unlink()
    (vault.root / f"{NAME}.md").unlink()
    vault.index()
    assert traces(vault, CANARY[:9]) == {}


# --- What was removed before ---


def removed_and_waiting(vault, monkeypatch):
    """A note that is deleted from a vault too large to be compacted at once."""
    vault.index()
    monkeypatch.setattr(upkeep, "SMALL_INDEX", 0)
    monkeypatch.setattr(upkeep, "MANY_REMOVED", 1.0)
    (vault.root / f"{NAME}.md").unlink()
    (vault.root / "other.md").unlink()
    vault.index()


@pytest.mark.parametrize("named", [f"{NAME}.md", None])
def test_a_note_that_is_out_of_the_index_and_in_its_files_is_forgotten_by_name(
    vault, monkeypatch, named
):
    removed_and_waiting(vault, monkeypatch)
    with vault.catalogue() as catalogue:
        assert catalogue.removal_count() > 0
    if engine_of(vault) == "whoosh":  # tantivy writes a word in pieces
        assert traces(vault, CANARY[:9])
    assert vault.status().removed > 0

    forgotten = vault.forget(named)

    assert (forgotten.notes, forgotten.passages, forgotten.still_there) == ((), 0, ())
    assert forgotten.removed > 0
    assert traces(vault, CANARY[:9], NAME) == {}
    assert words_of(vault) == []
    assert vault.status().removed == 0


def test_a_name_that_the_index_has_not_is_a_mistake_where_nothing_waits(vault, monkeypatch):
    removed_and_waiting(vault, monkeypatch)
    vault.forget(None)
    with pytest.raises(UsageError, match=r"no note called “quokkafile\.md”"):
        vault.forget(f"{NAME}.md")


def test_a_name_that_could_be_several_notes_is_a_mistake_also_where_something_waits(
    vault, monkeypatch
):
    write(vault.root, {"a/Twice.md": "One.", "b/Twice.md": "Two."})
    removed_and_waiting(vault, monkeypatch)
    with pytest.raises(UsageError, match="could be"):
        vault.forget("Twice")
