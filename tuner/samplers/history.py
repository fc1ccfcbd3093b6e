"""An Optuna study's trials as arrays: the only place where the two meet.

Trials by state. COMPLETE: their value; an infinite one counts as the worst or best finite value. PRUNED: the last value
reported, if finite. With the user attribute "partial_variance" (squared units of the value) it is an estimate with that
additional noise; without, it is capped at the median of the complete trials and four times as noisy, so that it never
looks best. FAIL: the worst value, four times as noisy, which discourages the region without forbidding it. RUNNING:
pending, also those of other processes. No configuration of these trials is suggested again: a configuration is what a
trial asked for. Trials with the user attribute "earlier" are of an earlier study, on other data: as long as they are no
more than estimates, their configurations may be suggested.

Noise. The user attribute "variance" of trials is used relative to about its median, with an estimated scale: trials
share their validation queries, so most of it is common to all; it matters where one was evaluated on fewer queries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import (
    BaseDistribution,
    CategoricalChoiceType,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.space import When
from ranktune.tuner.gp.encoding import Axis, AxisRule, AxisRules, SpaceEncoding
from ranktune.tuner.gp.hyperparameters import relative_variance
from ranktune.tuner.gp.proposal import ObservedTrials
from ranktune.tuner.samplers.activity import learn_activity

VARIANCE, PARTIAL, SECONDS = "variance", "partial_variance", "seconds"
EARLIER = "earlier"
UNKNOWN_NOISE = 4.0
"""Relative noise variance of a failed trial, and of a pruned one without a variance."""


class DeclaredSpace(Protocol):
    """A search space with declared parameters and conditions, such as a UnionSpace."""

    distributions: dict[str, BaseDistribution]
    conditions: dict[str, tuple[When, ...]]


ParamValue: TypeAlias = CategoricalChoiceType
"""The value of a parameter: Optuna's numbers and categories."""


@dataclass(frozen=True, eq=False)
class TrialHistory:
    """The trials of a study, encoded.

    tried     (t, d) what the trials asked for, NaN elsewhere (ranktune.tuner.gp.encoding.covered)
    numbers   (n,) trial numbers of trials.rows; complete: (n,), false for pruned and failed trials
    running   numbers of the other running trials, whether or not their configuration is known yet
    """

    encoding: SpaceEncoding
    distributions: Mapping[str, BaseDistribution]
    trials: ObservedTrials
    tried: Floats
    numbers: Ints
    complete: NDArray[np.bool_]
    running: frozenset[int]

    @property
    def completed(self) -> int:
        """How many trials have a value."""
        return int(self.complete.sum())

    @property
    def informed(self) -> int:
        """How many trials have a value, or an estimate with a variance; 0 before any has a value."""
        estimated = np.broadcast_to(self.trials.extra, self.complete.shape) > 0.0
        return int((self.complete | estimated).sum()) if self.completed else 0

    def params(self, row: Floats) -> dict[str, ParamValue]:
        """Return the parameters of a row, (d,), by name; those without a coordinate are left out."""
        values = zip(self.distributions.items(), self.encoding.values(row), strict=True)
        return {name: _external(distribution, value) for (name, distribution), value in values if value is not None}


def seen_distributions(trials: Sequence[FrozenTrial]) -> dict[str, BaseDistribution]:
    """Return the latest distribution of each parameter that any trial had, sorted by name."""
    latest: dict[str, BaseDistribution] = {}
    for trial in trials:
        latest.update(trial.distributions)
    return dict(sorted(latest.items()))


def past(study: Study, current: FrozenTrial | None = None) -> list[FrozenTrial]:
    """Return all trials but the current and the waiting ones, in the order of their numbers."""
    states = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL, TrialState.RUNNING)
    trials = study.get_trials(deepcopy=False, states=states)
    return trials if current is None else [trial for trial in trials if trial.number != current.number]


def read(
    study: Study,
    current: FrozenTrial | None,
    distributions: Mapping[str, BaseDistribution],
    conditions: DeclaredSpace | None = None,
    suggested: Mapping[int, Mapping[str, ParamValue]] | None = None,
) -> TrialHistory:
    """Return the trials before current over the parameters of distributions.

    suggested: by trial number, values already suggested to running trials.
    """
    trials = past(study, current)
    axes = tuple(_axis(name, distribution) for name, distribution in distributions.items())
    seen = _seen(study, trials, distributions)
    rows, asked = _encoded(seen.values, axes)
    ended = seen.has(TrialState.COMPLETE) | seen.has(TrialState.PRUNED)
    encoding = _encoding(axes, distributions, rows[ended], asked[ended], conditions)
    evaluated = _evaluated(study, seen, rows)
    coming, shown = np.full(rows.shape, np.nan), np.zeros(rows.shape, dtype=bool)
    if suggested and (places := [place for place, number in enumerate(seen.numbers.tolist()) if number in suggested]):
        some = [suggested[number] for number in seen.numbers[places].tolist()]
        coming[places], shown[places] = _rows(some, axes, distributions)
    is_running = seen.has(TrialState.RUNNING)
    pending = is_running & (asked | shown).any(axis=1)
    always = asked[ended].all(axis=0) if ended.any() else np.zeros(len(axes), dtype=bool)
    # a trial that gets its values one by one, with a suggestion that is known, counts with that alone
    amid = is_running & shown.any(axis=1) & ~(asked | ~always).all(axis=1)
    lost = (asked & np.isnan(rows)).any(axis=1)  # a value that is no longer among the choices
    foreign = seen.has(TrialState.PRUNED) & (seen.noted[:, 3] > 0.0)
    tried = np.vstack([rows[asked.any(axis=1) & ~amid & ~lost & ~foreign], coming[pending & shown.any(axis=1)]])
    chosen = np.flatnonzero(evaluated.has_gain).tolist()
    observed = ObservedTrials(
        rows[evaluated.has_gain], evaluated.gains[0], evaluated.noise,
        np.where(asked, rows, coming)[pending], tuple(evaluated.gains[1:]),
        _constraints([seen.constraints[k] for k in chosen]), evaluated.extra, seen.noted[chosen, 2],
    )  # fmt: skip
    running = frozenset(seen.numbers[is_running].tolist())
    return TrialHistory(encoding, distributions, observed, tried, seen.numbers[chosen], evaluated.complete, running)


def arranged(space: DeclaredSpace, configurations: Sequence[Mapping[str, object]]) -> tuple[SpaceEncoding, Floats]:
    """Return the encoding of a declared space, and configurations (by flat name) as masked rows, (n, d)."""
    distributions = space.distributions
    axes = tuple(_axis(name, distribution) for name, distribution in distributions.items())
    rows, asked = _rows(configurations, axes, distributions)
    return _encoding(axes, distributions, rows, asked, space), rows


def uniform_value(name: str, distribution: BaseDistribution, uniform: float) -> ParamValue:
    """Return the quantile of a uniform distribution over the values, or over their logarithms."""
    axis = _axis(name, distribution)
    return _external(distribution, float(axis.decode(axis.from_unit(np.array([uniform])))[0]))


def _axis(name: str, distribution: BaseDistribution) -> Axis:
    match distribution:
        case CategoricalDistribution():
            return Axis(name, choices=len(distribution.choices))
        case FloatDistribution() | IntDistribution():
            return Axis(
                name, float(distribution.low), float(distribution.high), float(distribution.step or 0), distribution.log
            )
    raise TypeError(f"'{name}' has a distribution of unknown type {type(distribution).__name__}.")


def _external(distribution: BaseDistribution, value: float) -> ParamValue:
    """Return a value (an index, for categories) as the distribution's own type."""
    match distribution:
        case CategoricalDistribution():
            return distribution.choices[int(value)]
        case IntDistribution():
            return round(value)
    return float(value)


def _rows(
    configurations: Sequence[Mapping[str, object]], axes: Sequence[Axis], distributions: Mapping[str, BaseDistribution]
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return configurations as rows, (n, d), NaN where a parameter is missing or has no place, and which they have."""
    values = [_values(params, distributions) for params in configurations]
    return _encoded(np.array(values, dtype=np.float64).reshape(len(values), 2, len(axes)), axes)


def _encoded(values: Floats, axes: Sequence[Axis]) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the rows of values as `_values` gives them, (n, 2, d), and which there are."""
    rows, asked = values[:, 0].copy(), values[:, 1] > 0.0
    for j in np.flatnonzero(asked.any(axis=0)).tolist():
        highest = None if axes[j].choices else 2.0  # ranges may have changed
        rows[:, j] = np.clip(axes[j].encode(rows[:, j]), -1.0, highest)
    return rows, asked


class _Line(NamedTuple):
    """What is read of a trial, the same object as long as nothing of it changes; numbers as in `_Seen`, in a row."""

    trial: FrozenTrial
    numbers: Floats
    constraints: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class _Seen:
    """What is read of n trials over d parameters, with k objectives.

    numbers   (n,) of the trials, and their states
    values    (n, 2, d) as by `_values`
    noted     (n, 4) VARIANCE, PARTIAL and SECONDS, NaN where they are not known, and whether EARLIER is set
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


def _seen(study: Study, trials: Sequence[FrozenTrial], distributions: Mapping[str, BaseDistribution]) -> _Seen:
    """Return what is read of the trials: of those that have finished since the last time, and of those that run."""
    before, seen_lines = _KNOWN.get(study, ({}, {}))
    if before != distributions:
        seen_lines = {}
        _KNOWN[study] = dict(distributions), seen_lines
    d, k = len(distributions), len(study.directions)
    lines = []
    for trial in trials:
        line = seen_lines.get(trial.number)
        if line is None or line.trial is not trial:
            read = [_number(trial.user_attrs.get(name)) for name in (VARIANCE, PARTIAL, SECONDS)]
            begin = [trial.number, trial.state, *read, float(EARLIER in trial.user_attrs), *_reported(trial, k)]
            numbers = np.concatenate([begin, _values(trial.params, distributions).ravel()])
            line = _Line(trial, numbers, trial.constraints)
            if trial.state.is_finished():
                seen_lines[trial.number] = line
        lines.append(line)
    every = np.concatenate([np.empty(0), *(line.numbers for line in lines)]).reshape(len(lines), 6 + k + 2 * d)
    number, state, noted, reported, values = np.split(every, [1, 2, 6, 6 + k], axis=1)
    who, states = number[:, 0].astype(np.int64), state[:, 0].astype(np.int64)
    limits = [line.constraints for line in lines]
    return _Seen(who, states, values.reshape(len(lines), 2, d), noted, reported, limits)


def _values(params: Mapping[str, object], distributions: Mapping[str, BaseDistribution]) -> Floats:
    """Return the value of each parameter as a number, NaN where it has no place, and which there are, (2, d)."""
    values = np.array([[np.nan], [0.0]]).repeat(len(distributions), axis=1)
    for j, (name, distribution) in enumerate(distributions.items()) if params else ():
        if name in params:
            values[:, j] = _internal(distribution, params[name]), 1.0
    return values


def _internal(distribution: BaseDistribution, value: object) -> float:
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


@dataclass(frozen=True, eq=False)
class _Evaluated:
    """Which trials have gains, (n,), and their gains by objective; complete, noise and extra as in ObservedTrials."""

    has_gain: NDArray[np.bool_]
    complete: NDArray[np.bool_]
    gains: list[Floats]
    noise: Floats
    extra: Floats | float = 0.0


def _evaluated(study: Study, seen: _Seen, rows: Floats) -> _Evaluated:
    signs = [1.0 if direction == StudyDirection.MAXIMIZE else -1.0 for direction in study.directions]
    values, (variance, partial) = seen.reported.T, seen.noted[:, :2].T
    complete = seen.has(TrialState.COMPLETE) & ~np.isnan(values).any(axis=0)
    failed = seen.has(TrialState.FAIL) & ~np.isnan(rows).all(axis=1)
    pruned = seen.has(TrialState.PRUNED) & np.isfinite(values).all(axis=0)
    has_gain = complete | failed | pruned
    estimated = pruned & (partial >= 0.0)
    gains = []
    for sign, objective in zip(signs, values, strict=True):
        finite = complete & np.isfinite(objective)
        if not finite.any():
            nothing = np.zeros(0, dtype=bool)
            return _Evaluated(np.zeros(len(rows), dtype=bool), nothing, [np.empty(0) for _ in signs], np.empty(0))
        signed = sign * objective
        low, high, middle = signed[finite].min(), signed[finite].max(), float(np.median(signed[finite]))
        stopped = np.where(estimated, signed, np.minimum(signed, middle))
        signed = np.where(complete, np.clip(signed, low, high), np.where(pruned, stopped, low))
        gains.append(signed[has_gain])
    noise = np.where(complete | estimated, 1.0, UNKNOWN_NOISE) * relative_variance(variance)
    extra = np.where(estimated, partial, 0.0)
    return _Evaluated(has_gain, complete[has_gain], gains, noise[has_gain], extra[has_gain])


def _constraints(by_trial: Sequence[Mapping[str, float]]) -> tuple[Floats, ...]:
    """Return the constraints of trials, (n,) each, NaN where unknown, clipped to finite numbers."""
    names = sorted({name for values in by_trial for name in values})
    columns = [np.array([values.get(name, np.nan) for values in by_trial], dtype=np.float64) for name in names]
    return tuple(np.clip(column, -1e100, 1e100) for column in columns)


def _encoding(
    axes: tuple[Axis, ...],
    distributions: Mapping[str, BaseDistribution],
    rows: Floats,
    asked: NDArray[np.bool_],
    conditions: DeclaredSpace | None,
) -> SpaceEncoding:
    """Return the encoding with activity as declared, or as learnt from trials' rows."""
    if conditions is None:
        return SpaceEncoding(axes, learn_activity(axes, rows, asked))
    return SpaceEncoding(axes, AxisRules(_declared_rules(axes, distributions, conditions)))


def _declared_rules(
    axes: Sequence[Axis], distributions: Mapping[str, BaseDistribution], declared: DeclaredSpace
) -> tuple[AxisRule, ...]:
    place = {name: j for j, name in enumerate(distributions)}
    rules = []
    for name, conditions in declared.conditions.items():
        for when in conditions:
            if name in place and when.name in place:
                parent = place[when.name]
                inside = [v for v in when.values if not np.isnan(_internal(distributions[when.name], v))]
                numbers = np.array([_internal(distributions[when.name], v) for v in inside], dtype=np.float64)
                rules.append(AxisRule(place[name], parent, tuple(axes[parent].encode(numbers).tolist())))
    return tuple(rules)
