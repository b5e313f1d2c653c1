"""Status: what waits to be done is what an index run would do, and nothing else."""

from __future__ import annotations

import pytest
from write_kit import opened, write

NOTES = {"bread.md": "# Bread\n\nFlour and water.", "rye.md": "# Rye\n\nDark."}


@pytest.fixture
def vault(tmp_path):
    root = tmp_path / "vault"
    write(root, NOTES)
    vault = opened(root, tmp_path / "home")
    vault.index("keyword")
    return vault


def test_nothing_is_pending_after_a_run(vault):
    assert vault.status().pending.files == 0


def test_what_was_added_changed_or_removed_is_pending(vault):
    write(vault.root, {"new.md": "Salt.", "bread.md": "# Bread\n\nFlour, water and salt."})
    (vault.root / "rye.md").unlink()
    assert vault.status().pending.files == 3


def test_a_file_that_was_read_and_left_out_is_skipped_and_not_pending(vault):
    (vault.root / "picture.md").write_bytes(bytes(range(256)) * 20)
    assert vault.status().pending.files == 1
    vault.index("keyword")
    told = vault.status()
    assert [(skip.path, skip.reason) for skip in told.skipped] == [("picture.md", "binary")]
    assert told.pending.files == 0


def test_a_note_that_was_taken_to_the_cloud_is_kept_and_not_pending(vault):
    (vault.root / "rye.md").rename(vault.root / ".rye.md.icloud")
    vault.index("keyword")
    told = vault.status()
    assert (told.counts.notes, told.pending.files) == (2, 0)


def stop(*_, **__):
    raise KeyboardInterrupt


@pytest.fixture
def stopped(vault, monkeypatch):
    """A run that was stopped between the catalogue and the words."""
    write(vault.root, {"salt.md": "# Salt\n\nXylophones are salted."})
    with monkeypatch.context() as patched:
        patched.setattr("ragvault.update.keyword.update_keyword", stop)
        with pytest.raises(KeyboardInterrupt):
            vault.index("keyword")
    return vault


def test_notes_that_are_not_in_the_words_yet_are_pending_and_not_called_found_by_word(stopped):
    told = stopped.status()
    assert told.tiers == {"full": 0, "static": 0, "keyword": 2, "none": 1}
    assert told.pending.words == 1
    assert told.pending

    stopped.index("keyword")

    told = stopped.status()
    assert told.tiers == {"full": 0, "static": 0, "keyword": 3, "none": 0}
    assert not told.pending


def test_a_search_says_that_notes_are_not_in_the_words_yet(stopped):
    (said,) = stopped.search("xylophones").warnings
    assert "the latest changes are not in the keyword index yet" in said
    stopped.index("keyword")
    assert stopped.search("xylophones").warnings == ()
