"""What a study promises of the model that it chooses, and what that model is worth: on generated data of known truth.

A study chooses among trials, values of paths, blends and their weights, all on the same few queries. On grades that do
not depend on the features, whatever is chosen is worth what a random ranking is; where they do a little, a large sample
of test queries says it. The estimate, which is corrected for the choice, is compared with that, and so is the plain
score of the chosen model. What a random ranking gets by luck of the queries is known too and taken off both, so that
fewer studies are needed.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import ranktune
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import ParameterError, RankTuneWarning, nearest
from ranktune.solvers.core.files.private import private_folder
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.studies.benchmarks.results import add_missing, stored_results
from ranktune.studies.benchmarks.tables import BenchmarkTable, Row

KINDS = {"noise": 0.0, "small gain": 0.15, "large gain": 0.5}
"""What is generated: the weight of the features in what decides the grades, beside noise of 1."""
METRIC, LENGTH, FEATURES, RANDOM = "ndcg@10", 12, 8, 400
CUTS = (0.3, 1.0, 1.7)
HARM = 0.005
"""A chosen model that is worse than the best default by more than this is a harm."""


@dataclass(frozen=True)
class Promise:
    """A study: what it promised and what is true.

    kind, queries, seed, trials, timeout  the study; timeout is 0 without a limit
    solver      of the chosen model
    plain       its score by which it was chosen; estimate, low, high: what is promised
    truth       its score on new queries; of noise the score of a random ranking
    luck        what a random ranking scores better on the queries of the study than on new ones
    tuning      what the chosen model is better than the best default on new queries
    """

    kind: str
    queries: int
    seed: int
    trials: int
    timeout: float
    solver: str
    plain: float
    estimate: float
    low: float
    high: float
    truth: float
    luck: float
    tuning: float


def generated(generator: np.random.Generator, count: int, gain: float, weights: Floats) -> Queries:
    """Return queries whose grades depend on the features by gain, alone on noise if it is 0."""
    X = generator.normal(size=(count * LENGTH, FEATURES))
    latent = (gain * (X @ weights) + generator.normal(size=len(X))) / np.sqrt(1.0 + gain**2)
    return Queries.from_arrays(X, np.digitize(latent, CUTS), qid=np.repeat(np.arange(count), LENGTH))


def by_chance(queries: Queries, generator: np.random.Generator, times: int) -> float:
    """Return the mean score of random rankings."""
    metric = parse_metric(METRIC)
    return float(np.mean([metric.mean(generator.random(queries.n_documents), queries) for _ in range(times)]))


def promised(kind: str, count: int, seed: int, trials: int, timeout: float, test: int) -> Promise:
    """Run a study and return its promise."""
    generator = np.random.default_rng([seed, count])
    weights = generator.normal(size=FEATURES)
    weights /= np.linalg.norm(weights)
    train, new = (generated(generator, size, KINDS[kind], weights) for size in (count, test))
    chance = by_chance(new, generator, RANDOM // 20)
    luck = by_chance(train, generator, RANDOM) - chance
    with tempfile.TemporaryDirectory() as home, warnings.catch_warnings():
        warnings.simplefilter("ignore", RankTuneWarning)
        result = ranktune.tune(
            train, test=new, metric=METRIC, trials=trials, timeout=timeout or None, jobs=1, seed=seed, home=home,
        )  # fmt: skip
    best, gain = result.best, None if result.tuning is None else result.tuning.gain
    shown = best.again or best.vali
    assert shown is not None and best.test is not None
    estimate = result.estimate
    return Promise(
        kind, count, seed, trials, timeout, best.solver, shown.mean, estimate.mean, estimate.low, estimate.high,
        best.test.mean if KINDS[kind] else chance, luck, 0.0 if gain is None or not KINDS[kind] else gain.mean,
    )  # fmt: skip


def table(promises: Sequence[Promise], title: str) -> BenchmarkTable:
    """Return how far promises are from the truth, by kind of data."""
    rows: list[Row] = []
    for kind in KINDS:
        these = [each for each in promises if each.kind == kind]
        if these:
            plain, estimate = ([getattr(p, name) - p.luck - p.truth for p in these] for name in ("plain", "estimate"))
            error = np.std(estimate, ddof=1) / np.sqrt(len(these)) if len(these) > 1 else np.nan
            rows.append({
                "data": kind, "studies": len(these), "score": f"{np.mean(plain):+.4f}",
                "estimate": f"{np.mean(estimate):+.4f}", "se": f"{error:.4f}",
                "covered": f"{np.mean([p.low <= p.truth <= p.high for p in these]):.1%}",
                "harmed": f"{np.mean([p.tuning < -HARM for p in these]):.1%}",
                "tuning": f"{np.mean([p.tuning for p in these]):+.4f}",
            })  # fmt: skip
    note = (
        "score: that of the chosen model, by which it was chosen, less the truth; estimate: likewise; se: its standard "
        "error. covered: studies whose 95 % interval has the truth in it. harmed: the chosen model is worse than the "
        f"best default by more than {HARM} on new queries; tuning: how much better it is, in the mean."
    )
    return BenchmarkTable(title, rows, note)


def main(
    kinds: str = "noise,small gain",
    queries: int = 60,
    test: int = 5000,
    trials: int = 12,
    timeout: float = 0.0,
    studies: int = 200,
    first: int = 0,
    seconds: float = 1e9,
    keep: Path | None = None,
) -> list[BenchmarkTable]:
    """Compare what studies promise with what their models are worth, on data of known truth.

    Parameters
    ----------
    kinds : str
        Of {KINDS}, separated by commas.
    queries : int, at least 10
        Queries of a study, 10 at least.
    test : int, at least 10
        New queries, which say the truth.
    trials : int
        Trials of a study.
    timeout : float
        Seconds of a study, 0 without a limit.
    studies : int
        Studies of each kind.
    first : int
        The seed of the first.
    seconds : float
        Start no study after so many seconds.
    keep : Path
        File of finished studies, not repeated. (default: in the cache folder)
    """
    wanted = kinds.split(",")
    for kind in wanted:
        if kind not in KINDS:
            raise ParameterError(f"unknown kind of data '{kind}'. {nearest(kind, KINDS)}")
    path = keep or private_folder() / "promises.jsonl"
    results = {
        (each.kind, each.seed): each
        for each in stored_results(path, lambda fields: Promise(**fields))
        if (each.queries, each.trials, each.timeout) == (queries, trials, timeout)
    }

    planned = [(kind, seed) for seed in range(first, first + studies) for kind in wanted]
    add_missing(planned, results, lambda key: promised(key[0], queries, key[1], trials, timeout, test), path, seconds)
    limit = f", {timeout:g} s" if timeout else ""
    title = f"Promise and truth: {queries} queries, {trials} trials{limit}, {METRIC}"
    return [table([results[key] for key in planned if key in results], title)]
