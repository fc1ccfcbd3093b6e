"""The report of the cells of one budget: each data set, with rivals and verdicts, and all data sets together.

Data sets are independent of each other, and of different difficulty. So the tools are ranked on each, the best as 1,
and Friedman's test tells whether the mean ranks differ by more than chance. Two tools differ significantly where their
mean ranks differ by the critical difference of Nemenyi's test at least, which allows for all pairs of tools.
Source: Demsar 2006, "Statistical comparisons of classifiers over multiple data sets".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import scipy

from ranktune.solvers.core.arrays import Floats, Json, JsonView
from ranktune.studies.benchmarks.tables import BenchmarkTable, Cell, Row, judged
from ranktune.studies.benchmarks.turnkey.cells import METRICS, Results
from ranktune.studies.benchmarks.turnkey.data import Case
from ranktune.studies.benchmarks.turnkey.libraries import METRIC
from ranktune.studies.benchmarks.turnkey.peers import OURS, SINGLE_CALLS
from ranktune.tuner.statistics.intervals import randomisation_test
from ranktune.tuner.statistics.measured import ALPHA

QUALITY = ("rival", *METRICS, "estimate - test", "in interval")
EFFORT = ("rival", "runs", "configurations", "trees", "seconds", "longest")
"""Columns of the tables of a data set."""
OPTIMISM = 0.01  # the estimate may be this far from the test value, on the mean of the folds
SIGNIFICANT = 0.05
BEHIND = 0.002  # on data other than LETOR's, our mean may be this far below a rival's
USED = 0.9  # our shortest run uses this share of its time at least
LATE, LATE_SECONDS = 1.02, 1.0  # our longest run may take this many times its time, and so many seconds more
FAR = 0.003
"""Our mean on a data set is far below that of the best peer by more than this."""
LEADS = {15.0: 0.006, 40.0: 0.010}
"""By seconds: how much better we are than the best single call of each data set, in the mean."""
OVER_CALLS = "less best call of each"


def of_rivals(results: Results, cases: Sequence[Case], rivals: Sequence[str]) -> Iterator[Row]:
    """Yield the comparisons with our rivals, on all LETOR folders together and on each other data set."""
    letor = [case.name for case in cases if case.letor]
    for group in ([letor] if letor else []) + [[case.name] for case in cases if not case.letor]:
        wanted = f"difference >= 0, p < {SIGNIFICANT:g}" if group == letor else f"difference >= -{BEHIND:g}"
        for name in rivals:
            if name != OURS and (comparison := compared(results, name, group)):
                yield judged(comparison, wanted)


def summary(results: Results, data: str, rival: str) -> Json:
    """Return a rival's means over the folds and seeds of a data set.

    "estimate - test" is its estimate less the test value, "in interval" the number of runs whose test value is within
    their interval for so few test queries, "trees" those of its model.
    """
    cells = [finished for key, finished in results.items() if (key[0], key[2]) == (data, rival)]
    inside = [finished.inside for finished in cells if finished.inside is not None]
    used = [finished.used for finished in cells]
    return {
        "data": data,
        "rival": rival,
        "folds": len({finished.cell.fold for finished in cells}),
        "runs": len(cells),
        **{metric: _mean([finished.mean(metric) for finished in cells]) for metric in METRICS},
        "estimate - test": _mean([finished.estimate - finished.mean() for finished in cells]),
        "in interval": f"{sum(inside)} of {len(cells)}" if inside else "-",
        "configurations": _mean([finished.tried for finished in cells]),
        "trees": _mean([finished.detail.get("trees") for finished in cells]),
        "seconds": _mean(used),
        "shortest": min(used),
        "longest": max(used),
    }


def _mean(values: Sequence[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return float(np.mean(present)) if present else None


def compared(results: Results, rival: str, data: Sequence[str]) -> Row:
    """Return the difference of METRIC to a rival over all queries of the folds that both ran; nothing without any.

    A query's value is the mean over the seeds that both ran, which removes the variance of single runs. p is that of
    the two-sided randomisation test. Folds are won whose mean is higher than the rival's.
    """
    folds: dict[tuple[str, str], list[tuple[Floats, Floats]]] = {}
    for (case, fold, name, seed), theirs in results.items():
        if case in data and name == rival and (case, fold, OURS, seed) in results:
            values = results[case, fold, OURS, seed].values[METRIC]
            folds.setdefault((case, fold), []).append((values, theirs.values[METRIC]))
    if not folds:
        return {}
    means = [np.mean(pairs, axis=0) for pairs in folds.values()]
    ours, others = np.concatenate(means, axis=1)
    gaps = np.array([np.nanmean(a) - np.nanmean(b) for a, b in means])
    return {
        "rival": rival, "data": ", ".join(data), "queries": int(np.count_nonzero(~np.isnan(ours - others))),
        "difference": float(np.nanmean(ours - others)),
        "p": randomisation_test(ours, others, np.random.default_rng(0)),
        "won": int((gaps > 0.0).sum()), "lost": int((gaps < 0.0).sum()),
    }  # fmt: skip


def verdicts(row: JsonView, seconds: float) -> Iterator[Row]:
    """Yield what is wanted of our estimate and of our time on a data set, with the measured values."""
    yield _verdict(f"{row['data']}: estimate less test", row["estimate - test"], f"within {OPTIMISM:g}")
    yield _verdict(f"{row['data']}: shortest run, seconds", row["shortest"], f">= {USED * seconds:g}")
    yield _verdict(f"{row['data']}: longest run, seconds", row["longest"], f"<= {LATE * seconds + LATE_SECONDS:g}")


def _verdict(what: str, found: float, wanted: str) -> Row:
    return judged({"what": what, "found": found}, wanted)


def tables(
    results: Results, cases: Sequence[Case], rivals: Sequence[str], seconds: float, how: str
) -> Iterator[BenchmarkTable]:
    """Yield the tables of one budget; how is part of the titles: the budget, the seeds and the partition."""
    ran = {(key[0], key[2]) for key in results}
    every: list[Json] = []
    wanted: list[Row] = []
    for case in cases:
        rows = [summary(results, case.name, name) for name in rivals if (case.name, name) in ran]
        for title, names in (
            (
                (f"test queries, means over folds and seeds ({how})", QUALITY),
                (f"what the tools did in {seconds:g} s", EFFORT),
            )
            if rows
            else ()
        ):
            yield BenchmarkTable(f"{case.name}: {title}", [{name: row[name] for name in names} for row in rows])
        wanted += [verdict for row in rows if row["rival"] == OURS for verdict in verdicts(row, seconds)]
        every += rows
    if comparisons := list(of_rivals(results, cases, rivals)):
        title = f"{OURS} less a rival, {METRIC}, paired by query; folds won and lost"
        yield BenchmarkTable(title, comparisons)
    yield from together(every, seconds, how)
    if wanted:
        yield BenchmarkTable(f"wanted of {OURS} ({seconds:g} s)", wanted)


def together(rows: Sequence[JsonView], seconds: float = 0.0, how: str = "") -> Iterator[BenchmarkTable]:
    """Yield what rows, means of a tool on a data set each, say of the data sets that all tools ran, if of several."""
    values_of = {(row["data"], row["rival"]): float(row[METRIC]) for row in rows}
    every, tools = (list(dict.fromkeys(key[k] for key in values_of)) for k in (0, 1))
    data = [name for name in every if all((name, tool) in values_of for tool in tools)]
    if len(data) < 2 or len(tools) < 2:
        return
    values = np.array([[values_of[name, tool] for tool in tools] for name in data])
    ranks = scipy.stats.rankdata(-values, axis=1)
    means, places = (each.mean(axis=0).tolist() for each in (values, ranks))
    tests = [f"Friedman's p = {friedman(ranks):.2g}."] if len(tools) > 2 else []
    tests.append(f"Critical difference of mean ranks (Nemenyi, {ALPHA:.0%}): {critical_difference(*ranks.shape):.2f}.")
    if left_out := [name for name in every if name not in data]:
        tests.append(f"Left out: {', '.join(left_out)}.")
    yield BenchmarkTable(
        f"{len(data)} data sets: {METRIC}, and mean ranks by it ({how})",
        [{"tool": tools[k], "mean": means[k], "mean rank": places[k]} for k in np.argsort(places, kind="stable")],
        " ".join(tests),
    )
    if leads := list(_leads(values, data, tools, seconds)):
        yield BenchmarkTable(
            f"beside the peers, {METRIC}", leads, f"far below: data sets more than {FAR:g} below their best peer."
        )


def friedman(ranks: Floats) -> float:
    """Return the p-value of Friedman's test; ranks are (data sets, tools). 1 where all tools are equal."""
    return float(scipy.stats.friedmanchisquare(*ranks.T).pvalue) if np.ptp(ranks, axis=1).any() else 1.0


def critical_difference(n_data: int, n_tools: int) -> float:
    """Return the critical difference of mean ranks, q sqrt(k (k + 1) / (6 n)), of Nemenyi's test at the level ALPHA."""
    q = scipy.stats.studentized_range.ppf(1.0 - ALPHA, n_tools, np.inf) / np.sqrt(2.0)
    return float(q * np.sqrt(n_tools * (n_tools + 1) / (6.0 * n_data)))


def _leads(values: Floats, data: Sequence[str], tools: Sequence[str], seconds: float) -> Iterator[Row]:
    """Yield RankTune beside the peers, if it is one of the tools; values are (data sets, tools)."""
    if OURS not in tools:
        return
    ours = values[:, tools.index(OURS)]
    peers = [k for k, tool in enumerate(tools) if tool != OURS]
    calls = [k for k in peers if tools[k] in SINGLE_CALLS]
    single = max(peers, key=lambda peer: float(values[:, peer].mean()))
    behind = values[:, peers].max(axis=1) - ours
    row: dict[str, Cell] = {
        "tool": OURS, "best single peer": tools[single],
        "lead over it": float((ours - values[:, single]).mean()),
        "less best of each": -float(behind.mean()),
        "far below": ", ".join(name for name, gap in zip(data, behind, strict=True) if gap > FAR),
    }  # fmt: skip
    if calls:
        row[OVER_CALLS] = float((ours - values[:, calls].max(axis=1)).mean())
    yield judged(row, f"{OVER_CALLS} >= {LEADS[seconds]:g}" if calls and seconds in LEADS else "")
