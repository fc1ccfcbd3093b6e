"""The rows of a leaderboard, and what is said of the chosen one: its gain over a baseline, what systems cost, failures.

It does not load NumPy, for what reads a result does without.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ranktune.tuner.selection.typed import typed
from ranktune.tuner.statistics.measured import Comparison, Interval

if TYPE_CHECKING:
    from ranktune.solvers.core.arrays import Json, JsonView

CHOSEN = "chosen per fold"
BLEND, LINEAR_BLEND, TREE_BLEND, DISTILLED = "Blend", "LinearBlend", "TreeBlend", "Distilled"
"""Rows of blends: of models of several solvers; of linear models, which is a linear model itself; of trees likewise;
and a copy of the first in one model that a system can load."""
BASELINE = "baseline"
"""Row of the ranking that the chosen model is compared with."""
FIRST, ALIKE, WORSE, BETTER = "chosen", "not told apart", "worse", "better"
"""Verdicts on a row compared with the chosen model."""


PARTS = ("loss", "pair_weight", "penalty", "optimizer")
"""The parameters that name the parts of a composition."""
CLICKS = "clicks.json"
"""What the click log of a study has and lacks, in the folder of the study."""
MARGIN = 0.01
"""A model is as good as another that is better by less, in units of the metric."""
NORMAL = 1.96


@dataclass(frozen=True)
class LeaderboardRow:
    """One line of the leaderboard: the best configuration of a solver by validation, or a blend.

    Attributes
    ----------
    solver : str
        Name of the solver or blend; "baseline" for the ranking from outside.
    params : mapping of str to value, or None
        Its parameters, of a blend the shares of its members; None where the splits have different ones.
    vali, test : Interval or None
        Mean metric with a bootstrap interval over queries; test is None without test queries, vali for a blend, which
        was not a trial.
    again : Interval or None
        The same on fresh folds over training and validation queries, by which candidates are compared; None where it
        was not rescored.
    difference : Interval or None
        This row less the chosen row, with its interval, paired by query: on test, else on fresh folds, else on
        validation; None for the chosen row, and without common queries.
    validated : Interval or None
        The same on fresh folds or validation where difference is on test; else None.
    p_value, p_holm : float or None
        Two-sided, of that difference; p_holm is corrected for all the rows compared (Holm 1979).
    against : Comparison or None
        The same comparison by other tests (t, Wilcoxon), with its effect size, wins, ties and losses.
    verdict : str
        "chosen", or how it does against the chosen row by the interval and by p_holm <= 0.05.
    nonzeros, bytes : float
        Features that the model uses; size of its numbers.
    microseconds, seconds : float
        Processor time to score one document; to train.
    trials : int
        Configurations evaluated, in full or until they were stopped.
    is_served : bool
        Whether the systems that the study serves can load it.
    cost : float or None
        What the features of the model cost, None where the study gives no costs.
    needs_queries : bool
        Whether it compares the documents of a query, so that all of them are needed to score one.
    beside : Interval or None
        With a click log the mean on test of the first metric of clicks where judgments choose, or of judgments where
        clicks choose; else None.
    feature : str
        The feature of BestFeature, or its number from 1; empty for others, and where the splits have different ones.
    """

    solver: str
    params: Mapping[str, float | int | str | bool | None] | None
    vali: Interval | None
    again: Interval | None
    test: Interval | None
    difference: Interval | None
    p_value: float | None
    p_holm: float | None
    against: Comparison | None
    verdict: str
    nonzeros: float
    bytes: float
    microseconds: float
    seconds: float
    trials: int
    is_served: bool = True
    cost: float | None = None
    needs_queries: bool = False
    beside: Interval | None = None
    feature: str = ""
    validated: Interval | None = None

    @property
    def is_baseline(self) -> bool:
        """Whether it is the ranking from outside that the chosen model is compared with."""
        return self.solver == BASELINE

    @property
    def kind(self) -> str:
        """What it is: "baseline", "ensemble" or "solver"."""
        return "baseline" if self.is_baseline else "ensemble" if self.is_blend else "solver"

    @property
    def is_blend(self) -> bool:
        """Whether it is a blend of several models."""
        return self.solver in (BLEND, LINEAR_BLEND, TREE_BLEND, DISTILLED)


@dataclass(frozen=True)
class Gain:
    """The chosen model against the baseline, on the same queries.

    Attributes
    ----------
    baseline : str
        What it is: a path, a column, an object in memory.
    part : str
        "test", or "validation" where there are no test queries: the mean of the chosen model is then corrected for the
        selection bias.
    comparison : Comparison
        The chosen model less the baseline, paired by query.
    """

    baseline: str
    part: str
    comparison: Comparison

    @classmethod
    def of_json(cls, values: JsonView) -> Gain:
        """Return the gain that as_dict has written."""
        low, high = values["interval"]
        comparison = typed(Comparison, {**values, "low": low, "high": high})
        return cls(typed(str, values["baseline"]), typed(str, values["part"]), comparison)

    def as_dict(self) -> Json:
        """Return the comparison with its baseline and part as JSON values."""
        return {"baseline": self.baseline, "part": self.part, **self.comparison.as_dict()}


@dataclass(frozen=True)
class Restriction:
    """What it costs that the systems of `serve` must be able to load the model.

    systems     their names
    best        the row that would have been chosen without them; over several splits that of most of them
    cost        the metric by validation of the chosen model less that of best, paired by query, with its interval;
                None where best itself can be loaded
    untried     solvers whose models cannot be loaded, which had no trials
    distilled   whether the chosen model is a copy of best in one model that can be loaded; over splits, on all of them
    loss        the metric of best less that of the copy, on development queries whose documents the copy was not made
                from; None if none was made
    """

    systems: tuple[str, ...]
    best: str
    cost: Interval | None
    untried: tuple[str, ...]
    distilled: bool
    loss: Interval | None


@dataclass(frozen=True)
class Composition:
    """The best composition of a loss, a pair weight, a penalty and an optimizer.

    Attributes
    ----------
    parts : str
        Their names.
    tried, different : int
        Configurations that were tried, and how many different compositions they have.
    lead : Interval or None
        Its metric by validation less that of the first configuration, the default where none was given, paired by
        query; None where the first is the best, or has no score in full.
    """

    parts: str
    tried: int
    different: int
    lead: Interval | None


@dataclass(frozen=True)
class Failure:
    """A failed trial and its error; number is None where the refit of a chosen configuration failed."""

    split: str
    number: int | None
    solver: str
    error: str


def combined(*evidence: Interval | None) -> Interval | None:
    """Return the mean of intervals of independent queries, weighted by precision; None without any that has a width."""
    informative = [each for each in evidence if each is not None and each.high > each.low]
    if not informative:
        return None
    weights = [(2 * NORMAL / (each.high - each.low)) ** 2 for each in informative]
    mean = sum(weight * each.mean for weight, each in zip(weights, informative, strict=True)) / sum(weights)
    half = NORMAL / math.sqrt(sum(weights))
    return Interval(mean, mean - half, mean + half)


def is_as_good(row: LeaderboardRow, margin: float = MARGIN) -> bool:
    """Return whether a row is shown to be as good as the chosen one: not worse by margin or more."""
    difference = combined(row.difference, row.validated)
    return row.verdict != "worse" and difference is not None and difference.low > -margin


def alternatives(rows: Sequence[LeaderboardRow]) -> dict[str, str]:
    """Return the smallest row that is shown to be as good as the chosen one, and the knee, by name."""
    from ranktune.tuner.statistics.pareto import Option, knee  # it loads NumPy

    models = [row for row in rows if row.solver != CHOSEN and row.is_served and not row.is_baseline]
    at_knee = knee([Option(row.solver, quality(row), nonzeros=row.nonzeros) for row in models], "nonzeros")
    named = {"knee": at_knee.label} if at_knee else {}
    smallest = smallest_as_good(rows)
    return named if smallest is None else named | {"smallest": smallest.solver}


def smallest_as_good(rows: Sequence[LeaderboardRow]) -> LeaderboardRow | None:
    """Return the smallest row that is shown to be as good as the first; None without one of half its size."""
    good = [row for row in rows[1:] if row.is_served and not row.is_baseline and is_as_good(row)]
    smaller = [row for row in good if 2.0 * row.bytes <= rows[0].bytes]
    return min(smaller, key=lambda row: (row.bytes, -quality(row)), default=None)


def quality(row: LeaderboardRow) -> float:
    """Return the mean on fresh folds, else by validation; NaN where a row has neither."""
    interval = row.again or row.vali
    return interval.mean if interval else math.nan


@dataclass(frozen=True)
class Preference:
    """What clicks would have chosen where judgments chose, or judgments where clicks did, on the test queries.

    metric   the first metric beside the one that chose: of clicks, or of judgments
    best     the row that it would choose; "" without test queries
    beside   this row less the chosen one by that metric, paired by query; None where it is the chosen one
    own      the same by the metric that chose
    log      what the click log has and lacks
    """

    metric: str
    best: str
    beside: Interval | None
    own: Interval | None
    log: Mapping[str, Any]


@dataclass(frozen=True)
class TuningGain:
    """What tuning gained: the delivered model against the best of the solvers' defaults, on the test queries.

    default  the solver whose defaults are best by validation; over several splits that of most of them
    gain     the metric of the delivered model less that of the default, paired by query, with its interval; None
             where the delivered model is the default itself
    p_value  two-sided, of that gain
    """

    default: str
    gain: Interval | None
    p_value: float | None


def of_log(log: Mapping[str, Any], metric: str) -> str:
    """Return how much of the data a click log has, and what does not count."""
    clipped = log["clipped"][metric.partition("@")[0].partition(":")[0]]
    unknown = log["unknown"]
    left_out = f" {unknown:,} impressions at positions of unknown examination do not count." if unknown else ""
    return (
        f"The log has {log['searches_of_data']:,} searches of {log['queries_in_log']:,} of {log['queries']:,} queries; "
        f"{log['never_shown']:,} of their {log['documents']:,} documents were never shown, and count as not clicked. "
        f"{clipped:.1%} of the clicks have their weight clipped to {log['clip']:g}.{left_out}"
    )
