"""The results of a study: the rows of the leaderboard, the chosen model of each split, and their JSON.

A split is one train / validation / test division; a LETOR folder has five. Test values of several splits are means
over the splits, as published tables have them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranktune.solvers.core.errors import Damaged, LeftOut, StudyError
from ranktune.tuner.selection.conclusion import Conclusion, conclude
from ranktune.tuner.selection.rows import (
    Composition,
    Failure,
    Gain,
    LeaderboardRow,
    Preference,
    Restriction,
    TuningGain,
    alternatives,
)
from ranktune.tuner.selection.typed import typed
from ranktune.tuner.splits.seals import check_sealed, write_sealed
from ranktune.tuner.statistics.measured import Interval

if TYPE_CHECKING:  # they load NumPy, which what reads a result does without
    from ranktune.solvers.core.arrays import Json
    from ranktune.solvers.models.base import Model

VERSION = 1
"""Of the JSON of a result; a result of an older release has none."""

_FIRST = ("study", "data", "metric", "best")
"""What comes first in the JSON of a result."""


@dataclass(frozen=True, kw_only=True)
class SplitResult:
    """The result of one split, or of all of them.

    Attributes
    ----------
    name : str
        Name of the split; empty over all.
    leaderboard : tuple of LeaderboardRow
        The chosen row first, then by validation; over several splits their means.
    estimate : Interval
        Mean over all queries like these, by validation, corrected for the selection bias; of several splits the mean.
    expected_on_test : Interval or None
        The estimate with limits for the mean over this number of test queries; None without them. A test value outside
        indicates that the test queries differ from the others.
    test_metrics : mapping of str to float
        Metric -> mean over the test queries of the chosen model.
    trials : int
        Finished trials; failures are those that failed, stopped the number of those stopped early.
    failures : tuple of Failure
        The failed trials and their errors.
    model : str
        Path of the chosen model; of several splits that of the highest estimate; of a nested plan the last, which was
        trained on all queries.
    stopped : int
        Trials that were stopped early.
    set_aside : str
        Why the best trial is in no row of the leaderboard, empty if it is in one.
    composition : Composition or None
        The best composition; None over several splits, and where none was tried.
    """

    name: str = ""
    leaderboard: tuple[LeaderboardRow, ...]
    estimate: Interval
    expected_on_test: Interval | None
    test_metrics: Mapping[str, float]
    trials: int
    failures: tuple[Failure, ...]
    model: str
    stopped: int = 0
    set_aside: str = ""
    composition: Composition | None = None

    @property
    def best(self) -> LeaderboardRow:
        """The chosen row; over several splits its means."""
        return self.leaderboard[0]

    @property
    def alternatives(self) -> dict[str, str]:
        """Rows by what they are good for.

        "smallest" is the smallest that is shown to be as good as the chosen row; "knee" is the row after which more
        features gain little.
        """
        return alternatives(self.leaderboard)

    def as_dict(self) -> Json:
        """Return everything as JSON values; intervals stand beside their means."""
        rows = [_plain(row) | {"kind": row.kind} for row in self.leaderboard]
        best = rows[0] | {"test_metrics": _plain(self.test_metrics)}
        values: Json = _plain(self) | {"best": best, "leaderboard": rows, "alternatives": self.alternatives}
        return values


@dataclass(frozen=True, kw_only=True)
class Result(SplitResult):
    """The conclusion of a study: that over all its splits, and those of the single ones.

    Attributes
    ----------
    study, data, metric : str
        Name of the study, description of its data, and the metric of the choice.
    seconds : float
        Wall time of the run that finished the study.
    folder : str
        Folder of the study.
    queries, test_queries : int
        Queries that models were chosen by, and queries that test them, over all splits.
    baselines : tuple of str
        A feature that may be the score of the ranking of today, by its name; empty where a baseline was given.
    ended_early : str
        Why the search ended before its time, which solvers were not tried, and what else there was no time for.
    folds : tuple of SplitResult
        The results of the single splits where there are several.
    restriction : Restriction or None
        What the systems that must load the model cost; None if none was named.
    tuning : TuningGain or None
        What tuning gained over the solvers' defaults on the test queries; None without them.
    gain : Gain or None
        The chosen model against the baseline; None if none was given.
    clicks : Preference or None
        With a click log, what would have been chosen by clicks, or by judgments where clicks choose.
    monotone : mapping of str to int
        The monotone constraints that the chosen model keeps: sign by feature.
    stages : mapping of str to float
        The seconds of each stage in the run that finished the study, over all splits.
    left_out : tuple of LeftOut
        What failed after the trials, with tracebacks; the result is without it.
    is_complete : bool
        False from the answer to the end of a study: the chosen model is the only row yet.

    Examples
    --------
    >>> from ranktune.tuner.selection.results import Result
    >>> from ranktune.tuner.selection.rows import LeaderboardRow
    >>> from ranktune.tuner.statistics.measured import Interval
    >>> score = Interval(0.61, 0.55, 0.67)
    >>> row = LeaderboardRow(
    ...     "RankSVM", {"C": 1.0}, score, None, None, None, None, None, None, "chosen", 46, 368, 0.1, 2.0, 20
    ... )
    >>> result = Result(
    ...     study="demo", data="train.txt", metric="ndcg@10", leaderboard=(row,), estimate=score, expected_on_test=None,
    ...     test_metrics={}, trials=20, failures=(), seconds=60.0, model="demo/model.json", folder="demo",
    ... )
    >>> result.as_dict()["best"]["vali_interval"]
    [0.55, 0.67]
    """

    study: str
    data: str
    metric: str
    seconds: float
    folder: str
    queries: int = 0
    test_queries: int = 0
    baselines: tuple[str, ...] = ()
    ended_early: str = ""
    folds: tuple[SplitResult, ...] = ()
    restriction: Restriction | None = None
    tuning: TuningGain | None = None
    gain: Gain | None = None
    clicks: Preference | None = None
    monotone: Mapping[str, int] = field(default_factory=dict)
    stages: Mapping[str, float] = field(default_factory=dict, compare=False)
    left_out: tuple[LeftOut, ...] = ()
    is_complete: bool = True

    @property
    def best_model(self) -> Model:
        """The chosen model, loaded: predict, save."""
        from ranktune.solvers.models.base import load_model

        return load_model(self.model)

    @property
    def conclusion(self) -> Conclusion:
        """What to use, what to expect of it, what it gains, and what to do next, in sentences."""
        return conclude(self)

    def as_dict(self) -> Json:
        """Return everything as JSON values; intervals stand beside their means."""
        values = super().as_dict() | {"gain": None if self.gain is None else self.gain.as_dict(), "version": VERSION}
        values["conclusion"] = _plain(self.conclusion)
        folds = {"folds": [fold.as_dict() for fold in self.folds]} if self.folds else {}
        names = [name for name in dict.fromkeys((*_FIRST, *values)) if name not in ("name", "folds")]
        return {name: values[name] for name in names} | folds

    def save(self, path: Path) -> None:
        """Write the JSON atomically."""
        write_sealed(path, json.dumps(self.as_dict(), indent=1))


def load_result(path: Path) -> Result:
    """Return the result of a study. Raises StudyError where it cannot be read."""
    try:
        check_sealed(path)
        values = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(values, dict) or "best" not in values:
            raise ValueError("it is no result of a study")
        if values.get("version", 0) > VERSION:
            raise ValueError("it is of a newer RankTune")
        return typed(Result, values)
    except Damaged as damage:
        raise StudyError(f"{damage} `ranktune resume` makes it again from the record.") from None
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise StudyError(f"cannot read {path}: {error}. `ranktune resume` makes it again from the record.") from None


def _plain(value: Any) -> Any:
    """Return value as JSON values: of a dataclass a dict in which intervals stand beside means, of NaN null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if not is_dataclass(value):
        return value
    plain = {}
    for f in fields(value):
        inner = getattr(value, f.name)
        if "Interval" in str(f.type):
            mean, low, high = (None, None, None) if inner is None else (inner.mean, inner.low, inner.high)
            plain[f.name] = _plain(mean)
            plain[f"{f.name}_interval"] = None if inner is None else _plain([low, high])
        else:
            plain[f.name] = _plain(inner)
    return plain
