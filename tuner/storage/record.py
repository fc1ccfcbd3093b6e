"""The record of a split's trials: an Optuna study in SQLite or PostgreSQL, with the per-query arrays beside it.

A finished trial is written once, in one transaction, after its arrays are on disk. So a trial that was reported as
finished survives the end of the process at any moment. Running trials are not in the record: a resumed run requests
their numbers again. Any Optuna tool can read the record.
"""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState, create_trial

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import Damaged, StudyError
from ranktune.solvers.core.files.archives import read_archive, write_archive
from ranktune.solvers.core.space import Value
from ranktune.solvers.metrics.means import linearised, mean_of
from ranktune.tuner.evaluation.task import TaskOutcome
from ranktune.tuner.storage.artifacts import Artifacts
from ranktune.tuner.storage.attributes import (
    BULK,
    BYTES,
    COST,
    DIGEST,
    ERROR,
    LEAD,
    LEARNING_CURVE,
    MEANS,
    MICROSECONDS,
    NONZEROS,
    NUMBER,
    PARTIAL,
    PARTS,
    PATH,
    RESTARTS,
    SECONDS,
    STOPPED,
    UNFINISHED,
    VARIANCE,
    WARNINGS,
    WORKER,
    check_trial,
    trial_digest,
)
from ranktune.tuner.storage.database import open_storage
from ranktune.tuner.storage.database import quiet as quiet
from ranktune.tuner.storage.leases import Leases, close_lease
from ranktune.tuner.storage.membership import confirm_owner
from ranktune.tuner.storage.optuna_internals import TrialRows, begin_writing
from ranktune.tuner.storage.retrying import OnEvent, retrying

if TYPE_CHECKING:
    from ranktune.solvers.base.ranker import BaseRanker
    from ranktune.tuner.policy.racing import FullValueEstimate

ARRAYS = "per_query.npz"
OWN = "trial"
"""Array of the digest of the trial, beside its arrays: those of another trial do not pass for its own."""
ARTIFACT = "artifacts:"
"""Beginning of the name of the attribute by which Optuna knows the file of a trial's arrays."""
META = {"artifact_id": "", "filename": ARRAYS, "mimetype": "application/zip", "encoding": None}
"""What that attribute says, optuna.artifacts.ArtifactMeta: `optuna.artifacts` loads boto3 where that is installed."""
WRITERS = 8
"""Arrays that are written at a time."""
Finished: TypeAlias = tuple[FrozenTrial, Mapping[str, NDArray[np.generic]]]
"""A finished trial and its arrays."""
T = TypeVar("T")


class DamagedArrays(Damaged):
    """The arrays of a trial are gone or damaged; the trial itself is in the record."""


class Record:
    """The finished trials of one split, appended to and read back.

    `folder` holds artifacts/, and record.db unless `storage` is the URL of a server. `name` is the Optuna study in it,
    `metric` what the trials maximise, `weights`, (n validation queries,), how often each query counts in their means,
    None if each counts once. All methods wait while the database is away; `on_event` is then called.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        metric: str,
        storage: str | None = None,
        artifacts: str | None = None,
        *,
        on_event: OnEvent | None = None,
        weights: Floats | None = None,
    ) -> None:
        self.metric, self.weights, self._on_event = metric, weights, on_event
        folder.mkdir(parents=True, exist_ok=True)
        self._arrays = Artifacts(folder / "artifacts" if artifacts is None else artifacts)
        self.storage = open_storage(folder / "record.db" if storage is None else storage, on_event=on_event)
        try:
            self.study = self.retried(lambda: self._study(name, exact=storage is not None))
            self._study_id = self.retried(lambda: self.storage.get_study_id_from_name(self.study.study_name))
        except BaseException:
            self.storage.remove_session()
            self.storage.engine.dispose()
            raise
        self._rows = TrialRows(self._study_id, NUMBER)
        self._leases: Leases | None = None
        self._proven: set[int] = set()

    @property
    def leases(self) -> Leases:
        """The leases of the study, with its owner and its workers."""
        if self._leases is None:
            self._leases = Leases(self.storage, self.study.study_name, on_event=self._on_event)
        return self._leases

    def settle(self) -> None:
        """Remove the leases of trials that are in the record; an owner does this first."""
        self.leases.settle({number_of(trial) for trial in self.trials()})

    def trials(self) -> list[FrozenTrial]:
        """Return the finished trials, by their number. Raises Damaged where one is not what was written."""
        states = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)
        with quiet():
            finished = self.retried(lambda: self.study.get_trials(deepcopy=False, states=states))
        for trial in finished:
            if trial.number not in self._proven:
                check_trial(trial.state.name, trial.value, trial.params, trial.user_attrs)
                self._proven.add(trial.number)
        return sorted(finished, key=number_of)

    def append(self, *arguments: Any, **options: Any) -> FrozenTrial:
        """Write one trial that has finished, as `finished` and `write`, and return it as it is in the record."""
        return self.write([self.finished(*arguments, **options)])[0]

    def finished(
        self,
        number: int,
        parameters: Mapping[str, Value],
        distributions: Mapping[str, BaseDistribution],
        outcome: TaskOutcome,
        estimate: FullValueEstimate | None = None,
        best: float = -math.inf,
        origin: Mapping[str, object] | None = None,
    ) -> Finished:
        """Return a finished trial as it is written. best is the best value before; origin says why it was tried.

        A stopped trial is pruned, with the estimate of its value in full. A trial without a finite metric is failed.
        """
        trial = finished_trial(number, parameters, distributions, outcome, self.metric, self.weights, estimate)
        trial.user_attrs |= origin or {}
        lead = (trial.value or 0.0) - best
        if trial.state == TrialState.COMPLETE and 0.0 < lead < math.inf:
            trial.user_attrs |= {LEAD: lead}
        trial.set_user_attr(DIGEST, trial_digest(trial.state.name, trial.value, parameters, trial.user_attrs))
        return trial, {**outcome.per_query, OWN: _owned_by(trial.user_attrs)} if outcome.per_query else {}

    def write(self, every: Sequence[Finished]) -> list[FrozenTrial]:
        """Write finished trials durably and close their leases; return them as they are in the record.

        It takes hardly longer than for one: the disk is waited for once. A trial that is in the record stays as it is.
        Raises StudyError if another process has taken the study over, or if they cannot be written; then none is in the
        record.
        """
        trials, arrays = zip(*every, strict=True)
        with ThreadPoolExecutor(WRITERS) as writers:
            names = [*writers.map(self._write_arrays, arrays)]
        for trial, name in zip(trials, names, strict=True):
            trial.system_attrs = {f"{ARTIFACT}{name}": json.dumps(META | {"artifact_id": name})} if name else {}
        # If this fails the arrays stay: the transaction may have been committed, and only its answer lost.
        existing = self.retried(lambda: self._write(trials))
        written = list(trials)
        for place, found in existing.items():
            trial = written[place] = self.retried(partial(self.storage.get_trial, found))
            if not trials[place].system_attrs.keys() <= trial.system_attrs.keys():  # else only the answer was lost
                self._remove_arrays(names[place])
        return written

    def per_query(self, trial: FrozenTrial) -> dict[str, Floats]:
        """Return the arrays of a finished trial, metric -> (n validation queries,).

        Raises DamagedArrays where they are gone, or are not what was written.
        """
        name = self._array_name(trial)
        content = self._arrays.read(name)
        where = f"the arrays of trial {number_of(trial)} in {self._arrays.where}"
        if content is None:
            raise DamagedArrays(f"{where} are gone. `ranktune resume` evaluates that trial again.")
        try:
            arrays = read_archive(content)
            if bytes(arrays.pop(OWN, _owned_by(trial.user_attrs))) != bytes(_owned_by(trial.user_attrs)):
                raise Damaged("they are of another trial")
            values = {metric: np.asarray(array, np.float64) for metric, array in arrays.items()}
        except Damaged:
            raise DamagedArrays(f"{where} are damaged. `ranktune resume` evaluates that trial again.") from None
        return values

    def rewrite(self, trial: FrozenTrial, per_query: Mapping[str, Floats]) -> None:
        """Write the arrays of a finished trial anew; the trial stays as it is."""
        self._arrays.write(
            self._array_name(trial), write_archive({**per_query, OWN: _owned_by(trial.user_attrs)}, small=True)
        )

    def _array_name(self, trial: FrozenTrial) -> str:
        (name,) = (key for key in trial.system_attrs if key.startswith(ARTIFACT))
        return name.removeprefix(ARTIFACT)

    def retried(self, operation: Callable[[], T]) -> T:
        """Return what an operation on the database returns, retried while that is away."""
        return retrying(operation, self.storage.engine, on_event=self._on_event)

    def close(self) -> None:
        """Close the database."""
        if self._leases is not None:
            self._leases.disconnect()
        self.storage.remove_session()
        self.storage.engine.dispose()

    def _study(self, name: str, *, exact: bool) -> optuna.Study:
        with quiet():
            if not exact:  # the file has one study, whose folder may have been renamed or copied
                name = next(iter(optuna.get_all_study_names(self.storage)), name)
            study = optuna.create_study(
                storage=self.storage, study_name=name, direction=StudyDirection.MAXIMIZE, load_if_exists=True
            )
            if study.user_attrs.get("metric") != self.metric:
                study.set_user_attr("metric", self.metric)
        return study

    def _write(self, trials: Sequence[FrozenTrial]) -> dict[int, int]:
        """Write trials and close their leases in one transaction; return the ids of those that are there, by place."""
        existing = {}
        with self.storage.engine.begin() as connection:
            begin_writing(connection, self._study_id)
            if self._leases is not None and self._leases.ownership:
                confirm_owner(connection, *self._leases.ownership)
            for place, trial in enumerate(trials):
                found = self._rows.find(connection, number_of(trial))
                if found is None:
                    self._rows.write(connection, trial)
                else:
                    existing[place] = found
                if self._leases is not None:
                    close_lease(connection, self._leases.study, number_of(trial))
        return existing

    def _write_arrays(self, per_query: Mapping[str, NDArray[np.generic]]) -> str | None:
        """Write arrays to disk, before the transaction that refers to them, and return their name, None without any."""
        if not per_query:
            return None
        name, content = str(uuid.uuid4()), write_archive(per_query, small=True)
        try:
            self.retried(lambda: self._arrays.write(name, content))
        except BaseException:
            self._remove_arrays(name)
            raise
        return name

    def _remove_arrays(self, name: str | None) -> None:
        if name is not None:
            with suppress(StudyError):
                self._arrays.remove(name)


def finished_trial(
    number: int,
    parameters: Mapping[str, Value],
    distributions: Mapping[str, BaseDistribution],
    outcome: TaskOutcome,
    metric: str,
    weights: Floats | None = None,
    estimate: FullValueEstimate | None = None,
) -> FrozenTrial:
    """Return a finished trial as a record has it, without its arrays (`Record.finished`)."""
    value, attrs = _summary(number, outcome, metric, weights)
    state = TrialState.FAIL if value is None else TrialState.COMPLETE
    if estimate is not None and value is not None:
        state, value = TrialState.PRUNED, estimate.value
        attrs |= {STOPPED: outcome.stopped, PARTIAL: estimate.variance, MEANS: {metric: value}}
    if outcome.restarts:
        attrs[RESTARTS] = outcome.restarts
    if outcome.unfinished:
        attrs[UNFINISHED] = True
    trial = create_trial(
        state=state,
        value=value,
        intermediate_values={len(outcome.steps): value} if state == TrialState.PRUNED and value is not None else {},
        params=dict(parameters),
        distributions={name: distributions[name] for name in parameters},
        user_attrs=attrs,
    )
    if outcome.ended:
        trial.datetime_start = datetime.fromtimestamp(outcome.begun)
        trial.datetime_complete = datetime.fromtimestamp(outcome.ended)
    return trial


def number_of(trial: FrozenTrial) -> int:
    """Return the number of a trial: its place in the order of requests, which need not be that of completion."""
    return int(trial.user_attrs[NUMBER])


def seconds_of(trial: FrozenTrial) -> float:
    """Return the wall time of a trial in seconds, or the processor time of its fits if that is unknown."""
    if trial.duration is not None and trial.duration.total_seconds() > 0.0:
        return trial.duration.total_seconds()
    return float(trial.user_attrs.get(SECONDS, 0.0))


def repeated(trial: FrozenTrial, solver: type[BaseRanker]) -> float:
    """Return the share of a trial's seconds that a fit of its configuration repeats.

    Boosting that validation queries stop goes on until no round has helped for its patience; a refit ends at the best.
    """
    rounds = trial.params.get(f"{solver.__name__}.{solver.path_parameter}")
    has_grown = solver.path_parameter in trial.user_attrs.get(PATH, {}) and not trial.user_attrs.get(UNFINISHED)
    return float(rounds / (rounds + solver.patience)) if solver.grows and rounds is not None and has_grown else 1.0


def _summary(
    number: int, outcome: TaskOutcome, metric: str, weights: Floats | None
) -> tuple[float | None, dict[str, object]]:
    """Return the value of a trial, None if it failed, and its user attributes."""
    attrs: dict[str, object] = {NUMBER: number, SECONDS: round(outcome.seconds, 6)}
    if outcome.worker:
        attrs[WORKER] = outcome.worker
    if outcome.warnings:
        attrs[WARNINGS] = list(outcome.warnings)
    if outcome.error is not None:
        return None, attrs | {ERROR: outcome.error}
    scores = outcome.per_query[metric]
    scores = linearised(scores, weights)[~np.isnan(scores)]
    if len(scores) == 0 or not np.isfinite(scores).all():
        return None, attrs | {ERROR: f"{metric} is not a finite number on the validation queries"}
    every_mean = {name: mean_of(values, weights) for name, values in outcome.per_query.items()}
    attrs[MEANS] = means = {name: mean for name, mean in every_mean.items() if not np.isnan(mean)}
    attrs[VARIANCE] = (
        float(scores.var(ddof=1) / len(scores)) if len(scores) > 1 else 0.0
    )  # of the mean over the queries
    if len(outcome.steps) > 1:
        attrs[PARTS] = [part for _, _, part in outcome.steps]
    if outcome.path:
        attrs[BULK] = outcome.bulk
        attrs[PATH] = {outcome.path_parameter: [list(point) for point in outcome.path]}
    if outcome.learning_curve:
        attrs[LEARNING_CURVE] = [list(point) for point in outcome.learning_curve]
    size = {NONZEROS: outcome.nonzeros, MICROSECONDS: outcome.microseconds, BYTES: outcome.bytes, COST: outcome.cost}
    attrs |= {name: value for name, value in size.items() if not np.isnan(value)}
    return means[metric], attrs


def _owned_by(attributes: Mapping[str, object]) -> NDArray[np.uint8]:
    """Return the digest of the trial with those attributes as an array, which is empty if the trial has none."""
    return np.frombuffer(str(attributes.get(DIGEST, "")).encode(), np.uint8)
