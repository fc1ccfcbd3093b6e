"""Trials of several splits together, their values shifted so that every split has the same median; notes on trials.

Splits differ more in difficulty than configurations do; without the shift a figure would show the splits.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ranktune.dashboards.figures.kinds import NOTE
from ranktune.dashboards.records.study import StudyData
from ranktune.dashboards.records.trial import Trial

POOLED_NOTE = (
    "Trials of all splits, their values moved so that every split has the same median: the queries of some splits are "
    "harder."
)


def pooled(data: StudyData) -> list[Trial]:
    """Return every finished trial of the study on the common level, split by split.

    The medians include estimates: without them a split with more stopped trials would seem easier.
    """
    medians = {
        split.name: float(np.median([t.value for t in split.trials if t.value is not None]))
        for split in data.splits
        if any(t.value is not None for t in split.trials)
    }
    if len(medians) < 2:
        return list(data.trials)
    level = float(np.mean(list(medians.values())))
    return [trial.shifted(level - medians.get(split.name, level)) for split in data.splits for trial in split.trials]


def pooled_note(data: StudyData) -> str:
    """Return how trials of several splits were put together, "" where one split has all of them."""
    return POOLED_NOTE if sum(bool(split.trials) for split in data.splits) > 1 else ""


def stopped_note(trials: Iterable[Trial]) -> str:
    """Return what open markers are, "" where no trial was stopped early."""
    return NOTE if any(trial.stopped for trial in trials) else ""


def no_trials_note(data: StudyData) -> str:
    """Return why there are no values of trials, "" where there are some."""
    if not data.trials:
        return "No trial has finished yet."
    if all(trial.value is None for trial in data.trials):
        return f"All {len(data.trials)} finished trials failed; the trials view has their errors."
    return ""


def no_models_note(data: StudyData) -> str:
    """Return why there are no models."""
    if data.result is None:
        return "The study is not finished: models are selected and refitted after the last trial."
    return "The study has no values by query: `ranktune resume` computes them again from the record."
