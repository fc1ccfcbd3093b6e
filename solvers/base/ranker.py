"""The interface of every solver: fit, predict, get_params, and the declarations that a tuner uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any, ClassVar, Self, Unpack

from numpy.typing import ArrayLike

from ranktune.solvers.abilities import CUSTOM
from ranktune.solvers.base.training_data import NOTHING, QueryEstimator
from ranktune.solvers.core.arrays import Floats, Ids, Sizes, python_value
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.core.parameters import check_declared
from ranktune.solvers.core.space import Float, Int, Parameter, Value, up_to, with_defaults
from ranktune.solvers.data.blocked import BlockedQueries
from ranktune.solvers.data.columns.encoding import TableEncoding
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.query_columns import Monotone, Weights, named_signs
from ranktune.solvers.models.base import Model, Origin


@dataclass(frozen=True)
class Step:
    """What an optimizer reports after each iteration, so that its caller can show progress or stop it.

    Attributes
    ----------
    iteration : int
        Number of the iteration, from 1.
    objective : float
        The value that is minimised.
    violation : float
        Distance from the optimum: 0 exactly there, NaN where it is not known.
    """

    iteration: int
    objective: float
    violation: float = float("nan")


UNNAMED: Origin = {"solver": "", "parameters": {}, "feature_names": None, "metric": None, "fingerprint": None}
"""The origin of a model that is only used to predict."""


class BaseRanker(QueryEstimator):
    """Base of all rankers, which follow scikit-learn's conventions.

    A subclass declares its search space and the defaults of its constructor, checks its parameters in
    _check_parameters, and learns in _steps, which leaves the fitted attributes usable whenever it yields. A solver with
    early stopping by validation queries sets validated and overrides _steps_watched instead.

    Attributes
    ----------
    space : tuple of Parameter
        The search space. Its defaults are those of the constructor.
    weighted : bool
        Whether fit takes query_weights.
    takes_document_weights : bool
        Whether fit takes document_weights.
    refusals : mapping of str to str
        Why some configurations cannot use them, by the names of the arguments of fit.
    takes_monotone : bool
        Whether the solver honours monotone constraints.
    validated : bool
        Whether fit uses vali.
    online : bool
        Whether the solver learns query by query, whatever its parameters.
    grows : bool
        Whether validation queries stop a fit that adds rounds, which can go on from where it was cut. Such a solver has
        a parameter patience: rounds without improvement before it stops.
    path_parameter : str or None
        The parameter of the space for many values of which fit_path gives models at little more than the cost of one.
        If it is not a number of steps, the subclass overrides _steps_on_path.
    path_increasing : bool
        Whether larger values of the path parameter cost more.
    path_expensive : bool
        Whether eight values of the path parameter cost more than one and a half times as much as one.
    takes_missing : bool
        Whether the solver itself learns from missing values (NaN); others learn from what imputation_ puts in place.
    """

    space: ClassVar[tuple[Parameter, ...]] = ()
    validated: ClassVar[bool] = False
    online: ClassVar[bool] = False
    grows: ClassVar[bool] = False
    patience: int
    path_parameter: ClassVar[str | None] = None
    path_increasing: ClassVar[bool] = True
    path_expensive: ClassVar[bool] = False
    _earlier: Model | None = None  # from which fits go on

    def __init_subclass__(cls) -> None:
        """Give the search space the defaults of the constructor."""
        super().__init_subclass__()
        if cls.space:
            cls.space = with_defaults(cls.space, cls.__init__)

    def fit(
        self,
        X: object,
        y: object = None,
        *,
        qid: Ids | None = None,
        group: Sizes | None = None,
        query_weights: Weights | None = None,
        document_weights: ArrayLike | None = None,
        positions: ArrayLike | None = None,
        monotone: Monotone | None = None,
        vali: Queries | None = None,
    ) -> Self:
        """Learn from documents grouped by query.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_features), or Queries
            The features, NaN where a value is missing; Queries hold everything but vali.
        y : array-like of shape (n_documents,)
            The grades; higher is better.
        qid : array-like of shape (n_documents,), optional
            The query id of each row, in any order. With neither qid nor group, all rows are one query.
        group : array-like of int of shape (n_queries,), optional
            The number of rows of each query, in place of qid.
        query_weights : array-like of shape (n_queries,) or mapping, optional
            How often each query counts, in the order of the queries' first rows, or by query id; or (n_documents,),
            the weight of the query of each row, which scikit-learn can divide into folds.
        document_weights : array-like of shape (n_documents,), optional
            How often each document counts, besides the weight of its query.
        positions : array-like of shape (n_documents,), optional
            Where each document was shown when it was judged by clicks. Of solvers without a use for it, no effect.
        monotone : mapping or sequence of int, optional
            1 where the score may only rise with a feature, -1 where it may only fall: by name, glob or column number
            from 0, or one sign per feature. What a missing value adds is exempt.
        vali : Queries, optional
            Validation queries for early stopping; solvers without early stopping ignore them.

        Returns
        -------
        self

        Raises
        ------
        DataError
            If no query has two different grades, or the data are not valid.
        ParameterError
            If a parameter is not valid, or the method cannot weigh queries or documents, or honour constraints.
        """
        columns = {"query_weights": query_weights, "document_weights": document_weights, "positions": positions}
        for _ in self._learned(X, y, qid, group, {**columns, "monotone": monotone}, vali):
            pass
        return self

    def fit_steps(self, queries: Queries, *, vali: Queries | None = None) -> Iterator[Step]:
        """Learn as fit does and yield a Step after each iteration; the ranker is usable whenever the caller stops."""
        return self._learned(queries, None, None, None, NOTHING, vali)

    def _learned(
        self,
        X: object,
        y: object,
        qid: Ids | None,
        group: Sizes | None,
        columns: Mapping[str, object],
        vali: Queries | None,
    ) -> Iterator[Step]:
        self._check_parameters()
        queries = self._grouped(X, y, qid, group, columns)
        self._check_vali(vali)
        yield from self._steps_constrained(_with_pairs(queries), None if vali is None else self._completed(vali))

    def _steps_constrained(self, queries: Queries, vali: Queries | None) -> Iterator[Step]:
        """Learn within the monotone constraints of queries."""
        yield from self._steps_watched(queries, vali)

    def _steps_watched(self, queries: Queries, vali: Queries | None) -> Iterator[Step]:
        """Learn as _steps does; a validated solver may stop early by vali."""
        yield from self._steps(queries)

    def fit_path(self, queries: Queries, values: Sequence[float]) -> Iterator[tuple[float | int, BaseRanker]]:
        """Fit for many values of the path parameter at little more than the cost of one.

        Numbers of steps give the same bits as fit, other parameters agree with fit to its tolerance. This ranker is not
        fitted itself.

        Parameters
        ----------
        queries : Queries
            The training data.
        values : sequence of float
            Values of path_parameter, in any order.

        Yields
        ------
        (value, ranker)
            Each different value once, the cheapest first, and a ranker as if fitted with it. The ranker may be one
            object that learns further: use it, or its as_model(), before the next step.

        Raises
        ------
        ParameterError
            If the ranker has no path parameter, or a value is not valid.
        DataError
            As fit does.
        """
        name = self.path_parameter
        if name is None:
            raise ParameterError(
                f"{self!r} has no parameter along which one fit yields many models: fit it with one value at a time."
            )
        learner = type(self)(**self.get_params())
        learner._earlier = self._earlier
        wanted = learner._sorted_by_cost(name, values)
        learner.set_params(**{name: wanted[-1]})
        queries = _with_pairs(learner._grouped(queries))
        for value in learner._path_constrained(queries, wanted):
            learner.set_params(**{name: value})
            yield value, learner
            learner.set_params(**{name: wanted[-1]})

    def _path_constrained(self, queries: Queries, values: Sequence[float | int]) -> Iterator[float | int]:
        """Yield each of values as _steps_on_path does, within the monotone constraints of queries."""
        yield from self._steps_on_path(queries, values)

    @classmethod
    def path_values(cls, parameter: Parameter, value: float, most: int = 8) -> tuple[float | int, ...]:
        """Return at most that many values for fit_path, evenly spaced from the cheap end of parameter's range to value.

        parameter is the path parameter; value comes last.
        """
        if not isinstance(parameter, Float | Int):
            raise ParameterError(f"'{parameter.name}' is a choice: its values lie on no path.")
        return up_to(parameter, value, most, rising=cls.path_increasing)

    def _sorted_by_cost(self, name: str, values: Sequence[float]) -> list[float | int]:
        """Return the different values of parameter name, the cheapest first; each must be valid."""
        plain = [python_value(value) for value in values]
        if not plain:
            raise ParameterError(f"there are no values of {name}: give at least one.")
        for value in plain:
            self.set_params(**{name: value})
            self._check_parameters()
        return sorted({value for value in plain if isinstance(value, float | int)}, reverse=not self.path_increasing)

    def _steps_on_path(self, queries: Queries, values: Sequence[float | int]) -> Iterator[float | int]:
        """Yield each of values, in their order, when the fitted attributes are those of a fit with it.

        The parameter has the last of values meanwhile. This implementation is for numbers of steps: learning that ends
        before a value is reached would have ended there with that value too.
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
        """Learn, and yield the number of steps whenever the fitted attributes are those of a fit with that number."""
        for step in self._steps_watched(queries, None):
            yield step.iteration

    def _fit_blocks(self, data: BlockedQueries) -> None:
        """Learn from all blocks, which have been checked; see `ranktune.solvers.fit_blocks`."""
        raise ParameterError(
            f"{self!r} needs all documents at once. RankSVM, RidgeRanker, LogisticRanker, SVRRanker, ListNet, "
            "LambdaRank, LambdaMART, GBDTRanker, RandomForestRanker and the rankers that learn query by query learn "
            "from blocks: take one of them, or call fit."
        )

    def check_parameters(self) -> None:
        """Raise ParameterError if a parameter is not valid, as fit would."""
        self._check_parameters()

    def _check_parameters(self) -> None:
        """Raise ParameterError if a parameter is not valid: those that are declared are checked here."""
        if is_dataclass(self):
            check_declared(self)

    def _steps(self, queries: Queries) -> Iterator[Step]:
        raise NotImplementedError

    def as_model(
        self,
        *,
        solver: str | None = None,
        parameters: Mapping[str, Value] | None = None,
        feature_names: Sequence[str] | None = None,
        metric: str | None = None,
        fingerprint: str | None = None,
        encoding: TableEncoding | None = None,
    ) -> Model:
        """Return the fitted ranker as a model to predict with and to save; its scores are the same bits.

        Monotone constraints of the fit are verified, and recorded in the model.

        Parameters
        ----------
        solver, parameters : str and mapping, optional
            Name and parameters of the solver, by default those of this one.
        feature_names : sequence of str, optional
            By default the names that fit saw in a data frame.
        metric, fingerprint : str, optional
            The metric that the model was chosen by, and the fingerprint of the training data.
        encoding : Encoding, optional
            How the columns of the training table became features: that of its Queries.

        Returns
        -------
        Model

        Raises
        ------
        DataError
            If the ranker violates a monotone constraint.
        """
        if parameters is None:
            items = self.get_params().items()
            parameters = {name: value for name, value in items if isinstance(value, float | int | str | bool | None)}
        names_given = getattr(self, "feature_names_in_", None) if feature_names is None else feature_names
        names = None if names_given is None else tuple(str(name) for name in names_given)
        return self._model(
            solver=solver or type(self).__name__,
            parameters=dict(parameters),
            feature_names=names,
            metric=metric,
            fingerprint=fingerprint,
            encoding=encoding,
            monotone={} if self.monotone_ is None else named_signs(self.monotone_, names),
        )

    def _model(self, **origin: Unpack[Origin]) -> Model:
        """Return the fitted ranker as a model of that origin."""
        raise NotImplementedError

    def predict(self, X: Any, *, qid: Ids | None = None, group: Sizes | None = None) -> Floats:
        """Score documents.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_features), or Queries
            The features. They may be NaN (missing) if the training data had missing values.
        qid, group : array-like, optional
            Which rows are a query, as in fit. They have no effect unless the model compares the documents of a query,
            as with scaling="list"; with neither, all rows are one query.

        Returns
        -------
        ndarray of shape (n_documents,)
            The scores in the order of the rows; higher is better.
        """
        self._check_fitted("n_features_in_")
        model = self._model(**UNNAMED)
        documents = X if isinstance(X, Queries) else self._validated(X, reset=False, allow_missing=True)
        return model.predict(documents, qid=qid, group=group)

    @classmethod
    def model_parts(cls, parameters: Mapping[str, Value]) -> frozenset[str]:
        """Return the kinds of parts that the model of a configuration has; formats of export depend on them.

        Parameters
        ----------
        parameters : mapping of str to value
            The parameters that differ from the defaults.

        Returns
        -------
        frozenset of str
            As `ranktune.solvers.models.blend.parts_of` of the fitted model.
        """
        return frozenset({CUSTOM})


def _with_pairs(queries: Queries) -> Queries:
    if not queries.has_pairs:
        raise DataError(
            f"there is nothing to learn from n_samples = {queries.n_documents}: "
            "no query has two documents of different grades. "
            "Check the grades and the grouping (qid= or group=)."
        )
    return queries
