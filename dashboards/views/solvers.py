"""Solvers: the distribution of each solver's trials, and the differences between their models on the queries."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ranktune.dashboards.analysis.learning import learning_curves
from ranktune.dashboards.analysis.pooling import no_models_note, no_trials_note, stopped_note
from ranktune.dashboards.analysis.solver_trials import SolverTrials, solvers_of
from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.kinds import Heat, Points, with_key
from ranktune.dashboards.figures.panels import Axis, Cell, Figure, Frame, Panel, Trace, joined
from ranktune.dashboards.records.study import SplitData, StudyData
from ranktune.tuner.statistics.comparisons import ALPHA, pairwise

MIN_TRIALS_FOR_BOX = 4
"""Trials below which points say more than quartiles."""
SPREAD = 0.3
"""Half the height of the points of a solver, whose row has height 1."""
COLUMNS = ("Solver", "Trials", "Failed", "Median", "Lower quartile", "Upper quartile", "Best", "Best trial",
           "Defaults", "Seconds in total", "Stopped early")  # fmt: skip


def panels(data: StudyData) -> list[Panel]:
    """Return the distribution of each solver's trials and learning curves, by split, and the pairwise differences."""
    shown = [_distribution(data, split, f"trials-{k}", group) for k, split, group in data.groups]
    learning = [panel for k, split, group in data.groups for panel in learning_curves(data, split, k, group)]
    return [*shown, *learning, _verdicts(data)]


def _row(solver: SolverTrials) -> list[Cell]:
    best, default = solver.best, solver.default
    quartiles = list(np.quantile(solver.values, [0.5, 0.25, 0.75])) if solver.values else [None] * 3
    return [
        solver.name, len(solver.trials), len(solver.trials) - len(solver.valued), *quartiles,
        None if best is None else best.value, None if best is None else best.place,
        None if default is None else default.requested_value,
        sum(trial.seconds for trial in solver.trials), sum(bool(trial.stopped) for trial in solver.valued),
    ]  # fmt: skip


def _distribution(data: StudyData, split: SplitData, key: str, group: str) -> Panel:
    solvers = solvers_of(data, split.trials)
    table = Frame(COLUMNS, list(map(_row, solvers)))
    title = f"{data.metric} of every trial, by solver"
    drawn = [solver for solver in solvers if solver.valued]
    if not drawn:
        note = no_trials_note(data) or "No trial of this split has a value yet."
        return Panel(key, title, table, None, note, group)
    values = [value for solver in drawn for value in solver.values]
    across, outside = figures.value_axis(f"{data.metric} on the validation queries", values)
    estimates = stopped_note(trial for solver in drawn for trial in solver.valued)
    most = max(200, figures.MAX_POINTS * 2 // len(drawn))
    thinned = any(len(solver.valued) > most for solver in drawn)
    note = joined(
        "Each point is a trial. A box shows the quartiles of a solver's trials, where there are at least "
        f"{MIN_TRIALS_FOR_BOX}. Stars are the best trials, rings the solvers' defaults.",
        estimates and f"{estimates} Boxes include them.",
        outside,
        f"Of more than {most} trials of a solver, an even choice with the extremes is shown." if thinned else "",
    )
    name, best, place = table.rows[0][0], solvers[0].best, table.rows[0][7]
    answer = f"{name} has the best trial, number {place}: {best.value:.4f}." if best is not None and best.value else ""
    return Panel(key, title, table, partial(_figure, drawn, most, across), note, group, answer)


def _figure(solvers: Sequence[SolverTrials], most: int, across: Axis, frame: Frame) -> Figure:
    """Return a row for each solver: a box of what the frame says, with its trials scattered over it."""
    traces: list[Trace] = []
    frame = frame.kept(row for row in frame.rows if row[3] is not None)
    names = figures.distinct(frame["Solver"])
    for k, solver in enumerate(solvers):
        if len(solver.valued) >= MIN_TRIALS_FOR_BOX:
            traces.append(_box(solver, names[k], k, frame.rows[k]))
        kept = [solver.valued[i] for i in figures.thinned(solver.values, most)]
        heights = [k + SPREAD * (2 * (trial.number * 0.618034 % 1) - 1) for trial in kept]
        columns = ("Trial", "Stopped after", "x", "y")
        shown = Frame(columns, [(t.place, t.stopped, t.value, y) for t, y in zip(kept, heights, strict=True)])
        points = Points("x", "y", across, {}, {solver.name: {**solver.marker, "size": 6}})
        traces += points.drawn(solver.name, shown, "y", showlegend=False)
    star = {"symbol": "star", "size": 15, "color": figures.ACCENT}
    ring = {"symbol": "circle-open", "size": 14, "color": figures.GREY, "line": {"width": 3}}
    for name, column, marker in (("best trial", "Best", star), ("defaults", "Defaults", ring)):
        known = [(x, k) for k, x in enumerate(frame[column]) if x is not None]
        if known:
            x, y = zip(*known, strict=True)
            traces.append(figures.scatter(name, x, y, marker=marker, hovertemplate="%{x}<extra></extra>"))
    traces = with_key(traces, frame["Stopped early"])
    down = figures.axis("solver", tickmode="array", tickvals=list(range(len(names))), ticktext=names)
    down |= {"range": [len(names) - 0.5, -0.5], "zeroline": False}
    return figures.figure(traces, across, down, height=max(240, 110 + 56 * len(names)))


def _box(solver: SolverTrials, name: str, k: int, row: Sequence[Cell]) -> Trace:
    """Return the quartiles of all of a solver's trials, whether or not all are drawn."""
    colour = solver.marker["color"]
    return {
        "type": "box", "orientation": "h", "name": name, "y": [k], "q1": [row[4]], "median": [row[3]], "q3": [row[5]],
        "lowerfence": [min(solver.values)], "upperfence": [max(solver.values)],
        "width": 2 * SPREAD + 0.1, "line": {"color": colour, "width": 1}, "fillcolor": figures.faint(colour, 0.12),
        "showlegend": False, "hoverinfo": "skip",
    }  # fmt: skip


def _verdicts(data: StudyData) -> Panel:
    """Return which models differ, over the queries of all splits that have evidence."""
    title = f"Differences in {data.metric} between models, paired over the queries"
    evidence, labels = [scores for _, scores in data.evidence], data.common_labels
    if not evidence:
        return Panel("verdicts", title, note=no_models_note(data))
    if len(labels) < 2:
        note = "There is only one model." if len(evidence) == 1 else "No two models were fitted in every split."
        return Panel("verdicts", title, note=note)
    stacked = [scores.values[data.metric][[scores.labels.index(name) for name in labels]] for scores in evidence]
    pairs = pairwise(stacked, np.random.default_rng(data.study.seed), [scores.weights for scores in evidence])
    rows = [
        [
            labels[pair.a], labels[pair.b], pair.difference, pair.p, pair.p_holm,
            "not significant" if pair.p_holm is None or pair.p_holm > ALPHA
            else "better" if pair.difference > 0 else "worse",
            pair.wins, pair.ties, pair.losses,
        ]
        for pair in pairs
    ]  # fmt: skip
    queries = sum(len(scores.queries) for scores in evidence)
    note = joined(
        f"{queries} {_part(data)} queries{' of all splits' if len(evidence) > 1 else ''}. A cell is the row's mean "
        f"minus the column's; * marks differences with a Holm-corrected p of at most {ALPHA} (randomisation test, "
        f"{len(pairs)} pairs). Each solver is represented by its best model by validation.",
        data.weights_note,
    )
    columns = ("Model", "Against", "Difference", "p", "Holm-corrected p", "Verdict", "Wins", "Ties", "Losses")
    kind = Heat(
        "Model", "Against", "Difference", f"difference in {data.metric}", mirrored=-1,
        text=lambda row: f"{row['Difference']:+.3f}{_star(row['Verdict'])}", mark=lambda row: _star(row["Verdict"]),
    )  # fmt: skip
    return Panel("verdicts", title, Frame(columns, rows), kind, note)


def _star(verdict: str) -> str:
    return "*" * (verdict != "not significant")


def _part(data: StudyData) -> str:
    return "test" if data.evidence[0][1].part == "test" else "validation"
