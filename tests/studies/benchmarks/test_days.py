"""The benchmark of streams: how the truth moves, and a small stream."""

from __future__ import annotations

import numpy as np
import pytest

from ranktune.solvers.core.errors import ParameterError
from ranktune.studies.benchmarks.days import stream
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
