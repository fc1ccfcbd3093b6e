"""Learning curves of online learners: how well the next queries are ranked after more and more queries."""

from __future__ import annotations

import numpy as np

from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.panels import Panel, Table
from ranktune.dashboards.records.study import SplitData, StudyData
from ranktune.dashboards.records.trial import Trial, best_of


def learning_curves(data: StudyData, split: SplitData, k: int, group: str) -> list[Panel]:
    """Return the panel with the learning curve of each solver's best trial; nothing where no trial has one."""
    with_curve = [trial for trial in split.trials if trial.learning_curve]
    by_solver = (best_of(t for t in with_curve if t.solver == name) for name in data.all_solvers)
    best: list[Trial] = [trial for trial in by_solver if trial is not None]
    if not best:
        return []
    best.sort(key=lambda trial: -(trial.full_value or 0.0))
    styles = figures.solver_styles(data.all_solvers)
    rows = [
        [trial.solver, trial.number, queries, value, mean]
        for trial in best
        for (queries, value), mean in zip(trial.learning_curve, so_far(trial), strict=True)
    ]
    traces = [
        figures.scatter(
            trial.solver, [queries for queries, _ in trial.learning_curve], so_far(trial), mode="lines",
            line={"width": 2, "color": styles[trial.solver]["color"]},
        )
        for trial in best
    ]  # fmt: skip
    y_axis, outside = figures.value_axis(f"{data.metric} so far", [value for trial in best for value in so_far(trial)])
    shown = figures.figure(traces, figures.axis("queries learned from"), y_axis)
    note = (
        "Each query is scored before it is learned from. A line is the mean over the queries so far and the orders of "
        "the plan, for the best trial of a solver; it ends near the value of the trial. A line that still rises at "
        f"its end would gain from more queries. {outside}"
    )
    columns = ("Solver", "Trial", "Queries learned from", f"{data.metric} of the next", "So far")
    title = f"{data.metric} while learning: the best trial of each online solver"
    return [Panel(f"learning-{k}", title, Table(columns, rows), shown, note.strip(), group)]


def so_far(trial: Trial) -> list[float]:
    """Return the means of the metric up to each point of a trial's learning curve, whose points count alike."""
    values = np.array([value for _, value in trial.learning_curve])
    means: list[float] = (np.cumsum(values) / np.arange(1, len(values) + 1)).tolist()
    return means
