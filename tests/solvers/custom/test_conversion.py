"""Fitted estimators of known libraries as models of RankTune: the same scores but for a constant."""

from typing import Any

import numpy as np
import pytest
from sklearn import ensemble, linear_model, pipeline, preprocessing, svm, tree

from ranktune.solvers import LinearModel, TreeModel
from ranktune.solvers.custom import converted, fitted, is_convertible
from ranktune.solvers.models.base import Origin
from tests.support.tree_samples import graded

ORIGIN: Origin = {"solver": "Mine", "parameters": {}, "feature_names": None, "metric": None, "fingerprint": None}


def lightgbm_ranker() -> Any:
    import lightgbm

    return lightgbm.LGBMRanker(n_estimators=15, min_child_samples=3, verbosity=-1, n_jobs=1)


def xgboost_ranker(**options: Any) -> Any:
    import xgboost

    return xgboost.XGBRanker(n_estimators=15, n_jobs=1, **options)


def xgboost_regressor(**options: Any) -> Any:
    import xgboost

    return xgboost.XGBRegressor(n_estimators=15, n_jobs=1, **options)


LINES: dict[str, Any] = {
    "ridge": lambda: linear_model.Ridge(),
    "lasso": lambda: linear_model.Lasso(alpha=0.01),
    "linear SVR": lambda: svm.LinearSVR(max_iter=100_000, tol=1e-3),
    "standard": lambda: pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.Ridge()),
    "two scalers": lambda: pipeline.make_pipeline(
        preprocessing.MinMaxScaler(), preprocessing.RobustScaler(), linear_model.LinearRegression()
    ),
}
TREES: dict[str, Any] = {
    "tree": lambda: tree.DecisionTreeRegressor(random_state=0),
    "forest": lambda: ensemble.RandomForestRegressor(n_estimators=10, random_state=0),
    "extra": lambda: ensemble.ExtraTreesRegressor(n_estimators=10, random_state=0),
    "boosting": lambda: ensemble.GradientBoostingRegressor(n_estimators=10, random_state=0),
    "LightGBM": lightgbm_ranker,
    "XGBoost": xgboost_ranker,
    "XGBoost regression": xgboost_regressor,
}
OTHERS: dict[str, Any] = {
    "classes": lambda: linear_model.LogisticRegression(),
    "polynomial": lambda: pipeline.make_pipeline(preprocessing.PolynomialFeatures(), linear_model.Ridge()),
    "kernel": lambda: svm.SVR(),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", [*LINES, *TREES])
def test_a_converted_model_scores_the_same(name: str, dtype: Any) -> None:
    train, other = graded(dtype=dtype), graded(1, dtype=dtype)
    estimator = fitted((LINES | TREES)[name](), train)
    assert is_convertible(estimator)
    model = converted(estimator, train, ORIGIN)
    assert isinstance(model, LinearModel if name in LINES else TreeModel)
    difference = model.predict(other) - estimator.predict(other.features)
    assert np.ptp(difference) < 1e-5 * np.ptp(estimator.predict(other.features))


@pytest.mark.parametrize("name", OTHERS)
def test_other_estimators_stay_as_they_are(name: str) -> None:
    assert not is_convertible(OTHERS[name]())


def test_a_model_that_would_score_differently_is_not_converted() -> None:
    train = graded()
    estimator = fitted(xgboost_regressor(booster="dart", rate_drop=0.5, skip_drop=0.0), train)
    model = converted(estimator, train, ORIGIN)
    if model is not None:
        difference = model.predict(train) - estimator.predict(train.features)
        assert np.ptp(difference) < 1e-5
    clipped = pipeline.make_pipeline(preprocessing.MinMaxScaler(clip=True), linear_model.Ridge()).fit(
        train.features[:20], train.grades[:20]
    )
    assert converted(clipped, train, ORIGIN) is None
