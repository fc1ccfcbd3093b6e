"""The base of rankers whose score is a weighted sum of the features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Self, Unpack

import numpy as np
from scipy import sparse

from ranktune.solvers.abilities import LINEAR, LIST
from ranktune.solvers.base.ranker import BaseRanker, Step
from ranktune.solvers.core.arrays import Floats, Ints, Mask
from ranktune.solvers.core.space import Value
from ranktune.solvers.data.missing import Imputation
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import over, powers_of, query_factors
from ranktune.solvers.models.base import Model, Origin
from ranktune.solvers.models.linear import LinearModel

SHARE_LEFT_OUT = 4
"""One in this number of the features with weights of the wrong sign is left out at once."""


class LinearRanker(BaseRanker):
    """Base of rankers whose score is a weighted sum of the features.

    A monotone constraint is a bound on the sign of a weight. Least squares and the batch optimizers of smooth losses
    find the best weights within the bounds. For all other methods, of the features whose weights have the other sign
    those that matter most are left out, a quarter of them, and the rest is fitted again, until no weight is wrong.
    The weights that are left are the best without those features, which may be worse than the best within the bounds.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The weights of the raw features. Where the training data had missing values, those of the features that
        ``imputation_`` completed and of its indicators; as_model folds them into one model of the raw features.
    """

    takes_monotone: ClassVar[bool] = True
    indicates_missing: ClassVar[bool] = True
    coef_: Floats

    def _imputation(self, queries: Queries) -> Imputation:
        if getattr(self, "scaling", None) == "list":
            return Imputation.within_queries()
        return Imputation.learn(queries, indicators=self.indicates_missing)

    def _steps_constrained(self, queries: Queries, vali: Queries | None) -> Iterator[Step]:
        powers = self._powers(queries)
        if powers is None:
            yield from self._steps_within_signs(queries, vali)
            return
        vali = None if vali is None else vali.with_features(over(vali.features, powers))
        for step in self._steps_within_signs(queries.with_features(over(queries.features, powers)), vali):
            learnt, self.coef_ = self.coef_, np.ldexp(self.coef_, -powers)
            yield step
            self.coef_ = learnt
        self.coef_ = np.ldexp(self.coef_, -powers)

    def _powers(self, queries: Queries) -> Ints | None:
        """Return the powers of two that features are divided by while weights are learnt, (n_features,), if any are."""
        return None if getattr(self, "scaling", "list") == "list" else powers_of(queries.features)

    def _steps_within_signs(self, queries: Queries, vali: Queries | None) -> Iterator[Step]:
        signs = queries.monotone
        if signs is None:
            yield from self._steps_watched(queries, vali)
            return
        left_out = np.zeros(queries.n_features, dtype=bool)
        while True:
            for step in self._steps_watched(_without(queries, left_out), vali):
                learnt = self.coef_
                self.coef_ = np.where(left_out | (learnt * signs < 0.0), 0.0, learnt)  # the caller may stop here
                yield step
                self.coef_ = learnt
            learnt = self.coef_
            wrong = np.flatnonzero(~left_out & (learnt * signs < 0.0))
            self.coef_ = np.where(left_out, 0.0, learnt)
            if len(wrong) == 0:
                return
            influence = np.abs(learnt[wrong]) * self._spreads(queries)[wrong]
            left_out[wrong[np.argsort(-influence, kind="stable")[: -(-len(wrong) // SHARE_LEFT_OUT)]]] = True

    def _spreads(self, queries: Queries) -> Floats:
        """Return the standard deviation within queries of the features that weights are for, (n_features,)."""
        if getattr(self, "scaling", None) == "list":
            return np.ones(queries.n_features)
        multiplier = query_factors(queries, "standard")
        return np.divide(1.0, multiplier, out=np.zeros_like(multiplier), where=multiplier > 0.0)

    def _path_constrained(self, queries: Queries, values: Sequence[float | int]) -> Iterator[float | int]:
        signs, powers = queries.monotone, self._powers(queries)
        queries = queries if powers is None else queries.with_features(over(queries.features, powers))
        for value in self._steps_on_path(queries, values):
            learnt = self.coef_
            if signs is not None and (learnt * signs < 0.0).any():
                alone = self._alike(value)
                for _ in alone._steps_constrained(queries, None):
                    pass
                self.coef_ = alone.coef_
            if powers is not None:
                self.coef_ = np.ldexp(self.coef_, -powers)
            yield value
            self.coef_ = learnt

    def _alike(self, value: float | int) -> Self:
        """Return an unfitted ranker with another value of the path parameter."""
        return type(self)(**{**self.get_params(), str(self.path_parameter): value})

    @classmethod
    def model_parts(cls, parameters: Mapping[str, Value]) -> frozenset[str]:
        """Return the kind of model of a configuration: weights, of features as they are or scaled within queries."""
        return frozenset({LIST if parameters.get("scaling") == "list" else LINEAR})

    def _model(self, **origin: Unpack[Origin]) -> Model:
        self._check_fitted("coef_")
        by_list = getattr(self, "scaling", None) == "list"
        if self.imputation_ is None:
            return LinearModel(self.coef_, list_scaling=by_list, **origin)
        weights, missing = self.imputation_.folded(self.coef_)
        return LinearModel(weights, list_scaling=by_list, missing=missing, **origin)


def _without(queries: Queries, left_out: Mask) -> Queries:
    """Return queries with zeros in the columns that are left out."""
    if not left_out.any():
        return queries
    factor = (~left_out).astype(queries.features.dtype)
    if isinstance(queries.features, np.ndarray):
        return queries.with_features(queries.features * factor)
    return queries.with_features(sparse.csr_array(queries.features @ sparse.diags_array(factor, format="csr")))
