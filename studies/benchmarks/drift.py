"""How often `watch` raises an alarm: on days like those before, and on days on which something has changed.

A study is a sample of training queries, of which the reference is made, and one of test queries with the metric of its
model. Its days are further samples. Documents of a query are strongly correlated; features are normal, skewed, rare,
constant within the query, and with missing values. A loss is more noise in the grades, which no feature shows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.models.linear import LinearModel
from ranktune.studies.benchmarks.tables import BenchmarkTable, Row
from ranktune.tuner.drift.quality import ExpectedQuality, largest_difference, moved, quality
from ranktune.tuner.drift.reference import Reference
from ranktune.tuner.drift.watching import FALSE, rate_of
from ranktune.tuner.statistics.measured import Interval

METRIC, LENGTH, FEATURES = "ndcg@10", 15, 10
CORRELATION = 0.7
"""Of a feature between two documents of a query."""
RELEVANT, NOISE = 1.6, 2.0
"""How far the latent relevance is above its mean, in standard deviations, and the noise in it beside the score."""
ALARM = 0.05
WEIGHTS = np.array([1.0, 0.6, *np.zeros(FEATURES - 2)])
CALIBRATION = 40_000
"""Queries by which the noise of a loss is found."""
Change = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class Day:
    """Queries of a day with the metric of the model."""

    queries: Queries
    values: Floats


def day(generator: np.random.Generator, count: int, noise: float = NOISE, change: Change | None = None) -> Day:
    """Return queries of a day; change takes the features, (count, LENGTH, FEATURES), and gives others."""
    common, single = (generator.normal(size=(count, n, FEATURES)) for n in (1, LENGTH))
    base = np.sqrt(CORRELATION) * common + np.sqrt(1.0 - CORRELATION) * single
    latent = single @ WEIGHTS + noise * generator.normal(size=(count, LENGTH))
    base[..., 4:6] = np.exp(2.0 * base[..., 4:6])
    base[..., 6:8] = base[..., 6:8] > 1.8
    base[..., 8] = common[..., 8]
    base[..., 9][generator.random((count, LENGTH)) < 0.3] = np.nan
    X = (base if change is None else change(base)).reshape(-1, FEATURES)
    grades = np.digitize(latent / np.sqrt(WEIGHTS @ WEIGHTS + noise**2), [RELEVANT - 0.6, RELEVANT])
    queries = Queries.from_arrays(X, grades.ravel(), group=[LENGTH] * count)
    return Day(queries, parse_metric(METRIC).per_query((single @ WEIGHTS).ravel(), queries))


def noise_of(loss: float) -> float:
    """Return the noise with which the metric is lower by the loss, found by halving on the same random numbers."""
    low, high = NOISE, 4.0 * NOISE
    usual = np.nanmean(day(np.random.default_rng(0), CALIBRATION).values)
    while high - low > 1e-3:
        middle = (low + high) / 2
        lost = usual - np.nanmean(day(np.random.default_rng(0), CALIBRATION, middle).values)
        low, high = (middle, high) if lost < loss else (low, middle)
    return low


def shifted(X: Floats) -> Floats:
    """Return features of which the first is higher by a tenth of a standard deviation."""
    X[..., 0] += 0.1
    return X


def dealt(X: Floats) -> Floats:
    """Return features of which the first is dealt to other queries, with the same distribution."""
    X[..., 0] = np.random.default_rng(X.shape[0]).permutation(X[..., 0].ravel()).reshape(X.shape[:2])
    return X


def missing(X: Floats) -> Floats:
    """Return features of which the last is missing in 35 percent of the documents, not 30."""
    X[..., 9][np.random.default_rng(X.shape[0]).random(X.shape[:2]) < 0.07] = np.nan
    return X


def watched(study: tuple[Reference, ExpectedQuality], new: Day, generator: np.random.Generator) -> Floats:
    """Return whether `watch` raises an alarm on a day, by the features, by the metric; how many have moved, (4,)."""
    before, expected = study
    rate = rate_of(ALARM, 2)
    now = Reference.of(model(), new.queries, before)
    features = largest_difference(before, now, generator, rate) <= rate
    ids = [f"new {k}" for k in range(len(new.values))]
    metric = not quality(
        METRIC, ids, new.values, None, expected, Interval(expected.mean, expected.mean, expected.mean), rate
    ).holds
    return np.array([features or metric, features, metric, sum(each.q <= FALSE for each in moved(before, now))], float)


def model() -> LinearModel:
    """Return the model of the study, which uses every feature."""
    return LinearModel(np.ones(FEATURES), solver="RankSVM")


def study(generator: np.random.Generator, training: int, test: int) -> tuple[Reference, ExpectedQuality]:
    """Return what a study keeps."""
    values = day(generator, test).values
    expected = ExpectedQuality.of("test", [f"test {k}" for k in range(test)], values, None, Interval(0.0, 0.0, 0.0))
    return Reference.of(model(), day(generator, training).queries), expected


def main(
    studies: int = 100,
    days: int = 10,
    changed: int = 100,
    queries: int = 2000,
    training: int = 2000,
    test: int = 10_000,
    loss: float = 0.02,
    seed: int = 0,
) -> list[BenchmarkTable]:
    """Count the alarms of `watch` on simulated days, without and with drift.

    Parameters
    ----------
    studies : int
        Studies.
    days : int
        Days of each study without drift.
    changed : int
        Pairs of days of each kind of change.
    queries : int, at least 20
        Queries of a day.
    training : int, at least 20
        Training queries of a study.
    test : int, at least 20
        Test queries of a study.
    loss : float
        The loss of the metric.
    seed : int
        Seed.
    """
    generator = np.random.default_rng(seed)

    def alarms(make: Callable[[], Day], count: int, days: int) -> Floats:
        """Return what is found on days of some studies, (count, days, 4)."""
        series = (study(generator, training, test) for _ in range(count))
        return np.array([[watched(each, make(), generator) for _ in range(days)] for each in series])

    quiet = alarms(lambda: day(generator, queries), studies, days)
    by_study, means = quiet[..., 0].mean(axis=1), [f"{mean:.1%}" for mean in quiet.mean(axis=(0, 1))]
    low, high = np.quantile(by_study, [0.1, 0.9])
    level: Row = {
        "days": studies * days, "alarm": means[0],
        "se": f"{by_study.std(ddof=1) / np.sqrt(studies) if studies > 1 else np.nan:.1%}",
        "features": means[1], "metric": means[2], "moved": f"{(quiet[..., 3] > 0).mean():.1%}",
        "by study": f"{low:.0%} to {high:.0%}",
    }  # fmt: skip
    noise = noise_of(loss)
    changes: dict[str, Callable[[], Day]] = {
        f"loss of {loss:g}": partial(day, generator, queries, noise),
        "a feature higher by 0.1 sd": partial(day, generator, queries, change=shifted),
        "a feature dealt to other queries": partial(day, generator, queries, change=dealt),
        "35 % missing in place of 30 %": partial(day, generator, queries, change=missing),
    }
    rows: list[Row] = []
    for name, make in changes.items():
        pairs = alarms(make, changed, 2)
        alarm, by_features, by_metric, n_moved = pairs[:, 0].mean(axis=0)
        rows.append({
            "change": name, "on day 1": f"{alarm:.1%}", "by day 2": f"{pairs[..., 0].any(axis=1).mean():.1%}",
            "features": f"{by_features:.1%}", "metric": f"{by_metric:.1%}", "moved": f"{n_moved:.2f}",
        })  # fmt: skip
    sizes = f"{queries} queries a day, {training} training and {test} test queries"
    deviation = np.nanstd(day(generator, 4_000).values)
    note = (
        f"alarm: share of the days; se: its standard error over {studies} studies. features, metric: alarms of each. "
        "moved: days on which a feature is called moved. by study: the range of the middle 80 % of studies. The metric "
        f"has a standard deviation of {deviation:.2f} by query."
    )
    other = "by day 2: an alarm on one of two days. features, metric: of day 1; moved: features called moved on it."
    return [
        BenchmarkTable(f"Days without drift: {sizes}", [level], note),
        BenchmarkTable(f"Days with drift: {sizes}", rows, other),
    ]
