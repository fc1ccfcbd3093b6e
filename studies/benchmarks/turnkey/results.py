"""The results of the cells of one budget: means of each tool, comparisons with rivals, verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ranktune.solvers.core.arrays import Floats, Json
from ranktune.studies.benchmarks.tables import Row
from ranktune.studies.benchmarks.turnkey.cells import METRICS, Results
from ranktune.studies.benchmarks.turnkey.data import FOLDS, Case
from ranktune.studies.benchmarks.turnkey.peers import METRIC, OURS
from ranktune.tuner.statistics.intervals import randomisation_test

TARGETS = {"MQ2008": 0.700, "OHSUMED": 0.460}
"""Our targets of the mean test NDCG@10 over the published folds."""

OPTIMISM = 0.01  # the estimate may be this far from the test value, on the mean of the folds
SIGNIFICANT = 0.05
BEHIND = 0.002  # on data other than LETOR's, our mean may be this far below a rival's
USED = 0.9  # our shortest run uses this share of its time at least
LATE, LATE_SECONDS = 1.02, 1.0  # our longest run may take this many times its time, and so many seconds more


@dataclass(frozen=True)
class Comparison:
    """Difference of METRIC to a rival, paired by query, on the folds that both ran.

    data        the data sets, pooled
    letor       whether they are LETOR folders
    difference  the mean over queries; p_value: two-sided, of the randomisation test
    wins, losses  folds whose mean is higher, or lower, than the rival's
    """

    rival: str
    queries: int
    difference: float
    p_value: float
    wins: int
    losses: int
    data: str = ""
    letor: bool = True


def of_rivals(results: Results, cases: Sequence[Case], rivals: Sequence[str]) -> list[Comparison]:
    """Return the comparisons with our rivals, on all LETOR folders together and on each other data set."""
    letor = [case.name for case in cases if case.letor]
    groups = ([letor] if letor else []) + [[case.name] for case in cases if not case.letor]
    every = (
        compared(results, name, group, letor=group == letor) for group in groups for name in rivals if name != OURS
    )
    return [comparison for comparison in every if comparison is not None]


def summary(results: Results, data: str, rival: str) -> Json:
    """Return a rival's means over the folds and seeds of a data set.

    optimism is its estimate less the test value, inside_interval the number of runs whose test value is within their
    interval for so few test queries, trees those of its model.
    """
    cells = [finished for key, finished in results.items() if (key[0], key[2]) == (data, rival)]
    inside = [bool(finished.inside) for finished in cells if finished.inside is not None]
    return {
        "data": data,
        "rival": rival,
        "budget": cells[0].cell.seconds,
        "folds": len({finished.cell.fold for finished in cells}),
        "runs": len(cells),
        **{metric: float(np.mean([finished.mean(metric) for finished in cells])) for metric in METRICS},
        "optimism": float(np.mean([finished.estimate - finished.mean() for finished in cells])),
        "inside_interval": sum(inside) if inside else None,
        "seconds": float(np.mean([finished.used for finished in cells])),
        "shortest": min(finished.used for finished in cells),
        "longest": max(finished.used for finished in cells),
        "tried": _mean([finished.tried for finished in cells]),
        "trees": _mean([finished.detail.get("trees") for finished in cells]),
    }


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def compared(
    results: Results, rival: str, data: Sequence[str], *, letor: bool = True, ours: str = OURS
) -> Comparison | None:
    """Return the comparison of ours with a rival over all queries of the folds that both ran; None without any.

    A query's value is the mean over the seeds that both ran, which removes the variance of single runs.
    """
    folds: dict[tuple[str, str], list[tuple[Floats, Floats]]] = {}
    for (case, fold, name, seed), theirs in results.items():
        if case in data and name == rival and (case, fold, ours, seed) in results:
            values = results[case, fold, ours, seed].values[METRIC]
            folds.setdefault((case, fold), []).append((values, theirs.values[METRIC]))
    if not folds:
        return None
    means = [np.mean(pairs, axis=0) for pairs in folds.values()]
    ours_all, theirs_all = np.concatenate(means, axis=1)
    difference = ours_all - theirs_all
    return Comparison(
        rival,
        int(np.count_nonzero(~np.isnan(difference))),
        float(np.nanmean(difference)),
        randomisation_test(ours_all, theirs_all, np.random.default_rng(0)),
        sum(bool(np.nanmean(a) > np.nanmean(b)) for a, b in means),
        sum(bool(np.nanmean(a) < np.nanmean(b)) for a, b in means),
        ", ".join(data),
        letor,
    )


def verdicts(rows: Sequence[Json], comparisons: Sequence[Comparison], published: Sequence[str]) -> Iterator[Row]:
    """Yield our targets with the measured values; those of quality only where all published folds were run."""
    for row in (row for row in rows if row["rival"] == OURS):
        target = TARGETS.get(row["data"])
        if target is not None and row["data"] in published and row["folds"] == FOLDS:
            value = row[METRIC]
            yield _verdict(f"{row['data']}: mean test {METRIC}", f">= {target:.3f}", f"{value:.4f}", value >= target)
        off = row["optimism"]
        what = f"{row['data']}: estimate less test"
        yield _verdict(what, f"within {OPTIMISM:g}", f"{off:+.4f}", abs(off) <= OPTIMISM)
        yield from _verdicts_on_time(row)
    for comparison in comparisons:
        value = f"{comparison.difference:+.4f}, p = {comparison.p_value:.4f}"
        if comparison.letor:
            met = comparison.p_value < SIGNIFICANT and comparison.difference > 0.0
            yield _verdict(f"better than {comparison.rival}", f"p < {SIGNIFICANT:g}", value, met)
        else:
            met = comparison.difference >= -BEHIND
            yield _verdict(f"{comparison.data}: not behind {comparison.rival}", f">= -{BEHIND:g}", value, met)


def _verdict(what: str, wanted: str, value: str, met: bool) -> Row:
    return {"what": what, "wanted": wanted, "found": value, "met": met}


def _verdicts_on_time(row: Json) -> Iterator[Row]:
    least, most = USED * row["budget"], LATE * row["budget"] + LATE_SECONDS
    shortest, longest = row["shortest"], row["longest"]
    yield _verdict(f"{row['data']}: shortest run, seconds", f">= {least:.1f}", f"{shortest:.1f}", shortest >= least)
    yield _verdict(f"{row['data']}: longest run, seconds", f"<= {most:.1f}", f"{longest:.1f}", longest <= most)
