"""The metric that a solver goes by where its user leaves the choice to it."""

from __future__ import annotations

from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.gains import can_double
from ranktune.solvers.metrics.metrics import Metric, parse_metric


def chosen_metric(spelling: str, *parts: Queries | None) -> Metric:
    """Return the metric of that spelling; "auto" is ndcg@10, or pairwise where a grade has no gain of 2^grade - 1."""
    if spelling != "auto":
        return parse_metric(spelling)
    return parse_metric("ndcg@10" if all(can_double(part.grades) for part in parts if part is not None) else "pairwise")
