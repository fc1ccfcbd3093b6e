"""A study as the views see it: settings, trials, per-query evidence, models. Read from its folder, never run.

One split is one train / validation / test division; a folder of folds has five, other studies one without a name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ranktune.dashboards.reading import Finished, Reader, RecordReader
from ranktune.solvers.arrays import Floats
from ranktune.solvers.errors import RankTuneError
from ranktune.solvers.model import Model, load_model
from ranktune.tuner.evidence import EVIDENCE, Evidence, read_evidence
from ranktune.tuner.home import StudyFolder
from ranktune.tuner.places import Places, record_name
from ranktune.tuner.record import (
    BYTES,
    ERROR,
    MEANS,
    MICROSECONDS,
    NONZEROS,
    NUMBER,
    RESTARTS,
    SECONDS,
    VARIANCE,
    WARNINGS,
    WORKER,
)
from ranktune.tuner.results import load_result
from ranktune.tuner.study import Study


@dataclass(frozen=True)
class Trial:
    """A finished trial.

    number        its place in the order of asking
    params        of its solver, under their own names; only those that were active
    value         the metric on the validation queries, None where it failed; means: that of every metric
    error_of_mean standard error of value over the queries
    seconds       processor time to learn; microseconds: to score a document; bytes: of the model; nonzeros: features
    begun, ended  seconds since 1970; worker: which process; restarts: how often its worker died before
    """

    number: int
    solver: str
    params: Mapping[str, Any]
    value: float | None
    error_of_mean: float | None
    means: Mapping[str, float]
    seconds: float
    nonzeros: float | None
    microseconds: float | None
    bytes: float | None
    begun: float | None
    ended: float | None
    worker: str
    restarts: int
    error: str | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class SplitData:
    """One split: its trials by number, the evidence of its models if it is finished, and their files by label."""

    name: str
    folder: Path
    trials: tuple[Trial, ...]
    evidence: Evidence | None
    model_files: Mapping[str, Path]

    def model(self, label: str) -> Model | None:
        """Return the model of a row of the leaderboard, None where it was not kept or cannot be read."""
        try:
            return load_model(self.model_files[label])
        except (KeyError, RankTuneError, OSError):
            return None


@dataclass(frozen=True, eq=False)
class StudyData:
    """All of a study: result is the JSON of its conclusion, None while it is not finished."""

    folder: Path
    study: Study
    splits: tuple[SplitData, ...]
    result: Mapping[str, Any] | None

    @property
    def name(self) -> str:
        """What the study is called."""
        return self.folder.name

    @property
    def metric(self) -> str:
        """What its trials maximise."""
        return self.study.metric

    @property
    def total(self) -> int:
        """How many trials there will be, all splits together."""
        return self.study.trials * max(len(self.splits), 1)

    @cached_property
    def held(self) -> bool:
        """Whether a process of this machine runs it now, as far as can be seen."""
        return StudyFolder(self.folder).held()

    @cached_property
    def solvers(self) -> tuple[str, ...]:
        """Names of the solvers that compete."""
        return tuple(self.study.solvers)

    @cached_property
    def trials(self) -> tuple[tuple[str, Trial], ...]:
        """Every finished trial with the name of its split."""
        return tuple((split.name, trial) for split in self.splits for trial in split.trials)


def study_state(data: StudyData) -> str:
    """Return "running", "finished", or "stopped": not finished, and nobody runs it."""
    if data.held:
        return "running"
    return "finished" if data.result is not None else "stopped"


def trials_told(data: StudyData) -> str:
    """Return how many trials have finished, and of how many where time is not what ends the study."""
    done = len(data.trials)
    return f"{done} of {data.total}" if data.study.timeout is None else str(done)


def open_study(folder: Path, readers: dict[Path, Reader] | None = None) -> StudyData:
    """Return the study in folder as it is now. Raises StudyError where there is none that can be read.

    readers keep what was read before, for whoever looks again.
    """
    home = StudyFolder(folder)
    study = home.study()
    result = load_result(home.result) if home.result.exists() else None
    readers = {} if readers is None else readers
    return StudyData(folder, study, tuple(_split(home, study, name, readers) for name in home.split_names()), result)


def reader_of(home: StudyFolder, name: str) -> Reader:
    """Return what reads the record of a split, wherever it is kept."""
    url = Places.noted(home.path).storage
    if url is None:
        return RecordReader(home.split(name) / "record.db")
    from ranktune.dashboards.stored import StoredReader  # SQLAlchemy takes a while to load

    return StoredReader(url, record_name(home.path.name, name))


def _split(home: StudyFolder, study: Study, name: str, readers: dict[Path, Reader]) -> SplitData:
    own = home.split(name)
    reader = readers.get(own) or readers.setdefault(own, reader_of(home, name))
    space = study.union_space()
    found = (_trial(trial, *space.split(trial.params)) for trial in reader.trials())
    trials = tuple(sorted(found, key=lambda trial: trial.number))
    evidence = read_evidence(own / EVIDENCE) if (own / EVIDENCE).exists() else None
    labels = {} if evidence is None else dict(zip(evidence.labels, evidence.models, strict=True))
    return SplitData(name, own, trials, evidence, {label: own / file for label, file in labels.items() if file})


def _trial(trial: Finished, solver: str, params: Mapping[str, Any]) -> Trial:
    kept = trial.user_attrs
    variance = kept.get(VARIANCE)
    return Trial(
        number=int(kept[NUMBER]),
        solver=solver,
        params=params,
        value=trial.value,
        error_of_mean=None if variance is None else float(np.sqrt(variance)),
        means=dict(kept.get(MEANS, {})),
        seconds=float(kept.get(SECONDS, 0.0)),
        nonzeros=kept.get(NONZEROS),
        microseconds=kept.get(MICROSECONDS),
        bytes=kept.get(BYTES),
        begun=trial.begun,
        ended=trial.ended,
        worker=str(kept.get(WORKER, "")),
        restarts=int(kept.get(RESTARTS, 0)),
        error=kept.get(ERROR),
        warnings=tuple(kept.get(WARNINGS, ())),
    )


def best_so_far(values: list[float | None]) -> Floats:
    """Return the highest of the values up to each, (n,); NaN before the first that is a number."""
    plain = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    return np.asarray(np.fmax.accumulate(plain), dtype=np.float64) if len(plain) else plain
