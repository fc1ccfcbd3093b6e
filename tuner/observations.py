"""What a sampler learns from a finished trial: its value, and those of a few others along the path that it followed.

Of a path the best value counts as the trial. The dearest, which was asked for, is an observation too, as are the
neighbours of the best: they say where the top is. The others lie between them and would say little more.
"""

from __future__ import annotations

from optuna.trial import FrozenTrial, create_trial

from ranktune.tuner.record import PARTIAL, PATH, SECONDS, VARIANCE
from ranktune.tuner.space import SOLVER

SEEN = frozenset({VARIANCE, PARTIAL, SECONDS})
"""Attributes of a trial that samplers look at: how sure its value is, and what it cost."""


def observations(trial: FrozenTrial) -> list[FrozenTrial]:
    """Return the trial as a sampler sees it, then what else it showed.

    What it cost is told of the dearest alone: all others came with that. The values of a trial that was stopped are
    those of part of the queries; the differences between them count, from its own value.
    """
    seen = {name: value for name, value in trial.user_attrs.items() if name in SEEN}
    path = dict(trial.user_attrs.get(PATH, {}))
    if not path or trial.value is None:
        return [_observed(trial, {}, trial.value, seen)]
    ((own, points),) = path.items()
    name = f"{trial.params[SOLVER]}.{own}"
    values = [type(trial.params[name])(value) for value, _ in points]
    best, asked = values.index(trial.params[name]), len(values) - 1
    found = []
    for place in telling(len(values), best):
        attrs = {key: value for key, value in seen.items() if key != SECONDS or place == asked}
        value = trial.value + (points[place][1] - points[best][1])
        found.append(_observed(trial, {name: values[place]}, value, attrs))
    return found


def telling(count: int, best: int) -> tuple[int, ...]:
    """Return the places that count, of a path of count values: the best, then its neighbours and the dearest."""
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
