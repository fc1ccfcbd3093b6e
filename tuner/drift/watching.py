"""Watching a study: new data beside what it was tuned on, one alarm for all of it, and what was found day by day.

The features are tested by one exact test (`ranktune.tuner.drift.quality`), the metric by another one. Each has the
rate 1 - sqrt(1 - alarm): if nothing has changed, and the two are independent, one of them is an alarm with the
probability that is asked for. A part that cannot be watched leaves its rate to the other.

The days on which a study was watched have one file each in its folder: drift/2026-11-28.json.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Unpack, cast

import numpy as np

from ranktune.solvers.core.arrays import Floats, Json
from ranktune.solvers.core.errors import DataError, ParameterError, StudyError, listed
from ranktune.solvers.core.files.atomic import locked
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.parsing.options import ReadOptions
from ranktune.solvers.data.sources import catalogue
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.metrics.presets import is_of_clicks
from ranktune.solvers.models.base import Model, load_model
from ranktune.tuner.drift.quality import (
    FALSE,
    NORMAL,
    ExpectedQuality,
    Moved,
    Quality,
    largest_difference,
    moved,
    quality,
)
from ranktune.tuner.drift.reference import REFERENCE, Reference
from ranktune.tuner.retuning.decision import REFIT
from ranktune.tuner.retuning.versions import decision_of, delivery_of
from ranktune.tuner.selection.evidence import EVIDENCE, read_evidence
from ranktune.tuner.selection.results import load_result
from ranktune.tuner.splits.seals import check_sealed, is_written, read_sealed, write_sealed
from ranktune.tuner.statistics.measured import Interval
from ranktune.tuner.study.custom import restore_custom
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.home import find_folder, home_folder, writing

LEAST = 0.001
"""Rate of alarms below which permutations would be too many."""
DAYS = "drift"
"""Folder in that of the study."""


@dataclass(frozen=True)
class Drift:
    """What new data say of a study.

    Attributes
    ----------
    study, day, data : str
        The study, the day of the new data, and what they are.
    alarm : bool
        Whether the features or the metric have changed, at the given rate of false alarms.
    rate : float
        That rate: the share of days with an alarm where nothing changes.
    queries, documents : int
        Sizes of the new data.
    tested, reference_queries : int
        The queries of the new data by which features are tested, and those of the training data.
    p_features : float or None
        p value of "no feature has moved"; None where they are not tested.
    rate_part : float
        The p value at which one part, features or metric, is an alarm.
    features : tuple of Moved
        Every feature that is watched, those that moved most surely first.
    quality : Quality or None
        The metric; None without grades or clicks.
    notes : tuple of str
        What could not be watched, and why.
    """

    study: str
    day: str
    data: str
    alarm: bool
    rate: float
    queries: int
    documents: int
    tested: int
    reference_queries: int
    p_features: float | None
    rate_part: float
    features: tuple[Moved, ...]
    quality: Quality | None
    notes: tuple[str, ...]

    @property
    def moved(self) -> tuple[Moved, ...]:
        """The features that have moved, at a false discovery rate of 5 percent."""
        return tuple(each for each in self.features if each.q <= FALSE)

    def as_dict(self) -> Json:
        """Return everything as JSON values."""
        return asdict(self) | {"moved": [each.feature for each in self.moved]}


def watch(
    name: str,
    data: object,
    *,
    home: str | Path | None = None,
    reference: object = None,
    clicks: Sequence[str | Path] | str | Path = (),
    alarm: float = 0.05,
    day: str | None = None,
    save: bool = True,
    **options: Unpack[ReadOptions],
) -> Drift:
    """Return whether new data are like those that a study was tuned on, and its model as good as promised.

    Parameters
    ----------
    name : str
        A finished study.
    data : str, Path, data frame, tuple or Queries
        The new data: what `read` takes, with the columns of the study. Grades are not needed.
    home : str or Path, optional
        The folder of the studies.
    reference : str, Path, data frame, tuple or Queries, optional
        The training data, for a study of an earlier release, which has kept nothing of them.
    clicks : str, Path or sequence of these, optional
        The files of a click log of the new data, for a study whose metric is of clicks.
    alarm : float, default=0.05
        The share of days with an alarm where nothing changes.
    day : str, optional
        The day of the data, such as "2026-11-28". (default: today)
    save : bool, default=True
        Whether the study keeps the result, in place of one of the same day; its pages show it.
    **options
        Options of read, where they differ from those of the study.

    Returns
    -------
    Drift
        alarm, the features, and the metric with its interval; as_dict() gives plain values.

    Raises
    ------
    StudyError
        There is no such study, or it is not finished.
    DataError
        The data cannot be read, or lack features of the model.
    ParameterError
        alarm or day cannot be.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import ranktune
    >>> from ranktune.tuner.drift import watch
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(2000, 3)), np.repeat(np.arange(200), 10)
    >>> y = (X[:, 0] + rng.normal(size=2000) > 1).astype(int)
    >>> home = tempfile.mkdtemp()
    >>> _ = ranktune.tune((X, y, qid), solvers="RidgeRanker", trials=2, name="shop", home=home, verbose=False)
    >>> watch("shop", (X + [0, 0, 1], y, qid), home=home, save=False).alarm
    True
    """
    if not LEAST <= alarm <= 1.0 - LEAST:
        raise ParameterError(f"alarm={alarm!r}: it must be a share from {LEAST} to {1.0 - LEAST}, such as 0.05.")
    day, where = checked_day(day), home_folder(home)
    folder = find_folder(where, name)
    if not folder.has_result:
        raise StudyError(f"study '{name}' is not finished: it has no model yet. `ranktune resume {name}` goes on.")
    delivery, notes = delivery_of(where, name), list[str]()
    holder = delivery.holder(where)
    file = holder.path / delivery.model
    study, result, place = holder.study(), load_result(holder.result), file.parent
    if delivery.study != name:
        notes.append(f"This is the current model of '{name}', of version '{delivery.study}'.")
    restore_custom(name, study.custom)
    check_sealed(file)
    model = load_model(file)
    columns = cast(ReadOptions, {**study.read_options, **options})
    queries, graded = _read(model, data, columns, notes)
    if is_of_clicks(study.metric):
        queries, graded = _with_clicks(queries, study, clicks, notes)
    before = None
    if reference is not None:
        before = Reference.of(model, catalogue.read_for(model, reference, graded=False, **columns))
    elif is_written(place / REFERENCE):
        before = Reference.read(place / REFERENCE)
    else:
        notes.append("The study kept nothing of its training data. Give them (reference=) to test the features.")
    fold = next((each for each in result.folds if each.name == place.name), result)
    values = _values(model, queries, study.metric, notes) if graded else None
    rate = rate_of(alarm, (before is not None) + (values is not None))
    generator = np.random.default_rng([study.seed, 11])
    now = None if before is None else Reference.of(model, queries, before)
    p = None if before is None or now is None else largest_difference(before, now, generator, rate)
    measured = None
    if values is not None:
        ids = [str(query) for query in queries.query_ids]
        decided = decision_of(holder) or {"decision": "", "means": {}}
        refitted = decided["decision"] == REFIT
        promised = Interval(*decided["means"][REFIT]) if refitted else fold.estimate
        expected = _promised(promised) if refitted else _expected(place, study.metric, promised)
        measured = quality(study.metric, ids, values, queries.query_weights, expected, promised, rate)
    drift = Drift(
        study=name,
        day=day,
        data=str(data) if isinstance(data, str | Path) else f"a {type(data).__name__}",
        alarm=(p is not None and p <= rate) or (measured is not None and not measured.holds),
        rate=alarm,
        queries=queries.n_queries,
        documents=queries.n_documents,
        tested=0 if now is None else len(now.by_query),
        reference_queries=0 if before is None else len(before.by_query),
        p_features=p,
        rate_part=rate,
        features=() if before is None or now is None else moved(before, now),
        quality=measured,
        notes=tuple(notes),
    )
    if save:
        write_day(folder.path, day, drift.as_dict())
    return drift


def rate_of(alarm: float, parts: int) -> float:
    """Return the rate of each of so many independent parts, one of which is an alarm at the given rate."""
    return float(1.0 - (1.0 - alarm) ** (1.0 / max(parts, 1)))


def _read(model: Model, data: object, options: ReadOptions, notes: list[str]) -> tuple[Queries, bool]:
    """Return the queries of new data, and whether they have grades."""
    try:
        return catalogue.read_for(model, data, **options), True
    except DataError as error:
        queries = catalogue.read_for(model, data, graded=False, **options)
        notes.append(f"The metric is not watched, because there are no grades: {error}")
        return queries, False


def _with_clicks(
    queries: Queries, study: Study, clicks: Sequence[str | Path] | str | Path, notes: list[str]
) -> tuple[Queries, bool]:
    """Return queries with what a click log tells of them, and whether there is one."""
    from ranktune.solvers.clicks.judging.values import open_gains

    if not clicks:
        notes.append(f"The metric is not watched: {study.metric} is of clicks. Give the log of the new data (clicks=).")
        return queries, False
    logs = (clicks,) if isinstance(clicks, str | Path) else tuple(clicks)
    gains = open_gains(logs, study.click_columns, study.propensities)[1]
    gains.check(gains.about([queries]), queries, listed(logs))
    return gains.on(queries), True


def _values(model: Model, queries: Queries, metric: str, notes: list[str]) -> Floats | None:
    """Return the metric of each query, None where fewer than two have one."""
    values = parse_metric(metric).per_query(model.predict(queries), queries)
    if (~np.isnan(values)).sum() > 1:
        return values
    notes.append(f"The metric is not watched: {metric} skips all queries but {(~np.isnan(values)).sum()}.")
    return None


def _expected(place: Path, metric: str, estimate: Interval) -> ExpectedQuality:
    """Return what a split of the study found of its chosen model."""
    if is_written(place / EVIDENCE):
        evidence = read_evidence(place / EVIDENCE)
        if metric in evidence.values and not np.isnan(values := evidence.values[metric][0]).all():
            return ExpectedQuality.of(evidence.part, evidence.queries, values, evidence.weights, estimate)
    return _promised(estimate)


def _promised(estimate: Interval) -> ExpectedQuality:
    """Return what is known of a model by its estimate alone."""
    return ExpectedQuality("vali", (), np.zeros(0), estimate.mean, (estimate.high - estimate.low) / (2 * NORMAL), 1e6)


def checked_day(day: str | None) -> str:
    """Return a day, by default today. Raises ParameterError where it is none."""
    try:
        return (date.today() if day is None else date.fromisoformat(day)).isoformat()
    except ValueError:
        raise ParameterError(f"day is '{day}'. Give a date such as 2026-11-28.") from None


def write_day(study: Path, day: str, content: Json) -> None:
    """Write what was found on a day into the folder of a study, in place of what was found on it before."""
    with writing(study):
        (study / DAYS).mkdir(exist_ok=True)
        with locked(study / DAYS):
            write_sealed(study / DAYS / f"{day}.json", json.dumps(content, indent=1))


def read_days(study: Path) -> list[Json]:
    """Return what was found on each day, in their order. Raises Damaged (a StudyError)."""
    return [read_sealed(path) for path in sorted((study / DAYS).glob("*.json"))]
