"""Random data of which some columns lack values and others never do, and models trained on them."""

import warnings
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ranktune.solvers.core.arrays import Floats, Mask, dense
from ranktune.solvers.custom import converted, fitted
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.base import Model, Origin
from ranktune.solvers.models.blend import BlendModel, blended
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.registry import make

NAMES = ("price", "stock", "bm25", "clicks", "age", "rating")
ORIGIN: Origin = {"solver": "Mine", "parameters": {}, "feature_names": NAMES, "metric": None, "fingerprint": None}
FEW: Mapping[str, Any] = {"trees": 12}


@lru_cache
def some_lacking(seed: int, layout: Callable[[Any], Any] = np.asarray) -> Queries:
    """Queries of 10 documents; each column lacks values or not at random, the first always does, the second never.

    The second is 0 or 1, and the others lie above 0, below 0 or around it.
    """
    generator = np.random.default_rng(seed)
    X = np.round(generator.normal(size=(600, 6)), 1)
    X[:, 1] = generator.integers(0, 2, size=600)
    X[:, 2:] += generator.choice([-5.0, 0.0, 5.0], size=4)
    centred = X - X.mean(axis=0)
    y = np.digitize(centred @ [1.0, 1.0, 1.0, -1.0, 0.5, 0.5] + generator.normal(size=600), [0.0, 1.5])
    lacking = generator.random(6) < 0.5
    lacking[:2] = True, False
    X[(generator.random(X.shape) < np.where(y == 0, 0.5, 0.1)[:, None]) & lacking] = np.nan
    return Queries.from_arrays(layout(X), y, qid=np.arange(600) // 10, feature_names=NAMES)


def lacking(queries: Queries) -> Mask:
    """Whether some document lacks each feature."""
    return np.asarray(np.isnan(dense(queries.features)).any(axis=0))


def _made(name: str, queries: Queries, **parameters: Any) -> Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make(name, parameters, 0).fit(queries).as_model(feature_names=NAMES)


def _blend(queries: Queries) -> Model:
    members = [_made("RidgeRanker", queries), _made("GBDTRanker", queries, **FEW)]
    return blended(members, [0.7, 0.3], "Blend", {})


def _list_blend(queries: Queries) -> Model:
    members = [_made("ElasticRank", queries, scaling="list"), _made("GBDTRanker", queries, **FEW)]
    return blended(members, [0.7, 0.3], "Blend", {})


def _converted(module: str, name: str, options: Mapping[str, Any], queries: Queries) -> Model:
    import importlib

    estimator = fitted(getattr(importlib.import_module(module), name)(**options), queries)
    result = converted(estimator, queries, ORIGIN)
    assert result is not None
    return result


_ENGINE = {"n_estimators": 12, "n_jobs": 1}
TREES: dict[str, Callable[[Queries], Model]] = {
    "LambdaMART": partial(_made, "LambdaMART", **FEW),
    "GBDTRanker": partial(_made, "GBDTRanker", **FEW),
    "RandomForestRanker": partial(_made, "RandomForestRanker", **FEW),
    "XGBoostRanker": partial(_made, "XGBoostRanker", **FEW, min_weight=0.1),
    "CatBoostRanker": partial(_made, "CatBoostRanker", **FEW),
    "SymmetricGBDT": partial(_made, "SymmetricGBDT", **FEW),
    "RankBoost": partial(_made, "RankBoost"),
    "scikit-learn's forest": partial(
        _converted, "sklearn.ensemble", "RandomForestRegressor", {"n_estimators": 5, "random_state": 0}
    ),
    "scikit-learn's tree": partial(_converted, "sklearn.tree", "DecisionTreeRegressor", {"random_state": 0}),
    "LightGBM's": partial(_converted, "lightgbm", "LGBMRanker", {**_ENGINE, "verbosity": -1}),
    "XGBoost's": partial(_converted, "xgboost", "XGBRanker", _ENGINE),
}
SUMS: dict[str, Callable[[Queries], Model]] = {
    "RidgeRanker": partial(_made, "RidgeRanker"),
    "RankSVM": partial(_made, "RankSVM"),
    "AdaRank": partial(_made, "AdaRank"),
    "LambdaMART from a line": partial(_made, "LambdaMART", **FEW, start="linear"),
    "XGBoostRanker from a line": partial(_made, "XGBoostRanker", **FEW, start="linear"),
    "Blend": _blend,
}
LISTS: dict[str, Callable[[Queries], Model]] = {
    "ElasticRank": partial(_made, "ElasticRank", scaling="list"),
    "Blend by list": _list_blend,
}


@lru_cache
def model_of(kind: str, seed: int, layout: Callable[[Any], Any] = np.asarray) -> Model:
    """The model of that kind on that data."""
    return (TREES | SUMS | LISTS)[kind](some_lacking(seed, layout))


def parts(model: Model) -> tuple[Model, ...]:
    return model.parts if isinstance(model, BlendModel) else (model,)


def check_absence_is_zero(model: Model, never: Mask) -> None:
    """Check that a model sends what is missing of the features `never` where 0 goes, and scores it as 0."""
    for part in parts(model):
        if isinstance(part, TreeModel):
            trees = part.trees
            assert trees.missing_left is not None
            splits = never[trees.feature]
            np.testing.assert_array_equal(trees.missing_left[splits], trees.threshold[splits] >= 0.0)
        if isinstance(part, LinearModel):
            assert part.missing is not None
            assert (part.missing[never] == 0.0).all()


def without(X: Floats, columns: Mask, value: float) -> Floats:
    """X with a value in some cells of these columns, those of a random half."""
    chosen = np.random.default_rng(7).random(X.shape) < 0.5
    return np.where(chosen & columns, value, X)
