"""The value of tuning: the best so far, against the solvers' defaults and against random search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb

import numpy as np

from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.kinds import Lines
from ranktune.dashboards.figures.panels import Frame, Panel
from ranktune.dashboards.records.study import SplitData, StudyData
from ranktune.dashboards.records.trial import Trial
from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.policy.policy import POLICY
from ranktune.tuner.selection.details import tuning_gained

NO_CURVE = np.full(0, np.nan)
MIN_RANDOM_TRIALS = 5
"""Trials drawn at random, of each split, below which nothing is said about random search."""


def panel(data: StudyData) -> Panel:
    """Return the best so far, with the best default and random search."""
    title = f"Value of tuning: best validation {data.metric} by number of trials"
    curve = mean_of_splits([best_by_number(split) for split in data.splits])
    if not np.isfinite(curve).any():
        return Panel("worth", title, note="No trial has succeeded yet.")
    floors = [_best_default(split, len(data.solvers)) for split in data.splits]
    known_floors = [floor for floor in floors if floor is not None]
    default = float(np.mean(known_floors)) if len(known_floors) == len(floors) else None
    known = [random_search(split, len(data.solvers), data.study.sampler) for split in data.splits]
    if min(len(_known(best)) - 1 for best in known) < MIN_RANDOM_TRIALS:
        known = [NO_CURVE for _ in known]
    random = mean_of_splits(known)
    note = _note(data, curve, default, random)
    floor = np.full(len(curve), np.nan if default is None else default)
    curves = {"best so far": curve, "best default": floor, "random search": random}
    known_curves = {name: values for name, values in curves.items() if np.isfinite(values).any()}
    return Panel("worth", title, *best_so_far_lines(data, known_curves), note)


def best_by_number(split: SplitData) -> Floats:
    """Return the best value among the first k trials, for k = 1, 2, ... up to the first that is missing."""
    missing = next((k for k, trial in enumerate(split.trials) if trial.number != k), len(split.trials))
    return best_so_far(split.trials[:missing])


def best_so_far(trials: Sequence[Trial]) -> Floats:
    """Return the highest full value up to each trial, (n,); NaN before the first of them."""
    values = np.array([np.nan if trial.full_value is None else trial.full_value for trial in trials], dtype=np.float64)
    return np.asarray(np.fmax.accumulate(values), dtype=np.float64) if len(values) else values


def changes(best: Floats) -> list[int]:
    """Return the places where the best so far changes, its first value, and the last place."""
    known = np.flatnonzero(np.isfinite(best))
    if len(known) == 0:
        return []
    changed = known[1:][best[known[1:]] != best[known[1:] - 1]]
    return sorted({int(known[0]), *map(int, changed), int(known[-1])})


def _best_default(split: SplitData, solvers: int) -> float | None:
    """Return the best value of the solvers' defaults, which are the parameters requested of the first trials."""
    values = (trial.requested_value for trial in split.trials if trial.number < solvers)
    return max((value for value in values if value is not None), default=None)


def random_search(split: SplitData, solvers: int, sampler: str) -> Floats:
    """Return the mean of the best after k trials: the defaults, then k - solvers of the random trials, (k,).

    The random trials are those that the sampler drew without a model. The expected best of m of them, drawn without
    replacement, is exact; beyond them it is NaN. The estimate of a trial that was stopped early stands for its
    value. NaN up to the last default.
    """
    last = float("inf") if sampler == "random" else POLICY.search.startup
    drawn = np.array([t.value for t in split.trials if solvers <= t.number < last and t.value is not None])
    floor = _best_default(split, solvers)
    lifted = np.sort(drawn if floor is None else np.maximum(drawn, floor))
    expected = np.full(solvers + len(lifted), np.nan)
    if floor is not None and solvers:
        expected[solvers - 1] = floor
    for m in range(1, len(lifted) + 1):
        expected[solvers + m - 1] = expected_best(lifted, m)
    return expected


def expected_best(ascending: Floats, count: int) -> float:
    """Return the mean of the highest of count values drawn without replacement from ascending ones, count <= n."""
    n = len(ascending)
    total = comb(n, count)
    weights = [comb(i, count - 1) / total for i in range(count - 1, n)]
    return float(np.dot(weights, ascending[count - 1 :]))


def mean_of_splits(curves: Sequence[Floats]) -> Floats:
    """Return the mean over the splits up to the end of the shortest curve, (k,); empty where one is empty."""
    length = min((len(curve) for curve in curves), default=0)
    if length == 0:
        return NO_CURVE
    return np.asarray(np.mean([curve[:length] for curve in curves], axis=0), dtype=np.float64)


def _known(curve: Floats) -> list[int]:
    return [int(k) for k in np.flatnonzero(np.isfinite(curve))]


def best_so_far_lines(data: StudyData, curves: Mapping[str, Floats]) -> tuple[Frame, Lines]:
    """Return curves at the trials where one of them changes, and at its last trial."""
    places = sorted({k for curve in curves.values() for k in changes(curve)})
    rows = [[k + 1, *(curve[k] if k < len(curve) else None for curve in curves.values())] for k in places]
    across = figures.count_axis("trials", places[-1] + 1 if places else 1)
    up = figures.axis(f"best validation {data.metric}")
    return Frame(("trials", *curves), rows), Lines("trials", tuple(curves), across, up, step=True, markers=True)


def _note(data: StudyData, curve: Floats, default: float | None, random: Floats) -> str:
    parts = [tuning_gained(data.result)] if data.result is not None else []
    if not any(parts) and default is not None:
        gain = float(np.nanmax(curve)) - default
        parts.append(
            f"The best so far is {gain:.4f} above the best of the solvers' defaults on validation queries. The best of "
            "many values is too high: test queries show what tuning gained."
        )
    drawn = len(_known(random)) - 1
    if drawn > 0:
        parts.append(
            f"The curve of random search is the mean over random orders of the {drawn} trials that were drawn "
            "at random."
        )
    parts.append('For random search with the full budget, run the study with sampler "random" and compare the two.')
    if len(data.splits) > 1:
        parts.append(f"Values are means over {len(data.splits)} folds.")
    return " ".join(filter(None, parts))
