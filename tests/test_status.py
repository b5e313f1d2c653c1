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
