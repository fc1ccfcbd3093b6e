"""Fitted estimators of known libraries converted to linear models and sums of trees.

A converted model needs no file format of another library, can be exported, and adds to blends of its kind. It is
compared with its estimator on training queries: where they differ by more than a constant, the estimator is kept.

scikit-learn's trees and XGBoost's compare in single precision; Trees in double precision send every number, rounded to
single precision, the same way (see models.trees.last_below).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ranktune.solvers import abilities
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import RankTuneError
from ranktune.solvers.data.missing import features_with_missing
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.base import Model, Origin
from ranktune.solvers.models.custom import Estimator, estimator_scores, takes_frame
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.other_libraries.lightgbm import trees_of as trees_of_lightgbm
from ranktune.solvers.models.other_libraries.xgboost import trees_of as trees_of_xgboost
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import Trees, joined, last_below, one_tree

TOLERANCE = 1e-6
"""The largest difference of scores, as a part of their spread, beyond that by a constant."""

LINEAR = {
    *("LinearRegression", "Ridge", "Lasso", "ElasticNet", "Lars", "LassoLars", "BayesianRidge", "ARDRegression"),
    *("HuberRegressor", "TheilSenRegressor", "QuantileRegressor", "SGDRegressor", "LinearSVR", "RidgeCV", "LassoCV"),
    *("ElasticNetCV", "OrthogonalMatchingPursuit"),
}
SCALERS = {"StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler"}
SINGLE_TREES = {"DecisionTreeRegressor", "ExtraTreeRegressor"}
FORESTS = {"RandomForestRegressor", "ExtraTreesRegressor"}


class _Kind(NamedTuple):
    """The library and the class of an estimator."""

    library: str
    name: str


def is_convertible(estimator: Estimator) -> bool:
    """Return whether a fitted estimator of that kind can probably be converted."""
    return _conversion(estimator) is not None


def part_of(estimator: Estimator) -> str:
    """Return the kind of model that an estimator of that kind is likely to become."""
    convert = _conversion(estimator)
    return abilities.CUSTOM if convert is None else abilities.LINEAR if convert is _of_linear else abilities.TREES


def converted(estimator: Estimator, sample: Queries, origin: Origin) -> Model | None:
    """Return a fitted estimator as a model, None where it is of another kind, or the model would score differently."""
    convert = _conversion(estimator)
    if convert is None:
        return None
    try:
        model = convert(estimator, sample, origin)
        if model is None:
            return None
        predicted = model.predict(sample)
        predicted = predicted if sample.rows is None else predicted[sample.rows]
    except (AttributeError, KeyError, TypeError, ValueError, IndexError, RankTuneError):  # an unusual estimator
        return None
    expected = estimator_scores(estimator, sample)
    difference = predicted - expected
    return model if np.ptp(difference) <= TOLERANCE * max(np.ptp(expected), np.abs(expected).max(initial=0.0)) else None


def _conversion(estimator: Estimator) -> Callable[[Estimator, Queries, Origin], Model | None] | None:
    if takes_frame(estimator):  # what it learns from is not the features of the model
        return None
    kind = _kind(estimator)
    if kind.library == "lightgbm" and kind.name in ("LGBMRanker", "LGBMRegressor"):
        return _of_lightgbm
    if kind.library == "xgboost" and kind.name in ("XGBRanker", "XGBRegressor", "XGBRFRegressor"):
        return _of_xgboost
    if kind.library != "sklearn":
        return None
    if kind.name == "Pipeline":
        *scalers, last = (step for _, step in estimator.steps)
        scale = all(_kind(scaler) in {("sklearn", name) for name in SCALERS} for scaler in scalers)
        return _of_linear if scale and _is_linear(last) else None
    if kind.name in SINGLE_TREES | FORESTS or kind.name == "GradientBoostingRegressor":
        return _of_trees
    return _of_linear if _is_linear(estimator) else None


def _kind(estimator: Estimator) -> _Kind:
    return _Kind(type(estimator).__module__.partition(".")[0], type(estimator).__name__)


def _is_linear(estimator: Estimator) -> bool:
    return _kind(estimator) in {("sklearn", name) for name in LINEAR}


def _of_linear(estimator: Estimator, sample: Queries, origin: Origin) -> Model | None:
    """Return the weights of a linear estimator, behind scalers, computed from what these make of 0 and 1.

    None where values are missing: what they add is not known.
    """
    if sample.has_missing:
        return None
    n_features = sample.n_features
    *scalers, last = (step for _, step in estimator.steps) if hasattr(estimator, "steps") else (estimator,)
    weights: Floats = np.asarray(last.coef_, dtype=np.float64).reshape(-1)
    for scaler in scalers:
        ends = scaler.transform(np.vstack([np.zeros(n_features), np.ones(n_features)]))
        weights = weights * (ends[1] - ends[0])
    return LinearModel(weights, **origin)


def _of_lightgbm(estimator: Estimator, sample: Queries, origin: Origin) -> Model:
    trees = trees_of_lightgbm(estimator.booster_.model_to_string(), sample.has_missing)
    return TreeModel(trees, sample.n_features, **origin)


def _of_xgboost(estimator: Estimator, sample: Queries, origin: Origin) -> Model:
    trees = trees_of_xgboost(estimator.get_booster().save_raw("json"), features_with_missing(sample))
    return TreeModel(trees, sample.n_features, **origin)


def _of_trees(estimator: Estimator, sample: Queries, origin: Origin) -> Model:
    """Return the trees of scikit-learn, whose values are averaged, or multiplied by the learning rate."""
    if _kind(estimator).name in SINGLE_TREES:
        trees, factor = [estimator], 1.0
    else:
        trees = list(np.ravel(estimator.estimators_))
        factor = 1.0 / len(trees) if _kind(estimator).name in FORESTS else float(estimator.learning_rate)
    copies = joined([_tree(tree.tree_).scaled(factor) for tree in trees]).with_sides_of(features_with_missing(sample))
    return TreeModel(copies, sample.n_features, **origin)


def _tree(tree: Estimator) -> Trees:
    """Return one tree of scikit-learn: a node without a left child is a leaf; nodes stand in preorder."""
    inner = np.flatnonzero(tree.children_left >= 0)
    leaves = np.flatnonzero(tree.children_left < 0)
    number = np.empty(tree.node_count, dtype=np.int64)
    number[inner], number[leaves] = np.arange(len(inner)), ~np.arange(len(leaves))
    limits = np.asarray(tree.threshold[inner])
    single = limits.astype(np.float32)
    below = np.where(single > limits, np.nextafter(single, np.float32(-np.inf)), single)  # x <= limit, rounded
    thresholds = last_below(np.nextafter(below, np.float32(np.inf)))
    values = np.asarray(tree.value, dtype=np.float64).reshape(tree.node_count)
    left, right = number[tree.children_left[inner]], number[tree.children_right[inner]]
    sides = np.asarray(tree.missing_go_to_left)[inner] != 0
    return one_tree(tree.feature[inner], thresholds, left, right, values[leaves], sides)
