"""What a study concludes: rows of the leaderboard, the chosen model of each split, and their JSON.

A split is one train / validation / test division; a LETOR folder has five. Test values of several splits are means
over the splits, as published tables have them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from ranktune.solvers.core.errors import StudyError
from ranktune.solvers.core.space import Value
from ranktune.solvers.models.base import Model, load_model
from ranktune.tuner.statistics.comparisons import Comparison
from ranktune.tuner.statistics.intervals import Interval

CHOSEN = "chosen per fold"
BLEND, LINEAR_BLEND = "Blend", "LinearBlend"
"""Rows that are no solver: sums of models of several solvers, and of linear ones, which are one linear model."""
FIRST, ALIKE, WORSE, BETTER = "chosen", "not told apart", "worse", "better"
"""Verdicts on a row beside the chosen one."""


@dataclass(frozen=True)
class Row:
    """One line of the leaderboard: the best configuration of a solver by validation, or a blend.

    vali, test      mean metric with a bootstrap interval over queries; test is None without test queries, vali for a
                    blend, which no trial has scored
    again           the same on fresh folds over training and validation queries, by which was chosen between
                    candidates; None where it was not scored there
    difference      this row less the chosen one, with its interval, paired by query: on test, else on fresh folds, else
                    on validation; None for the chosen itself, and where they were not scored on the same queries
    p_value         two-sided, of that difference; p_holm: corrected for all the rows compared (Holm 1979)
    against         the same comparison by other tests (t, Wilcoxon), with its effect size, wins, ties and losses
    verdict         "chosen", or against it at p_holm <= 0.05: "not told apart", "worse", "better"
    nonzeros        features that the model looks at; bytes: of its numbers
    microseconds    processor time to score one document; seconds: to learn; trials: configurations that were
                    judged, in full or until they were for sure behind
    params          None where the splits have different ones; of a blend the shares of its members
    """

    solver: str
    params: Mapping[str, Value] | None
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

    @property
    def is_blend(self) -> bool:
        """Whether several models were put together."""
        return self.solver in (BLEND, LINEAR_BLEND)


@dataclass(frozen=True)
class Failure:
    """A trial that failed and why; number is None where the best configuration could not be learnt again."""

    split: str
    number: int | None
    solver: str
    error: str


@dataclass(frozen=True)
class SplitResult:
    """What was found on one split; the fields are as in Result."""

    name: str
    best: Row
    estimate: Interval
    expected_on_test: Interval | None
    alternatives: Mapping[str, str]
    leaderboard: tuple[Row, ...]
    test_metrics: Mapping[str, float]
    trials: int
    failures: tuple[Failure, ...]
    model: str
    stopped: int = 0


@dataclass(frozen=True)
class Result:
    """What a study found.

    best             the chosen row; over several splits its means
    estimate         what validation promises of the chosen model, corrected for its having been chosen, with its
                     interval: of the mean over all queries like these; over several splits the means
    expected_on_test the same with limits for the mean of so few test queries; None without them. A test value outside
                     says that test queries are unlike the others
    alternatives     "smallest", "fastest": rows not told apart from the best that take the least room, the least time;
                     "knee": the row after which more features stop paying
    leaderboard      rows, the chosen first, then by validation
    test_metrics     metric -> mean on test of the chosen model
    trials           finished trials, all splits together; failures says which of them failed, stopped how many of
                     them were stopped early, for sure behind the best
    seconds          wall time of the run that finished the study
    model            path of the chosen model; of several splits, of the one with the highest estimate; of a nested
                     plan, of the last, which was learnt from all queries
    """

    study: str
    data: str
    metric: str
    best: Row
    estimate: Interval
    expected_on_test: Interval | None
    alternatives: Mapping[str, str]
    leaderboard: tuple[Row, ...]
    test_metrics: Mapping[str, float]
    trials: int
    failures: tuple[Failure, ...]
    seconds: float
    model: str
    folder: str
    stopped: int = 0
    folds: tuple[SplitResult, ...] = field(default=())

    @property
    def best_model(self) -> Model:
        """The chosen model, loaded: predict, save."""
        return load_model(self.model)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON knows it; the interval of the test metric stands beside its mean."""
        plain = {name: value for name, value in asdict(self).items() if name != "folds"}
        plain |= _parts(self)
        if len(self.folds) > 1:
            plain["folds"] = [asdict(part) | _parts(part) for part in self.folds]
        finite: dict[str, Any] = _finite(plain)
        return finite

    def save(self, path: Path) -> None:
        """Write the JSON so that a reader sees all of it or none."""
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(self.as_dict(), indent=1), encoding="utf-8")
        temporary.replace(path)


def load_result(path: Path) -> dict[str, Any]:
    """Return the JSON of a finished study. Raises StudyError where it cannot be read."""
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict) or not {field.name for field in fields(Result)} - {"folds", "stopped"} <= set(
            found
        ):
            raise ValueError("it is no result of a study")
        found.setdefault("stopped", 0)  # of a time when none was
    except (OSError, ValueError) as error:
        raise StudyError(f"cannot read {path}: {error}. `ranktune resume` makes it again from the record.") from None
    return found


def _row(row: Row) -> dict[str, Any]:
    plain = asdict(row) | {"kind": "ensemble" if row.is_blend else "solver"}
    for name in ("vali", "again", "test", "difference"):
        plain |= _interval(name, getattr(row, name))
    return plain


def _interval(name: str, interval: Interval | None) -> dict[str, Any]:
    if interval is None:
        return {name: None, f"{name}_interval": None}
    return {name: interval.mean, f"{name}_interval": [interval.low, interval.high]}


def _parts(found: Result | SplitResult) -> dict[str, Any]:
    """Return what needs more than asdict: intervals stand beside their means."""
    return {
        "best": _row(found.best) | {"test_metrics": dict(found.test_metrics)},
        "leaderboard": [_row(row) for row in found.leaderboard],
        **_interval("estimate", found.estimate),
        **_interval("expected_on_test", found.expected_on_test),
    }


def _finite(value: Any) -> Any:
    """Return value with NaN as null: JSON has no NaN."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    return value
