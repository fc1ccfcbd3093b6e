"""Solvers: the distribution of each solver's trials, and the differences between their models on the queries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranktune.dashboards.analysis import early_stopped
from ranktune.dashboards.analysis.learning import learning_curves
from ranktune.dashboards.analysis.pooling import no_models_note, no_trials_note
from ranktune.dashboards.analysis.solver_trials import SolverTrials, solvers_of
from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.panels import Axis, Cell, Figure, Panel, Table, Trace, joined
from ranktune.dashboards.records.study import SplitData, StudyData
from ranktune.tuner.statistics.comparisons import ALPHA, Pair, pairwise

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
    return [
        solver.name, len(solver.trials), len(solver.trials) - len(solver.valued), *_quartiles(solver),
        None if best is None else best.value, None if best is None else best.number,
        None if default is None else default.requested_value,
        sum(trial.seconds for trial in solver.trials), sum(bool(trial.stopped) for trial in solver.valued),
    ]  # fmt: skip


def _quartiles(solver: SolverTrials) -> list[float | None]:
    """Return the median, the lower and the upper quartile, the estimates of stopped trials included."""
    return list(np.quantile(solver.values, [0.5, 0.25, 0.75])) if solver.values else [None] * 3


def _distribution(data: StudyData, split: SplitData, key: str, group: str) -> Panel:
    solvers = solvers_of(data, split.trials)
    table = Table(COLUMNS, list(map(_row, solvers)))
    title = f"{data.metric} of every trial, by solver"
    drawn = [solver for solver in solvers if solver.valued]
    if not drawn:
        note = no_trials_note(data) or "No trial of this split has a value yet."
        return Panel(key, title, table, None, note, group)
    values = [value for solver in drawn for value in solver.values]
    x_axis, outside = figures.value_axis(f"{data.metric} on the validation queries", values)
    estimates = early_stopped.note(trial for solver in drawn for trial in solver.valued)
    most = max(200, figures.MAX_POINTS * 2 // len(drawn))
    thinned = any(len(solver.valued) > most for solver in drawn)
    note = joined(
        "Each point is a trial. A box shows the quartiles of a solver's trials, where there are at least "
        f"{MIN_TRIALS_FOR_BOX}. Stars are the best trials, rings the solvers' defaults.",
        estimates and f"{estimates} Boxes include them.",
        outside,
        f"Of more than {most} trials of a solver, an even choice with the extremes is shown." if thinned else "",
    )
    return Panel(key, title, table, _points_figure(drawn, most, x_axis), note, group)


def _points_figure(solvers: Sequence[SolverTrials], most: int, x_axis: Axis) -> Figure:
    """Return a row for each solver: a box with its trials scattered over it."""
    names = figures.distinct(solver.name for solver in solvers)
    traces: list[Trace] = []
    for k, (solver, name) in enumerate(zip(solvers, names, strict=True)):
        if len(solver.valued) >= MIN_TRIALS_FOR_BOX:
            traces.append(_box(solver, name, k))
        kept = [solver.valued[i] for i in figures.thinned(solver.values, most)]
        heights = [k + SPREAD * (2 * (trial.number * 0.618034 % 1) - 1) for trial in kept]
        traces += early_stopped.points(
            solver.name, kept, [t.value for t in kept], heights, [early_stopped.label(trial, name) for trial in kept],
            {**solver.marker, "size": 6, "opacity": 0.6}, showlegend=False,
            hovertemplate="%{text}<br>%{x}<extra></extra>",
        )  # fmt: skip
    best = [(solver.best.value, k) for k, solver in enumerate(solvers) if solver.best is not None]
    defaults = [(solver.default.requested_value, k) for k, solver in enumerate(solvers) if solver.default is not None]
    traces.append(_marked("best trial", best, {"symbol": "star", "size": 15, "color": figures.ACCENT}))
    if defaults:
        ring = {"symbol": "circle-open", "size": 14, "color": figures.GREY, "line": {"width": 3}}
        traces.append(_marked("defaults", defaults, ring))
    traces = early_stopped.with_legend(traces, [trial for solver in solvers for trial in solver.valued])
    y_axis = figures.axis("solver", tickmode="array", tickvals=list(range(len(names))), ticktext=names)
    y_axis |= {"range": [len(names) - 0.5, -0.5], "zeroline": False}
    return figures.figure(traces, x_axis, y_axis, height=max(240, 110 + 56 * len(names)))


def _box(solver: SolverTrials, name: str, k: int) -> Trace:
    """Return the quartiles of all of a solver's trials, whether or not all are drawn."""
    colour, (median, low, high) = solver.marker["color"], _quartiles(solver)
    return {
        "type": "box", "orientation": "h", "name": name, "y": [k], "q1": [low], "median": [median], "q3": [high],
        "lowerfence": [min(solver.values)], "upperfence": [max(solver.values)],
        "width": 2 * SPREAD + 0.1, "line": {"color": colour, "width": 1}, "fillcolor": figures.faint(colour, 0.12),
        "showlegend": False, "hoverinfo": "skip",
    }  # fmt: skip


def _marked(name: str, places: Sequence[tuple[float | None, int]], marker: dict[str, object]) -> Trace:
    trace = figures.scatter(name, [x for x, _ in places], [y for _, y in places], marker=marker)
    return trace | {"hovertemplate": f"{name}: %{{x}}<extra></extra>"}


def _verdicts(data: StudyData) -> Panel:
    """Return which models differ, over the queries of all splits that have evidence."""
    title = f"Differences in {data.metric} between models, paired over the queries"
    evidence, labels = [scores for _, scores in data.evidence], data.common_labels
    columns = ("Model", "Against", "Difference", "p", "Holm-corrected p", "Verdict", "Wins", "Ties", "Losses")
    if not evidence:
        return Panel("verdicts", title, note=no_models_note(data))
    if len(labels) < 2:
        note = "There is only one model." if len(evidence) == 1 else "No two models were fitted in every split."
        return Panel("verdicts", title, note=note)
    stacked = [scores.values[data.metric][[scores.labels.index(name) for name in labels]] for scores in evidence]
    pairs = pairwise(stacked, np.random.default_rng(data.study.seed), [scores.weights for scores in evidence])
    rows = [
        [
            labels[pair.a], labels[pair.b], pair.difference, pair.p,
            pair.p_holm, _verdict(pair) or "not significant", pair.wins, pair.ties, pair.losses,
        ]
        for pair in pairs
    ]  # fmt: skip
    part = "test" if evidence[0].part == "test" else "validation"
    queries = sum(len(scores.queries) for scores in evidence)
    note = (
        f"{queries} {part} queries{' of all splits' if len(evidence) > 1 else ''}. A cell is the row's mean minus the "
        f"column's; * marks differences with a Holm-corrected p of at most {ALPHA} (randomisation test, {len(pairs)} "
        "pairs). Each solver is represented by its best model by validation."
    )
    note = joined(note, data.weights_note)
    return Panel("verdicts", title, Table(columns, rows), _matrix(labels, pairs, data.metric), note)


def _verdict(pair: Pair) -> str:
    """Return "better" or "worse", "" where the difference is not significant."""
    if pair.p_holm is None or pair.p_holm > ALPHA:
        return ""
    return "better" if pair.difference > 0 else "worse"


def _matrix(labels: Sequence[str], pairs: Sequence[Pair], metric: str) -> Figure:
    """Return the differences as a square of cells, significant ones with a star."""
    z = np.full((len(labels), len(labels)), np.nan)
    text = [["" for _ in labels] for _ in labels]
    for pair in pairs:
        star = "*" if _verdict(pair) else ""
        for a, b, sign in ((pair.a, pair.b, 1.0), (pair.b, pair.a, -1.0)):
            z[a, b] = sign * pair.difference
            text[a][b] = f"{sign * pair.difference:+.3f}{star}"
    unit, hover = f"difference in {metric}", "%{y} minus %{x}<br>%{text}"
    return figures.square(labels, z, text, unit, "compared with", "model", hover)
