"""Boosters of other libraries score as these libraries do, whatever the form of the data."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import ranktune
from ranktune.solvers.data.sources import catalogue
from ranktune.solvers.rankings.opening import open_ranking
from tests.fuzzing.boosters import LIBRARIES, case


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("seed", range(8))
def test_random_boosters_score_as_their_library(library: str, seed: int) -> None:
    pytest.importorskip(library)
    assert case(library, seed) == "equal"


@pytest.mark.parametrize("missing", [0.0, -1.0, 0.5])
@pytest.mark.parametrize("booster", ["gbtree", "gblinear"])
def test_the_value_that_is_missing_to_an_estimator_of_xgboost_is_missing(booster: str, missing: float) -> None:
    xgboost = pytest.importorskip("xgboost")
    X = np.random.default_rng(0).integers(-2, 3, (60, 3)) / 2.0
    model = xgboost.XGBRegressor(n_estimators=5, missing=missing, booster=booster, n_jobs=1).fit(X, X[:, 0] == missing)
    rows, y, qid = sparse.csr_array(X), np.arange(60) % 2, np.arange(60) // 6
    for given in (X, rows):
        scores = open_ranking(model).scores(ranktune.read((given, y, qid)))
        np.testing.assert_allclose(scores, model.predict(given), atol=1e-6)


@pytest.mark.parametrize("values", [[0.5, 2.0, 7.0], [True, False, True], [1, 20, 3], ["2.0", "x", "true"]])
def test_categories_of_numbers_and_truth_values_are_found_in_text(values: list[object], tmp_path: Path) -> None:
    column = pd.Series(values * 4, dtype="category")
    frame = pd.DataFrame({"qid": np.arange(12) // 3, "grade": np.arange(12) % 2, "kind": column})
    learned = ranktune.read(frame)
    frame.to_csv(tmp_path / "data.csv", index=False)
    again = catalogue.read(tmp_path / "data.csv", feature_names=learned.feature_names, encoding=learned.encoding)
    np.testing.assert_array_equal(again.features, learned.features)
    assert (np.asarray(again.features).sum(axis=1) == 1.0).all()


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
