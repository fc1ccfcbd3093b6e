"""All data sets of one budget together: means, mean ranks, and our lead.

Data sets are independent of each other, and of different difficulty. So the tools are ranked on each, the best as 1,
and Friedman's test tells whether the mean ranks differ by more than chance. Two tools differ significantly where their
mean ranks differ by the critical difference of Nemenyi's test at least, which allows for all pairs of tools.
Source: Demsar 2006, "Statistical comparisons of classifiers over multiple data sets".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import scipy

from ranktune.solvers.core.arrays import Floats, JsonView
from ranktune.studies.benchmarks.tables import BenchmarkTable, Cell, Row, judged
from ranktune.studies.benchmarks.turnkey.peers import METRIC, OURS, SINGLE_CALLS, is_ours
from ranktune.tuner.statistics.comparisons import ALPHA

FAR = 0.003
"""Our mean on a data set is far below that of the best peer by more than this."""
LEADS = {15.0: 0.006, 40.0: 0.010}
"""By seconds: how much better we are than the best single call of each data set, in the mean."""
OVER_CALLS = "less best call of each"


def together(rows: Sequence[JsonView], seconds: float = 0.0, how: str = "") -> Iterator[BenchmarkTable]:
    """Yield what rows, means of a tool on a data set each, say of the data sets that all tools ran, if of several."""
    known = {(row["data"], row["rival"]): float(row[METRIC]) for row in rows}
    every, tools = (list(dict.fromkeys(key[k] for key in known)) for k in (0, 1))
    data = [name for name in every if all((name, tool) in known for tool in tools)]
    if len(data) < 2 or len(tools) < 2:
        return
    values = np.array([[known[name, tool] for tool in tools] for name in data])
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
    """Yield each of our tools beside the peers; values are (data sets, tools)."""
    peers = [k for k, tool in enumerate(tools) if not is_ours(tool)]
    calls = [k for k in peers if tools[k] in SINGLE_CALLS]
    for k, tool in enumerate(tools):
        if is_ours(tool) and peers:
            single = max(peers, key=lambda peer: float(values[:, peer].mean()))
            behind = values[:, peers].max(axis=1) - values[:, k]
            row: dict[str, Cell] = {
                "tool": tool, "best single peer": tools[single],
                "lead over it": float((values[:, k] - values[:, single]).mean()),
                "less best of each": -float(behind.mean()),
                "far below": ", ".join(name for name, gap in zip(data, behind, strict=True) if gap > FAR),
            }  # fmt: skip
            if calls:
                row[OVER_CALLS] = float((values[:, k] - values[:, calls].max(axis=1)).mean())
            has_goal = tool == OURS and calls and seconds in LEADS
            yield judged(row, f"{OVER_CALLS} >= {LEADS[seconds]:g}" if has_goal else "")
