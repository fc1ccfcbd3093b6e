"""Optimiser: what was tried over time, then the surrogate model, its uncertainty, and the noise of trials.

A panel's group is the split, where there are several: each has its own search.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.kinds import Heat, Points
from ranktune.dashboards.figures.panels import Frame, Panel, counted, grouped, joined
from ranktune.dashboards.records.study import SplitData, StudyData
from ranktune.dashboards.records.trial import Trial, best_of
from ranktune.dashboards.views.solver_trials import (
    fitted_note,
    no_trials_note,
    observations,
    parameter_axis,
    predicted,
)
from ranktune.tuner.gp.proposal import EI, MIXED, THOMPSON
from ranktune.tuner.policy.policy import POLICY
from ranktune.tuner.samplers.belief import MAX_TRIALS_IN_BELIEF, Belief, fit_belief
from ranktune.tuner.selection.rows import PARTS

DRAWS = 4
"""Functions sampled from the posterior."""
MAX_BLOCKS = 20
"""Parts of the search of which the best with each solver and part is shown."""
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
    return [
        panel
        for k, split, group in data.groups
        for panel in grouped([_tried(data, split), *_surrogate(data, split)], k, group)
    ]


def _tried(data: StudyData, split: SplitData) -> Panel:
    """Return the best with each solver, loss, pair weight, penalty and optimizer, part of the search by part."""
    trials, metric, best = split.trials, f"Best {data.metric}", best_of(split.trials)
    size = max(-(-len(trials) // MAX_BLOCKS), 1)
    values: dict[tuple[str, str], list[float | None]] = {}
    for k, trial in enumerate(trials):
        begin = k - k % size
        block = trials[begin : begin + size]
        when = " to ".join(str(place) for place in dict.fromkeys((block[0].place, block[-1].place)))
        for what in ("all", *_parts(trial)):
            values.setdefault((what, when), []).append(trial.value)
    rows = [(*at, len(of), max(filter(None, of), default=None)) for at, of in values.items()]
    rows.sort(key=lambda row: (row[0] != "all", row[0].partition(" ")[0]))  # parts of a kind beside each other
    known = [best for *_, best in rows if best is not None] or [0.0]
    ends = float(np.quantile(known, 0.1)), max(known)
    kind = Heat("Tried", "Trials", metric, metric, lambda row: f"{row[metric]:.3f}", ends=ends)
    note = "" if rows else no_trials_note(data) or "No trial of this split has finished yet."
    table = Frame(("Tried", "Trials", "How often", metric), rows)
    title = f"{data.metric} of the best with each solver and part, along the search"
    answer = "" if best is None else f"Trial {best.place} of {len(trials)} is the best: {', '.join(_parts(best))}."
    return Panel("tried", title, table, kind, note, answer=answer)


def _parts(trial: Trial) -> list[str]:
    """Return the solver of a trial, and its loss, pair weight, penalty and optimizer."""
    parts = ((name.partition("[")[0], value) for name, value in trial.params.items())
    return [trial.solver, *(f"{part} {value}" for part, value in parts if part in PARTS)]


def _surrogate(data: StudyData, split: SplitData) -> Iterator[Panel]:
    known = [trial for trial in split.trials if trial.solver in data.solvers]
    valued, best, observed = sum(trial.value is not None for trial in known), best_of(known), observations(known)
    surrogate, note = None, f"The sampler '{data.study.sampler}' has no surrogate model in the record."
    if data.study.sampler == "thompson":
        have = f"{counted(valued, 'trial')} {'has' if valued == 1 else 'have'}"
        note = no_trials_note(data) or f"{have} a value: too few for a surrogate model."
        if valued >= POLICY.search.startup:
            most = MAX_TRIALS_IN_BELIEF // min(len(data.splits), 2)
            surrogate = fit_belief(data.study.union_space(), [observation for observation, _ in observed], most)
    if surrogate is None or best is None:
        yield Panel("belief", f"Surrogate model of {data.metric} around the best trial", note=note)
        return
    fitted = fitted_note(len(surrogate.chosen), observed, known)
    yield _noise(data, surrogate, [observed[int(i)][1] for i in surrogate.chosen], fitted)
    yield from _slices(data, surrogate, best, fitted)


def _slices(data: StudyData, surrogate: Belief, best: Trial, fitted: str) -> Iterator[Panel]:
    """Yield mean, band and sampled functions along each parameter of the best trial's solver."""
    note = joined(
        f"All other parameters as in trial {best.place}, the best. The band holds the noise-free metric with 95 % "
        "probability, at the most probable hyperparameters of the model.",
        DECISIONS[data.study.acquisition or MIXED],
        fitted,
    )
    named = ((name, surrogate.space.distributions.get(f"{best.solver}.{name}")) for name in best.params)
    varying = [(name, distribution) for name, distribution in named if distribution and not distribution.single()]
    for j, (name, distribution) in enumerate(varying):
        belief = surrogate.slice(best.flat_params, f"{best.solver}.{name}", DRAWS, data.study.seed)
        across, here = parameter_axis(name, distribution), best.params[name]
        star = figures.star("best trial", here if belief.is_number else figures.plain(here), best.value)
        title = f"Surrogate model of {data.metric} along {figures.short(name)} of {figures.short(best.solver)}"
        yield Panel(f"belief-{j}", title, *predicted(belief, name, across, data.metric, [star]), note)


def _noise(data: StudyData, surrogate: Belief, trials: Sequence[Trial | None], fitted: str) -> Panel:
    """Return the value of each trial against its leave-one-out prediction; trials has None for other observations."""
    rows = [
        [t.place, t.solver, t.value, e, s, t.value - e, t.error_of_mean, t.stopped or None, 1.96 * s]
        for t, e, s in zip(trials, *surrogate.left_out(), strict=True)
        if t is not None and t.value is not None
    ]
    columns = (
        "Trial", "Solver", data.metric, "Predicted", "Standard deviation", "Residual", "Standard error over queries",
        "Stopped after", "Half of the interval",
    )  # fmt: skip
    table = Frame(columns, rows)
    errors = [error for error in table["Standard error over queries"] if error]
    kind = Points(
        "Predicted", "Residual", figures.axis(f"predicted {data.metric}"),
        figures.axis("residual", zeroline=True, zerolinewidth=2), figures.solver_styles(data.all_solvers),
        error=columns[-1],
    )  # fmt: skip
    inside = 100 * np.mean([abs(row[5]) <= row[8] for row in rows])
    note = joined(
        "The prediction for each trial is from all others. Bars are 95 % intervals: "
        f"{inside:.0f} % of the trials lie within theirs.",
        f"The noise of a trial has standard deviation {surrogate.noise_sd:.2g} in the surrogate model.",
        f"The median standard error of a trial over the queries is {float(np.median(errors)):.2g}; as all trials have "
        "the same queries, most of that error is common to all."
        if errors
        else "",
        fitted,
    )
    title = f"Did the surrogate model expect what happened? Leave-one-out predictions of {data.metric}"
    return Panel("noise", title, table, kind, note)
