"""The face that every solver shares: fit, predict, get_params, and what it declares to a tuner."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from ranktune.solvers.base.estimator import Estimator
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.core.space import Float, Int, Parameter, Value, up_to, with_defaults
from ranktune.solvers.data.products import scores
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.base import Model, Origin


@dataclass(frozen=True)
class Step:
    """What an optimizer reports after each iteration, so that its caller can show progress or stop it.

    objective is what is minimised; violation is zero exactly at an optimum (NaN where it is not known).
    """

    iteration: int
    objective: float
    violation: float = float("nan")


class PathParameter:
    """What along is where it hangs on other parameters: on the class the usual name, on a ranker its own, or None."""

    def __init__(self, usual: str, of: Callable[[Any], str | None]) -> None:
        self._usual, self._of = usual, of

    def __get__(self, ranker: Any, owner: Any = None) -> str | None:
        """Return the name for the class, or for a ranker as its parameters are."""
        return self._usual if ranker is None else self._of(ranker)


class BaseRanker(Estimator):
    """A ranking model in the manner of scikit-learn.

    A subclass states its search space next to its parameters, checks them in _check_parameters, and learns in
    _steps, which must leave the fitted attributes in place whenever it yields. One that can stop by validation queries
    sets validated and overrides _steps_watched instead; one that heeds query weights sets weighted.

    along names the parameter of the space along which one fit yields the models for many values at little more than
    the cost of one (fit_path), if there is one; path_increasing says whether the larger of its values are the dear
    ones, path_expensive whether eight of them take more than half as long again as one. Where it is not a count of
    steps, the subclass overrides _steps_on_path too.
    """

    space: ClassVar[tuple[Parameter, ...]] = ()
    weighted: ClassVar[bool] = False
    validated: ClassVar[bool] = False
    path_parameter: ClassVar[str | None] = None
    path_increasing: ClassVar[bool] = True
    path_expensive: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        """Give the search space the defaults of the constructor."""
        super().__init_subclass__()
        if cls.space:
            cls.space = with_defaults(cls.space, cls.__init__)

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        group: Any = None,
        query_weights: Any = None,
        vali: Queries | None = None,
    ) -> Self:
        """Learn from documents grouped by query.

        X is (n_documents, n_features), dense or sparse, y the grades (higher is better); qid is one hashable id
        a row, in any order, or group the rows of each query; with neither, all rows are one query. query_weights says
        how often each query counts: an array in the order of the queries' first rows, or a mapping from query id. A
        Queries may be given in place of all of them. vali are validation queries, for solvers that stop when these get
        no better; the others do not look at them. Raises DataError where no query has two different grades, and
        ParameterError for weights that the method cannot heed.
        """
        for _ in self.fit_steps(X, y, qid=qid, group=group, query_weights=query_weights, vali=vali):
            pass
        return self

    def fit_steps(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        group: Any = None,
        query_weights: Any = None,
        vali: Queries | None = None,
    ) -> Iterator[Step]:
        """Learn as fit does, yielding a Step each iteration; the model is usable whenever the caller stops."""
        self._check_parameters()
        queries = self._grouped(X, y, qid, group, query_weights)
        self._check_vali(vali)
        yield from self._steps_watched(_with_something_to_learn(queries), vali)

    def _steps_watched(self, queries: Queries, vali: Queries | None) -> Iterator[Step]:
        """Learn as _steps does; a solver that is validated may stop by vali."""
        yield from self._steps(queries)

    def fit_path(self, queries: Queries, values: Sequence[float]) -> Iterator[tuple[float | int, BaseRanker]]:
        """Yield, for each of values of the parameter along, (value, a ranker fitted as if with that value).

        Each different value comes once, in the order in which they come cheapest: rising, or falling where
        path_increasing is false; the order given does not matter. All else is as this ranker has it, which is not
        fitted itself. Counts of steps give the same bits as fit, other parameters what fit gives to its tolerance. The
        ranker may be one object that goes on learning: use it, or its as_model, before the next step; the caller may
        stop at any time. Raises ParameterError where there is no such parameter or a value is none that it can have,
        and DataError as fit does.
        """
        name = self.path_parameter
        if name is None:
            raise ParameterError(
                f"{self!r} has no parameter along which one fit yields many models: fit it with one value at a time."
            )
        learner = type(self)(**self.get_params())
        wanted = learner._in_order(name, values)
        learner.set_params(**{name: wanted[-1]})
        queries = _with_something_to_learn(learner._grouped(queries, None, None, None))
        for value in learner._steps_on_path(queries, wanted):
            learner.set_params(**{name: value})
            yield value, learner
            learner.set_params(**{name: wanted[-1]})

    @classmethod
    def path_values(cls, parameter: Parameter, value: float, most: int = 8) -> tuple[float | int, ...]:
        """Return values of parameter, the one that along names, for fit_path: value last, all others less dear.

        They are most at most, evenly spaced on the scale of parameter from its cheap end to value.
        """
        if not isinstance(parameter, Float | Int):
            raise ParameterError(f"'{parameter.name}' is a choice: its values lie on no path.")
        return up_to(parameter, value, most, rising=cls.path_increasing)

    def _in_order(self, name: str, values: Sequence[float]) -> list[float | int]:
        """Return the different values of parameter name from the cheapest on, each of which must pass the checks."""
        plain = [value.item() if isinstance(value, np.generic) else value for value in values]
        if not plain:
            raise ParameterError(f"there are no values of {name}: give at least one.")
        for value in plain:
            self.set_params(**{name: value})
            self._check_parameters()
        return sorted(set(plain), reverse=not self.path_increasing)

    def _steps_on_path(self, queries: Queries, values: Sequence[float | int]) -> Iterator[float | int]:
        """Yield each of values, in their order, when the fitted attributes are those of a fit with it.

        The parameter has the last of values meanwhile. This one is for counts: where learning ends before a value is
        reached, it would have ended there with that value too.
        """
        left = iter(values)
        wanted = next(left)
        for count in self._counts(queries):
            if count == wanted:
                yield wanted
                following = next(left, None)
                if following is None:
                    return
                wanted = following
        yield wanted
        yield from left

    def _counts(self, queries: Queries) -> Iterator[int]:
        """Learn, yielding how far the parameter along is whenever what is fitted is that of a fit with so many."""
        for step in self._steps_watched(queries, None):
            yield step.iteration

    def _check_vali(self, vali: Any) -> None:
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
        self, X: Any, y: Any, qid: Any, group: Any, query_weights: Any = None, *, reset: bool = True
    ) -> Queries:
        """Return the training data as Queries and note the number and names of the features, or check them."""
        queries = self._as_queries(X, y, qid, group, query_weights, reset=reset)
        if queries.query_weights is not None and not self.weighted:
            raise ParameterError(
                f"{type(self).__name__} cannot weigh queries: leave query_weights out, or take a solver that can."
            )
        return queries

    def _as_queries(self, X: Any, y: Any, qid: Any, group: Any, query_weights: Any, *, reset: bool) -> Queries:
        if isinstance(X, Queries):
            if not reset and X.n_features != self.n_features_in_:
                raise DataError(
                    f"X has {X.n_features} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                    "features as input: the pieces must have the same features."
                )
            self.n_features_in_ = X.n_features
            return X if query_weights is None else X.weighted_by(query_weights)
        X, y = self._validated(X, y, reset=reset)
        names = getattr(self, "feature_names_in_", None)
        return Queries.from_arrays(X, y, qid=qid, group=group, feature_names=names, query_weights=query_weights)

    def check_parameters(self) -> None:
        """Raise ParameterError where a parameter cannot be, as fit would before it looks at the data."""
        self._check_parameters()

    def _check_parameters(self) -> None:
        """Raise ParameterError where a parameter of the subclass cannot be."""

    def _steps(self, queries: Queries) -> Iterator[Step]:
        raise NotImplementedError

    def predict(self, X: Any, *, qid: Any = None, group: Any = None) -> Floats:
        """Return the scores of the rows of X, (n_documents,), in the order of the rows; higher is better.

        qid or group matter only to models that look at a whole query at once.
        """
        raise NotImplementedError

    def as_model(
        self,
        *,
        solver: str | None = None,
        parameters: Mapping[str, Value] | None = None,
        feature_names: Sequence[str] | None = None,
        metric: str | None = None,
        fingerprint: str | None = None,
    ) -> Model:
        """Return what was learnt as a model for use: predict, save. It predicts the same bits.

        solver and parameters are this one's unless they are given, feature_names those that fit saw in a data frame;
        the others are for the reader of the model's file.
        """
        if parameters is None:
            kept = self.get_params().items()
            parameters = {name: value for name, value in kept if isinstance(value, float | int | str | bool | None)}
        names = getattr(self, "feature_names_in_", None) if feature_names is None else feature_names
        return self._model(
            solver=solver or type(self).__name__,
            parameters=dict(parameters),
            feature_names=None if names is None else tuple(str(name) for name in names),
            metric=metric,
            fingerprint=fingerprint,
        )

    def _model(self, **origin: Unpack[Origin]) -> Model:
        """Return the fitted model with these fields."""
        raise NotImplementedError


def _with_something_to_learn(queries: Queries) -> Queries:
    if not queries.has_pairs:
        raise DataError(
            f"there is nothing to learn from n_samples = {queries.n_documents}: "
            "no query has two documents of different grades. "
            "Check the grades and the grouping (qid= or group=)."
        )
    return queries


class LinearRanker(BaseRanker):
    """A ranker whose score is a weighted sum of the features: coef_, (n_features,) float64."""

    coef_: Floats

    def predict(self, X: Any, *, qid: Any = None, group: Any = None) -> Floats:
        """Return X @ coef_, (n_documents,), in the order of the rows; qid and group change nothing here."""
        self._check_fitted("coef_")
        if isinstance(X, Queries):
            return X.in_caller_order(scores(X.features, self.coef_))
        return scores(self._validated(X, reset=False), self.coef_)

    def _model(self, **origin: Unpack[Origin]) -> Model:
        from ranktune.solvers.models.linear import LinearModel

        self._check_fitted("coef_")
        return LinearModel(self.coef_, list_scaling=getattr(self, "scaling", None) == "list", **origin)
