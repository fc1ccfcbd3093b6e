"""The trials of one solver, all splits together, with what is believed of them: what its parameters' panels share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from ranktune.dashboards.analysis.beliefs import Observed, flat, observed
from ranktune.dashboards.analysis.pooling import MOVED, Pooled, best_pooled
from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.records.study import StudyData
from ranktune.tuner.samplers.belief import Belief, fit_belief
from ranktune.tuner.samplers.history import arranged
from ranktune.tuner.statistics import importance as forests

FEWEST_FOR_SURFACE = 15
"""Trials below which no surface is drawn: it would show the prior."""
BELIEVED = 80
"""Values that a solver's surrogate is made of at most."""


@dataclass(frozen=True, eq=False)
class SolverTrials:
    """One solver with its trials; good are those with a value, or an estimate of it."""

    data: StudyData
    name: str
    trials: list[Pooled]
    marker: Mapping[str, str]

    @cached_property
    def space(self) -> Any:
        """The solver's own part of the space; None where the study has no such solver."""
        return self.data.study.union_space().restricted({"solver": [self.name]}) if self.is_known else None

    @property
    def is_known(self) -> bool:
        """Whether the study has such a solver."""
        return self.name in self.data.solvers

    @cached_property
    def good(self) -> list[Pooled]:
        """Trials with a value, or an estimate of it."""
        return [one for one in self.trials if one.value is not None]

    @cached_property
    def distributions(self) -> dict[str, BaseDistribution]:
        """By the parameters' own names: those that have more than one value."""
        prefix = f"{self.name}."
        found = self.space.distributions if self.is_known else {}
        return {name.removeprefix(prefix): d for name, d in found.items() if name.startswith(prefix) and not d.single()}

    @cached_property
    def best(self) -> Pooled | None:
        """The best of the trials that were judged in full."""
        return best_pooled(self.trials)

    @cached_property
    def observed(self) -> list[Observed]:
        """What the optimiser sees of the trials."""
        return observed((one.trial, one.value) for one in self.trials)

    @cached_property
    def belief(self) -> Belief | None:
        """What the optimiser believes of them, None of too few."""
        if len(self.good) < FEWEST_FOR_SURFACE or not self.is_known:
            return None
        return fit_belief(self.space, [one.seen for one in self.observed], BELIEVED)

    @cached_property
    def importance(self) -> forests.Importance | None:
        """How much each parameter matters, None where that is not known."""
        if len(self.good) < forests.FEWEST or not self.distributions:
            return None
        generator = np.random.default_rng(self.data.study.seed)
        kept = self.good
        if len(kept) > forests.MOST:
            kept = [kept[i] for i in np.sort(generator.choice(len(kept), forests.MOST, replace=False))]
        _, rows = arranged(self.space, [flat(one.trial) for one in kept])
        place = list(self.space.distributions)
        columns = [place.index(f"{self.name}.{name}") for name in self.distributions]
        return forests.importance(rows[:, columns], np.array([one.value for one in kept]), generator)

    @cached_property
    def ranked(self) -> list[str]:
        """The parameters, the most important first where that is known."""
        names = list(self.distributions)
        if self.importance is None:
            return names
        return [names[j] for j in np.argsort(-self.importance.mean, kind="stable")]

    def is_choice(self, name: str) -> bool:
        """Whether a parameter is a choice, and no number."""
        return isinstance(self.distributions[name], CategoricalDistribution)

    def axis(self, name: str) -> dict[str, Any]:
        """Return the axis of a parameter: logarithmic where it was searched so, its choices in their order."""
        distribution = self.distributions[name]
        if isinstance(distribution, CategoricalDistribution):
            choices = [figures.plain(c) for c in distribution.choices]
            return figures.axis(name, categories=choices, range=[-0.5, len(choices) - 0.5])
        if isinstance(distribution, FloatDistribution | IntDistribution) and distribution.log:
            return figures.log_axis(figures.short(name), distribution.low, distribution.high)
        return figures.axis(name)

    def cell(self, name: str, value: Any) -> Any:
        """Return a parameter's value as an axis knows it."""
        return figures.plain(value) if self.is_choice(name) else figures.number(value)

    def note(self, *parts: str) -> str:
        """Return the parts of a note that say something, and how splits were put together."""
        moved = MOVED if sum(bool(split.trials) for split in self.data.splits) > 1 else ""
        return " ".join(filter(None, [*parts, moved]))
