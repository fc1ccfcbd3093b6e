"""Tables of the benchmark of clicks, from the results of its logs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from ranktune.solvers.core.arrays import Floats, Json
from ranktune.studies.benchmarks.clicks.learning import CTR, FULL, LEARNERS
from ranktune.studies.benchmarks.tables import Table
from ranktune.studies.benchmarks.turnkey.peers import METRIC
from ranktune.tuner.statistics.intervals import randomisation_test

LOG, INTERVALS = "log", "intervals"
SIGNIFICANT = 0.05


class Key(NamedTuple):
    """What a result belongs to: a log of so many sessions, or intervals from so many small logs.

    models  of clicks
    mark    the version, and a digest of the queries
    """

    kind: str
    data: str
    fold: str
    users: str
    size: int
    seed: int
    models: str
    mark: str


def of_kind(results: Mapping[Key, Json], kind: str) -> Iterator[tuple[dict[str, str], dict[Key, Json]]]:
    """Yield the data and the users, and the results of all folds and seeds."""
    places: dict[tuple[str, str], dict[Key, Json]] = {}
    for key, found in results.items():
        if key.kind == kind:
            places.setdefault((key.data, key.users), {})[key] = found
    for (data, users), every in sorted(places.items()):
        yield {"data": data, "users": users}, every


def rankings(results: Mapping[Key, Json]) -> Iterator[Table]:
    """Yield a table for each learner: the metric with all grades, and what other judgments lose."""
    note = (
        f"{FULL}: learnt from the true grades. Others: less that. shown: true grades of the documents that were shown. "
        f"+ and -: better and worse than CTR (permutation test over test queries, p < {SIGNIFICANT:g})."
    )
    for learner in LEARNERS:
        rows = []
        for row, every in of_kind(results, LOG):
            names = list(dict.fromkeys(name for found in every.values() for name in found["values"]))
            means = {name: _by_query(every, name, learner) for name in names}
            shown = {name: _less(values, means[FULL], means[CTR], name) for name, values in means.items()}
            rows.append(row | shown | {FULL: f"{np.nanmean(means[FULL]):.3f}"})
        yield Table(f"{METRIC} of {learner} on true grades of test queries", rows, note)


def _by_query(every: Mapping[Key, Json], name: str, learner: str) -> Floats:
    """Return the values of the test queries of all folds, the means over seeds; NaN where one is missing."""
    folds: dict[str, list[Floats]] = {}
    for key, found in every.items():
        none = [None] * len(found["values"][FULL][learner])
        values = found["values"].get(name, {learner: none})[learner]
        folds.setdefault(key.fold, []).append(np.array(values, dtype=np.float64))
    return np.concatenate([np.mean(parts, axis=0) for parts in folds.values()])


def _less(values: Floats, full: Floats, ctr: Floats, name: str) -> str:
    both = np.isfinite(values) & np.isfinite(ctr)
    if not both.any():
        return "-"
    text = f"{(values - full)[both].mean():+.3f}"
    if name == CTR or randomisation_test(values[both], ctr[both], np.random.default_rng(0)) >= SIGNIFICANT:
        return text
    return f"{text} {'+' if (values - ctr)[both].mean() > 0.0 else '-'}"


def propensities(results: Mapping[Key, Json]) -> Table:
    """Return the largest errors of examination among known positions, and how many intervals cover the truth."""
    rows = []
    for row, every in of_kind(results, LOG):
        cells: dict[str, str] = {}
        for name in dict.fromkeys(name for found in every.values() for name in found["propensities"]):
            some = [found["propensities"][name] for found in every.values() if name in found["propensities"]]
            covered, known = (sum(each[what] for each in some) for what in ("covered", "known"))
            cells[name] = f"{100.0 * max(each['error'] for each in some):.1f} ({covered}/{known})"
        rows.append(row | cells)
    note = (
        "In brackets: known positions whose interval covers the truth. Under cascade there is no truth of this form: "
        "examination is compared with 1 / position."
    )
    return Table("Largest error of examination at a known position, %", rows, note)


def intervals(results: Mapping[Key, Json]) -> Iterator[Table]:
    """Yield the coverage of 95 % intervals, and the bias of the estimates."""
    every = [(row, next(iter(found.values()))) for row, found in of_kind(results, INTERVALS)]
    cell: Mapping[str, Callable[[Json], str]] = {
        "Intervals that cover the truth, %, where 95 are wanted": lambda each: f"{100.0 * each['covered']:.1f}",
        "Mean of the estimates, less the truth, %": lambda each: f"{100.0 * each['bias']:+.1f}",
    }
    for title, text in cell.items() if every else ():
        rows = [row | {name: text(each) for name, each in found.items()} for row, found in every]
        yield Table(title, rows)
