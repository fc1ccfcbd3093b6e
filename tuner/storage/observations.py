"""What a sampler learns from a finished trial: its value, and those of a few others along the path that it followed.

Of a path the best value counts as the trial. The dearest, which was asked for, is an observation too, as are the
neighbours of the best: they say where the top is. The others lie between them and would say little more.
"""

from __future__ import annotations

from optuna.trial import FrozenTrial, create_trial

from ranktune.tuner.samplers.space import SOLVER
from ranktune.tuner.storage.record import BULK, BYTES, PARTIAL, PATH, SECONDS, VARIANCE

SURENESS = frozenset({VARIANCE, PARTIAL})
"""Attributes of a trial that samplers look at, besides what it cost: how sure its value is."""
GROWTH = 2.0 / 3.0
"""Power of a model's bytes that stands for the time to learn it: trees of twice the bytes take less than twice it."""


def observations(trial: FrozenTrial, *, timed: bool = True) -> list[FrozenTrial]:
    """Return the trial as a sampler sees it, then what else it showed.

    What it cost is told of the dearest alone: all others came with that. The values of a trial that was stopped are
    those of part of the queries; the differences between them count, from its own value. Seconds are never the same
    twice: unless the study is timed, the size of the dearest model stands for them, in no unit, so that a search can be
    repeated to the last bit. Of linear models, of which all are cheap, it says little; of trees enough.
    """
    seen = {name: value for name, value in trial.user_attrs.items() if name in SURENESS}
    cost = trial.user_attrs.get(SECONDS) if timed else _bulk(trial)
    seen |= {} if cost is None else {SECONDS: cost}
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


def _bulk(trial: FrozenTrial) -> float | None:
    size = trial.user_attrs.get(BULK, trial.user_attrs.get(BYTES))
    return None if size is None else float(size) ** GROWTH


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
