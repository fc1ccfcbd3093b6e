"""Pointwise baselines: scikit-learn's ridge, logistic and support vector regression behind the face of a ranker.

They predict each document's grade without looking at its rivals. Features are standardised inside and the scale folded
back, so that coef_ applies to the raw features and strengths mean the same on all data. centre="query" subtracts each
query's mean from features and grades first: what makes a whole query easy or hard then explains nothing, as in ranking.
Sparse features are never centred (that would fill them); their grades are.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVR

from ranktune.solvers.arrays import Features, Floats
from ranktune.solvers.errors import ParameterError, RankTuneWarning, nearest
from ranktune.solvers.queries import Queries
from ranktune.solvers.ranker import LinearRanker, Step
from ranktune.solvers.scaling import factors
from ranktune.solvers.space import Choice, Float, Parameter

CENTRES = ("query", "none")


class PointwiseRanker(LinearRanker):
    """What the three have in common; _weights learns on the prepared features."""

    centre: str

    def _check_parameters(self) -> None:
        if self.centre not in CENTRES:
            raise ParameterError(f"centre={self.centre!r} is unknown. {nearest(str(self.centre), CENTRES)}")
        for name, value in self.get_params().items():
            if name in ("alpha", "C") and not (_is_number(value) and 0.0 < value < np.inf):
                raise ParameterError(f"{name}={value!r}: it must be a positive number.")

    def _steps(self, queries: Queries) -> Iterator[Step]:
        features, multiplier = _prepared(queries, self.centre == "query")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            weights = self._weights(features, queries)
        unconverged = [warning for warning in caught if issubclass(warning.category, ConvergenceWarning)]
        for warning in caught:
            if warning not in unconverged:
                warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        self.coef_ = np.asarray(weights, dtype=np.float64).ravel() * multiplier
        if unconverged:
            warnings.warn(
                f"{type(self).__name__} stopped before it converged, and its last weights are kept: "
                "a smaller C (or a larger alpha) makes the problem easier.",
                RankTuneWarning,
                stacklevel=2,
            )
        yield Step(1, float("nan"))

    def _weights(self, features: Features, queries: Queries) -> Any:
        raise NotImplementedError

    def _targets(self, queries: Queries) -> Floats:
        """Return the grades, less the mean of their query if that is wanted."""
        if self.centre == "none":
            return queries.grades
        centred: Floats = queries.grades - np.repeat(_query_means(queries.grades, queries), queries.lengths)
        return centred


class RidgeRanker(PointwiseRanker):
    """Least squares on the grades: 1/2 |y - Xw|^2 + alpha/2 |w|^2 on standardised features."""

    space: ClassVar[tuple[Parameter, ...]] = (
        Float("alpha", 1.0, 1e6, default=1000.0, log=True),
        Choice("centre", CENTRES, default="query"),
    )

    def __init__(self, alpha: float = 1.0, *, centre: str = "query") -> None:
        self.alpha = alpha
        self.centre = centre

    def _weights(self, features: Features, queries: Queries) -> Any:
        if sparse.issparse(features):
            features = sparse.csr_matrix(features)
        return Ridge(alpha=float(self.alpha)).fit(features, self._targets(queries)).coef_


class LogisticRanker(PointwiseRanker):
    """Logistic regression on relevance: the lowest grade of the data is 0, the highest 1, the others lie between.

    A document of relevance p counts p as a relevant one and 1 - p as an irrelevant one, so that all grades matter, one
    weight vector results, and two grades give the usual logistic regression. gain="exponential" spaces grades
    by 2^y, "linear" by y. C weighs the loss, summed over documents, against 1/2 |w|^2 on standardised features.
    """

    space: ClassVar[tuple[Parameter, ...]] = (
        Float("C", 1e-5, 1e1, default=1e-2, log=True),
        Choice("gain", ("linear", "exponential"), default="linear"),
        Choice("centre", CENTRES, default="query"),
    )

    def __init__(
        self, C: float = 1.0, *, gain: str = "linear", centre: str = "query", max_iterations: int = 200
    ) -> None:
        self.C = C
        self.gain = gain
        self.centre = centre
        self.max_iterations = max_iterations

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.gain not in ("linear", "exponential"):
            raise ParameterError(f"gain={self.gain!r} is unknown. {nearest(str(self.gain), ('linear', 'exponential'))}")
        if not (isinstance(self.max_iterations, int | np.integer) and self.max_iterations >= 1):
            raise ParameterError(f"max_iterations={self.max_iterations!r}: it must be a whole number of at least 1.")

    def _weights(self, features: Features, queries: Queries) -> Any:
        relevance = self._relevance(queries.grades)
        positive, negative = np.flatnonzero(relevance > 0.0), np.flatnonzero(relevance < 1.0)
        rows = np.concatenate([positive, negative])
        labels = np.repeat([1, 0], [len(positive), len(negative)])
        shares = np.concatenate([relevance[positive], 1.0 - relevance[negative]])
        model = LogisticRegression(C=float(self.C), max_iter=int(self.max_iterations))
        taken = features[rows]
        return model.fit(
            sparse.csr_matrix(taken) if sparse.issparse(taken) else taken, labels, sample_weight=shares
        ).coef_

    def _relevance(self, grades: Floats) -> Floats:
        low, high = float(grades.min()), float(grades.max())
        relevance: Floats = (grades - low) / (high - low)
        if self.gain == "exponential":  # 2^y - 2^low over 2^high - 2^low, written so that no power overflows
            relevance = (np.exp2(grades - high) - np.exp2(low - high)) / (1.0 - np.exp2(low - high))
        return relevance


class SVRRanker(PointwiseRanker):
    """Linear support vector regression: C sum max(0, |y - s| - epsilon)^2 + 1/2 |w|^2 on standardised features."""

    space: ClassVar[tuple[Parameter, ...]] = (
        Float("C", 1e-5, 1.0, default=1e-3, log=True),
        Float("epsilon", 1e-2, 1.0, default=0.3, log=True),
        Choice("centre", CENTRES, default="query"),
    )

    def __init__(self, C: float = 1.0, *, epsilon: float = 0.1, centre: str = "query") -> None:
        self.C = C
        self.epsilon = epsilon
        self.centre = centre

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not (_is_number(self.epsilon) and 0.0 <= self.epsilon < np.inf):
            raise ParameterError(f"epsilon={self.epsilon!r}: it must be a number of at least 0.")

    def _weights(self, features: Features, queries: Queries) -> Any:
        model = LinearSVR(
            C=float(self.C),
            epsilon=float(self.epsilon),
            loss="squared_epsilon_insensitive",  # smooth: solved in the primal if documents outnumber features
            dual="auto",
            random_state=0,  # for the order of the dual's coordinates
        )
        features = sparse.csr_matrix(features) if sparse.issparse(features) else features
        return model.fit(features, self._targets(queries)).coef_


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _query_means(values: Any, queries: Queries) -> Any:
    counts = queries.lengths if values.ndim == 1 else queries.lengths[:, None]
    return np.add.reduceat(values, queries.starts[:-1], axis=0) / counts


def _prepared(queries: Queries, centre: bool) -> tuple[Features, Floats]:
    """Return standardised features (a copy, centred within queries if dense and wanted), and their factors."""
    features = queries.features
    if sparse.issparse(features):
        multiplier = factors(features, "standard")
        return sparse.csr_array(features.multiply(multiplier[None, :].astype(features.dtype))), multiplier
    if centre:
        features = features - np.repeat(_query_means(features, queries), queries.lengths, axis=0).astype(features.dtype)
    multiplier = factors(features, "standard")
    return features * multiplier.astype(features.dtype), multiplier
