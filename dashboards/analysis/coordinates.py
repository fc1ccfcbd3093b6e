"""Parallel coordinates: each trial of a solver as a line across its parameters, which ends at its metric."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from ranktune.dashboards.analysis.solver_trials import SolverTrials
from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.panels import Cell, Panel, Table, Trace
from ranktune.dashboards.records.trial import Trial
from ranktune.solvers.core.space import Value

MAX_TRIALS = 150
"""Lines of a solver: more are a surface; those left out are chosen evenly by rank."""
MAX_PARAMETERS = 8
"""The most important ones; more axes cannot be distinguished on a page."""
BANDS = (
    ("worst fifth", "#7887ff"), ("second fifth", "#0096c3"), ("third fifth", "#1ea52d"),
    ("fourth fifth", "#b48787"), ("best fifth", "#ff5a00"),
)  # fmt: skip
"""Trials by rank, the best drawn last."""


def panel(solver: SolverTrials, k: int) -> Panel:
    """Return the trials of a solver, with its most important parameters and the metric as parallel axes."""
    names = solver.ranked[:MAX_PARAMETERS]
    metric = solver.data.metric
    ranked = sorted(solver.valued, key=lambda trial: trial.value or 0.0)
    trials = [ranked[j] for j in figures.evenly(len(ranked), most=MAX_TRIALS)]
    rows: list[list[Cell]] = [
        [trial.number, *(solver.cell(name, trial.params[name]) if name in trial.params else None for name in names),
         trial.value]
        for trial in reversed(trials)
    ]  # fmt: skip
    table = Table(("trial", *figures.distinct(names), metric), rows)
    values = np.array([trial.value for trial in trials], dtype=np.float64)
    low, high = float(values.min()), float(values.max())
    ticks = [*(_label(name, solver.distributions[name]) for name in names), _ends(metric, low, high)]
    traces = [
        _band(solver, [trials[j] for j in members], names, style, (low, high))
        for style, members in zip(BANDS, np.array_split(np.arange(len(trials)), len(BANDS)), strict=True)
        if len(members)
    ]
    x = figures.axis("", tickvals=list(range(len(ticks))), ticktext=ticks, showgrid=True, zeroline=False)
    y = figures.axis("", range=[-0.05, 1.05], showticklabels=False, showgrid=False, zeroline=False)
    left_out = len(solver.ranked) - len(names)
    note = solver.note(
        "Each line is a trial; it passes each axis at its value of the parameter, from the lowest at the bottom to the "
        "highest at the top, and is interrupted where a parameter does not apply.",
        f"{left_out} less important parameters are left out." if left_out else "",
        f"{len(trials)} of {len(ranked)} trials, evenly by rank." if len(trials) < len(ranked) else "",
    )
    title = f"Parameters and {metric} of each trial of {figures.short(solver.name)}"
    return Panel(f"coordinates-{k}", title, table, figures.figure(traces, x, y, height=430), note, solver.name)


def _band(
    solver: SolverTrials,
    trials: Sequence[Trial],
    names: Sequence[str],
    style: tuple[str, str],
    ends: tuple[float, float],
) -> Trace:
    """Return the lines of trials as one trace, which is interrupted between them."""
    label, colour = style
    x: list[float | None] = []
    y: list[float | None] = []
    text: list[str] = []
    for trial in trials:
        places = [_height(solver.distributions[name], trial.params.get(name)) for name in names]
        value = trial.value or 0.0
        heights = [*places, (value - ends[0]) / (ends[1] - ends[0]) if ends[1] > ends[0] else 0.5]
        parameters = [f"{name}={solver.coordinate(name, trial.params[name])}" for name in names if name in trial.params]
        line = figures.plain(f"trial {trial.number}: {', '.join(parameters)}: {value:.4f}", 300)
        x += [*map(float, range(len(heights))), None]
        y += [*heights, None]
        text += [line] * (len(heights) + 1)
    trace = figures.scatter(
        label, x, y, mode="lines+markers", marker={"color": colour, "size": 5},
        line={"color": figures.faint(colour, 0.75), "width": 1.5}, text=text,
    )  # fmt: skip
    return trace | {"hovertemplate": "%{text}<extra></extra>", "connectgaps": False}


def _height(distribution: BaseDistribution, value: Value) -> float | None:
    """Return the place of a value between the ends of its axis, 0 to 1; None without a value."""
    if value is None and not isinstance(distribution, CategoricalDistribution):
        return None
    if isinstance(distribution, CategoricalDistribution):
        if value not in distribution.choices:
            return None
        return distribution.choices.index(value) / max(len(distribution.choices) - 1, 1)
    if not isinstance(distribution, FloatDistribution | IntDistribution) or not isinstance(value, int | float):
        return None
    low, high, position = float(distribution.low), float(distribution.high), float(value)
    if distribution.log:
        low, high, position = float(np.log(low)), float(np.log(high)), float(np.log(position))
    return (position - low) / (high - low)


def _label(name: str, distribution: BaseDistribution) -> str:
    if isinstance(distribution, CategoricalDistribution):
        choices = [figures.plain(choice, 12) for choice in distribution.choices]
        ends = choices[0] if len(choices) == 1 else f"{choices[0]} … {choices[-1]}"
        return f"{figures.plain(name, figures.MAX_LABEL)}<br>{ends}"
    if isinstance(distribution, FloatDistribution | IntDistribution):
        return _ends(name, distribution.low, distribution.high)
    return figures.plain(name, figures.MAX_LABEL)


def _ends(name: str, low: float, high: float) -> str:
    return f"{figures.plain(name, figures.MAX_LABEL)}<br>{low:.4g} … {high:.4g}"
