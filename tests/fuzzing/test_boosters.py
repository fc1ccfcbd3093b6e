"""Boosters of other libraries score as these libraries do, whatever the form of the data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ranktune
from tests.fuzzing.boosters import LIBRARIES, case


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("seed", range(8))
def test_random_boosters_score_as_their_library(library: str, seed: int) -> None:
    pytest.importorskip(library)
    assert case(library, seed) == "equal"


def test_as_a_baseline_what_lines_leave_out_is_missing_to_xgboost_alone(tmp_path: Path) -> None:
    xgboost = pytest.importorskip("xgboost")
    generator = np.random.default_rng(0)
    X = generator.normal(size=(400, 3)).round(1)
    X[generator.random(X.shape) < 0.5] = np.nan
    y = np.where(np.isnan(X[:, 0]), 2, (X[:, 0] > 0).astype(int))  # missing is best
    lines = [
        f"{grade} qid:{row // 10} " + " ".join(f"{k + 1}:{v}" for k, v in enumerate(values) if not np.isnan(v))
        for row, (grade, values) in enumerate(zip(y.tolist(), X.tolist(), strict=True))
    ]
    (tmp_path / "train.txt").write_text("\n".join(lines[:300]) + "\n")
    (tmp_path / "test.txt").write_text("\n".join(lines[300:]) + "\n")
    booster = xgboost.train({"nthread": 1}, xgboost.DMatrix(X, y), 20)
    booster.save_model(tmp_path / "model.json")
    result = ranktune.tune(
        tmp_path / "train.txt", test=tmp_path / "test.txt", baseline=str(tmp_path / "model.json"), trials=1, jobs=1,
        solvers="RidgeRanker", home=tmp_path,
    )  # fmt: skip
    (row,) = (row for row in result.as_dict()["leaderboard"] if row["kind"] == "baseline")
    assert row["test"] > 0.99
