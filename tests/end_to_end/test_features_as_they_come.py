"""A frame with missing values and click rates becomes a model that scores the same wherever it is used."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ranktune
from ranktune.solvers.data.sources import catalogue
from ranktune.solvers.export import export
from ranktune.solvers.export.check import agreement


def frame(seed: int, queries: int = 60, holes: bool = True) -> pd.DataFrame:
    """Ten documents a query; price is missing where documents are bad, age now and then."""
    generator = np.random.default_rng(seed)
    rows = 10 * queries
    X = generator.normal(size=(rows, 3))
    attraction = 1.0 / (1.0 + np.exp(-X[:, 0] - X[:, 1]))
    clicks = np.round(attraction * (generator.random(rows) < 0.7), 2)
    price = np.where(generator.random(rows) < np.where(holes, 0.6 * (1.0 - attraction), 0.0), np.nan, X[:, 0])
    age = np.where((generator.random(rows) < 0.2) & holes, np.nan, X[:, 1])
    return pd.DataFrame(
        {
            "qid": [f"{seed}-{row // 10}" for row in range(rows)],
            "grade": clicks,
            "price": price,
            "age": age,
            "length": pd.array(np.where(X[:, 2] > 1.5, pd.NA, np.round(10 * X[:, 2])), dtype="Int64"),
        }
    )


SETTINGS: dict[str, Any] = {"jobs": 1, "trials": 6, "seed": 1}


@pytest.mark.parametrize("solvers", [["RidgeRanker", "ListNet", "LambdaMART"], ["BestFeature", "ElasticRank"]])
def test_every_trial_learns_and_the_model_scores_alike_everywhere(tmp_path: Path, solvers: list[str]) -> None:
    train, test = frame(0), frame(1, 30)
    result = ranktune.tune(train, test=test, solvers=solvers, home=tmp_path, **SETTINGS)
    assert not result.failures and result.metric == "ndcg@10:gain=linear"
    model = ranktune.load_model(result.model)
    assert model.takes_missing
    scores = ranktune.predict(model, test)
    test.to_csv(tmp_path / "test.csv", index=False)
    test.to_parquet(tmp_path / "test.parquet")
    for path in (tmp_path / "test.csv", tmp_path / "test.parquet"):
        np.testing.assert_allclose(ranktune.predict(result.model, path), scores, rtol=1e-12)
    queries = catalogue.read(test)
    np.testing.assert_allclose(model.predict(test[["price", "age", "length"]].astype(float)), scores, rtol=1e-12)
    assert agreement(model, "python", export(model, "python"), queries).difference <= 1e-12


def test_what_is_missing_in_the_test_data_alone_is_learned_to_be_allowed(tmp_path: Path) -> None:
    whole = frame(0, holes=False).drop(columns="length")
    solvers = ["RidgeRanker", "LambdaMART", "RankBoost"]
    holes = frame(1, 30).drop(columns="length")
    result = ranktune.tune(whole, test=holes, solvers=solvers, home=tmp_path, **SETTINGS)
    assert not result.failures
    assert np.isfinite(ranktune.predict(result.model, holes)).all()
