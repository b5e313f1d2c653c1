"""The evaluation of RAGtriever's design, with the real models: ten questions fixed beforehand."""

from __future__ import annotations

import pytest
import weights

from benchmarks import components


@pytest.mark.model
def test_ours_is_ten_percent_better_than_the_weighted_sum_with_no_question_worse(
    tmp_path, monkeypatch
):
    for name in ("bge-small-en-v1.5", "potion-base-8M"):
        weights.weights(name)
    (tmp_path / "models").symlink_to(weights.SHELF)
    monkeypatch.setenv("RAGVAULT_BENCH_HOME", str(tmp_path))
    monkeypatch.setenv("RAGVAULT_HOME", str(tmp_path))

    rows = {row["step"]: row for row in components.measure()}

    base, ours = rows["baseline: weighted sum, no boosts"], rows["ours: default"]
    assert base["mrr@10"] < 1  # the baseline fails some of them, or there is nothing to gain
    assert ours["mrr@10"] >= 1.1 * base["mrr@10"]
    assert ours["p@3"] >= base["p@3"]
    assert not ours["worse"]
