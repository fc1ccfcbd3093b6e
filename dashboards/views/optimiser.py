"""Optimiser: what its surrogate believes, how sure it is, what noise it measured, and where it went.

A panel's group is the split, where there are several: each is searched on its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranktune.dashboards.analysis import early_stopped
from ranktune.dashboards.analysis.beliefs import Observed, flat, observed
from ranktune.dashboards.analysis.pooling import competing, state_note
from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.panels import COLOURS, Cell, Panel, Table, look
from ranktune.dashboards.records.study import SplitData, StudyData, Trial, best_of
from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.samplers.belief import MAX_TRIALS_IN_BELIEF, Belief, Slice, fit_belief

DRAWS = 4
"""Functions drawn from the posterior."""
BLOCKS = 20
"""Parts of the search that the choice of solver is counted in, at most."""
WITH_SURROGATE = ("thompson",)


def panels(data: StudyData) -> list[Panel]:
    """Return where the trials went and what is believed after them, split by split."""
    several = len(data.splits) > 1
    found: list[Panel] = []
    for k, split in enumerate(data.splits or (SplitData("", data.folder, (), None, {}),)):
        group = split.name if several else ""
        found.append(_allocation(data, split, k, group))
        found += _beliefs(data, split, k, group, MAX_TRIALS_IN_BELIEF // 2 if several else MAX_TRIALS_IN_BELIEF)
    return found


def _allocation(data: StudyData, split: SplitData, k: int, group: str) -> Panel:
    """Return how many trials each solver got, part of the search by part."""
    title = "Which solver the trials went to, over time"
    trials = sorted(split.trials, key=lambda trial: trial.number)
    solvers = [name for name in competing(data) if any(trial.solver == name for trial in trials)]
    if not trials:
        note = state_note(data) or "No trial of this split has finished yet."
        return Panel(f"allocation-{k}", title, Table(("Trials",), []), None, note, group)
    size = -(-len(trials) // BLOCKS)
    blocks = [np.arange(begin, min(begin + size, len(trials))) for begin in range(0, len(trials), size)]
    ends = [(trials[own[0]].number, trials[own[-1]].number) for own in blocks]
    names = [f"{first}" if first == last else f"{first} to {last}" for first, last in ends]
    counts = [[sum(trials[i].solver == solver for i in own) for solver in solvers] for own in blocks]
    rows: list[list[Cell]] = [[name, *own] for name, own in zip(names, counts, strict=True)]
    looks, shapes = look(competing(data)), ("", "/", "x", "-", "|", "+", ".", "\\")
    traces = [
        figures.bars(
            solver, names, [own[j] for own in counts],
            marker={"color": looks[solver]["color"], "pattern": figures.pattern(shapes[j % len(shapes)])},
        )
        for j, solver in enumerate(solvers)
    ]  # fmt: skip
    shown = figures.figure(
        traces,
        figures.axis("trials, in the order of asking", categories=names),
        figures.axis("trials"),
        barmode="stack",
    )
    return Panel(f"allocation-{k}", title, Table(("Trials", *solvers), rows), shown, "", group)


def _beliefs(data: StudyData, split: SplitData, k: int, group: str, most: int) -> list[Panel]:
    title = f"What the optimiser believes of {data.metric} around the best trial"
    nothing = Table(("Parameter", data.metric), [])
    if data.study.sampler not in WITH_SURROGATE:
        note = f"The sampler '{data.study.sampler}' has no surrogate that the record tells: there is nothing to draw."
        return [Panel(f"belief-{k}", title, nothing, None, note, group)]
    space = data.study.union_space()
    known = [trial for trial in split.trials if trial.solver in data.solvers]
    good = [trial for trial in known if trial.value is not None]
    seen = observed((trial, trial.value) for trial in known)
    belief = fit_belief(space, [one.seen for one in seen], most) if len(good) > 1 else None
    best = best_of(known)
    if belief is None or best is None:
        note = state_note(data) or f"{len(good)} trials have a value: too few to believe anything."
        return [Panel(f"belief-{k}", title, nothing, None, note, group)]
    what = "trials" if len(seen) == len(known) else "values that trials showed"
    stood = f"{len(belief.chosen)} of {len(seen)} {what} stand for all of them." if len(seen) > most else ""
    names = [f"{best.solver}.{name}" for name in best.params]
    names = [name for name in names if name in space.distributions and not space.distributions[name].single()]
    slices = [belief.slice(flat(best), name, DRAWS, data.study.seed) for name in names]
    found = [_slice(data, best, own, f"belief-{k}-{j}", group, stood) for j, own in enumerate(slices)]
    return [*found, _scales(data, belief, k, group), _noise(data, belief, seen, k, group, stood)]


def _slice(data: StudyData, best: Trial, own: Slice, key: str, group: str, stood: str) -> Panel:
    """Return mean, band and drawn functions along one parameter of the best trial's solver."""
    metric, name = data.metric, own.name.removeprefix(f"{best.solver}.")
    low, high = own.mean - 1.96 * own.sd, own.mean + 1.96 * own.sd
    values: list[Cell] = [figures.number(value) if own.is_number else value for value in own.values]
    rows: list[list[Cell]] = [
        [value, *figures.numbers(row)]
        for value, row in zip(values, np.column_stack([own.mean, low, high, own.draws.T]), strict=True)
    ]
    columns = (name, "Mean", "Low", "High", *(f"Draw {k + 1}" for k in range(len(own.draws))))
    colour = look(competing(data))[best.solver]["color"]
    if own.is_number:
        traces, here = _curves(own, low, high, colour), best.params[name]
        ends = min(own.values), max(own.values)
        along = figures.log_axis(figures.short(name), *ends) if own.log else figures.axis(name)
    else:
        traces, here = _dots(own, colour), figures.plain(best.params[name])
        along = figures.axis(name, categories=traces[0]["x"], range=[-0.5, len(own.values) - 0.5])
    star = {"symbol": "star", "size": 15, "color": "#d55e00"}
    traces.append(figures.scatter("best trial", [here], [best.value], marker=star))
    shown = figures.figure(traces, along, figures.axis(f"{metric} (validation)"))
    title = f"What the optimiser believes of {metric} along {figures.short(name)} of {figures.short(best.solver)}"
    note = (
        f"All other parameters as in trial {best.number}, the best. The band holds the noise-free metric with 95 % "
        "probability by the surrogate at its most probable hyperparameters; drawn functions are what Thompson sampling "
        f"climbs. {stood}"
    )
    return Panel(key, title, Table(columns, rows), shown, note.strip(), group)


def _curves(own: Slice, low: Floats, high: Floats, colour: str) -> list[figures.Trace]:
    """Return the band, the drawn functions and the mean along a number."""
    colours, dashes = COLOURS[4:] + COLOURS[:4], ("dot", "dash", "dashdot", "longdash")
    drawn = [
        figures.scatter(f"draw {k + 1}", own.values, draw, mode="lines", line={"width": 1, "color": c, "dash": d})
        for k, (draw, c, d) in enumerate(zip(own.draws, colours, dashes, strict=False))
    ]
    mean = figures.scatter("mean", own.values, own.mean, mode="lines", line={"color": colour, "width": 3})
    return [figures.band("95 % band", own.values, low, high, colour), *drawn, mean]


def _dots(own: Slice, colour: str) -> list[figures.Trace]:
    """Return the mean with its interval, and what drawn functions say, at each choice."""
    x = [figures.plain(value) for value in own.values]
    marker, small = {"color": colour, "size": 11}, {"symbol": "line-ew-open", "size": 12, "color": COLOURS[7]}
    mean = figures.scatter("mean, 95 % bar", x, own.mean, marker=marker, error=1.96 * own.sd)
    drawn = [
        figures.scatter(f"draw {k + 1}", x, draw, marker=small, showlegend=False) for k, draw in enumerate(own.draws)
    ]
    return [mean, *drawn]


def _scales(data: StudyData, belief: Belief, k: int, group: str) -> Panel:
    """Return how quickly the metric is believed to change along each parameter."""
    theta = belief.posterior.hyperparameters
    names = [list(belief.space.distributions)[j] for j in belief.encoding.varying]
    speed = np.sqrt(theta.weights)  # one over the length scale
    order = np.argsort(-speed, kind="stable")
    rows: list[list[Cell]] = [[names[j], figures.number(speed[j]), figures.number(1.0 / speed[j])] for j in order]
    top = order[:40]
    labels = figures.distinct((names[j] for j in top), 36)
    trace = figures.bars("speed", labels, speed[top], lying=True, marker={"color": COLOURS[0]})
    shown = figures.figure(
        [trace],
        figures.axis("length scales that fit into the parameter's range"),
        figures.axis("parameter", categories=labels, autorange="reversed", tickfont={"size": 11}),
        height=max(240, 120 + 18 * len(top)),
    )
    note = (
        "Over one length scale the metric is believed to stay much the same, over several it may do anything; about 1 "
        f"is what is believed of a parameter before any trial. Standard deviation over the space: "
        f"{belief.spread * np.sqrt(theta.scale):.3g}. The next trial is looked for in all of the space: there is no "
        "trust region."
    )
    title = f"How quickly {data.metric} is believed to change along each parameter"
    columns = ("Parameter", "Length scales in its range", "Length scale")
    return Panel(f"scales-{k}", title, Table(columns, rows), shown, note, group)


def _noise(data: StudyData, belief: Belief, seen: Sequence[Observed], k: int, group: str, stood: str) -> Panel:
    """Return what each trial showed against what was to be expected without it."""
    expected, sd = belief.left_out()
    chosen = [seen[int(i)] for i in belief.chosen]
    kept = [
        (one.trial, float(e), float(s))
        for one, e, s in zip(chosen, expected, sd, strict=True)
        if one.own and one.trial.value is not None
    ]
    rows: list[list[Cell]] = [
        [
            trial.number,
            trial.solver,
            *figures.numbers((trial.value, e, s, (trial.value or 0.0) - e, trial.error_of_mean)),
            trial.stopped or None,
        ]
        for trial, e, s in kept
    ]
    columns = (
        "Trial", "Solver", data.metric, "Expected", "Give or take", "Residual", "Standard error over queries",
        "Stopped after",
    )  # fmt: skip
    looks = look(competing(data))
    traces: list[figures.Trace] = []
    for solver in dict.fromkeys(trial.solver for trial, _, _ in kept):
        own = [one for one in kept if one[0].solver == solver]
        trace = figures.scatter(
            solver, [e for _, e, _ in own], [(t.value or 0.0) - e for t, e, _ in own],
            marker={**looks[solver], "size": 7, "opacity": 0.8}, error=[1.96 * s for _, _, s in own],
            text=[early_stopped.said(t, figures.plain(solver)) for t, _, _ in own],
        )  # fmt: skip
        traces += early_stopped.told_apart(trace, [bool(t.stopped) for t, _, _ in own])
    traces = early_stopped.with_key(traces, [trial for trial, _, _ in kept])
    shown = figures.figure(
        traces,
        figures.axis(f"{data.metric} that the other trials let expect"),
        figures.axis("what it showed minus that", zeroline=True, zerolinewidth=2),
    )
    note = _noise_note(belief, kept)
    title = f"What trials showed against what the others let expect, in {data.metric}"
    return Panel(f"noise-{k}", title, Table(columns, rows), shown, f"{note} {stood}".strip(), group)


def _noise_note(belief: Belief, kept: Sequence[tuple[Trial, float, float]]) -> str:
    errors = [trial.error_of_mean for trial, _, _ in kept if trial.error_of_mean]
    residuals = np.array([(trial.value or 0.0) - e for trial, e, _ in kept])
    inside = float(np.mean(np.abs(residuals) <= 1.96 * np.array([s for _, _, s in kept])))
    believed = f"The surrogate believes a trial's noise to be {belief.noise_sd:.2g}"
    if errors:
        believed += (
            f", the median standard error of a trial over the queries is {float(np.median(errors)):.2g}: the same "
            "queries judge all trials, so that most of that error is common to all"
        )
    if any(trial.stopped for trial, _, _ in kept):
        believed += f". {early_stopped.NOTE.removesuffix('.')}, and count as so much less sure"
    return f"{believed}. Bars are 95 %; {inside:.0%} of residuals lie within theirs."
