"""Engines: what a search may do to get a model, which is nothing."""

from __future__ import annotations

import pytest
from write_kit import opened

from ragvault.engines import Engines
from ragvault.errors import ModelUnavailable
from ragvault.models import install


def test_a_reranker_that_is_not_here_is_named_and_never_fetched(tmp_path, monkeypatch):
    """A vault's own file may switch reranking on; it must not make a search download."""

    def refuse(*_):
        raise AssertionError("something was fetched")

    monkeypatch.setattr(install, "fetch_from_source", refuse)
    monkeypatch.setenv("RAGVAULT_HOME", str(tmp_path / "home"))
    vault = opened(tmp_path / "vault", tmp_path / "home", "rerank.enabled=true")

    with pytest.raises(ModelUnavailable) as caught:
        Engines(vault.folder, vault.settings).reranker()
    assert "ragvault models pull ms-marco-MiniLM-L-12-v2" in caught.value.fix
