"""Rankers made of trees: growing in rounds, early stopping, and bags of several seeds.

A library grows trees round by round (growth); our own metrics on held-out queries decide how many rounds are
kept. The fitted trees are plain arrays, Trees: nothing of the library is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from ranktune.solvers.base.path_parameter import PathParameter
from ranktune.solvers.base.ranker import UNNAMED, BaseRanker, Step
from ranktune.solvers.boosting.early_stopping import Patience, held_out_numbers, queries_with_pairs
from ranktune.solvers.boosting.growth import Growth, TrainingData, grown, in_parts, watched
from ranktune.solvers.boosting.training_queries import InMemory, TrainingQueries, scores_of
from ranktune.solvers.core.arrays import Floats, stored_values
from ranktune.solvers.core.checks import (
    RandomState,
    check_choice,
    check_count,
    check_not_negative,
    check_part,
    check_positive,
    check_random_state,
)
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.core.space import Value
from ranktune.solvers.data.grades import with_pairs
from ranktune.solvers.data.monotone import named_signs
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import without_level
from ranktune.solvers.linear.pointwise import RidgeRanker
from ranktune.solvers.metrics.gains import gains, relative_gains
from ranktune.solvers.metrics.metrics import chosen_metric, parse_metric
from ranktune.solvers.models.base import LINEAR, TREES, Model, Origin
from ranktune.solvers.models.blend import blended
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import Trees, joined

TREE_GAINS = ("auto", "exponential", "linear")
MAX_THREADS = 4_096
START_DOCUMENTS, START_DOCUMENTS_A_FEATURE = 50_000, 100
"""Documents that suffice for the linear model that boosting can start from: the larger number of the two."""
START_SPREAD = 3.0
"""What a difference in grade of one standard deviation is worth in the scores that pairs are compared by."""


STARTS = ("none", "linear")
"""What boosting can start from."""


class TreeRanker(BaseRanker):
    """A ranker whose score is the sum of the values of trees, trees_, and of the scores of a model, start_, if any.

    A subclass brings the training data into the form of its library (_source), which grows trees of them. Where
    needs_pairs is true, it gets the queries alone that have documents of different grades.
    """

    takes_monotone: ClassVar[bool] = True
    needs_pairs: ClassVar[bool] = False
    trees: int
    seeds: int
    random_state: RandomState
    trees_: Trees
    rounds_: tuple[int, ...]
    start_: Model | None = None

    @classmethod
    def model_parts(cls, parameters: Mapping[str, Value]) -> frozenset[str]:
        """Return the kinds of parts that the model of a configuration has: trees, and weights if it starts from them.

        Parameters
        ----------
        parameters : mapping of str to value
            The parameters that differ from the defaults.

        Returns
        -------
        frozenset of str
        """
        return frozenset({TREES, LINEAR} if parameters.get("start") == "linear" else {TREES})

    def _check_parameters(self) -> None:
        for name in ("trees", "seeds"):
            check_count(name, getattr(self, name))
        check_random_state(self.random_state, "the seed 0")

    def _source(self, training: TrainingQueries) -> TrainingData:
        """Return queries in the form of the library, with their first scores."""
        raise NotImplementedError

    def _first_scores(self, training: TrainingQueries) -> Floats | None:
        """Return the scores of start_, (n_documents,), None without it."""
        return None if self.start_ is None else training.scores(self.start_)

    def _steps_watched(self, queries: Queries, vali: Queries | None) -> Iterator[Step]:
        yield from self._steps_on(self._training(queries), vali)

    def _steps_on(self, training: TrainingQueries, vali: Queries | None) -> Iterator[Step]:
        """Grow a member of the bag for each seed; their mean is the model."""
        self._find_start(training)
        source = self._source(training)
        members: list[Trees] = []
        count = 0
        for seed in self._seeds():
            for trees, value in self._member(source, training, vali, seed):
                count += 1
                if not members:
                    self._bag([trees])
                yield Step(count, -value)
            members.append(trees)
            self._bag(members)
        if len(members) > 1:
            yield Step(count, float("nan"))

    def _training(self, queries: Queries) -> TrainingQueries:
        """Return the queries that the objective can use."""
        return InMemory(queries_with_pairs(queries) if self.needs_pairs else queries)

    def _find_start(self, training: TrainingQueries) -> None:
        """Set the model that the trees are added to."""

    def _seeds(self) -> Iterator[int]:
        generator = np.random.default_rng(0 if self.random_state is None else self.random_state)
        return (int(generator.integers(2**31 - 1)) for _ in range(int(self.seeds)))

    def _bag(self, members: Sequence[Trees]) -> None:
        """Set the model to the mean of members."""
        share = 1.0 / len(members)
        self.trees_ = members[0] if len(members) == 1 else joined([member.scaled(share) for member in members])
        self.rounds_ = tuple(member.n_trees for member in members)

    def _member(
        self, source: TrainingData, training: TrainingQueries, vali: Queries | None, seed: int
    ) -> Iterator[tuple[Trees, float]]:
        """Yield the trees of one seed, the final ones last, each with their metric on held-out queries, or NaN."""
        for trees in grown(source.growth(seed), int(self.trees)):
            yield trees, float("nan")

    def predict(self, X: Any, *, qid: Any = None, group: Any = None) -> Floats:
        """Return the scores of the rows of X, (n_documents,), in their order.

        qid and group have no effect, unless learning continued from a model that scores a query as a whole.
        """
        self._check_fitted("trees_")
        has_missing = isinstance(X, Queries) and X.has_missing
        learned_missing = self.imputation_ is not None or self.trees_.missing_left is not None
        if self.start_ is not None or learned_missing or has_missing:
            return self._predict_by_model(X, qid, group)
        if isinstance(X, Queries):
            return X.in_caller_order(self.trees_.scores(X.features))
        return self.trees_.scores(self._validated(X, reset=False))

    def _model(self, **origin: Unpack[Origin]) -> Model:
        self._check_fitted("trees_")
        grown, fill = self.trees_, None if self.imputation_ is None else self.imputation_.fill
        if fill is not None:  # a missing value goes where what took its place went
            grown = replace(grown, missing_left=fill[grown.feature] <= grown.threshold)
        trees = TreeModel(grown, self.n_features_in_, **origin)
        if self.start_ is None:
            return trees
        start = _with_origin(self.start_, origin)
        return blended([trees, start], [1.0, 1.0], origin["solver"], origin["parameters"])


class BoostedRanker(TreeRanker):
    """A ranker whose trees correct the errors of those before them, so that too many can overfit.

    It has the parameters validation, patience, metric and start as well.
    """

    validated: ClassVar[bool] = True
    # Held-out queries determine the number of rounds, of which trees is only the bound.
    path_parameter: ClassVar[Any] = PathParameter("trees", lambda ranker: "trees" if ranker.validation == 0 else None)
    validation: float
    patience: int
    metric: str
    start: str
    _earlier: Model | None = None

    def continue_from(self, model: Model | None) -> Self:
        """Let the next calls of fit add trees to a model instead of beginning from nothing.

        The fitted ranker is the model and the new trees together; trees, ``rounds_`` and early stopping count the new
        ones. A ranker with other parameters, or of another solver, can continue a model, a linear one too.

        Parameters
        ----------
        model : Model or None
            What as_model of a fitted ranker returns; None: begin from what the parameter start says.

        Returns
        -------
        self
        """
        self._earlier = model
        return self

    def _find_start(self, training: TrainingQueries) -> None:
        """Take the model to continue, or fit a linear one to the grades."""
        if self._earlier is not None:
            if self._earlier.n_features != self.n_features_in_:
                raise DataError(
                    f"the model to continue has {self._earlier.n_features} features, the training data "
                    f"{self.n_features_in_}: both must have the same features."
                )
            if self.monotone_ is not None:
                _with_origin(self._earlier, {**UNNAMED, "monotone": named_signs(self.monotone_, None)})
            self.start_ = self._earlier
        elif self.start == "linear":
            self.start_ = self._linear_model(training)
        else:
            self.start_ = None

    def _linear_model(self, training: TrainingQueries) -> Model:
        """Return the linear model that boosting starts from, a ridge regression on the grades."""
        queries = training.queries
        useful = np.flatnonzero(with_pairs(queries))
        enough = max(START_DOCUMENTS, START_DOCUMENTS_A_FEATURE * self.n_features_in_)
        if (share := enough / queries.n_documents) < 1.0:
            useful = useful[np.unique(np.linspace(0, len(useful) - 1, int(np.ceil(share * len(useful)))).astype(int))]
        ridge = RidgeRanker().fit(training.select(useful))
        return blended([ridge.as_model()], [self._start_scale(queries)], "RidgeRanker", {})

    def _start_scale(self, queries: Queries) -> float:
        """Return the scores of boosting that a difference of one grade is worth."""
        return 1.0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("start", self.start, STARTS)
        check_count("patience", self.patience)
        check_part("validation", self.validation)
        if self.metric != "auto":
            parse_metric(self.metric)

    def _member(
        self, source: TrainingData, training: TrainingQueries, vali: Queries | None, seed: int
    ) -> Iterator[tuple[Trees, float]]:
        queries = training.queries
        if vali is not None:
            yield from self._watched(source.growth(seed), queries, vali)
        elif self.validation > 0.0 and np.count_nonzero(with_pairs(queries)) > 1:
            kept, aside = held_out_numbers(queries, float(self.validation), np.random.default_rng(seed))
            for trees, value in self._watched(source.part(kept).growth(seed), queries, training.select(aside)):
                yield trees, value
            whole = min(round(trees.n_trees / (1.0 - float(self.validation))), int(self.trees))
            for refitted in grown(source.growth(seed), whole):
                yield (refitted if refitted.n_trees == whole else trees), value
            yield refitted, value
        else:
            yield from super()._member(source, training, vali, seed)

    def _steps_on_path(self, queries: Queries, values: Sequence[float | int]) -> Iterator[float | int]:
        """Grow all members of the bag but the last completely, and the last one from value to value."""
        training = self._training(queries)
        self._find_start(training)
        source = self._source(training)
        ends = [int(value) for value in values]
        *earlier, last = [in_parts(source.growth(seed), ends) for seed in self._seeds()]
        complete = [list(member) for member in earlier]
        parts: list[Trees] = []
        for number, value in enumerate(values, start=1):
            parts.extend(islice(last, 1))  # none where no split is left
            self._bag([joined(member[:number]) for member in (*complete, parts)])
            yield value

    def _watched(self, growth: Growth, queries: Queries, vali: Queries) -> Iterator[tuple[Trees, float]]:
        metric = chosen_metric(self.metric, queries, vali)
        start = np.zeros(vali.n_documents) if self.start_ is None else scores_of(self.start_, vali)
        return watched(growth, int(self.trees), vali, metric, Patience(int(self.patience)), start)


def _with_origin(model: Model, origin: Origin) -> Model:
    """Return model with the names and monotone constraints of origin. Raises DataError if it does not keep them."""
    return model.replaced(feature_names=origin["feature_names"], monotone=origin.get("monotone", {}))


def pair_scale(queries: Queries) -> float:
    """Return what a difference of one grade is worth in scores whose differences are log-odds of an order."""
    return START_SPREAD / float(np.sqrt(np.mean(without_level(queries.grades, queries) ** 2)))


def gains_of(grades: Floats, gain: str) -> Floats:
    """Return the gain of each grade, at least 0, (n_documents,); "auto" is exponential for whole grades from 0 to 30.

    For other grades (negative, fractional, above 30), auto is linear in the difference to the lowest grade. Raises
    DataError for grades that the given gain does not allow.
    """
    if gain == "auto":
        return relative_gains(grades)
    try:
        return gains(grades, "exp2" if gain == "exponential" else "linear")
    except DataError as error:
        said = str(error).replace("gain=exp2", "gain='exponential'").replace("gain=linear", "gain='linear'")
        raise DataError(said) from None


def check_share(name: str, value: float) -> None:
    """Raise ParameterError unless value is a share: above 0, at most 1."""
    check_positive(name, value)
    if value > 1.0:
        raise ParameterError(f"{name}={value!r}: it must be a share of at most 1.")


def check_range(name: str, value: object, low: int, high: int) -> None:
    """Raise ParameterError unless value is a whole number from low to high."""
    if isinstance(value, bool) or not (isinstance(value, int | np.integer) and low <= value <= high):
        raise ParameterError(f"{name}={value!r}: it must be a whole number from {low} to {high}.")


def check_penalty(name: str, value: float) -> None:
    """Raise ParameterError unless value is at least 0 and far below the largest single-precision number."""
    check_not_negative(name, value)
    if value > 1e30:
        raise ParameterError(f"{name}={value!r}: it must be at most 1e30.")


def check_single(values: Floats, what: str) -> None:
    """Raise DataError where values, which the libraries keep in single precision, would become 0 or infinite."""
    size = np.abs(values[values != 0.0])
    limits = np.finfo(np.float32)
    beyond = (size > float(limits.max)) | (size < float(limits.tiny))
    if beyond.any():
        raise DataError(
            f"{what} of {size[beyond][0]:.3g} is beyond single precision, in which trees are grown: "
            f"from {limits.tiny:.2g} to {limits.max:.2g}. Multiply all of them by one factor."
        )


def check_single_features(queries: Queries, solver: str) -> None:
    """Raise DataError where a feature is beyond single precision, to which a library rounds features."""
    values = stored_values(queries.features)
    high, low = (np.fmax, np.fmin) if queries.has_missing else (np.maximum, np.minimum)  # the first two pass over NaN
    largest = max(float(high.reduce(values, None, initial=0.0)), -float(low.reduce(values, None, initial=0.0)))
    if largest > float(np.finfo(np.float32).max):
        raise DataError(
            f"a feature is {largest:.3g}: {solver} rounds features to single precision, at most 3.4e38. "
            "Scale the features."
        )
