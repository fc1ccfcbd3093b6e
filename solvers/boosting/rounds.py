"""Boosting by one weak ranker a round with early stopping: the common base of AdaRank and RankBoost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Generic, Protocol, TypeVar

import numpy as np

from ranktune.solvers.base.ranker import BaseRanker, Step
from ranktune.solvers.boosting.early_stopping import Patience, held_out
from ranktune.solvers.core.checks import (
    RandomState,
    check_choice,
    check_count,
    check_not_negative,
    check_part,
    check_random_state,
)
from ranktune.solvers.data.grades import with_pairs
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.feature_tables import check_metric
from ranktune.solvers.metrics.metrics import Metric, chosen_metric

STOPS = ("train", "vali", "never")

MAX_ACCURACY = 1.0 - 1e-6
"""A weak ranker counts as at most this accurate: a perfect one would get an infinite weight."""


class Booster(Protocol):
    """The state of boosting."""

    value: float
    """The metric that decides when to stop, of all rounds so far; NaN where nothing depends on it."""

    def round(self) -> bool:
        """Add the best weak ranker; return False, and add nothing, where none helps."""

    def objective(self) -> float:
        """Return what boosting minimizes."""


B = TypeVar("B", bound=Booster)


class RoundRanker(BaseRanker, Generic[B]):
    """A ranker that is boosted in rounds; a subclass makes the booster and keeps what it has found."""

    path_parameter: ClassVar[str | None] = "rounds"
    weighted: ClassVar[bool] = True
    validated: ClassVar[bool] = True
    metric: str
    rounds: int
    stop: str
    patience: int
    tolerance: float
    validation: float
    random_state: RandomState

    def _check_parameters(self) -> None:
        check_metric(self.metric)
        for name in ("rounds", "patience"):
            check_count(name, getattr(self, name))
        check_choice("stop", self.stop, STOPS)
        check_not_negative("tolerance", self.tolerance)
        check_part("validation", self.validation)
        check_random_state(self.random_state, "another draw in each fit")

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
