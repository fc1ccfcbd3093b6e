"""The trials of one solver, all splits together, with their surrogate model and the importance of each parameter.

Splits differ more in difficulty than configurations do. So that figures do not show the splits, the values of trials
are shifted to one median of all splits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution

from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.kinds import Curves
from ranktune.dashboards.figures.panels import Axis, Frame, Trace, counted, joined
from ranktune.dashboards.records.study import StudyData
from ranktune.dashboards.records.trial import Trial, best_of
from ranktune.solvers.core.space import Value
from ranktune.tuner.samplers.belief import Belief, Observation, Slice, fit_belief
from ranktune.tuner.samplers.history import arranged
from ranktune.tuner.samplers.space import UnionSpace
from ranktune.tuner.search.search_scheduler import informative_places
from ranktune.tuner.statistics import importance as forests

MIN_TRIALS_FOR_SURFACE = 15
"""Trials below which no surface is drawn: it would show the prior."""
MIN_TRIALS_ACTIVE = 3
"""Trials below which a parameter is left out of the importance in the whole search space."""
MAX_OBSERVATIONS = 80
"""Observations that a solver's surrogate model is fitted to."""


@dataclass(frozen=True, eq=False)
class SolverTrials:
    """One solver with its trials."""

    data: StudyData
    name: str
    trials: list[Trial]
    marker: Mapping[str, str]

    @property
    def title(self) -> str:
        """The name for titles."""
        return figures.short(self.name)

    @property
    def metric(self) -> str:
        """The metric of the trials' values."""
        return self.data.metric

    @cached_property
    def space(self) -> UnionSpace | None:
        """The solver's part of the search space; None where the study has no such solver."""
        if self.name not in self.data.solvers:
            return None
        return self.data.study.union_space().restricted({"solver": [self.name]})

    @cached_property
    def valued(self) -> list[Trial]:
        """The trials with a value, or an estimate of it."""
        return [trial for trial in self.trials if trial.value is not None]

    @cached_property
    def values(self) -> list[float]:
        """The values of those trials."""
        return [trial.value for trial in self.valued if trial.value is not None]

    @cached_property
    def default(self) -> Trial | None:
        """The trial of the default configuration, if it was evaluated in full."""
        defaults = {} if self.space is None else dict(map(self.space.split, self.space.defaults()))
        in_full = (trial for trial in self.valued if not trial.stopped)
        return next((trial for trial in in_full if dict(trial.requested_params) == defaults.get(self.name)), None)

    @cached_property
    def declared(self) -> dict[str, BaseDistribution]:
        """The parameters by their own names."""
        prefix, space = f"{self.name}.", {} if self.space is None else self.space.distributions
        return {name.removeprefix(prefix): d for name, d in space.items() if name.startswith(prefix)}

    @cached_property
    def distributions(self) -> dict[str, BaseDistribution]:
        """The parameters with more than one value."""
        return {name: distribution for name, distribution in self.declared.items() if not distribution.single()}

    @cached_property
    def best(self) -> Trial | None:
        """The best of the trials that were evaluated in full."""
        return best_of(self.trials)

    @cached_property
    def observations(self) -> list[Observation]:
        """The observations of the surrogate model."""
        return [observation for observation, _ in observations(self.trials)]

    @cached_property
    def surrogate(self) -> Belief | None:
        """The surrogate model of the trials, None of too few."""
        if len(self.valued) < MIN_TRIALS_FOR_SURFACE or self.space is None:
            return None
        return fit_belief(self.space, self.observations, MAX_OBSERVATIONS)

    @cached_property
    def importance(self) -> forests.ParameterImportance | None:
        """The importance of each parameter, None of too few trials, and where the study is shown in brief."""
        if not self.distributions or self.space is None:
            return None
        return _importance(self.data, self.space, self.valued, [f"{self.name}.{name}" for name in self.distributions])

    @cached_property
    def ranked(self) -> list[str]:
        """The parameters, the most important first where that is known."""
        names = list(self.distributions)
        if self.importance is None:
            return names
        return [names[j] for j in np.argsort(-self.importance.mean, kind="stable")]

    def is_choice(self, name: str) -> bool:
        """Whether a parameter is categorical."""
        return isinstance(self.distributions[name], CategoricalDistribution)

    def axis(self, name: str) -> Axis:
        """Return the axis of a parameter."""
        return parameter_axis(name, self.distributions[name])

    def coordinate(self, name: str, value: Value) -> str | float | None:
        """Return the place of a parameter's value on its axis."""
        return figures.plain(value) if self.is_choice(name) or isinstance(value, str) else value

    def note(self, *sentences: str) -> str:
        """Return the sentences of a note, and how splits were put together."""
        return joined(*sentences, pooled_note(self.data))


def parameter_axis(name: str, distribution: BaseDistribution) -> Axis:
    """Return the axis of a parameter, logarithmic where its distribution is, of categories in their order."""
    if isinstance(distribution, CategoricalDistribution):
        choices = [figures.plain(choice) for choice in distribution.choices]
        return figures.axis(name, categories=choices, range=[-0.5, len(choices) - 0.5])
    if getattr(distribution, "log", False):
        return figures.log_axis(figures.short(name), distribution.low, distribution.high)  # type: ignore[attr-defined]
    return figures.axis(name)


def importance_of_study(data: StudyData) -> tuple[dict[str, int], forests.ParameterImportance | None]:
    """Return the parameters of the whole search space and the solver, with the number of trials of each, and shares.

    Those are by flat name, without what varies in fewer than MIN_TRIALS_ACTIVE trials. None of too few trials, and
    where the study is shown in brief. Trials of several splits are on a common level.
    """
    space = data.study.union_space()
    valued = [trial for trial in pooled(data) if trial.value is not None and trial.solver in data.solvers]
    active = Counter(name for trial in valued for name in trial.flat_params)
    varying = (name for name, distribution in space.distributions.items() if not distribution.single())
    names = {name: active[name] for name in varying if active[name] >= MIN_TRIALS_ACTIVE}
    return names, _importance(data, space, valued, list(names))


def _importance(
    data: StudyData, space: UnionSpace, trials: list[Trial], names: list[str]
) -> forests.ParameterImportance | None:
    """Return the importance of parameters by flat name, None of too few trials, and where a study is in brief."""
    if data.brief or len(trials) < forests.MIN_TRIALS:
        return None
    generator = np.random.default_rng(data.study.seed)
    if len(trials) > forests.MAX_TRIALS:
        trials = [trials[i] for i in np.sort(generator.choice(len(trials), forests.MAX_TRIALS, replace=False))]
    encoding, rows = arranged(space, [trial.flat_params for trial in trials])
    columns = np.array(list(map(list(space.distributions).index, names)), dtype=np.int64)
    values = np.array([trial.value for trial in trials], dtype=np.float64)
    return forests.importance(rows, values, generator, columns=columns, masked=encoding.masked)


def solvers_of(data: StudyData, trials: Sequence[Trial]) -> list[SolverTrials]:
    """Return the solvers of a study with those trials that are theirs, the one with the best trial first."""
    styles = figures.solver_styles(data.all_solvers)
    solvers = [
        SolverTrials(data, name, [trial for trial in trials if trial.solver == name], styles[name])
        for name in data.all_solvers
    ]
    return sorted(solvers, key=lambda solver: np.inf if solver.best is None else -(solver.best.value or 0.0))


def pooled(data: StudyData) -> list[Trial]:
    """Return every finished trial of the study on the common level, split by split.

    The medians include estimates: without them a split with more stopped trials would seem easier.
    """
    values = {split.name: [t.value for t in split.trials if t.value is not None] for split in data.splits}
    medians = {name: float(np.median(of_split)) for name, of_split in values.items() if of_split}
    level = float(np.mean(list(medians.values()))) if medians else 0.0
    return [trial.shifted(level - medians.get(split.name, level)) for split in data.splits for trial in split.trials]


def pooled_note(data: StudyData) -> str:
    """Return how trials of several splits were put together, "" where one split has all of them."""
    return (
        "Trials of all splits, their values moved so that every split has the same median: the queries of some splits "
        "are harder."
    ) * (sum(bool(split.trials) for split in data.splits) > 1)


def no_trials_note(data: StudyData) -> str:
    """Return why there are no values of trials, "" where there are some."""
    if not data.trials:
        return "No trial has finished yet."
    if all(trial.value is None for trial in data.trials):
        return f"{counted(len(data.trials), 'finished trial')}, and all failed; the trials view has the errors."
    return ""


def no_models_note(data: StudyData) -> str:
    """Return why there are no models."""
    if data.result is None:
        return "The study is not finished: models are selected and refitted after the last trial."
    return "The study has no values by query: `ranktune resume` computes them again from the record."


def observations(trials: Iterable[Trial]) -> list[tuple[Observation, Trial | None]]:
    """Return what the surrogate model observes of trials, as the search selects it from a record.

    Each trial, then a few other values of its path, with None for the trial.
    """
    observed: list[tuple[Observation, Trial | None]] = []
    for trial in trials:
        variance, flat = (trial.error_of_mean or 0.0) ** 2, trial.flat_params
        partial = trial.error_of_estimate**2 if trial.stopped and trial.error_of_estimate is not None else None
        observed.append((Observation(flat, trial.value, variance, partial), trial))
        values, chosen = [point for point, _ in trial.path], trial.params.get(trial.path_parameter)
        if trial.value is None or chosen not in values:
            continue
        best = values.index(chosen)
        for place in informative_places(len(values), best)[1:]:
            params = flat | {f"{trial.solver}.{trial.path_parameter}": type(chosen)(values[place])}
            value = trial.value + trial.path[place][1] - trial.path[best][1]
            observed.append((Observation(params, value, variance, partial), None))
    return observed


def fitted_note(used: int, observed: Sequence[object], trials: Sequence[Trial]) -> str:
    """Return to how many observations a surrogate model is fitted, "" where it is to all."""
    what = "trials" if len(observed) == len(trials) else "observations"
    return f"The surrogate model is fitted to {used} of {len(observed)} {what}." * (used < len(observed))


def predicted(belief: Slice, name: str, across: Axis, metric: str, over: Sequence[Trace] = ()) -> tuple[Frame, Curves]:
    """Return a prediction along a parameter: mean, 95 % interval and sampled functions."""
    draws = [f"Draw {k}" for k in range(1, len(belief.draws) + 1)]
    low, high = belief.mean - 1.96 * belief.sd, belief.mean + 1.96 * belief.sd
    values = zip(belief.values, belief.mean, low, high, *belief.draws, strict=True)
    kind = Curves(
        name, ("Mean", *draws), across, figures.axis(f"{metric} (validation)"), over=over,
        ends=None if belief.is_number else ("Low", "High"),
        area=("95 % band", "Low", "High") if belief.is_number else None,
    )  # fmt: skip
    return Frame((name, "Mean", "Low", "High", *draws), list(values)), kind
