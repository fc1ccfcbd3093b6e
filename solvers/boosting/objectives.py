"""Objectives that a library of trees does not have: the derivatives of a loss by the scores of documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Annotated, Any, Protocol, Self, TypeAlias

import numpy as np

from ranktune.solvers.boosting.training_queries import check_share, gains_of
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.parameters import Param
from ranktune.solvers.core.space import When
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import without_level
from ranktune.solvers.losses.smoothed import kernels
from ranktune.solvers.losses.smoothed.weights import GAINED, KINDS, PairWeights, changes, neighbours
from ranktune.solvers.metrics.metrics import Metric, chosen_metric, parse_metric

YETIRANK, SMOOTHED = NOISY = ("yetirank", "smoothed")
"""The losses whose pairs have weights that are means over noisy rankings."""

Samples: TypeAlias = Annotated[int, Param("The noisy rankings of each round, with smoothed and yetirank.")]
Decay: TypeAlias = Annotated[
    float,
    Param(
        "With yetirank what a rank counts, as a factor of what the one above it counts.",
        low=0.6,
        high=0.98,
        when=When("loss", (YETIRANK,)),
        check=check_share,
    ),
]
"""Parameters of rankers with such losses."""


class BoostingObjective(Protocol):
    """A loss of the scores of some documents, which may change from round to round."""

    def derivatives(self, scores: Floats, number: int) -> tuple[Floats, Floats]:
        """Return the gradient and the curvature by each score, (n_documents,), in the round of that number, from 0."""


MakeObjective: TypeAlias = Callable[[Queries, Floats, int], BoostingObjective]
"""Makes the objective of queries, whose lengths and weights are used, the target of each document, (n_documents,), and
the seed of all that is random in it."""


@dataclass(frozen=True, eq=False)
class QueryError:
    """Half the squared errors of scores that are shifted by the best constant for each query.

    queries hold the lengths and weights; targets are (n_documents,). Source: QueryRMSE in CatBoost's documentation.
    """

    queries: Queries
    targets: Floats

    def value(self, scores: Floats) -> float:
        """Return the error of scores, (n_documents,)."""
        residuals = without_level(scores - self.targets, self.queries)
        return float(0.5 * self.queries.weight_of_document @ residuals**2)

    def derivatives(self, scores: Floats, number: int = 0) -> tuple[Floats, Floats]:
        """Return the gradient and the curvature by each score, (n_documents,), the same in each round.

        The curvature is the weight, as for a plain squared error: an upper bound.
        """
        weights = self.queries.weight_of_document
        return weights * without_level(scores - self.targets, self.queries), weights


def query_error(queries: Queries, targets: Floats, seed: int) -> QueryError:
    """Return the squared error, which draws nothing."""
    return QueryError(queries, targets)


@dataclass(frozen=True, eq=False)
class SmoothedPairs:
    """The logistic loss of pairs whose weights are means over noisy rankings by the scores; threads compute it."""

    queries: Queries
    weights: PairWeights
    samples: int
    seed: int
    threads: int = 1

    @cached_property
    def _lists(self) -> kernels.NoisyLists:
        return self.weights.lists(self.queries)

    def derivatives(self, scores: Floats, number: int) -> tuple[Floats, Floats]:
        """Return the gradient and the curvature by each score, (n_documents,), the weights of pairs held constant.

        The weight of a document multiplies both. The result does not depend on the number of threads.
        """
        queries, rule, lists = self.queries, self.weights.rule(self.samples, self.seed), self._lists
        gradient, curvature = np.empty(queries.n_documents), np.empty(queries.n_documents)
        ends = np.searchsorted(queries.starts, np.linspace(0, queries.n_documents, self.threads + 1)).tolist()

        def fill(first: int, last: int) -> None:
            kernels.derivatives(rule, lists, number, first, last, scores, gradient, curvature)

        if self.threads == 1:
            fill(*ends)
        else:
            with ThreadPoolExecutor(self.threads) as pool:
                list(pool.map(fill, ends[:-1], ends[1:]))
        if queries.is_weighted:
            return gradient * queries.weight_of_document, curvature * queries.weight_of_document
        return gradient, curvature


@dataclass(frozen=True)
class NoisyRankings:
    """A loss of NOISY, with its parameters."""

    loss: str
    metric: str
    samples: int
    decay: float
    threads: int
    gain: str = "auto"
    truncation: int = 30

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Self | None:
        """Return the loss of a ranker of these parameters; None where it has another one."""
        if parameters["loss"] not in NOISY:
            return None
        return cls(**{field.name: parameters[field.name] for field in fields(cls) if field.name in parameters})

    def targets(self, queries: Queries) -> Floats:
        """Return the target of each document, (n_documents,)."""
        if self.loss == YETIRANK:
            scaled: Floats = queries.grades / np.ptp(queries.grades)
            return scaled
        metric = self._smoothed(queries)
        if metric.name not in GAINED:
            return queries.grades
        of_metric = {"exp2": "exponential", "linear": "linear"}.get(str(metric.gain), "auto")
        return gains_of(queries.grades, of_metric if self.gain == "auto" else self.gain)

    def objective(self, queries: Queries, targets: Floats, seed: int) -> BoostingObjective:
        """Return the loss of the scores of queries."""
        if self.loss == YETIRANK:
            weights = neighbours(queries, targets, int(self.truncation), float(self.decay))
        else:
            weights = changes(queries, self._smoothed(queries), targets, int(self.truncation))
        return SmoothedPairs(queries, weights, int(self.samples), seed, int(self.threads))

    def _smoothed(self, queries: Queries) -> Metric:
        """Return the metric whose change weights pairs: ndcg@10 in place of one that is no sum over ranks."""
        metric = chosen_metric(self.metric, queries)
        return metric if metric.name in KINDS else parse_metric("ndcg@10")
