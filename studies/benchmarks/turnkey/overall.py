"""All data sets of one budget together: means, mean ranks, and our lead.

Data sets are independent of each other, and of different difficulty. So the tools are ranked on each, the best as 1,
and Friedman's test tells whether the mean ranks differ by more than chance. Two tools differ significantly where their
mean ranks differ by the critical difference of Nemenyi's test at least, which allows for all pairs of tools.
Source: Demsar 2006, "Statistical comparisons of classifiers over multiple data sets".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from ranktune.solvers.core.arrays import Floats, JsonView
from ranktune.studies.benchmarks.turnkey.peers import METRIC, is_ours
from ranktune.tuner.statistics.comparisons import ALPHA

FAR = 0.003
"""Our mean on a data set is far below that of the best peer by more than this."""


@dataclass(frozen=True)
class Lead:
    """One of our tools beside the peers, by METRIC.

    single       the peer with the highest mean over data sets; over_single: our mean less its mean
    over_best    the mean over data sets of the difference to the best peer of each
    far_below    the data sets on which we are below the best peer by more than FAR
    """

    tool: str
    single: str
    over_single: float
    over_best: float
    far_below: Sequence[str]


@dataclass(frozen=True)
class Overall:
    """The tools on the data sets that all of them ran.

    means     of METRIC over data sets, by tool; ranks: its mean ranks, where equal tools share the mean of theirs
    p_value   of Friedman's test that no tool is better, None for two tools
    critical  the difference of mean ranks from which two tools differ significantly
    left_out  data sets that a tool did not run
    """

    data: Sequence[str]
    means: dict[str, float]
    ranks: dict[str, float]
    p_value: float | None
    critical: float
    leads: Sequence[Lead]
    left_out: Sequence[str]


def overall(rows: Sequence[JsonView]) -> Overall | None:
    """Return what rows, means of a tool on a data set each, say together; None for fewer than two of either."""
    known = {(row["data"], row["rival"]): float(row[METRIC]) for row in rows}
    every, tools = (list(dict.fromkeys(key[k] for key in known)) for k in (0, 1))
    data = [name for name in every if all((name, tool) in known for tool in tools)]
    if len(data) < 2 or len(tools) < 2:
        return None
    values = np.array([[known[name, tool] for tool in tools] for name in data])
    ranks = scipy.stats.rankdata(-values, axis=1)
    return Overall(
        data,
        dict(zip(tools, values.mean(axis=0).tolist(), strict=True)),
        dict(zip(tools, ranks.mean(axis=0).tolist(), strict=True)),
        friedman(ranks) if len(tools) > 2 else None,
        critical_difference(*ranks.shape),
        list(_leads(values, data, tools)),
        [name for name in every if name not in data],
    )


def friedman(ranks: Floats) -> float:
    """Return the p-value of Friedman's test; ranks are (data sets, tools). 1 where all tools are equal."""
    return float(scipy.stats.friedmanchisquare(*ranks.T).pvalue) if np.ptp(ranks, axis=1).any() else 1.0


def critical_difference(n_data: int, n_tools: int) -> float:
    """Return the critical difference of mean ranks, q sqrt(k (k + 1) / (6 n)), of Nemenyi's test at the level ALPHA."""
    q = scipy.stats.studentized_range.ppf(1.0 - ALPHA, n_tools, np.inf) / np.sqrt(2.0)
    return float(q * np.sqrt(n_tools * (n_tools + 1) / (6.0 * n_data)))


def _leads(values: Floats, data: Sequence[str], tools: Sequence[str]) -> Iterator[Lead]:
    """Yield our tools beside the peers; values are (data sets, tools)."""
    peers = [k for k, tool in enumerate(tools) if not is_ours(tool)]
    for k, tool in enumerate(tools):
        if is_ours(tool) and peers:
            single = max(peers, key=lambda peer: float(values[:, peer].mean()))
            behind = values[:, peers].max(axis=1) - values[:, k]
            far = [name for name, gap in zip(data, behind, strict=True) if gap > FAR]
            over_single = float((values[:, k] - values[:, single]).mean())
            yield Lead(tool, tools[single], over_single, -float(behind.mean()), far)
