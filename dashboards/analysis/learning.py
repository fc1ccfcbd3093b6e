"""Learning curves of online learners: how well the next queries are ranked after more and more queries."""

from __future__ import annotations

from typing import Any

import numpy as np

from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.kinds import Lines
from ranktune.dashboards.figures.panels import Frame, Panel, joined
from ranktune.dashboards.records.study import SplitData, StudyData
from ranktune.dashboards.records.trial import Trial, best_of


def learning_curves(data: StudyData, split: SplitData, k: int, group: str) -> list[Panel]:
    """Return the panel with the learning curve of each solver's best trial; nothing where no trial has one."""
    with_curve = [trial for trial in split.trials if trial.learning_curve]
    by_solver = (best_of(t for t in with_curve if t.solver == name) for name in data.all_solvers)
    best = sorted(filter(None, by_solver), key=lambda trial: -(trial.full_value or 0.0))
    if not best:
        return []
    x, y = "Queries learned from", "So far"
    rows: list[list[Any]] = [
        [trial.solver, trial.place, queries, value, mean]
        for trial in best
        for (queries, value), mean in zip(trial.learning_curve, so_far(trial), strict=True)
    ]
    up, outside = figures.value_axis(f"{data.metric} so far", [row[-1] for row in rows])
    note = joined(
        "Each query is scored before it is learned from. A line is the mean over the queries so far and the orders of "
        "the plan, for the best trial of a solver; it ends near the value of the trial. A line that still rises at "
        "its end would gain from more queries.",
        outside,
    )
    table = Frame(("Solver", "Trial", x, f"{data.metric} of the next", y), rows)
    title = f"{data.metric} while learning: the best trial of each online solver"
    kind = Lines(x, (y,), figures.axis(x.lower()), up, by="Solver")
    return [Panel(f"learning-{k}", title, table, kind, note, group)]


def so_far(trial: Trial) -> list[float]:
    """Return the means of the metric up to each point of a trial's learning curve, whose points count alike."""
    values = np.array([value for _, value in trial.learning_curve])
    means: list[float] = (np.cumsum(values) / np.arange(1, len(values) + 1)).tolist()
    return means
