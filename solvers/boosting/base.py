"""Rankers made of trees: growing in rounds, early stopping, and bags of several seeds.

A library grows trees round by round (growth); the metric on held-out queries decides how many rounds are kept. The
fitted trees are plain arrays, Trees, which do not depend on the library.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, replace
from itertools import islice
from typing import Annotated, Any, ClassVar, Self, Unpack

import numpy as np

from ranktune.solvers.abilities import LINEAR, TREES, WITHIN
from ranktune.solvers.base.ranker import UNNAMED, BaseRanker, Step
from ranktune.solvers.base.vocabulary import PathParameter
from ranktune.solvers.boosting.growth import (
    Growth,
    Patience,
    TrainingData,
    grown,
    held_out_numbers,
    in_parts,
    queries_with_pairs,
    watched,
)
from ranktune.solvers.boosting.training_queries import (
    CHOICES,
    NONE,
    RANKS,
    InMemory,
    TrainingQueries,
    check_share,
    possible,
    scores_of,
    whole,
    widened,
)
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.checks import RandomState, check_part, check_random_state
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.core.parameters import Param, with_parameters
from ranktune.solvers.core.space import Value
from ranktune.solvers.data.grades import with_pairs
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.query_columns import named_signs
from ranktune.solvers.data.scaling import without_level
from ranktune.solvers.linear.pointwise import RidgeRanker
from ranktune.solvers.metrics.metrics import chosen_metric, parse_metric
from ranktune.solvers.models.base import Model, Origin
from ranktune.solvers.models.blend import blended
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import Trees, joined
from ranktune.solvers.models.within import KINDS, WithinModel

START_DOCUMENTS, START_DOCUMENTS_A_FEATURE = 50_000, 100
"""Documents that suffice for the linear model that boosting can start from: the larger number of the two."""
START_SPREAD = 3.0
"""The difference of scores that stands for a difference in grade of one standard deviation, for losses of pairs."""


class TreeRanker(BaseRanker):
    """A ranker whose score is the sum of the values of trees, trees_, and of the scores of a model, start_, if any."""

    takes_monotone: ClassVar[bool] = True
    trees_: Trees
    rounds_: tuple[int, ...]
    within_: str = NONE
    start_: Model | None = None

    @classmethod
    def model_parts(cls, parameters: Mapping[str, Value]) -> frozenset[str]:
        """Return the kinds of parts of the model of a configuration: trees, and weights if it starts from them."""
        trees = TREES if parameters.get("within_query", NONE) == NONE else WITHIN
        return frozenset({trees, LINEAR} if parameters.get("start") == "linear" else {trees})

    def _model(self, **origin: Unpack[Origin]) -> Model:
        self._check_fitted("trees_")
        grown, fill = self.trees_, None if self.imputation_ is None else self.imputation_.fill
        if fill is not None:  # a missing value goes to the side of the value that was imputed
            grown = replace(grown, missing_left=fill[grown.feature] <= grown.threshold)
        trees: Model
        if self.within_ == NONE:
            trees = TreeModel(grown, self.n_features_in_, **origin)
        else:
            trees = WithinModel(TreeModel(grown, len(KINDS) * self.n_features_in_, ""), **origin)
        if self.start_ is None:
            return trees
        start = _with_origin(self.start_, origin)
        return blended([trees, start], [1.0, 1.0], origin["solver"], origin["parameters"])


@with_parameters
class GrownRanker(TreeRanker):
    """A ranker whose trees a library grows, which gets the training data in the form of _source.

    Where needs_pairs is true, queries without documents of different grades are left out.

    Attributes
    ----------
    trees_ : Trees
        The trees.
    rounds_ : tuple of int
        The rounds of each seed.
    """

    trees: Annotated[
        int,
        Param(
            "The most rounds. Give several hundred, or 2,000 for much data, where validation queries end them earlier.",
            low=10,
            high=1000,
            log=True,
        ),
    ] = 100
    _: KW_ONLY
    seeds: Annotated[int, Param("The models with different seeds whose scores are averaged.")] = 1
    bins: Annotated[int, Param("The most bins per feature.", check=whole(2, 255))] = 255
    threads: Annotated[
        int, Param("With more than one thread, two fits may differ in their last bits.", check=whole(1, 4_096))
    ] = 1
    random_state: Annotated[
        RandomState,
        Param("Seed of all that is random; None is 0.", check=lambda _, value: check_random_state(value, "the seed 0")),
    ] = None

    needs_pairs: ClassVar[bool] = False
    space_order: ClassVar[tuple[str, ...]] = ()

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
        source, self.within_ = self._source(training), training.within
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

    @property
    def _within(self) -> str:
        """The further columns that the trees are of: see `ranktune.solvers.boosting.training_queries`."""
        return NONE

    def _training(self, queries: Queries) -> TrainingQueries:
        """Return the queries that the objective can use."""
        return InMemory(queries_with_pairs(queries) if self.needs_pairs else queries, possible(queries, self._within))

    def _find_start(self, training: TrainingQueries) -> None:
        """Set start_, the model that the trees are added to."""

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
        """Yield the trees of one seed, the final trees last, each with their metric on held-out queries, or NaN."""
        for trees in grown(source.growth(seed), int(self.trees)):
            yield trees, float("nan")


def _check_metric(_: str, value: str) -> None:
    if value != "auto":
        parse_metric(value)


@with_parameters
class BoostedRanker(GrownRanker):
    """A ranker whose trees correct the errors of those before them, so that too many can overfit.

    Attributes
    ----------
    start_ : Model or None
        What the trees are added to.
    """

    _: KW_ONLY
    learning_rate: Annotated[
        float, Param("The factor of each tree.", low=0.02, high=0.3, log=True, check=check_share)
    ] = 0.1
    start: Annotated[
        str,
        Param(
            "What the trees are added to: nothing, or a ridge regression on the grades, which is fitted first. Then "
            "the model is a sum of both, which Solr, Elasticsearch, OpenSearch and RankLib cannot hold.",
            choices=("none", "linear"),
        ),
    ] = "none"
    within_query: Annotated[
        str,
        Param(
            'What the trees compare besides the features: "ranks": the rank of a document by each feature within its '
            'query, from 0 to 1. "all": also its z-score there, its distance to the highest value and its share of it. '
            "Then the model needs all documents of a query at once, which search engines do not give it.",
            choices=CHOICES,
            searched=(NONE, RANKS),
        ),
    ] = NONE
    validation: Annotated[
        float,
        Param(
            "The share of the queries that is held out to find the number of rounds. The model is then trained on all "
            "queries, with proportionally more rounds. 0, or fewer than two queries with different grades: all rounds. "
            "Validation queries given to fit replace the held-out ones.",
            check=check_part,
        ),
    ] = 0.0
    patience: Annotated[int, Param("Rounds without improvement on held-out queries before boosting stops.")] = 50
    metric: Annotated[
        str,
        Param(
            'The metric on held-out queries. "auto" is ndcg@10, or pairwise accuracy if a grade is negative.',
            check=_check_metric,
        ),
    ] = "auto"

    space_order: ClassVar[tuple[str, ...]] = ("trees", "learning_rate")
    validated: ClassVar[bool] = True
    grows: ClassVar[bool] = True
    # Held-out queries determine the number of rounds, of which trees is only the bound.
    path_parameter: ClassVar[Any] = PathParameter("trees", lambda ranker: "trees" if ranker.validation == 0 else None)

    def continue_from(self, model: Model | None) -> Self:
        """Let the next calls of fit add trees to a model instead of starting from zero.

        The fitted ranker is the model and the new trees together; trees, ``rounds_`` and early stopping count the new
        trees. A ranker with other parameters, or of another solver, can continue a model, also a linear model.

        Parameters
        ----------
        model : Model or None
            What as_model of a fitted ranker returns; None: start as the parameter start declares.

        Returns
        -------
        self
        """
        self._earlier = model
        return self

    @property
    def _within(self) -> str:
        return self.within_query

    def _find_start(self, training: TrainingQueries) -> None:
        """Take the model to continue, or fit a linear model to the grades."""
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
        """Return the difference of scores that stands for a difference of 1 in grade."""
        return 1.0

    def _member(
        self, source: TrainingData, training: TrainingQueries, vali: Queries | None, seed: int
    ) -> Iterator[tuple[Trees, float]]:
        queries = training.queries
        if vali is not None:
            yield from self._watched(source.growth(seed), queries, vali)
        elif self.validation > 0.0 and np.count_nonzero(with_pairs(queries)) > 1:
            train, aside = held_out_numbers(queries, float(self.validation), np.random.default_rng(seed))
            for trees, value in self._watched(source.part(train).growth(seed), queries, training.select(aside)):
                yield trees, value
            whole = min(round(trees.n_trees / (1.0 - float(self.validation))), int(self.trees))
            for refitted in grown(source.growth(seed), whole):
                yield (refitted if refitted.n_trees == whole else trees), value
            yield refitted, value
        else:
            yield from super()._member(source, training, vali, seed)

    def _steps_on_path(self, queries: Queries, values: Sequence[float | int]) -> Iterator[float | int]:
        """Grow all members of the bag but the last completely, and the last from value to value."""
        training = self._training(queries)
        self._find_start(training)
        source, self.within_ = self._source(training), training.within
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
        columns = widened(vali, self.within_)
        return watched(growth, int(self.trees), columns, metric, Patience(int(self.patience)), start)


def _with_origin(model: Model, origin: Origin) -> Model:
    """Return model with the names and monotone constraints of origin. Raises DataError if it does not keep them."""
    return model.replaced(feature_names=origin["feature_names"], monotone=origin.get("monotone", {}))


def pair_scale(queries: Queries) -> float:
    """Return the difference of scores for a difference of 1 in grade, where differences of scores are log-odds."""
    return START_SPREAD / float(np.sqrt(np.mean(without_level(queries.grades, queries) ** 2)))
