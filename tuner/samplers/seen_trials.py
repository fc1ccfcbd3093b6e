"""What samplers read of trials: the values of parameters, objectives and attributes, once of each finished trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from ranktune.solvers.core.arrays import Floats, Ints

VARIANCE, PAIRED, PARTIAL, SECONDS = "variance", "paired_variance", "partial_variance", "seconds"
EARLIER = "earlier"


class _Line(NamedTuple):
    """What is read of a trial, the same object as long as nothing of it changes; numbers as in `Seen`, in a row."""

    trial: FrozenTrial
    numbers: Floats
    constraints: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Seen:
    """What is read of n trials over d parameters, with k objectives.

    numbers   (n,) of the trials, and their states
    values    (n, 2, d) as by `values_of`
    noted     (n, 5) VARIANCE, PAIRED, PARTIAL and SECONDS, NaN where they are not known, and whether EARLIER is set
    reported  (n, k) as by `_reported`
    """

    numbers: Ints
    states: Ints
    values: Floats
    noted: Floats
    reported: Floats
    constraints: Sequence[Mapping[str, float]]

    def has(self, state: TrialState) -> NDArray[np.bool_]:
        """Return which trials have a state, (n,)."""
        return np.asarray(self.states == state)


_KNOWN: WeakKeyDictionary[Study, tuple[Mapping[str, BaseDistribution], dict[int, _Line]]] = WeakKeyDictionary()
"""The finished trials of each study by number, which are read once, and the distributions by which they were read."""


def read_trials(study: Study, trials: Sequence[FrozenTrial], distributions: Mapping[str, BaseDistribution]) -> Seen:
    """Return what is read of the trials: of those that have finished since the last time, and of those that run."""
    before, known = _KNOWN.get(study, ({}, {}))
    if before != distributions:
        known = {}
        _KNOWN[study] = dict(distributions), known
    d, k = len(distributions), len(study.directions)
    lines = []
    for trial in trials:
        line = known.get(trial.number)
        if line is None or line.trial is not trial:
            read = [_number(trial.user_attrs.get(name)) for name in (VARIANCE, PAIRED, PARTIAL, SECONDS)]
            begin = [trial.number, trial.state, *read, float(EARLIER in trial.user_attrs), *_reported(trial, k)]
            numbers = np.concatenate([begin, values_of(trial.params, distributions).ravel()])
            line = _Line(trial, numbers, trial.constraints)
            if trial.state.is_finished():
                known[trial.number] = line
        lines.append(line)
    every = np.concatenate([np.empty(0), *(line.numbers for line in lines)]).reshape(len(lines), 7 + k + 2 * d)
    number, state, noted, reported, values = np.split(every, [1, 2, 7, 7 + k], axis=1)
    return Seen(
        numbers=number[:, 0].astype(np.int64),
        states=state[:, 0].astype(np.int64),
        values=values.reshape(len(lines), 2, d),
        noted=noted,
        reported=reported,
        constraints=[line.constraints for line in lines],
    )


def values_of(params: Mapping[str, object], distributions: Mapping[str, BaseDistribution]) -> Floats:
    """Return the value of each parameter as a number, NaN where it has no place, and which there are, (2, d)."""
    values = np.array([[np.nan], [0.0]]).repeat(len(distributions), axis=1)
    for j, (name, distribution) in enumerate(distributions.items()) if params else ():
        if name in params:
            values[:, j] = internal_of(distribution, params[name]), 1.0
    return values


def internal_of(distribution: BaseDistribution, value: object) -> float:
    """Return a value as a number, the index of a category; NaN where the distribution does not have it."""
    try:
        return float(distribution.to_internal_repr(value))
    except ValueError:
        return float("nan")


def _reported(trial: FrozenTrial, count: int) -> list[float]:
    """Return the values of a complete trial, the last report of a pruned one, NaN otherwise."""
    if trial.state == TrialState.COMPLETE and trial.values is not None and len(trial.values) == count:
        return list(trial.values)
    if trial.state == TrialState.PRUNED and trial.intermediate_values and count == 1:
        return [trial.intermediate_values[max(trial.intermediate_values)]]
    return [float("nan")] * count


def _number(value: object) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and np.isfinite(value):
        return float(value)
    return float("nan")
