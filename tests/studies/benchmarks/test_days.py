"""The benchmarks of days: how the truth moves, a small stream, and small passes."""

from __future__ import annotations

import numpy as np
import pytest

from ranktune.solvers.core.errors import ParameterError
from ranktune.studies.benchmarks.days import passes, stream
from ranktune.studies.benchmarks.days.generated import MOVES, turn_of, weights_of


def test_the_truth_moves_as_its_name_says() -> None:
    turns = {move: [turn_of(move, day, 10) for day in range(10)] for move in MOVES}
    assert turns["none"] == [0.0] * 10 and turns["sudden"] == [0.0] * 5 + [1.0] * 5
    assert np.allclose(np.diff(turns["slow"]), 1 / 9) and turns["slow"][-1] == 1.0
    assert turns["seasonal"][0] == turns["seasonal"][7] == 0.0 and max(turns["seasonal"]) > 0.9
    assert weights_of(0.0) @ weights_of(1.0) == pytest.approx(0.0)
    assert np.linalg.norm(weights_of(0.3)) == pytest.approx(np.linalg.norm(weights_of(0.0)))


def test_a_small_stream() -> None:
    (table,) = stream.main(days=4, move=["sudden"], seeds=1, queries=40, test=100, trials=2, solver=["RidgeRanker"])
    (row,) = table.rows
    means = {way: float(row[way]) for way in stream.WAYS}  # type: ignore[arg-type]
    assert means[stream.ONCE] < means[stream.FULL] - 0.05, "the truth has moved"
    assert means[stream.DAILY] > means[stream.ONCE] + 0.03
    assert [row[name] for name in ("keep", "refit", "replace")].count("0%") >= 1
    with pytest.raises(ParameterError, match="sudden"):
        stream.main(move=["suden"])


def test_passes_of_a_few_days(monkeypatch: pytest.MonkeyPatch) -> None:
    """A day that follows on a truth that does not move begins with what the first one learned."""
    peaks = iter((9e6, 5e6, 5.2e6, 9e6, 5e6, 5.6e6))
    monkeypatch.setattr(passes, "peak_bytes", lambda: int(next(peaks)))
    given = {"days": 3, "documents": 3000, "features": 6, "length": 30, "configurations": 4, "survivors": 4}
    quiet, moving = (passes.main(move=move, **given) for move in ("none", "sudden"))  # type: ignore[arg-type]
    assert not quiet[0].failed and moving[0].failed, "memory that is said to grow"
    quality = [[float(str(row["ndcg@10"])) for row in table[1].rows] for table in (quiet, moving)]
    assert quality[0][1] > quality[0][0] and quality[1][2] < quality[0][2] - 0.02
    assert all(int(str(row["trials"])) >= 4 for row in quiet[1].rows)
    with pytest.raises(ParameterError, match="sudden"):
        passes.main(move="suden")
