"""Optimiser: the surrogate model, its uncertainty, the noise of trials, and what was tried over time.

A panel's group is the split, where there are several: each has its own search.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranktune.dashboards.analysis.beliefs import observations, predicted
from ranktune.dashboards.analysis.pooling import no_trials_note, stopped_note
from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.kinds import Bars, Heat, Points
from ranktune.dashboards.figures.panels import Frame, Panel, joined
from ranktune.dashboards.records.study import SplitData, StudyData
from ranktune.dashboards.records.trial import Trial, best_of
from ranktune.tuner.gp.proposal import EI, MIXED, THOMPSON
from ranktune.tuner.policy.policy import POLICY
from ranktune.tuner.samplers.belief import MAX_TRIALS_IN_BELIEF, Belief, Slice, fit_belief
from ranktune.tuner.selection.details import PARTS

DRAWS = 4
"""Functions sampled from the posterior."""
MAX_BLOCKS = 20
"""Parts of the search of which the best with each solver and part is shown."""
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
    """Return what was tried over time and the surrogate model after it, split by split."""
    shown: list[Panel] = []
    for k, split, group in data.groups:
        most = MAX_TRIALS_IN_BELIEF // 2 if group else MAX_TRIALS_IN_BELIEF
        shown += [*_surrogate(data, split, k, group, most), _tried(data, split, k, group)]
    return shown


def _tried(data: StudyData, split: SplitData, k: int, group: str) -> Panel:
    """Return the best with each solver, loss, pair weight, penalty and optimizer, part of the search by part."""
    trials, metric = split.trials, f"Best {data.metric}"
    size = max(-(-len(trials) // MAX_BLOCKS), 1)
    values: dict[tuple[str, str], list[float | None]] = {}
    for begin in range(0, len(trials), size):
        block = trials[begin : begin + size]
        when = " to ".join(str(place) for place in dict.fromkeys((block[0].place, block[-1].place)))
        for trial in block:
            parts = ((name.partition("[")[0], value) for name, value in trial.params.items())
            for what in (trial.solver, *(f"{part} {value}" for part, value in parts if part in PARTS)):
                values.setdefault((what, when), []).append(trial.value)
    rows = [(*at, len(of), max(filter(None, of), default=None)) for at, of in values.items()]
    known = [best for *_, best in rows if best is not None]
    ends = min(known, default=0.0), max(known, default=0.0)
    kind = Heat("Tried", "Trials", metric, metric, lambda row: f"{row[metric]:.3f}", ends=ends)
    note = "" if rows else no_trials_note(data) or "No trial of this split has finished yet."
    return Panel(
        f"tried-{k}",
        "What was tried when, and the best with it",
        Frame(("Tried", "Trials", "How often", metric), rows),
        kind,
        note,
        group,
    )


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
        have = "1 trial has" if valued == 1 else f"{valued} trials have"
        note = no_trials_note(data) or f"{have} a value: too few for a surrogate model."
        return [Panel(f"belief-{k}", title, note=note, group=group)]
    what = "trials" if len(observed) == len(known) else "observations"
    subset = f"The model is fitted to {len(surrogate.chosen)} of {len(observed)} {what}." * (len(observed) > most)
    names = [f"{best.solver}.{name}" for name in best.params]
    names = [name for name in names if name in space.distributions and not space.distributions[name].single()]
    slices = [surrogate.slice(best.flat_params, name, DRAWS, data.study.seed) for name in names]
    shown = [_slice(data, best, belief, f"belief-{k}-{j}", group, subset) for j, belief in enumerate(slices)]
    trials = [observed[int(i)][1] for i in surrogate.chosen]
    return [_noise(data, surrogate, trials, k, group, subset), *shown, _scales(data, surrogate, k, group)]


def _slice(data: StudyData, best: Trial, belief: Slice, key: str, group: str, subset: str) -> Panel:
    """Return mean, band and sampled functions along one parameter of the best trial's solver."""
    metric, name = data.metric, belief.name.removeprefix(f"{best.solver}.")
    here, across = best.params[name], figures.axis(name)
    if not belief.is_number:
        here, names = figures.plain(here), list(map(figures.plain, belief.values))
        across = figures.axis(name, categories=names, range=[-0.5, len(names) - 0.5])
    elif belief.log:
        across = figures.log_axis(figures.short(name), min(belief.values), max(belief.values))
    note = joined(
        f"All other parameters as in trial {best.place}, the best. The band holds the noise-free metric with 95 % "
        "probability, at the most probable hyperparameters of the model.",
        DECISIONS[data.study.acquisition or MIXED],
        subset,
    )
    title = f"Surrogate model of {metric} along {figures.short(name)} of {figures.short(best.solver)}"
    drawn = predicted(belief, name, across, metric, [figures.star("best trial", here, best.value)])
    return Panel(key, title, *drawn, note, group)


def _scales(data: StudyData, surrogate: Belief, k: int, group: str) -> Panel:
    """Return the length scale of the surrogate model along each parameter."""
    theta = surrogate.posterior.hyperparameters
    names = [list(surrogate.space.distributions)[j] for j in surrogate.encoding.varying]
    inverse = np.sqrt(theta.weights)
    rows = [(names[j], inverse[j], 1.0 / inverse[j]) for j in np.argsort(-inverse, kind="stable")]
    columns = ("Parameter", "Length scales in its range", "Length scale")
    note = (
        "The metric changes little within one length scale. Before any trial there is about 1 in the range of each "
        "parameter. The prior standard deviation over the search space is "
        f"{surrogate.spread * np.sqrt(theta.scale):.3g}."
    )
    title = f"Length scales of {data.metric} along each parameter"
    kind = Bars("Parameter", columns[1:2], "length scales in the range of the parameter", "parameter", most=40)
    return Panel(f"scales-{k}", title, Frame(columns, rows), kind, note, group)


def _noise(
    data: StudyData, surrogate: Belief, trials: Sequence[Trial | None], k: int, group: str, subset: str
) -> Panel:
    """Return the value of each trial against its leave-one-out prediction; trials has None for other observations."""
    rows, inside, errors, kept = list[list[object]](), [], [], []
    for trial, e, s in zip(trials, *surrogate.left_out(), strict=True):
        if trial is not None and trial.value is not None:
            gap, half = trial.value - e, 1.96 * s
            rows.append([trial.place, trial.solver, trial.value, e, s, gap, trial.error_of_mean, trial.stopped or None,
                         half])  # fmt: skip
            inside.append(abs(gap) <= half)
            errors += [trial.error_of_mean] if trial.error_of_mean else []
            kept.append(trial)
    columns = (
        "Trial", "Solver", data.metric, "Predicted", "Standard deviation", "Residual", "Standard error over queries",
        "Stopped after", "Half of the interval",
    )  # fmt: skip
    kind = Points(
        "Predicted", "Residual", figures.axis(f"predicted {data.metric}"),
        figures.axis("residual", zeroline=True, zerolinewidth=2), figures.solver_styles(data.all_solvers),
        error=columns[-1],
    )  # fmt: skip
    note = joined(
        "The prediction for each trial is from all others. Bars are 95 % intervals.",
        f"The noise of a trial has standard deviation {surrogate.noise_sd:.2g} in the surrogate model.",
        f"The median standard error of a trial over the queries is {float(np.median(errors)):.2g}; as all trials have "
        "the same queries, most of that error is common to all."
        if errors
        else "",
        stopped_note(kept),
        subset,
    )
    answer = f"{float(np.mean(inside)):.0%} of the trials lie within their 95 % intervals."
    title = f"Leave-one-out predictions of {data.metric}"
    return Panel(f"noise-{k}", title, Frame(columns, rows), kind, note, group, answer)
