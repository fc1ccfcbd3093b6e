"""Optimiser: the surrogate model, its uncertainty, the noise of trials, and the solvers that were tried over time.

A panel's group is the split, where there are several: each has its own search.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranktune.dashboards.analysis import early_stopped
from ranktune.dashboards.analysis.beliefs import along, observations
from ranktune.dashboards.analysis.pooling import no_trials_note
from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.panels import Panel, Table, joined
from ranktune.dashboards.records.study import SplitData, StudyData
from ranktune.dashboards.records.trial import Trial, best_of
from ranktune.tuner.gp.proposal import EI, MIXED, THOMPSON
from ranktune.tuner.policy.policy import POLICY
from ranktune.tuner.samplers.belief import MAX_TRIALS_IN_BELIEF, Belief, Slice, fit_belief

DRAWS = 4
"""Functions sampled from the posterior."""
MAX_BLOCKS = 20
"""Parts of the search for which the trials of each solver are counted."""
WITH_SURROGATE = ("thompson",)
PER_COST = ", divided by a power of the expected cost where the study has a time limit."
DECISIONS = {
    THOMPSON: "A suggestion maximises one function sampled from such a model, as the draws are.",
    EI: f"A suggestion maximises the expected improvement under such models{PER_COST}",
    MIXED: "A suggestion maximises the expected improvement under such models, or the mean of functions "
    f"sampled from one of them, as the draws are{PER_COST}",
}
"""How suggestions use the surrogate model, by acquisition."""


def panels(data: StudyData) -> list[Panel]:
    """Return the trials of each solver over time and the surrogate model after them, split by split."""
    shown: list[Panel] = []
    for k, split, group in data.groups:
        shown.append(_allocation(data, split, k, group))
        shown += _surrogate(data, split, k, group, MAX_TRIALS_IN_BELIEF // 2 if group else MAX_TRIALS_IN_BELIEF)
    return shown


def _allocation(data: StudyData, split: SplitData, k: int, group: str) -> Panel:
    """Return the number of trials of each solver, part of the search by part."""
    title = "Trials of each solver over time"
    trials = split.trials
    solvers = [name for name in data.all_solvers if any(trial.solver == name for trial in trials)]
    if not trials:
        note = no_trials_note(data) or "No trial of this split has finished yet."
        return Panel(f"allocation-{k}", title, note=note, group=group)
    size = -(-len(trials) // MAX_BLOCKS)
    blocks = [trials[begin : begin + size] for begin in range(0, len(trials), size)]
    ends = [(block[0].number, block[-1].number) for block in blocks]
    names = [f"{first}" if first == last else f"{first} to {last}" for first, last in ends]
    counts = [[sum(trial.solver == solver for trial in block) for solver in solvers] for block in blocks]
    rows = [[name, *block] for name, block in zip(names, counts, strict=True)]
    styles, shapes = figures.solver_styles(data.all_solvers), ("", "/", "x", "-", "|", "+", ".", "\\")
    traces = [
        figures.bars(
            solver, names, [block[j] for block in counts],
            marker=figures.hatched(styles[solver]["color"], shapes[j % len(shapes)]),
        )
        for j, solver in enumerate(solvers)
    ]  # fmt: skip
    x_axis = figures.axis("trial numbers", categories=names)
    shown = figures.figure(traces, x_axis, figures.axis("trials"), barmode="stack")
    return Panel(f"allocation-{k}", title, Table(("Trials", *solvers), rows), shown, "", group)


def _surrogate(data: StudyData, split: SplitData, k: int, group: str, most: int) -> list[Panel]:
    title = f"Surrogate model of {data.metric} around the best trial"
    if data.study.sampler not in WITH_SURROGATE:
        note = f"The sampler '{data.study.sampler}' has no surrogate model in the record."
        return [Panel(f"belief-{k}", title, note=note, group=group)]
    space = data.study.union_space()
    known = [trial for trial in split.trials if trial.solver in data.solvers]
    valued = sum(trial.value is not None for trial in known)
    observed = observations(known)
    is_used = valued >= POLICY.search.startup
    surrogate = fit_belief(space, [observation for observation, _ in observed], most) if is_used else None
    best = best_of(known)
    if surrogate is None or best is None:
        note = no_trials_note(data) or f"{valued} trials have a value: too few for a surrogate model."
        return [Panel(f"belief-{k}", title, note=note, group=group)]
    what = "trials" if len(observed) == len(known) else "observations"
    chosen = surrogate.chosen
    subset = f"The model is fitted to {len(chosen)} of {len(observed)} {what}." if len(observed) > most else ""
    names = [f"{best.solver}.{name}" for name in best.params]
    names = [name for name in names if name in space.distributions and not space.distributions[name].single()]
    slices = [surrogate.slice(best.flat_params, name, DRAWS, data.study.seed) for name in names]
    shown = [_slice(data, best, belief, f"belief-{k}-{j}", group, subset) for j, belief in enumerate(slices)]
    trials = [observed[int(i)][1] for i in chosen]
    return [*shown, _scales(data, surrogate, k, group), _noise(data, surrogate, trials, k, group, subset)]


def _slice(data: StudyData, best: Trial, belief: Slice, key: str, group: str, subset: str) -> Panel:
    """Return mean, band and sampled functions along one parameter of the best trial's solver."""
    metric, name = data.metric, belief.name.removeprefix(f"{best.solver}.")
    columns = (name, "Mean", "Low", "High", *(f"Draw {k + 1}" for k in range(len(belief.draws))))
    colour = figures.solver_styles(data.all_solvers)[best.solver]["color"]
    here, x, x_axis = best.params[name], list(belief.values), figures.axis(name)
    if not belief.is_number:
        here, x = figures.plain(here), list(map(figures.plain, x))
        x_axis = figures.axis(name, categories=x, range=[-0.5, len(x) - 0.5])
    elif belief.log:
        x_axis = figures.log_axis(figures.short(name), min(x), max(x))
    rows, traces = along(belief, x, colour)
    traces.append(figures.star("best trial", here, best.value))
    shown = figures.figure(traces, x_axis, figures.axis(f"{metric} (validation)"))
    title = f"Surrogate model of {metric} along {figures.short(name)} of {figures.short(best.solver)}"
    note = joined(
        f"All other parameters as in trial {best.number}, the best. The band holds the noise-free metric with 95 % "
        "probability, at the most probable hyperparameters of the model.",
        DECISIONS[data.study.acquisition or MIXED],
        subset,
    )
    return Panel(key, title, Table(columns, rows), shown, note, group)


def _scales(data: StudyData, surrogate: Belief, k: int, group: str) -> Panel:
    """Return the length scale of the surrogate model along each parameter."""
    theta = surrogate.posterior.hyperparameters
    names = [list(surrogate.space.distributions)[j] for j in surrogate.encoding.varying]
    inverse = np.sqrt(theta.weights)
    order = np.argsort(-inverse, kind="stable")
    names, inverse = [names[j] for j in order], inverse[order]
    rows = list(zip(names, inverse, 1.0 / inverse, strict=True))
    shown = figures.ranking(names, inverse, "length scales in the range of the parameter", "parameter", most=40)
    note = (
        "The metric changes little within one length scale. Before any trial there is about 1 in the range of each "
        "parameter. The prior standard deviation over the search space is "
        f"{surrogate.spread * np.sqrt(theta.scale):.3g}."
    )
    title = f"Length scales of {data.metric} along each parameter"
    columns = ("Parameter", "Length scales in its range", "Length scale")
    return Panel(f"scales-{k}", title, Table(columns, rows), shown, note, group)


def _noise(
    data: StudyData, surrogate: Belief, trials: Sequence[Trial | None], k: int, group: str, subset: str
) -> Panel:
    """Return the value of each trial against its leave-one-out prediction; trials has None for other observations."""
    kept = [
        (trial, trial.value, float(e), float(s))
        for trial, e, s in zip(trials, *surrogate.left_out(), strict=True)
        if trial is not None and trial.value is not None
    ]
    rows = [
        [
            trial.number, trial.solver, value, e, s, value - e, trial.error_of_mean,
            trial.stopped or None,
        ]
        for trial, value, e, s in kept
    ]  # fmt: skip
    columns = (
        "Trial", "Solver", data.metric, "Predicted", "Standard deviation", "Residual", "Standard error over queries",
        "Stopped after",
    )  # fmt: skip
    points = [(trial, e, value - e) for trial, value, e, _ in kept]
    styles = figures.solver_styles(data.all_solvers)
    traces = early_stopped.solver_points(points, styles, [1.96 * s for *_, s in kept])
    x_axis = figures.axis(f"predicted {data.metric}")
    shown = figures.figure(traces, x_axis, figures.axis("residual", zeroline=True, zerolinewidth=2))
    errors = [trial.error_of_mean for trial, *_ in kept if trial.error_of_mean]
    inside = float(np.mean([abs(value - e) <= 1.96 * s for _, value, e, s in kept]))
    note = joined(
        "The prediction for each trial is from all others.",
        f"The noise of a trial has standard deviation {surrogate.noise_sd:.2g} in the surrogate model.",
        f"The median standard error of a trial over the queries is {float(np.median(errors)):.2g}; as all trials have "
        "the same queries, most of that error is common to all."
        if errors
        else "",
        early_stopped.note(trial for trial, *_ in kept),
        f"Bars are 95 % intervals; {inside:.0%} of the residuals lie within theirs.",
        subset,
    )
    title = f"Leave-one-out predictions of {data.metric}"
    return Panel(f"noise-{k}", title, Table(columns, rows), shown, note, group)
