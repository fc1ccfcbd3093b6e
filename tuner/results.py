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

from ranktune.solvers.errors import StudyError
from ranktune.solvers.model import Model, load_model
from ranktune.solvers.space import Value
from ranktune.tuner.statistics import Interval

CHOSEN = "chosen per fold"


@dataclass(frozen=True)
class Row:
    """One line of the leaderboard: the best configuration of a solver by validation.

    vali, test      mean metric with a bootstrap interval over queries; test is None without test queries
    again           the same on fresh folds over training and validation queries, by which was chosen between
                    candidates that vali does not tell apart; None where it did
    p_value         two-sided, paired by query, against the chosen model (on test, else on validation); None for itself
    nonzeros        features that the model looks at; microseconds: processor time to score one document
    seconds         processor time to learn; trials: configurations of this solver that finished
    params          None where the splits have different ones
    """

    solver: str
    params: Mapping[str, Value] | None
    vali: Interval
    again: Interval | None
    test: Interval | None
    p_value: float | None
    nonzeros: float
    microseconds: float
    seconds: float
    trials: int


@dataclass(frozen=True)
class Failure:
    """A trial that failed and why; number is None where the best configuration could not be learnt again."""

    split: str
    number: int | None
    solver: str
    error: str


@dataclass(frozen=True)
class SplitResult:
    """What was found on one split. model is the path of the chosen model."""

    name: str
    best: Row
    leaderboard: tuple[Row, ...]
    test_metrics: Mapping[str, float]
    trials: int
    failures: tuple[Failure, ...]
    model: str


@dataclass(frozen=True)
class Result:
    """What a study found.

    best             the chosen row; over several splits its means
    leaderboard      rows, the chosen first, then by validation
    test_metrics     metric -> mean on test of the chosen model
    trials           finished trials, all splits together; failures says which of them failed
    seconds          wall time of the run that finished the study
    model            path of the chosen model; of several splits, of the one with the highest validation score
    """

    study: str
    data: str
    metric: str
    best: Row
    leaderboard: tuple[Row, ...]
    test_metrics: Mapping[str, float]
    trials: int
    failures: tuple[Failure, ...]
    seconds: float
    model: str
    folder: str
    folds: tuple[SplitResult, ...] = field(default=())

    @property
    def best_model(self) -> Model:
        """The chosen model, loaded: predict, save."""
        return load_model(self.model)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON knows it; the interval of the test metric stands beside its mean."""
        plain = {name: value for name, value in asdict(self).items() if name != "folds"}
        plain["best"] = _chosen(self.best, self.test_metrics)
        plain["leaderboard"] = [_row(row) for row in self.leaderboard]
        if len(self.folds) > 1:
            plain["folds"] = [_split(part) for part in self.folds]
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
        if not isinstance(found, dict) or not {field.name for field in fields(Result)} - {"folds"} <= set(found):
            raise ValueError("it is no result of a study")
    except (OSError, ValueError) as error:
        raise StudyError(f"cannot read {path}: {error}. `ranktune resume` makes it again from the record.") from None
    return found


def _row(row: Row) -> dict[str, Any]:
    plain = asdict(row)
    for name in ("vali", "again", "test"):
        interval = getattr(row, name)
        plain[name] = None if interval is None else interval.mean
        plain[f"{name}_interval"] = None if interval is None else [interval.low, interval.high]
    return plain


def _chosen(row: Row, test_metrics: Mapping[str, float]) -> dict[str, Any]:
    return _row(row) | {"test_metrics": dict(test_metrics)}


def _split(part: SplitResult) -> dict[str, Any]:
    plain = asdict(part)
    plain["best"] = _chosen(part.best, part.test_metrics)
    plain["leaderboard"] = [_row(row) for row in part.leaderboard]
    return plain


def _finite(value: Any) -> Any:
    """Return value with NaN as null: JSON has no NaN."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    return value
