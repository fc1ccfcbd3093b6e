"""What is measured over queries: a mean with its interval, and a comparison of two models. It does not load NumPy."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ranktune.solvers.core.arrays import Json

ALPHA = 0.05
"""Largest p-value of a significant difference, Holm-corrected where there are several."""


def direction(low: float, high: float, p: float | None) -> int:
    """Return 1 or -1 where an interval of a difference and its p-value both show its sign, else 0."""
    return int(low > 0.0) - int(high < 0.0) if p is not None and p <= ALPHA else 0


@dataclass(frozen=True)
class Interval:
    """A mean over queries with the limits between which it lies at the stated level."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, repr=False)
class Comparison:
    """Model a against model b on the same queries.

    Without a query that both count difference, interval, means and effect are NaN. Without a difference every p is 1.

    Attributes
    ----------
    difference : float
        Mean of a - b, in units of the metric.
    low, high, level : float
        Its bootstrap interval over queries, and the level of that.
    p_randomisation : float
        Two-sided, by random signs of the differences.
    p_t, p_wilcoxon : float
        Two-sided: Student's paired t, Wilcoxon's signed ranks.
    effect : float
        Difference in standard deviations of the queries' differences, which are not weighted; NaN where those do not
        vary.
    wins, ties, losses : int
        Queries that a ranks better, equally well, worse.
    mean_a, mean_b : float
        Means over the queries that both score.
    queries : int
        The number of these.
    metric : str or None
        The metric, None where another place says it.
    """

    difference: float
    low: float
    high: float
    p_randomisation: float
    p_t: float
    p_wilcoxon: float
    effect: float
    wins: int
    ties: int
    losses: int
    level: float = 0.95
    mean_a: float = math.nan  # older results have none
    mean_b: float = math.nan
    queries: int = 0
    metric: str | None = None

    def __repr__(self) -> str:
        """Return the means, the difference with its interval, p and the counts in one line."""
        return (
            f"Comparison({self.metric or 'metric'}: {self.mean_a:.4f} against {self.mean_b:.4f}, "
            f"{self.difference:+.4f} "
            f"[{self.low:+.4f}, {self.high:+.4f}], p = {self.p_randomisation:.4f}, {self.wins} wins, {self.ties} ties, "
            f"{self.losses} losses on {self.queries} queries)"
        )

    def as_dict(self) -> Json:
        """Return everything as JSON values, NaN as None; the interval is a list of its limits."""
        plain = {name: None if value != value else value for name, value in asdict(self).items() if value is not None}
        plain["interval"] = [plain.pop("low"), plain.pop("high")]
        return plain
