"""The base of rankers whose score is a weighted sum of the features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Unpack

from ranktune.solvers.base.ranker import BaseRanker
from ranktune.solvers.core.arrays import Floats, Ids, Sizes
from ranktune.solvers.core.space import Value
from ranktune.solvers.data.missing import Imputation
from ranktune.solvers.data.products import scores
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.base import LINEAR, LIST, Model, Origin
from ranktune.solvers.models.linear import LinearModel


class LinearRanker(BaseRanker):
    """Base of rankers whose score is a weighted sum of the features.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The weights of the raw features. Where the training data had missing values, those of the features that
        imputation_ completed and of its indicators; as_model folds them into one model of the raw features.
    """

    indicates_missing: ClassVar[bool] = True
    coef_: Floats

    def _imputation(self, queries: Queries) -> Imputation:
        if getattr(self, "scaling", None) == "list":
            return Imputation.within_queries()
        return Imputation.learn(queries, indicators=self.indicates_missing)

    @classmethod
    def model_parts(cls, parameters: Mapping[str, Value]) -> frozenset[str]:
        """Return the kinds of parts that the model of a configuration has: weights, of features as they are or scaled.

        Parameters
        ----------
        parameters : mapping of str to value
            The parameters that differ from the defaults.

        Returns
        -------
        frozenset of str
        """
        return frozenset({LIST if parameters.get("scaling") == "list" else LINEAR})

    def predict(self, X: object, *, qid: Ids | None = None, group: Sizes | None = None) -> Floats:
        """Score documents: X @ coef_.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_features), or Queries
            The features. They may be NaN (missing) if the training data had missing values.
        qid, group : array-like, optional
            Ignored: a document's score does not depend on the others.

        Returns
        -------
        ndarray of shape (n_documents,)
            The scores in the order of the rows; higher is better.
        """
        self._check_fitted("coef_")
        if self.imputation_ is not None or (isinstance(X, Queries) and X.has_missing):
            return self._predict_by_model(X, qid, group)
        if isinstance(X, Queries):
            return X.in_caller_order(scores(X.features, self.coef_))
        return scores(self._validated(X, reset=False), self.coef_)

    def _model(self, **origin: Unpack[Origin]) -> Model:
        self._check_fitted("coef_")
        by_list = getattr(self, "scaling", None) == "list"
        if self.imputation_ is None:
            return LinearModel(self.coef_, list_scaling=by_list, **origin)
        weights, missing = self.imputation_.folded(self.coef_)
        return LinearModel(weights, list_scaling=by_list, missing=missing, **origin)
