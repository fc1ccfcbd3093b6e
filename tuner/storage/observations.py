"""The observations that a sampler gets from a finished trial: the trial, and a few other values of its path.

The best value of a path is the trial itself. The most expensive one, which was requested, and the neighbours of the
best are observations too: they locate the maximum. The others lie between them and would add little.
"""

from __future__ import annotations

from optuna.trial import FrozenTrial, create_trial

from ranktune.tuner.samplers.space import SOLVER
from ranktune.tuner.storage.record import BULK, BYTES, PARTIAL, PATH, SECONDS, VARIANCE

NOISE = frozenset({VARIANCE, PARTIAL})
"""Attributes of a trial that samplers read besides its cost: the variances of its value."""
COST_EXPONENT = 2.0 / 3.0
"""Power of a model's bytes that stands for the time to fit it: trees of twice the bytes take less than twice."""


def observations(trial: FrozenTrial, *, timed: bool = True) -> list[FrozenTrial]:
    """Return the trial as a sampler reads it, then the other observations of its path.

    Only the most expensive value has a cost, since one fit gave them all. The path of a stopped trial has values on a
    part of the queries; their differences count, from the trial's own value. Seconds never repeat: unless the study is
    timed, a power of the size of the most expensive model stands for them, so that a search repeats to the last bit.
    That size says little of linear models, which are all cheap, and enough of trees.
    """
    attributes = {name: value for name, value in trial.user_attrs.items() if name in NOISE}
    cost = trial.user_attrs.get(SECONDS) if timed else _bulk(trial)
    attributes |= {} if cost is None else {SECONDS: cost}
    path = dict(trial.user_attrs.get(PATH, {}))
    if not path or trial.value is None:
        return [_observed(trial, {}, trial.value, attributes)]
    ((parameter, points),) = path.items()
    name = f"{trial.params[SOLVER]}.{parameter}"
    values = [type(trial.params[name])(value) for value, _ in points]
    best, asked = values.index(trial.params[name]), len(values) - 1
    result = []
    for place in informative_places(len(values), best):
        attrs = {key: value for key, value in attributes.items() if key != SECONDS or place == asked}
        value = trial.value + (points[place][1] - points[best][1])
        result.append(_observed(trial, {name: values[place]}, value, attrs))
    return result


def _bulk(trial: FrozenTrial) -> float | None:
    size = trial.user_attrs.get(BULK, trial.user_attrs.get(BYTES))
    return None if size is None else float(size) ** COST_EXPONENT


def informative_places(count: int, best: int) -> tuple[int, ...]:
    """Return the places of a path that are observed: the best, then its neighbours and the most expensive."""
    return (best, *sorted({best - 1, best + 1, count - 1} & set(range(count)) - {best}))


def _observed(
    trial: FrozenTrial, changed: dict[str, object], value: float | None, attrs: dict[str, object]
) -> FrozenTrial:
    reported = {} if value is None else dict.fromkeys(trial.intermediate_values, value)
    return create_trial(
        state=trial.state,
        value=value,
        params={**trial.params, **changed},
        distributions=trial.distributions,
        user_attrs=attrs,
        intermediate_values=reported,
    )
