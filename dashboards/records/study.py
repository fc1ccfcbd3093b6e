"""A study as the views see it: settings, trials, per-query evidence, models. Read from its folder, never run.

One split is one train / validation / test division; a folder of folds has five, other studies one without a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ranktune.dashboards.records.file import Finished, Reader, RecordReader
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import RankTuneError
from ranktune.solvers.models.base import Model, load_model
from ranktune.tuner.selection.evidence import EVIDENCE, Evidence, read_evidence
from ranktune.tuner.selection.results import load_result
from ranktune.tuner.storage.locations import Locations, record_name
from ranktune.tuner.storage.record import (
    BYTES,
    ERROR,
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
    VARIANCE,
    WARNINGS,
    WORKER,
)
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.home import StudyFolder


@dataclass(frozen=True)
class Trial:
    """A finished trial: judged in full, stopped early because it was for sure behind the best, or failed.

    number        its place in the order of asking
    params        of its solver, under their own names; only those that were active
    value         the metric on the validation queries, None where it failed; means: that of every metric. Of a trial
                  that was stopped it is an estimate of what it would have been: good for a picture, never the best
    error_of_mean standard error of value over the queries that were judged
    seconds       processor time to learn; microseconds: to score a document; bytes: of the model; nonzeros: features
    begun, ended  seconds since 1970; worker: which process; restarts: how often its worker died before
    stopped       after which part of the plan it was stopped, "fold 2 of 5", "" for none; error_of_estimate: standard
                  deviation by which its value may be off; parts: what each part that was judged scored
    along, path   the parameter along which one fit gave many models, "" for none, and (its value, the metric) for each,
                  what was asked for last: params has the best of them; of one that was stopped estimates, as its value
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
    stopped: str = ""
    error_of_estimate: float | None = None
    parts: tuple[float, ...] = ()
    path_parameter: str = ""
    path: tuple[tuple[float, float], ...] = ()

    @property
    def in_full(self) -> float | None:
        """The value where it was judged in full, None where it failed or was stopped: what a best may be made of."""
        return None if self.stopped else self.value

    @property
    def asked(self) -> Mapping[str, Any]:
        """The parameters that were asked for: params but for what was found better on the way there."""
        return {**self.params, self.path_parameter: self.path[-1][0]} if self.path else self.params

    @property
    def asked_value(self) -> float | None:
        """What the parameters that were asked for scored; None where it was not judged in full."""
        return self.path[-1][1] if self.path and self.in_full is not None else self.in_full

    @property
    def seconds_in_full(self) -> float:
        """The seconds that learning all parts takes, at the pace of those that were learnt."""
        found = _PART.search(self.stopped)
        done, of = (int(found[1]), int(found[2])) if found else (1, 1)
        return self.seconds * max(of / max(done, 1), 1.0)


_PART = re.compile(r"(\d+) of (\d+)$")


@dataclass(frozen=True)
class Counts:
    """How many trials were judged in full, were stopped early, failed, and the processor seconds that stopping spared.

    spared is a guess: parts that were not learnt would have taken as long as those that were. spent: of all trials.
    """

    complete: int
    stopped: int
    failed: int
    spent: float
    spared: float


def counts(trials: Iterable[Trial]) -> Counts:
    """Return how trials ended."""
    own = list(trials)
    return Counts(
        complete=sum(trial.in_full is not None for trial in own),
        stopped=sum(bool(trial.stopped) for trial in own),
        failed=sum(trial.value is None for trial in own),
        spent=sum(trial.seconds for trial in own),
        spared=sum(trial.seconds_in_full - trial.seconds for trial in own),
    )


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
        return self.study.n_trials * max(len(self.splits), 1)

    @property
    def by_number(self) -> bool:
        """Whether the number of its trials ends it, and not the time or that little more is to be gained."""
        return self.study.timeout is None and self.study.until is None

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
    """Return how many trials have finished, and of how many where their number is what ends the study."""
    done = len(data.trials)
    return f"{done} of {data.total}" if data.by_number else str(done)


def duration(seconds: float) -> str:
    """Return seconds as a person says them."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


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
    url = Locations.noted(home.path).storage
    if url is None:
        return RecordReader(home.split(name) / "record.db")
    from ranktune.dashboards.records.database import StoredReader  # SQLAlchemy takes a while to load

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
    along, path = next(iter(dict(kept.get(PATH) or {}).items()), ("", ()))
    return Trial(
        number=int(kept[NUMBER]),
        solver=solver,
        params=params,
        value=trial.value,
        error_of_mean=_root(kept.get(VARIANCE)),
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
        stopped=str(kept.get(STOPPED, "")),
        error_of_estimate=_root(kept.get(PARTIAL)),
        parts=tuple(float(part) for part in kept.get(PARTS, ())),
        path_parameter=str(along),
        path=_levelled(path, params.get(along), trial.value),
    )


def _levelled(path: Iterable[tuple[float, float]], chosen: Any, value: float | None) -> tuple[tuple[float, float], ...]:
    """Return a path on the level of the trial's value: what the parts showed that were judged may be far from that."""
    own = tuple((float(place), float(mean)) for place, mean in path)
    level = next((value - mean for place, mean in own if place == chosen and value is not None), 0.0)
    return tuple((place, mean + level) for place, mean in own)


def _root(variance: float | None) -> float | None:
    return float(np.sqrt(variance)) if variance is not None and variance >= 0.0 else None


def best_of(trials: Iterable[Trial]) -> Trial | None:
    """Return the best of the trials that were judged in full, the first of equals; None where there is none."""
    known = [(trial.in_full, trial) for trial in trials if trial.in_full is not None]
    return max(known, key=lambda own: own[0])[1] if known else None


def best_so_far(trials: Sequence[Trial]) -> Floats:
    """Return the highest value up to each trial, (n,), of those judged in full; NaN before the first of them."""
    plain = np.array([np.nan if trial.in_full is None else trial.in_full for trial in trials], dtype=np.float64)
    return np.asarray(np.fmax.accumulate(plain), dtype=np.float64) if len(plain) else plain
