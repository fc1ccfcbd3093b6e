"""What fit is given, checked and brought into the form that solvers learn from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ranktune.solvers.abilities import DOCUMENT_WEIGHTS, MONOTONE, QUERY_WEIGHTS, VERBS
from ranktune.solvers.base.estimator import Estimator
from ranktune.solvers.core.arrays import Ids, Ints, Sizes
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.core.space import Value
from ranktune.solvers.data.columns.table import COLUMNS
from ranktune.solvers.data.grouping import MANY_ROWS, check_no_query_column, warn_of_one_query
from ranktune.solvers.data.missing import Imputation
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.query_columns import for_fitting

NOTHING: Mapping[str, object] = {}
"""No columns besides the features and grades that fit is given."""
SOME_ROWS = 100
"""Rows from which on a single query is unlikely to be meant by fit."""


class QueryEstimator(Estimator):
    """An estimator that learns from documents grouped by query; BaseRanker describes its attributes."""

    weighted: ClassVar[bool] = False
    takes_document_weights: ClassVar[bool] = False
    takes_monotone: ClassVar[bool] = False
    takes_missing: ClassVar[bool] = False
    refusals: ClassVar[Mapping[str, str]] = {}
    imputation_: Imputation | None = None
    monotone_: Ints | None = None

    def _check_vali(self, vali: object) -> None:
        if vali is None:
            return
        if not isinstance(vali, Queries):
            raise DataError(
                f"vali is {type(vali).__name__}: validation documents must be a Queries, "
                "as Queries.from_arrays(X, y, qid=qid) makes it."
            )
        if vali.n_features != self.n_features_in_:
            raise DataError(
                f"vali has {vali.n_features} features, the training data {self.n_features_in_}: "
                "both must have the same features."
            )

    def _grouped(
        self,
        X: object,
        y: object = None,
        qid: Ids | None = None,
        group: Sizes | None = None,
        columns: Mapping[str, object] = NOTHING,
        *,
        reset: bool = True,
    ) -> Queries:
        """Return training data as Queries; note the number and names of the features, or check them unless reset."""
        queries = self._as_queries(X, y, qid, group, columns, reset=reset)
        self._check_supported(queries)
        queries = for_fitting(queries)
        alone = reset and not isinstance(X, Queries) and queries.n_queries == 1 and queries.n_documents <= MANY_ROWS
        self._one_query = queries.fingerprint if alone else None
        if reset:
            self.monotone_ = queries.monotone
            learns = queries.has_missing and not self.takes_missing
            self.imputation_ = self._imputation(queries) if learns else None
        return self._completed(queries)

    @classmethod
    def supports(cls, parameters: Mapping[str, Value]) -> frozenset[str]:
        """Return what a configuration can use of the data: QUERY_WEIGHTS, DOCUMENT_WEIGHTS, MONOTONE, POSITIONS.

        Parameters
        ----------
        parameters : mapping of str to value
            The parameters that differ from the defaults.

        Returns
        -------
        frozenset of str
        """
        declared = {QUERY_WEIGHTS: cls.weighted, DOCUMENT_WEIGHTS: cls.takes_document_weights}
        return frozenset(what for what, holds in (declared | {MONOTONE: cls.takes_monotone}).items() if holds)

    def _check_supported(self, queries: Queries) -> None:
        """Raise ParameterError where the solver cannot use the weights or keep the constraints of queries."""
        supported = self.supports(self.get_params())
        for name in (name for name in COLUMNS if name in queries.columns):
            need = COLUMNS[name].needs
            if need in VERBS and need not in supported:
                why = f" {self.refusals[need]}" if need in self.refusals else ""
                raise ParameterError(
                    f"{self!r} cannot {VERBS[need]}: leave {name} out, or take a solver that can.{why}"
                )

    def _imputation(self, queries: Queries) -> Imputation:
        """Return what is put in place of missing values, learned from the training data."""
        return Imputation.learn(queries, indicators=False)

    def _completed(self, queries: Queries) -> Queries:
        """Return queries as the solver learns from them: without missing values, unless it takes them."""
        if self.imputation_ is not None:
            return self.imputation_.completed(queries)
        if queries.has_missing and not self.takes_missing:
            raise DataError(
                f"features are missing (NaN), and {type(self).__name__} was first trained on data without missing "
                "values. Fill them in, or begin with data that has them."
            )
        return queries

    def _as_queries(
        self, X: object, y: object, qid: Ids | None, group: Sizes | None, columns: Mapping[str, object], *, reset: bool
    ) -> Queries:
        if isinstance(X, Queries):
            if not reset and X.n_features != self.n_features_in_:
                raise DataError(
                    f"X has {X.n_features} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                    "features as input: the pieces must have the same features."
                )
            if reset:
                vars(self).pop("feature_names_in_", None)  # of an earlier fit to a frame
            self.n_features_in_ = X.n_features
            return X.given(**columns)
        grouped = qid is not None or group is not None
        check_no_query_column(X, grouped=grouped)
        documents, grades = self._validated(X, y, reset=reset)
        if not grouped and SOME_ROWS < len(grades) <= MANY_ROWS:
            warn_of_one_query(len(grades))
        names = getattr(self, "feature_names_in_", None)
        queries = Queries.from_arrays(documents, grades, qid=qid, group=group, feature_names=names)
        return queries.given(**columns)
