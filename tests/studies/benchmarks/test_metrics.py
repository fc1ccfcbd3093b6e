"""Metrics are timed beside peers whose values are the same."""

from __future__ import annotations

import pytest

from ranktune.studies.benchmarks import metrics


def test_the_peers_have_the_same_values(monkeypatch: pytest.MonkeyPatch) -> None:
    (table,) = metrics.main(queries=30, repeats=1)
    assert not table.failed and all(row["same value"] is not False for row in table.rows)
    assert [row["metric"] for row in table.rows][:5] == [
        *(f"RankTune {name}" for name in metrics.OURS),
        "scikit-learn ndcg_score",
    ]
    monkeypatch.setattr(metrics, "_scikit_learn", lambda scores, data: 0.5)
    assert metrics.main(queries=30, repeats=1)[0].failed
