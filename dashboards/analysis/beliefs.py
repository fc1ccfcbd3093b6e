"""What the optimiser sees of trials, as ranktune.tuner.storage.observations reads them, for views of its beliefs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ranktune.dashboards.records.study import Trial
from ranktune.tuner.samplers.belief import Observation
from ranktune.tuner.storage.observations import telling


@dataclass(frozen=True)
class Observed:
    """An observation and the trial that showed it; own: it is the trial itself, and not another value on its path."""

    trial: Trial
    seen: Observation
    own: bool


def flat(trial: Trial) -> dict[str, Any]:
    """Return the configuration of a trial by flat names."""
    return {"solver": trial.solver} | {f"{trial.solver}.{name}": value for name, value in trial.params.items()}


def observed(trials: Iterable[tuple[Trial, float | None]]) -> list[Observed]:
    """Return what is seen of trials, each with its value: itself, then a few others of its path.

    An estimate is as unsure as it says; of a path the differences from its best count.
    """
    return [one for trial, value in trials for one in _of(trial, value)]


def _of(trial: Trial, value: float | None) -> list[Observed]:
    variance = (trial.error_of_mean or 0.0) ** 2
    partial = trial.error_of_estimate**2 if trial.stopped and trial.error_of_estimate is not None else None
    own = flat(trial)
    found = [Observed(trial, Observation(own, value, variance, partial), True)]
    values = [point for point, _ in trial.path]
    chosen = trial.params.get(trial.path_parameter)
    if value is None or chosen not in values:
        return found
    best = values.index(chosen)
    for place in telling(len(values), best)[1:]:
        params = own | {f"{trial.solver}.{trial.path_parameter}": type(chosen)(values[place])}
        there = value + trial.path[place][1] - trial.path[best][1]
        found.append(Observed(trial, Observation(params, there, variance, partial), False))
    return found
