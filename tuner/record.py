"""The record of a split's trials: an Optuna study in SQLite, with the per-query arrays beside it.

A finished trial is written once, in one transaction, after its arrays are safely on disk; so whatever was
reported as finished survives the end of the process at any moment. Running trials are not in the record: a resumed
run asks for their numbers again. Any Optuna tool can read it.
"""

from __future__ import annotations

import io
import json
import os
import uuid
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.artifacts import ArtifactMeta, FileSystemArtifactStore, get_all_artifact_meta
from optuna.distributions import BaseDistribution
from optuna.storages import RDBStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState, create_trial
from sqlalchemy import event
from sqlalchemy.exc import DatabaseError

from ranktune.solvers.arrays import Floats
from ranktune.solvers.errors import StudyError
from ranktune.solvers.space import Value
from ranktune.tuner.objective import Outcome

NUMBER, SECONDS, NONZEROS, VARIANCE, MEANS, ERROR, WARNINGS = (
    "number", "seconds", "nonzeros", "variance", "means", "error", "warnings",
)  # fmt: skip
MICROSECONDS, BYTES, WORKER, RESTARTS = "microseconds", "bytes", "worker", "restarts"
ARRAYS = "per_query.npz"


class Record:
    """The finished trials of one split, appended to and read back.

    folder holds record.db and artifacts/; name is the Optuna study in it; metric is what the trials maximise.
    """

    def __init__(self, folder: Path, name: str, metric: str) -> None:
        self.metric = metric
        self._folder = folder / "artifacts"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._arrays = FileSystemArtifactStore(self._folder)
        self.storage = _open_storage(folder / "record.db")
        with quiet():
            # The only study in the file is the one, also after its folder was renamed or copied.
            name = next(iter(optuna.get_all_study_names(self.storage)), name)
            self.study = optuna.create_study(
                storage=self.storage, study_name=name, direction=StudyDirection.MAXIMIZE, load_if_exists=True
            )
            self.study.set_user_attr("metric", metric)

    def trials(self) -> list[FrozenTrial]:
        """Return the finished trials, by their number."""
        states = (TrialState.COMPLETE, TrialState.FAIL)
        return sorted(self.study.get_trials(deepcopy=False, states=states), key=number_of)

    def append(
        self,
        number: int,
        parameters: Mapping[str, Value],
        distributions: Mapping[str, BaseDistribution],
        outcome: Outcome,
        restarts: int = 0,
    ) -> FrozenTrial:
        """Write a finished trial durably and return it; it counts as failed where its metric is not a number."""
        value, attrs = _summary(number, outcome, self.metric)
        if restarts:
            attrs[RESTARTS] = restarts
        system_attrs: dict[str, Any] = {}
        if outcome.per_query:
            meta = ArtifactMeta(str(uuid.uuid4()), ARRAYS, "application/zip", None)
            self._arrays.write(meta.artifact_id, _packed(outcome.per_query))
            _flush(self._folder / meta.artifact_id)
            system_attrs[f"artifacts:{meta.artifact_id}"] = json.dumps(asdict(meta))
        trial = create_trial(
            state=TrialState.FAIL if value is None else TrialState.COMPLETE,
            value=value,
            params=dict(parameters),
            distributions={name: distributions[name] for name in parameters},
            user_attrs=attrs,
            system_attrs=system_attrs,
        )
        if outcome.ended:
            trial.datetime_start = datetime.fromtimestamp(outcome.begun)
            trial.datetime_complete = datetime.fromtimestamp(outcome.ended)
        self.study.add_trial(trial)
        return trial

    def per_query(self, trial: FrozenTrial) -> dict[str, Floats]:
        """Return the arrays of a finished trial, metric -> (n validation queries,)."""
        (meta,) = get_all_artifact_meta(trial, storage=self.storage)
        with self._arrays.open_reader(meta.artifact_id) as file, np.load(io.BytesIO(file.read())) as arrays:
            return {name: arrays[name] for name in arrays.files}

    def close(self) -> None:
        """Let go of the database file."""
        self.storage.engine.dispose()


def number_of(trial: FrozenTrial) -> int:
    """Return the place of a trial in its study: the order of asking, which need not be the order of finishing."""
    return int(trial.user_attrs[NUMBER])


def seconds_of(trial: FrozenTrial) -> float:
    """Return the wall time that a trial took; the processor time of its learning where that is not known."""
    if trial.duration is not None and trial.duration.total_seconds() > 0.0:
        return trial.duration.total_seconds()
    return float(trial.user_attrs.get(SECONDS, 0.0))


def _summary(number: int, outcome: Outcome, metric: str) -> tuple[float | None, dict[str, Any]]:
    """Return the value of a trial, None where it failed, and what is kept beside it."""
    attrs: dict[str, Any] = {NUMBER: number, SECONDS: round(outcome.seconds, 6)}
    if outcome.worker:
        attrs[WORKER] = outcome.worker
    if outcome.warnings:
        attrs[WARNINGS] = list(outcome.warnings)
    if outcome.error is not None:
        return None, attrs | {ERROR: outcome.error}
    counted = {name: values[~np.isnan(values)] for name, values in outcome.per_query.items()}
    own = counted[metric]
    if len(own) == 0 or not np.isfinite(own).all():
        return None, attrs | {ERROR: f"{metric} is not a finite number on the validation queries"}
    attrs[MEANS] = {name: float(values.mean()) for name, values in counted.items() if len(values)}
    attrs[VARIANCE] = float(own.var(ddof=1) / len(own)) if len(own) > 1 else 0.0  # of the mean over queries
    costs = {NONZEROS: outcome.nonzeros, MICROSECONDS: outcome.microseconds, BYTES: outcome.bytes}
    attrs |= {name: cost for name, cost in costs.items() if not np.isnan(cost)}
    return attrs[MEANS][metric], attrs


def _packed(arrays: Mapping[str, Floats]) -> io.BytesIO:
    """Return an npz of arrays; written by hand because a metric's name may not be a Python keyword argument."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, values in arrays.items():
            member = io.BytesIO()
            np.save(member, values)
            archive.writestr(f"{name}.npy", member.getvalue())
    buffer.seek(0)
    return buffer


def _open_storage(path: Path) -> RDBStorage:
    """Return an Optuna storage on SQLite that waits for others and commits durably.

    Raises StudyError where the file is not a database that can be opened and written.
    """
    connect_args = {"timeout": 60}
    try:
        with quiet():
            storage = RDBStorage(f"sqlite:///{path}", engine_kwargs={"connect_args": connect_args})
        event.listen(storage.engine, "connect", _durable)
        storage.engine.dispose()  # connections made before the listener are not durable
    except (DatabaseError, OSError) as error:
        cause = str(getattr(error, "orig", error))
        raise StudyError(
            f"cannot open the record {path}: {cause}. Is the folder writable, and the file a record?"
        ) from None
    return storage


def _durable(connection: Any, _: Any) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")


def _flush(path: Path) -> None:
    """Wait until the file is on the disk: the transaction that names it must not come first."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def quiet() -> Iterator[None]:
    """Keep Optuna's own messages out of the user's terminal."""
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(level)
