"""Solvers: each solver's trials, learning curves, and the differences between their models on the queries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.kinds import ROWS_OF_A_BOX, Bars, Curves, Heat, Points
from ranktune.dashboards.figures.panels import Cell, Frame, Panel, counted, grouped, joined
from ranktune.dashboards.records.study import SplitData, StudyData
from ranktune.dashboards.records.trial import Trial, best_of, counts
from ranktune.dashboards.views.solver_trials import SolverTrials, no_models_note, no_trials_note, solvers_of
from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.statistics.comparisons import pairwise
from ranktune.tuner.statistics.measured import ALPHA

COLUMNS = ("Solver", "Trials", "Failed", "Median", "Lower quartile", "Upper quartile", "Best", "Best trial",
           "Defaults", "Seconds in total", "Stopped early", "Seconds saved, about")  # fmt: skip


def panels(data: StudyData) -> list[Panel]:
    """Return the distribution of each solver's trials and learning curves, by split, and the pairwise differences."""
    parts = (_distribution, _learning_curves)
    shown = [grouped(part(data, split), k, group) for part in parts for k, split, group in data.groups]
    return [*(panel for of_split in shown for panel in of_split), _verdicts(data)]


def reached(solvers: Sequence[SolverTrials]) -> Frame:
    """Return what each solver reached."""
    return Frame(COLUMNS, list(map(_row, solvers)))


def _row(solver: SolverTrials) -> list[Cell]:
    best, default, n = solver.best, solver.default, counts(solver.trials)
    quartiles = list(np.quantile(solver.values, [0.5, 0.25, 0.75])) if solver.values else [None] * 3
    return [
        solver.name, len(solver.trials), n.failed, *quartiles,
        None if best is None else best.value, None if best is None else best.place,
        None if default is None else default.requested_value,
        n.spent, n.stopped, n.saved,
    ]  # fmt: skip


def _distribution(data: StudyData, split: SplitData) -> Iterator[Panel]:
    """Yield every trial by solver, and what each solver reached."""
    solvers = solvers_of(data, split.trials)
    summary = reached(solvers)
    drawn = [solver for solver in solvers if solver.valued]
    valued = [trial for solver in drawn for trial in solver.valued]
    kept, shown = figures.some_of(valued, [trial.value for trial in valued])
    across, outside = figures.value_axis(f"{data.metric} on the validation queries", [t.value for t in valued])
    note = joined(
        "Each point is a trial. A box shows the quartiles of a solver's trials that were evaluated in full, where "
        f"there are at least {ROWS_OF_A_BOX}. "
        "Stars are the best trials, rings the solvers' defaults.",
        shown,
        outside,
    )
    star = {"symbol": "star", "size": 15, "color": figures.ACCENT}
    ring = {"symbol": "circle-open", "size": 14, "color": figures.GREY, "line": {"width": 3}}
    over = [
        figures.scatter(name, known[column], known["Solver"], marker=marker, hovertemplate="%{x}<extra></extra>")
        for name, column, marker in (("best trial", "Best", star), ("defaults", "Defaults", ring))
        if (known := summary.known(column)).rows
    ]
    names = [figures.plain(solver.name) for solver in drawn]
    up = figures.axis("solver", categories=names, autorange="reversed")
    styles, best = figures.solver_styles(data.all_solvers), solvers[0].best if solvers else None
    kind = Points(data.metric, "Solver", across, up, styles, over=over, height=110 + 56 * len(names))
    answer = f"{best.solver} has the best trial, number {best.place}: {best.value:.4f}." if best is not None else ""
    table = Frame(
        ("Trial", "Solver", data.metric, "Stopped after"), [(t.place, t.solver, t.value, t.stopped) for t in kept]
    )
    title, absent = f"{data.metric} of every trial, by solver", no_trials_note(data)
    note = note if drawn else absent or "No trial of this split has a value yet."
    yield Panel("trials", title, table, kind, note, answer=answer)
    spent = Bars("Solver", ("Seconds in total", "Seconds saved, about"), "processor seconds", "solver")
    yield Panel("reached", "What each solver reached, and its time", summary, spent, "" if drawn else note)


def _learning_curves(data: StudyData, split: SplitData) -> Iterator[Panel]:
    """Yield the panel with the learning curve of each online solver's best trial; nothing where no trial has one."""
    with_curve = [trial for trial in split.trials if trial.learning_curve]
    by_solver = (best_of(t for t in with_curve if t.solver == name) for name in data.all_solvers)
    best: list[Trial] = sorted(filter(None, by_solver), key=lambda trial: -(trial.full_value or 0.0))
    if not best:
        return
    x, y = "Queries learned from", "So far"
    rows = []
    for trial in best:
        queries, values = np.array(trial.learning_curve).T
        means = np.cumsum(values) / np.arange(1, len(values) + 1)  # the points count alike
        rows += [(trial.solver, trial.place, *point) for point in zip(queries, values, means, strict=True)]
    note = (
        "Each query is scored before it is learned from. A line is the mean over the queries so far and the orders of "
        "the plan, for the best trial of a solver; it ends near the value of the trial. A line that still rises at "
        "its end would gain from more queries."
    )
    table = Frame(("Solver", "Trial", x, f"{data.metric} of the next", y), rows)
    title = f"{data.metric} while learning: the best trial of each online solver"
    kind = Curves(x, (y,), figures.axis(x.lower()), f"{data.metric} so far", by="Solver")
    yield Panel("learning", title, table, kind, note)


def _verdicts(data: StudyData) -> Panel:
    """Return which models differ, over the queries of all splits that have evidence."""
    title = f"Differences in {data.metric} between models, paired over the queries"
    evidence, labels = [scores for _, scores in data.evidence], data.common_labels
    if len(labels) < 2:
        note = "There is only one model." if len(evidence) == 1 else "No two models were fitted in every split."
        return Panel("verdicts", title, note=note if evidence else no_models_note(data))
    stacked = [scores.values[data.metric][[scores.labels.index(name) for name in labels]] for scores in evidence]
    weights = [scores.weights for scores in evidence]
    table, kind = pairs(labels, stacked, weights, data.metric, np.random.default_rng(data.study.seed))
    queries = sum(len(scores.queries) for scores in evidence)
    note = joined(
        f"{counted(queries, f'{data.part} query')}{' of all splits' * (len(evidence) > 1)}. A cell is the row's mean "
        f"minus the column's; * marks differences with a Holm-corrected p of at most {ALPHA} (randomisation test, "
        f"{len(table.rows)} pairs). Each solver is represented by its best model by validation.",
        data.weights_note,
    )
    return Panel("verdicts", title, table, kind, note)


def pairs(
    labels: Sequence[str], splits: Sequence[Floats], weights: Sequence[Floats | None], metric: str,
    generator: np.random.Generator,
) -> tuple[Frame, Heat]:  # fmt: skip
    """Return the paired tests between any two models, whose values by query are the rows of an array a split."""
    rows = [
        [
            labels[pair.a], labels[pair.b], pair.difference, pair.p, pair.p_holm,
            "not significant" if pair.p_holm is None or pair.p_holm > ALPHA
            else "better" if pair.difference > 0 else "worse",
            pair.wins, pair.ties, pair.losses,
        ]
        for pair in pairwise(splits, generator, weights)
    ]  # fmt: skip
    columns = ("Model", "Against", "Difference", "p", "Holm-corrected p", "Verdict", "Wins", "Ties", "Losses")
    unit = f"difference in {metric}"
    kind = Heat(*columns[:3], unit, lambda row: f"{row['Difference']:+.3f}{_star(row)}", _star, mirrored=True)
    return Frame(columns, rows), kind


def _star(row: dict[str, str]) -> str:
    return "*" * (row["Verdict"] != "not significant")
