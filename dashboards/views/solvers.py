"""Solvers: how the trials of each are distributed, and which solvers' models differ on the queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ranktune.dashboards.analysis import early_stopped
from ranktune.dashboards.analysis.pooling import competing, default_params, state_note, unfinished_note
from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.panels import Cell, Panel, Table, look
from ranktune.dashboards.records.study import SplitData, StudyData, Trial, best_of
from ranktune.solvers.core.space import Value
from ranktune.tuner.statistics.pairs import ALPHA, Pair, pairwise

FEWEST_FOR_BOX = 4
"""Trials below which points say more than quartiles."""
SPREAD = 0.3
"""How far points stray from the middle of their solver's row, of which the height is 1."""
COLUMNS = ("Solver", "Trials", "Failed", "Median", "Lower quartile", "Upper quartile", "Best", "Best trial",
           "Defaults", "Seconds in all", "Stopped early")  # fmt: skip


def panels(data: StudyData) -> list[Panel]:
    """Return the distribution of each solver's trials, split by split, and the pairwise verdicts."""
    several = len(data.splits) > 1
    found = [
        _distribution(data, split, f"trials-{k}", split.name if several else "")
        for k, split in enumerate(data.splits or (SplitData("", data.folder, (), None, {}),))
    ]
    return [*found, _verdicts(data)]


@dataclass(frozen=True)
class _Solver:
    """The trials of one solver in numbers; good are those with a value, or an estimate of it."""

    name: str
    good: list[Trial]
    failed: int
    default: Trial | None
    seconds: float

    @property
    def values(self) -> list[float]:
        return [trial.value for trial in self.good if trial.value is not None]

    @property
    def best(self) -> Trial | None:
        return best_of(self.good)

    @property
    def stopped(self) -> list[bool]:
        return [bool(trial.stopped) for trial in self.good]

    def row(self) -> list[Cell]:
        quartiles = np.quantile(self.values, [0.5, 0.25, 0.75]).tolist() if self.values else [None] * 3
        best = self.best
        return [
            self.name, len(self.good) + self.failed, self.failed, *figures.numbers(quartiles),
            None if best is None else figures.number(best.value), None if best is None else best.number,
            None if self.default is None else figures.number(self.default.asked_value), figures.number(self.seconds),
            sum(self.stopped),
        ]  # fmt: skip


def _solvers(data: StudyData, trials: Sequence[Trial], defaults: dict[str, dict[str, Value]]) -> list[_Solver]:
    """Return the solvers in numbers, the one with the best trial first."""
    found = []
    for name in competing(data):
        own = [trial for trial in trials if trial.solver == name]
        good = [trial for trial in own if trial.value is not None]
        in_full = (trial for trial in good if not trial.stopped)
        default = next((trial for trial in in_full if dict(trial.asked) == defaults.get(name)), None)
        found.append(_Solver(name, good, len(own) - len(good), default, sum(trial.seconds for trial in own)))
    return sorted(
        found, key=lambda solver: -max((t.in_full for t in solver.good if t.in_full is not None), default=-np.inf)
    )


def _distribution(data: StudyData, split: SplitData, key: str, group: str) -> Panel:
    solvers = _solvers(data, split.trials, default_params(data))
    table = Table(COLUMNS, [solver.row() for solver in solvers])
    title = f"{data.metric} of every trial, by solver"
    seen = [solver for solver in solvers if solver.good]
    if not seen:
        note = state_note(data) or "No trial of this split has a value yet."
        return Panel(key, title, table, None, note, group)
    note = (
        "Each point is a trial; a box holds the middle half of a solver's trials, from "
        f"{FEWEST_FOR_BOX} on, with their median. Stars are the best trials, rings the solvers' defaults."
    )
    bounds, outside = figures.window(value for solver in seen for value in solver.values)
    if any(any(solver.stopped) for solver in seen):
        note += f" {early_stopped.NOTE} Boxes count them."
    note = f"{note} {outside}".strip()
    most = max(200, figures.MOST_POINTS * 2 // len(seen))
    if any(len(solver.good) > most for solver in seen):
        note += f" Of more than {most} trials of a solver, an even choice with the extremes is shown."
    return Panel(key, title, table, _strip(data, seen, most, bounds), note, group)


def _strip(data: StudyData, solvers: Sequence[_Solver], most: int, bounds: list[float] | None) -> figures.Figure:
    """Return the solvers one below another, each a box with its trials scattered along it."""
    looks, names = look(competing(data)), figures.distinct(solver.name for solver in solvers)
    traces: list[figures.Trace] = []
    for k, (solver, name) in enumerate(zip(solvers, names, strict=True)):
        marker = looks[solver.name]
        if len(solver.good) >= FEWEST_FOR_BOX:
            traces.append(_box(solver, name, k, marker["color"]))
        kept = [solver.good[i] for i in figures.thinned(solver.values, most)]
        stray = [k + SPREAD * (2 * (trial.number * 0.618034 % 1) - 1) for trial in kept]
        text = [early_stopped.said(trial, name) for trial in kept]
        own = figures.scatter(solver.name, [t.value for t in kept], stray, text=text, showlegend=False)
        own["marker"] = {**marker, "size": 6, "opacity": 0.6}
        own["hovertemplate"] = "%{text}<br>%{x}<extra></extra>"
        traces += early_stopped.told_apart(own, [bool(trial.stopped) for trial in kept])
    best = [(solver.best.value, k) for k, solver in enumerate(solvers) if solver.best is not None]
    default = [(solver.default.asked_value, k) for k, solver in enumerate(solvers) if solver.default is not None]
    traces.append(_marked("best trial", best, {"symbol": "star", "size": 15, "color": "#d55e00"}))
    if default:
        ring = {"symbol": "circle-open", "size": 14, "color": "#7f7f7f", "line": {"width": 3}}
        traces.append(_marked("defaults", default, ring))
    traces = early_stopped.with_key(traces, [trial for solver in solvers for trial in solver.good])
    rows = figures.axis("solver", tickmode="array", tickvals=list(range(len(names))), ticktext=names)
    rows |= {"range": [len(names) - 0.5, -0.5], "zeroline": False}
    along = figures.axis(f"{data.metric} on the validation queries") | ({} if bounds is None else {"range": bounds})
    return figures.figure(traces, along, rows, height=max(240, 110 + 56 * len(names)))


def _box(solver: _Solver, name: str, k: int, colour: str) -> figures.Trace:
    """Return the quartiles of all of a solver's trials, whether or not all are shown."""
    median, low, high = figures.numbers(np.quantile(solver.values, [0.5, 0.25, 0.75]))
    return {
        "type": "box", "orientation": "h", "name": name, "y": [k], "q1": [low], "median": [median], "q3": [high],
        "lowerfence": [figures.number(min(solver.values))], "upperfence": [figures.number(max(solver.values))],
        "width": 2 * SPREAD + 0.1, "line": {"color": colour, "width": 1}, "fillcolor": figures.faint(colour, 0.12),
        "showlegend": False, "hoverinfo": "skip",
    }  # fmt: skip


def _marked(name: str, places: Sequence[tuple[float | None, int]], marker: dict[str, object]) -> figures.Trace:
    trace = figures.scatter(name, [x for x, _ in places], [y for _, y in places], marker=marker)
    return trace | {"hovertemplate": f"{name}: %{{x}}<extra></extra>"}


def _verdicts(data: StudyData) -> Panel:
    """Return who beats whom, over the queries of all splits that have evidence."""
    title = f"Which models differ in {data.metric}: paired differences over the queries"
    evidence = [split.evidence for split in data.splits if split.evidence is not None]
    evidence = [one for one in evidence if data.metric in one.values]
    columns = ("Model", "Against", "Difference", "p", "Holm-corrected p", "Verdict", "Wins", "Ties", "Losses")
    if not evidence:
        return Panel("verdicts", title, Table(columns, []), None, unfinished_note(data))
    labels = [name for name in evidence[0].labels if all(name in one.labels for one in evidence)]
    if len(labels) < 2:
        note = "There is only one model to look at." if len(evidence) == 1 else "No two models are of every split."
        return Panel("verdicts", title, Table(columns, []), None, note)
    stacked = [one.values[data.metric][[one.labels.index(name) for name in labels]] for one in evidence]
    pairs = pairwise(stacked, np.random.default_rng(data.study.seed))
    rows: list[list[Cell]] = [
        [
            labels[pair.a], labels[pair.b], figures.number(pair.difference), figures.number(pair.p),
            figures.number(pair.p_holm), _verdict(pair), pair.wins, pair.ties, pair.losses,
        ]
        for pair in pairs
    ]  # fmt: skip
    part = "test" if evidence[0].part == "test" else "validation"
    queries = sum(len(one.queries) for one in evidence)
    note = (
        f"{queries} {part} queries{' of all splits' if len(evidence) > 1 else ''}. A cell is the row's mean minus the "
        f"column's; * marks differences whose Holm-corrected p (randomisation test, {len(pairs)} pairs) is at most "
        f"{ALPHA}. Each solver stands for its best model by validation."
    )
    return Panel("verdicts", title, Table(columns, rows), _matrix(labels, pairs, data.metric), note)


def _verdict(pair: Pair) -> str:
    if pair.p_holm is None or pair.p_holm > ALPHA:
        return "not told apart"
    return "better" if pair.difference > 0 else "worse"


def _matrix(labels: Sequence[str], pairs: Sequence[Pair], metric: str) -> figures.Figure:
    """Return the differences as a square, what is told apart with a star."""
    names = figures.distinct(labels, figures.WRAPPED)
    z = np.full((len(labels), len(labels)), np.nan)
    text = [["" for _ in labels] for _ in labels]
    for pair in pairs:
        star = "*" if _verdict(pair) != "not told apart" else ""
        for a, b, sign in ((pair.a, pair.b, 1.0), (pair.b, pair.a, -1.0)):
            z[a, b] = sign * pair.difference
            text[a][b] = f"{sign * pair.difference:+.3f}{star}"
    cells = figures.heat_map(names, names, z, f"difference in {metric}", zero_in_middle=True)
    small = len(labels) > 12
    cells |= {"text": text, "hovertemplate": "%{y} minus %{x}<br>%{text}<extra></extra>"}
    if not small:
        cells["texttemplate"] = "%{text}"
    return figures.figure(
        [cells],
        figures.axis("model that is compared with", categories=names, tickangle=-40),
        figures.axis("model", categories=names, autorange="reversed"),
        height=max(320, 170 + 32 * len(names)),
    )
