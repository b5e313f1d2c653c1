"""Doctor: links whose parts stand the other way round."""

from __future__ import annotations

import pytest
from vault_kit import FAKE, ragvault


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
