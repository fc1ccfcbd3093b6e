"""A solver that the user registered, with the interface of all solvers.

Estimators are fitted by the conventions of scikit-learn. fit(X, y) gets the query of each row, or the lengths of the
queries, under the name by which it takes them: qid, group (LightGBM) or group_id (CatBoost), and the signs of monotone
constraints as monotone where there are any; where the kind of the estimator is unknown, its scores on other values of a
feature show whether it keeps them. In a pipeline the last step gets them. X is an array, or a data frame where the
estimator chooses columns by name.

Estimators of known libraries are converted to linear models and sums of trees. A converted model needs no file format
of another library, can be exported, and adds to blends of its kind. It is compared with its estimator on training
queries: where they differ by more than a constant, the estimator is kept. scikit-learn's trees and XGBoost's compare in
single precision; Trees in double precision send every number, rounded to single precision, the same way (see
models.trees.last_below).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from ranktune.solvers import abilities
from ranktune.solvers.base.ranker import BaseRanker, Step
from ranktune.solvers.core.arrays import Floats, Ids, Ints, Sizes, dense
from ranktune.solvers.core.errors import DataError, ParameterError, RankTuneError, nearest
from ranktune.solvers.core.registrations import Registration, made, parameters_of
from ranktune.solvers.core.space import Value, defaults
from ranktune.solvers.data.missing import features_with_missing
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.query_columns import name_of, signs_of
from ranktune.solvers.models.base import Model, Origin
from ranktune.solvers.models.custom import CustomModel, Estimator, estimator_scores, inputs_of, persistence, takes_frame
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.other_libraries.lightgbm import trees_of as trees_of_lightgbm
from ranktune.solvers.models.other_libraries.xgboost import trees_of as trees_of_xgboost
from ranktune.solvers.models.skops import rule_of
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import Trees, joined, last_below, one_tree


class CustomRanker(BaseRanker):
    """Base of the solvers that are made of a registration: their parameters are those of its space, and a seed."""

    takes_missing: ClassVar[bool] = True
    registration: ClassVar[Registration]

    @staticmethod
    def of(registration: Registration) -> type[BaseRanker]:
        """Return the class of a registered solver, named after it."""
        make = registration.make
        if isinstance(make, type) and issubclass(make, BaseRanker):
            same = make.__name__ == registration.name and tuple(make.space) == registration.space
            return make if same else type(registration.name, (make,), {"space": registration.space})
        about = getattr(make, "__doc__", None) if isinstance(make, type) or callable(make) else type(make).__doc__
        body = {
            "space": registration.space,
            "registration": registration,
            "takes_monotone": bool(getattr(make, "takes_monotone", False)),
            "__doc__": about or registration.name,
        }
        return type(registration.name, (CustomRanker,), body)

    @staticmethod
    def check(registration: Registration) -> None:
        """Raise ParameterError where a solver makes no estimator, or its models cannot be saved."""
        solver = CustomRanker.of(registration)
        if not issubclass(solver, CustomRanker):
            return
        try:
            estimator = made(registration, defaults(registration.space), 0)
        except RankTuneError as error:
            raise ParameterError(f"{error} It was made with the defaults of its space.") from error.__cause__
        saved = persistence(registration) is not None and (registration.save or hasattr(estimator, "save"))
        if not saved and not is_convertible(estimator):
            raise ParameterError(
                f"the models of '{registration.name}' could not be delivered: a {type(estimator).__name__} has no way "
                "to a file that RankTune knows. Give save=, a function(estimator, path), and load=, a function(path), "
                "or the class a method save(path) and a class method load(path); for estimators of scikit-learn "
                "save='skops' does."
            )
        if registration.save == "skops":
            rule_of(registration)

    def __init__(self, **parameters: Any) -> None:
        self._parameters: dict[str, Any] = {"random_state": None}
        self.set_params(**parameters)

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return sorted({parameter.name for parameter in cls.registration.space} | {"random_state"})

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters that were given, and random_state; deep is ignored."""
        return dict(self._parameters)

    def set_params(self, **parameters: object) -> Self:
        """Set parameters by name. Raises ParameterError, with the nearest name, for an unknown one."""
        names = self._parameter_names()
        for name, value in parameters.items():
            if name not in names:
                raise ParameterError(f"{type(self).__name__} has no parameter '{name}'. {nearest(name, names)}")
            self._parameters[name] = value
        return self

    def __repr__(self) -> str:
        """Show the parameters that were given."""
        shown = [f"{name}={value!r}" for name, value in self._parameters.items() if value is not None]
        return f"{type(self).__name__}({', '.join(shown)})"

    def _check_parameters(self) -> None:
        self._estimator()

    def _estimator(self) -> Any:
        parameters = {name: value for name, value in self._parameters.items() if name != "random_state"}
        return made(self.registration, parameters, self._parameters["random_state"])

    def _steps(self, queries: Queries) -> Iterator[Step]:
        self.estimator_ = fitted(self._estimator(), queries)
        self._sample = queries.select(np.arange(min(queries.n_queries, SAMPLE)))
        yield Step(1, float("nan"))

    def predict(self, X: object, *, qid: Ids | None = None, group: Sizes | None = None) -> Floats:
        """Return the scores of the rows of X, (n_documents,); qid and group matter where the estimator takes qid."""
        self._check_fitted("estimator_")
        if not isinstance(X, Queries):
            return self.as_model().predict(X, qid=qid, group=group)
        return X.in_caller_order(estimator_scores(self.estimator_, X))

    def _model(self, **origin: Unpack[Origin]) -> Model:
        self._check_fitted("estimator_")
        constraints = origin.pop("monotone", {})
        model = converted(self.estimator_, self._sample, origin)
        if model is not None:
            return model.replaced(monotone=constraints)
        check_swept(self.predict, self._sample, signs_of(constraints, self.n_features_in_, origin["feature_names"]))
        model = CustomModel(self.estimator_, self.n_features_in_, self.registration.name, **origin)
        return model.replaced(monotone=constraints)

    @classmethod
    def model_parts(cls, parameters: Mapping[str, Value]) -> frozenset[str]:
        """Return the kind of model that the estimator of a configuration is likely to become."""
        return frozenset({part_of(made(cls.registration, {**defaults(cls.registration.space), **parameters}, 0))})


SAMPLE = 20
"""Queries by which a converted model is compared with its estimator."""


def fitted(estimator: Estimator, queries: Queries) -> Estimator:
    """Fit an estimator to queries, and return it."""
    step, prefix = estimator, ""
    steps = getattr(estimator, "steps", None)
    if isinstance(steps, list) and steps:  # a pipeline
        (name, last) = steps[-1]
        if hasattr(last, "fit"):  # else it is "passthrough"
            step, prefix = last, f"{name}__"
    keyword = next((name for name in ("qid", "group_id", "group") if name in parameters_of(step.fit)), None)
    more: dict[str, object] = {}
    if keyword is not None:
        more[prefix + keyword] = queries.lengths if keyword == "group" else queries.query_of_document
    if queries.monotone is not None:
        more[f"{prefix}monotone"] = queries.monotone
    estimator.fit(inputs_of(estimator, queries), queries.grades, **more)
    return estimator


MAX_VALUES = 64
"""Values of a feature that are tried, spread over those that it has."""
ROUNDING = 1e-6
"""The part of the range of scores by which a score may move the wrong way: in single precision it rounds."""


def check_swept(predict: Callable[[Queries], Floats], queries: Queries, signs: Ints | None) -> None:
    """Raise DataError where a score of queries moves against the sign, (n_features,), of a feature.

    Each feature with a sign takes the values that it has in queries, MAX_VALUES at most, in all documents at once;
    missing values stay missing. Between these values, and for other documents, nothing is known.
    """
    if signs is None:
        return
    X = np.array(dense(queries.features))
    allowed = ROUNDING * float(np.ptp(predict(queries)))
    for column in np.flatnonzero(signs).tolist():
        values = X[:, column].copy()
        missing, last = np.isnan(values), None
        levels = np.unique(values[~missing])
        for value in levels[np.unique(np.linspace(0, len(levels) - 1, MAX_VALUES).astype(int))] if len(levels) else ():
            X[:, column] = np.where(missing, values, value)
            scores = predict(queries.with_features(X))
            if last is not None and (signs[column] * (scores - last) < -allowed).any():
                raise DataError(
                    f"the scores of the estimator move against the monotone constraint {signs[column]:+d} of the "
                    f"feature '{name_of(column, queries.feature_names)}'."
                )
            last = scores
        X[:, column] = values


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
    library, name = _kind(estimator)
    if library == "lightgbm" and name in ("LGBMRanker", "LGBMRegressor"):
        return _of_lightgbm
    if library == "xgboost" and name in ("XGBRanker", "XGBRegressor", "XGBRFRegressor"):
        return _of_xgboost
    if library != "sklearn":
        return None
    if name == "Pipeline":
        *scalers, last = (step for _, step in estimator.steps)
        scale = all(_kind(scaler) in {("sklearn", name) for name in SCALERS} for scaler in scalers)
        return _of_linear if scale and _is_linear(last) else None
    if name in SINGLE_TREES | FORESTS or name == "GradientBoostingRegressor":
        return _of_trees
    return _of_linear if _is_linear(estimator) else None


def _kind(estimator: Estimator) -> tuple[str, str]:
    """Return the library and the class of an estimator."""
    return (type(estimator).__module__.partition(".")[0], type(estimator).__name__)


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
    name = _kind(estimator)[1]
    if name in SINGLE_TREES:
        trees, factor = [estimator], 1.0
    else:
        trees = list(np.ravel(estimator.estimators_))
        factor = 1.0 / len(trees) if name in FORESTS else float(estimator.learning_rate)
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
