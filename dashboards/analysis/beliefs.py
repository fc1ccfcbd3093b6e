"""What the surrogate model observes of trials, and how its prediction along a parameter is drawn.

Observations are those that ranktune.tuner.search.search_scheduler selects from a record.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.panels import Trace
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


def along(belief: Slice, x: Sequence[figures.Place], colour: str) -> tuple[list[tuple[object, ...]], list[Trace]]:
    """Return the rows and the traces of a prediction along a parameter: mean, 95 % interval and sampled functions.

    x are the places of the values on the axis of the parameter, texts of one that is categorical.
    """
    low, high = belief.mean - 1.96 * belief.sd, belief.mean + 1.96 * belief.sd
    rows = list(zip(belief.values, belief.mean, low, high, *belief.draws, strict=True))
    if isinstance(x[0], str):
        small = {"symbol": "line-ew-open", "size": 12, "color": figures.GREY}
        draws = [
            figures.scatter(f"draw {k}", x, draw, marker=small, showlegend=False)
            for k, draw in enumerate(belief.draws, start=1)
        ]
        marker = {"color": colour, "size": 11}
        return rows, [figures.scatter("mean, 95 % bar", x, belief.mean, marker=marker, error=1.96 * belief.sd), *draws]
    colours, dashes = figures.COLOURS[4:] + figures.COLOURS[:4], ("dot", "dash", "dashdot", "longdash")
    draws = [
        figures.scatter(f"draw {k}", x, draw, mode="lines", line={"width": 1, "color": c, "dash": d})
        for k, (draw, c, d) in enumerate(zip(belief.draws, colours, dashes, strict=False), start=1)
    ]
    mean = figures.scatter("mean", x, belief.mean, mode="lines", line={"color": colour, "width": 3})
    return rows, [figures.band("95 % band", x, low, high, colour), *draws, mean]
