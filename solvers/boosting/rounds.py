"""Boosting that adds a weak ranker in each round, with early stopping: the base of AdaRank and RankBoost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY
from typing import Annotated, ClassVar, Generic, Protocol, TypeVar

import numpy as np

from ranktune.solvers.base.ranker import BaseRanker, Step
from ranktune.solvers.boosting.growth import Patience, held_out
from ranktune.solvers.core.checks import RandomState, check_not_negative, check_part, check_random_state
from ranktune.solvers.core.parameters import Param, with_parameters
from ranktune.solvers.core.space import When
from ranktune.solvers.data.grades import with_pairs
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.feature_tables import check_metric
from ranktune.solvers.metrics.metrics import Metric, chosen_metric

MAX_ACCURACY = 1.0 - 1e-6
"""The highest accuracy that a weak ranker counts with: an accuracy of 1 would give an infinite weight."""


class Booster(Protocol):
    """The state of boosting."""

    value: float
    """The metric that decides when to stop, of all rounds so far; NaN where nothing depends on it."""

    def round(self) -> bool:
        """Add the best weak ranker; return False, and add nothing, where none helps."""

    def objective(self) -> float:
        """Return what boosting minimizes."""


B = TypeVar("B", bound=Booster)


METRIC = Param(
    'The metric, such as "ndcg@5" or "map". "auto" is ndcg@10, or pairwise accuracy if a grade is negative.',
    check=lambda _, value: check_metric(value),
)
ROUNDS = Param("The most weak rankers that are added.", low=5, high=500, log=True)
STOP = Param(
    "The queries whose metric stops boosting: the training queries, validation queries (those given to fit, else a "
    'held-out share), or none. The best round is kept; "never" keeps all rounds.',
    choices=("train", "vali", "never"),
    searched=("train", "vali"),
)
PATIENCE = Param("Rounds without improvement before boosting stops.", low=1, high=50, log=True)


@with_parameters
class RoundRanker(BaseRanker, Generic[B]):
    """A ranker that is boosted in rounds; a subclass makes the booster, and sets the fitted attributes from it."""

    _: KW_ONLY
    metric: Annotated[str, METRIC] = "auto"
    rounds: Annotated[int, ROUNDS] = 100
    stop: Annotated[str, STOP] = "train"
    patience: Annotated[int, PATIENCE] = 20
    tolerance: Annotated[float, Param("The least improvement that counts.", check=check_not_negative)] = 0.0
    validation: Annotated[
        float,
        Param(
            'The share of the queries that is held out with stop="vali".',
            low=0.1,
            high=0.4,
            when=When("stop", ("vali",)),
            check=check_part,
        ),
    ] = 0.25
    random_state: Annotated[
        RandomState,
        Param(
            "Seed of the held-out queries.",
            check=lambda _, value: check_random_state(value, "another draw in each fit"),
        ),
    ] = None

    path_parameter: ClassVar[str | None] = "rounds"
    weighted: ClassVar[bool] = True
    takes_document_weights: ClassVar[bool] = True
    validated: ClassVar[bool] = True

    def _booster(self, queries: Queries, vali: Queries | None, metric: Metric) -> B:
        """Return the booster before the first round, whose value is that on vali, or on queries without vali."""
        raise NotImplementedError

    def _keep(self, booster: B) -> None:
        """Set the fitted attributes to the rounds so far."""
        raise NotImplementedError

    def _steps_watched(self, queries: Queries, vali: Queries | None) -> Iterator[Step]:
        metric = chosen_metric(self.metric, *(part for part in (queries, vali) if part is not None))
        if self.stop == "vali" and vali is None and np.count_nonzero(with_pairs(queries)) > 1:
            queries, vali = held_out(queries, float(self.validation), np.random.default_rng(self.random_state))
        booster = self._booster(queries, vali if self.stop == "vali" else None, metric)
        patience = Patience(int(self.patience), float(self.tolerance))
        self._keep(booster)
        self.score_, self.n_iter_ = -np.inf, 0
        for number in range(1, int(self.rounds) + 1):
            if not booster.round():
                break
            if patience.update(number, booster.value) or self.stop == "never":
                self.score_, self.n_iter_ = booster.value, number
                self._keep(booster)
            yield Step(number, booster.objective())
            if self.stop != "never" and patience.over:
                break
