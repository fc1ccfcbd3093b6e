"""Simulated days on each of which ElasticRank is tuned and trained anew: the protocol "daily".

The paper says that a new model is trained at regular intervals, such as daily, on the logs of the past few days, and
that 30 evaluations are typical. Its logs were never published. Here a day has lists of products of which some are
bought. The weights that decide turn slowly, and there are more lists on some days than on others.

An evaluation is one pass over the lists of the past days, each scored before it is learned from; its value is the mean
of the metric over those of the last day. The model of the best evaluation is judged on the next day.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ranktune.solvers.base.passes import PassRanker
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.registry import make
from ranktune.studies.papers.lattice import search
from ranktune.studies.papers.protocols import PartResult
from ranktune.studies.papers.published import Point, PublishedSystem

NAME = "simulated days"
SEEDS = 1000
"""Seeds between those of two days."""
DAYS, PAST = 15, 3
"""Days, the first of which judges nothing, and how many of the past ones a pass goes over."""
FEATURES, EVERY, LENGTH = 200, 10, 20
"""Features, every tenth of which matters, and products of a list."""
LISTS = (100, 100, 100, 100, 100, 200, 200)
"""Lists of each day of a week."""
NOISE, BOUGHT = 1.5, 2.7
"""Noise beside a utility of deviation 1, and the sum from which a product is bought: 1 in 15 is."""


def truth(turn: float, features: int, every: int) -> Floats:
    """Return the weights after a part of a quarter turn, (features,), of length 1, of every so many features."""
    ends = np.random.default_rng(0).normal(size=(2, features)) * (np.arange(features) % every == 0)
    ends[1] -= ends[0] * (ends[0] @ ends[1]) / (ends[0] @ ends[0])
    ends /= np.linalg.norm(ends, axis=1, keepdims=True)
    weights: Floats = np.cos(0.5 * np.pi * turn) * ends[0] + np.sin(0.5 * np.pi * turn) * ends[1]
    return weights


def lists_of(day: int, generator: np.random.Generator) -> Queries:
    """Return the lists of a day with what was bought."""
    lists = LISTS[day % len(LISTS)]
    X = generator.normal(size=(lists * LENGTH, FEATURES))
    utility = X @ truth(day / (DAYS - 1), FEATURES, EVERY) + NOISE * generator.normal(size=len(X))
    return Queries.from_arrays(X, (utility > BOUGHT).astype(int), group=[LENGTH] * lists)


@dataclass(frozen=True, eq=False)
class DayFit:
    """A point, its values by list of the last day, each before it was learned from, and the ranker after all lists."""

    point: Point
    values: Floats
    ranker: PassRanker


@dataclass(frozen=True, eq=False)
class Passes:
    """Passes over the lists of some days, one for each point that is evaluated."""

    entry: PublishedSystem
    days: Sequence[Queries]
    seed: int
    fits: list[DayFit] = field(default_factory=list)

    def value(self, point: Point) -> Floats:
        """Return the metric of each list of the last day, before it is learned from."""
        ranker = make(self.entry.solver, self.entry.at(point), self.seed)
        assert isinstance(ranker, PassRanker)
        *_, scores = (ranker.progressive(part) for part in self.days)
        values = parse_metric(self.entry.choose).per_query(scores, self.days[-1])
        self.fits.append(DayFit(point, values, ranker))
        return values

    @property
    def best(self) -> DayFit:
        """The fit with the highest mean."""
        return max(self.fits, key=lambda fit: float(np.nanmean(fit.values)))


def daily(entry: PublishedSystem, seed: int) -> PartResult:
    """Return the metric of each day's model on the next day, (DAYS - 1,), and its mean."""
    generator, metric = np.random.default_rng(seed), parse_metric(entry.choose)
    days = [lists_of(day, generator) for day in range(DAYS)]
    judged, before = list[float](), list[tuple[Point, Floats]]()
    for day, following in enumerate(days[1:]):
        passes = Passes(entry, days[max(0, day + 1 - PAST) : day + 1], seed)
        if not entry.evaluations:
            passes.value({})
        elif entry.carries == "choice" and before:
            passes.value(before[0][0])
        else:
            search(
                entry.grid, passes.value, sampler=entry.sampler, seed=seed + SEEDS * day,
                evaluations=entry.evaluations, before=before if entry.carries == "trials" else (),
            )  # fmt: skip
        judged.append(metric.mean(passes.best.ranker.predict(following), following))
        fits = [passes.best] if entry.carries == "choice" else passes.fits
        before = [(fit.point, fit.values) for fit in fits]
    return PartResult({"": {entry.choose: float(np.mean(judged))}}, curves={"days": np.array(judged)})
