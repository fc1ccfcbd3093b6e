"""Trials of several splits together: values moved so that every split has the same median.

Splits differ in how hard their queries are by more than configurations differ; without that step a figure would show
the splits, and not what it asks for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ranktune.dashboards.records.study import StudyData, Trial
from ranktune.solvers.core.space import Value

MOVED = (
    "Trials of all splits together, their values moved so that every split has the same median: splits differ in how "
    "hard their queries are."
)


@dataclass(frozen=True)
class Pooled:
    """A trial with its split and its value on the common level; None where it failed.

    The value of one that was stopped early is an estimate: in_full leaves it out.
    """

    split: str
    trial: Trial
    value: float | None

    @property
    def in_full(self) -> float | None:
        """The value where the trial was judged in full: what a best may be made of."""
        return None if self.trial.stopped else self.value


def best_pooled(trials: Sequence[Pooled]) -> Pooled | None:
    """Return the best of the trials that were judged in full, None where there is none."""
    known = [one for one in trials if one.in_full is not None]
    return max(known, key=lambda one: one.in_full or 0.0, default=None)


def pooled(data: StudyData) -> list[Pooled]:
    """Return every finished trial of the study, split by split.

    Estimates count for the medians: without them a split of which more trials were stopped would seem the easier one.
    """
    medians = {
        split.name: float(np.median([t.value for t in split.trials if t.value is not None]))
        for split in data.splits
        if any(t.value is not None for t in split.trials)
    }
    level = float(np.mean(list(medians.values()))) if medians else 0.0
    one = len(medians) < 2
    return [
        Pooled(
            split.name,
            trial,
            None if trial.value is None else trial.value if one else trial.value - medians[split.name] + level,
        )
        for split in data.splits
        for trial in split.trials
    ]


def competing(data: StudyData) -> list[str]:
    """Return the solvers that compete, then any other that trials name."""
    return list(dict.fromkeys([*data.solvers, *(trial.solver for _, trial in data.trials)]))


def default_params(data: StudyData) -> dict[str, dict[str, Value]]:
    """Return what is tried first of each solver, under the parameters' own names."""
    space = data.study.union_space()
    return dict(space.split(params) for params in space.defaults())


def state_note(data: StudyData) -> str:
    """Return why there is nothing to see of trials, or nothing."""
    if not data.trials:
        return "No trial has finished yet."
    if all(trial.value is None for _, trial in data.trials):
        return f"All of the {len(data.trials)} finished trials failed; the trials view says why."
    return ""


def unfinished_note(data: StudyData) -> str:
    """Return why there are no models to look at."""
    if data.result is None:
        return "The study is not finished: models are chosen and learnt again when all trials are in."
    return "The study has kept no values by query: `ranktune resume` makes them again from the record."
