"""scikit-learn's protocol of an estimator, without importing scikit-learn before it is needed.

Importing sklearn.base takes most of a second and 60 to 100 MB, more than most fits, and the workers of a study never
need it, because they fit on Queries. Clones, pipelines, grid searches and metadata routing work by this protocol. Plain
arrays are validated by scikit-learn itself.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from html import escape
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from ranktune.solvers.core.arrays import Features, Floats, Ids, Sizes
from ranktune.solvers.core.declared import Former
from ranktune.solvers.core.errors import DataError, ParameterError, listed, nearest
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.query_columns import Weights
from ranktune.solvers.data.values import check_shape
from ranktune.solvers.names import SAME_AS

Request: TypeAlias = bool | str | None
"""Whether scikit-learn passes metadata on, or the name under which it gets them; None where they must not be given."""

METHODS = ("fit", "partial_fit", "score", "predict")


class Routed:
    """An estimator that asks for every keyword of its fit, score and predict, unless it is set otherwise."""

    _metadata_request: Any

    @classmethod
    def _keywords(cls, method: str) -> list[str]:
        parameters = inspect.signature(getattr(cls, method)).parameters.values()
        return [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]

    def get_metadata_routing(self) -> Any:
        """Return what scikit-learn routes here where metadata routing is enabled: every keyword, unless set otherwise.

        Returns
        -------
        MetadataRequest
        """
        if hasattr(self, "_metadata_request"):
            return self._metadata_request
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=type(self).__name__)
        for method in METHODS:
            for name in self._keywords(method) if hasattr(self, method) else ():
                getattr(request, method).add_request(param=name, alias=True)
        request.score.add_request(param="sample_weight", alias=None)  # a pipeline asks for it, with None
        return request

    def set_fit_request(self, **requests: Request) -> Self:
        """Say what scikit-learn passes to fit where metadata routing is enabled.

        Parameters
        ----------
        **requests : bool, str or None
            A keyword of fit, such as qid, group, query_weights or document_weights. True passes it, which is the
            default, False does not, a name passes the metadata of that name, and with None it must not be given.

        Returns
        -------
        self

        Raises
        ------
        TypeError
            If fit has no such keyword.

        Examples
        --------
        >>> from ranktune import RankSVM
        >>> RankSVM().set_fit_request(qid="query").get_metadata_routing().fit.requests["qid"]
        'query'
        """
        return self._requesting("fit", requests)

    def set_score_request(self, **requests: Request) -> Self:
        """Say what scikit-learn passes to score where metadata routing is enabled, as set_fit_request does for fit."""
        return self._requesting("score", requests)

    def set_predict_request(self, **requests: Request) -> Self:
        """Say what scikit-learn passes to predict where routing is enabled, as set_fit_request does for fit."""
        return self._requesting("predict", requests)

    def _requesting(self, method: str, requests: dict[str, Request]) -> Self:
        """Set what is passed to a method; a clone of the estimator requests the same."""
        request, keywords = self.get_metadata_routing(), self._keywords(method)
        for name, alias in requests.items():
            if name not in keywords:
                weights = " Weights are document_weights (one a row) and query_weights (by query id)."
                raise TypeError(
                    f"set_{method}_request() got '{name}', and {method} of {type(self).__name__} takes "
                    f"{', '.join(keywords)}.{weights if 'weight' in name and method == 'fit' else ''}"
                )
            getattr(request, method).add_request(param=name, alias=alias)
        self._metadata_request = request
        return self


class _OfInit:
    """The signature of a class: that of its __init__, not that of __new__, which older Pythons show for subclasses."""

    def __get__(self, instance: object, owner: type) -> inspect.Signature:
        return _signature(owner.__init__)  # type: ignore[misc]


@lru_cache(maxsize=256)
def _signature(init: Callable[..., None]) -> inspect.Signature:
    signature = inspect.signature(init)
    return signature.replace(parameters=list(signature.parameters.values())[1:])


class Estimator(Routed):
    """Base of estimators: the arguments of __init__ are the parameters, kept as attributes of the same names."""

    n_features_in_: int
    _one_query: str | None = None
    former: ClassVar[Former] = Former()
    __signature__ = _OfInit()

    def __new__(cls, *_: object, **parameters: object) -> Self:
        """Raise TypeError for an unknown parameter, with the name that it has here."""
        declared = _signature(cls.__init__).parameters if parameters else {}
        takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in declared.values())
        for name in parameters:
            if name not in declared and name not in cls.former.names and not takes_any:
                raise TypeError(cls._unknown(name))
        return super().__new__(cls)

    @classmethod
    def _unknown(cls, name: str) -> str:
        """Return the error for an unknown parameter, with the name that it has in this library."""
        names = cls._parameter_names()
        here = next((parameter for parameter in names if name in SAME_AS.get(parameter, ())), None)
        hint = nearest(name, names) if here is None else f"Here it is called '{here}'."
        return f"{cls.__name__} has no parameter '{name}'. {hint}"

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return sorted(_signature(cls.__init__).parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; deep is ignored, because no parameter is an estimator."""
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self, **parameters: object) -> Self:
        """Set parameters by name. Raises ParameterError, with the nearest name, for an unknown one."""
        names = self._parameter_names()
        for name, value in self.former.current(parameters).items():
            if name not in names:
                raise ParameterError(self._unknown(name))
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        """Show the parameters that differ from their defaults."""
        defaults = {name: p.default for name, p in _signature(type(self).__init__).parameters.items()}
        changed = [f"{n}={v!r}" for n, v in self.get_params().items() if not _same(v, defaults[n])]
        return f"{type(self).__name__}({', '.join(changed)})"

    def predict(self, X: object, *, qid: Ids | None = None, group: Sizes | None = None) -> Floats:
        """Score documents.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_features), or Queries
            The features. They may be NaN (missing) if the training data had missing values.
        qid, group : array-like, optional
            Which rows are a query, as in fit; only for models that score a query as a whole.

        Returns
        -------
        ndarray of shape (n_documents,)
            The scores in the order of the rows; higher is better.
        """
        raise NotImplementedError

    def score(
        self,
        X: object,
        y: object = None,
        *,
        qid: Ids | None = None,
        group: Sizes | None = None,
        query_weights: Weights | None = None,
        metric: str = "ndcg@10",
    ) -> float:
        """Return the mean of a metric over the queries of documents with grades.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_features), or Queries
            The features; Queries hold grades and queries too, and weigh the mean where they have weights of queries.
        y : array-like of shape (n_documents,)
            The grades.
        qid, group : array-like, optional
            Which rows are a query, as in fit. With neither, it is an error, unless the rows are those that fit took as
            one query. For one query give group=[n_documents].
        query_weights : array-like of shape (n_queries,) or mapping, optional
            How much each query counts in the mean, as in fit.
        metric : str, default="ndcg@10"
            The metric. Queries that it skips do not count.

        Returns
        -------
        float
            NaN where the metric skips every query.

        Raises
        ------
        DataError
            If it is not said which rows are a query, or the data are not valid.

        Notes
        -----
        scikit-learn passes qid to score only where metadata routing is enabled:
        sklearn.set_config(enable_metadata_routing=True), and then cross_val_score(ranker, X, y, params={"qid": qid}).

        Examples
        --------
        >>> from ranktune import RankSVM
        >>> ranker = RankSVM().fit([[0.0], [1.0], [2.0]], [0, 1, 2])
        >>> ranker.score([[3.0], [4.0], [1.0], [0.0]], [0, 1, 2, 0], qid=[1, 1, 2, 2])
        1.0
        """
        from ranktune.solvers.metrics.means import mean_of
        from ranktune.solvers.metrics.metrics import parse_metric

        if not isinstance(X, Queries):
            documents, grades = self._validated(X, y, reset=False)
            if qid is None and group is None:
                group = self._rows_of_fit(documents, grades)
            X = Queries.from_arrays(documents, grades, qid=qid, group=group)
        queries = replace(X if query_weights is None else X.weighted_by(query_weights), rows=None)
        return mean_of(parse_metric(metric).per_query(self.predict(queries), queries), queries.query_weights)

    def _rows_of_fit(self, documents: Features, grades: Floats) -> Sizes:
        """Return the size of the one query that these rows are. Raises DataError unless fit took them as a query."""
        size = [documents.shape[0]]
        if self._one_query == Queries.from_arrays(documents, grades, group=size).fingerprint:
            return size
        raise DataError(
            f"score was given {size[0]} rows and not which of them are a query. Pass qid=, the query of each row, or "
            f"group={size} if they are one query. For cross_val_score, GridSearchCV and pipelines of scikit-learn: "
            "sklearn.set_config(enable_metadata_routing=True), and qid among the params that they get."
        )

    def _repr_html_(self) -> str:
        """Return the class and its parameters for notebooks; those that differ from their defaults are bold."""
        defaults = _signature(type(self).__init__).parameters
        rows = "".join(
            f"<tr><td>{name}</td><td>{escape(repr(value))}</td></tr>"
            if _same(value, defaults[name].default)
            else f"<tr><td><b>{name}</b></td><td><b>{escape(repr(value))}</b></td></tr>"
            for name, value in self.get_params().items()
        )
        return f"<details><summary><code>{escape(repr(self))}</code></summary><table>{rows}</table></details>"

    def __sklearn_tags__(self) -> object:
        """Return tags for scikit-learn: sparse X and missing values (NaN) are accepted, y is required."""
        from sklearn.utils import InputTags, Tags, TargetTags

        inputs = InputTags(sparse=True, allow_nan=True)
        return Tags(estimator_type=None, target_tags=TargetTags(required=True), input_tags=inputs)

    def _validated(self, X: object, y: object = None, *, reset: bool, allow_missing: bool = False) -> Any:
        """Return X, or (X, y) where y is given, as scikit-learn validates them; notes number and names of features.

        Without y, X may be NaN if allow_missing; with y, Queries checks the values.
        """
        from sklearn.utils.validation import validate_data

        X = np.asarray(X) if isinstance(X, list) else X
        check_shape(X)
        if hasattr(X, "columns"):
            self._check_numeric(X)
        options: dict[str, object] = {
            "accept_sparse": "csr",
            "dtype": [np.float64, np.float32],
            "order": "C",
            "reset": reset,
        }
        if y is None and not reset:
            return validate_data(self, X, ensure_all_finite="allow-nan" if allow_missing else True, **options)
        return validate_data(self, X, y, y_numeric=True, ensure_all_finite=False, **options)

    def _check_numeric(self, frame: object) -> None:
        """Raise DataError for columns of a data frame that are text, categories or dates."""
        from ranktune.solvers.data.columns.arrow import as_arrow, is_frame, table_column  # imports Arrow

        table = as_arrow(frame) if is_frame(frame) else None
        names = [repr(name) for name in table.column_names if not table_column(table, name).is_numeric] if table else []
        if names:
            raise DataError(
                f"the columns {listed(names)} are not numbers, and {type(self).__name__} learns from numbers. "
                "ranktune.read(frame) makes features of them; in a pipeline, a ColumnTransformer with a OneHotEncoder "
                "does."
            )

    def _check_fitted(self, attribute: str) -> None:
        """Raise scikit-learn's NotFittedError if the attribute is missing."""
        if hasattr(self, attribute):
            return
        from sklearn.exceptions import NotFittedError

        raise NotFittedError(
            f"This {type(self).__name__} instance is not fitted yet. Call fit with training data before predict."
        )


def _same(value: object, default: object) -> bool:
    return value is default or (type(value) is type(default) and bool(value == default))
