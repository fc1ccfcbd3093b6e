"""What the surrogate model observes of trials, and how its prediction along a parameter is drawn.

Observations are those that ranktune.tuner.search.search_scheduler selects from a record.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.kinds import Lines
from ranktune.dashboards.figures.panels import Axis, Frame, Trace
from ranktune.dashboards.records.trial import Trial
from ranktune.tuner.samplers.belief import Observation, Slice
from ranktune.tuner.search.search_scheduler import informative_places


def observations(trials: Iterable[Trial]) -> list[tuple[Observation, Trial | None]]:
    """Return the observations of trials: each trial, then a few other values of its path, with None for the trial."""
    return [observation for trial in trials for observation in _observations(trial)]


def _observations(trial: Trial) -> list[tuple[Observation, Trial | None]]:
    variance = (trial.error_of_mean or 0.0) ** 2
    partial = trial.error_of_estimate**2 if trial.stopped and trial.error_of_estimate is not None else None
    given = trial.flat_params
    observed: list[tuple[Observation, Trial | None]] = [(Observation(given, trial.value, variance, partial), trial)]
    values = [point for point, _ in trial.path]
    chosen = trial.params.get(trial.path_parameter)
    if trial.value is None or chosen not in values:
        return observed
    best = values.index(chosen)
    for place in informative_places(len(values), best)[1:]:
        params = given | {f"{trial.solver}.{trial.path_parameter}": type(chosen)(values[place])}
        value = trial.value + trial.path[place][1] - trial.path[best][1]
        observed.append((Observation(params, value, variance, partial), None))
    return observed


def predicted(belief: Slice, name: str, across: Axis, metric: str, over: Sequence[Trace] = ()) -> tuple[Frame, Lines]:
    """Return a prediction along a parameter: mean, 95 % interval and sampled functions."""
    draws = [f"Draw {k}" for k in range(1, len(belief.draws) + 1)]
    low, high = belief.mean - 1.96 * belief.sd, belief.mean + 1.96 * belief.sd
    values = zip(belief.values, belief.mean, low, high, *belief.draws, strict=True)
    kind = Lines(
        name, ("Mean", *draws), across, figures.axis(f"{metric} (validation)"), over=over,
        ends=None if belief.is_number else ("Low", "High"),
        area=("95 % band", "Low", "High") if belief.is_number else None,
    )  # fmt: skip
    return Frame((name, "Mean", "Low", "High", *draws), list(values)), kind
