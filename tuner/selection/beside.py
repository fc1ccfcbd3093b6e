"""Where clicks and judgments disagree: the model that the metric beside the one that chooses would have chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ranktune.solvers.core.arrays import JsonView
from ranktune.solvers.metrics.means import mean_of
from ranktune.solvers.metrics.presets import is_of_clicks
from ranktune.tuner.selection.finals import Entry, Scored
from ranktune.tuner.selection.leaderboard import compared
from ranktune.tuner.selection.preferences import CLICKS, Preference
from ranktune.tuner.selection.results import BASELINE, CHOSEN, Row
from ranktune.tuner.splits.sealing import read_sealed
from ranktune.tuner.statistics.intervals import Interval, stratified_interval
from ranktune.tuner.study.declaration import Study


def beside_of(study: Study) -> str:
    """Return the first metric of clicks where grades choose, of grades where clicks choose."""
    return next(name for name in study.also if is_of_clicks(name) != is_of_clicks(study.metric))


def with_beside(
    rows: Sequence[Row], splits: Sequence[Sequence[Entry]], baselines: Sequence[Scored], study: Study
) -> list[Row]:
    """Return rows with their means on test by the metric beside the one that chooses."""
    scored = {**_by_row(splits), BASELINE: baselines}
    return [replace(row, beside=_mean(scored[row.solver], study)) for row in rows]


def preference(study: Study, splits: Sequence[Sequence[Entry]], folder: Path) -> Preference:
    """Return which row the metric beside would choose on test, and how that differs from the chosen one there."""
    by_row = _by_row(splits)
    chosen = [entries[0] for entries in splits]
    log: JsonView = read_sealed(folder / CLICKS) or {}
    if not all(entry.test for entry in chosen):
        return Preference(beside_of(study), "", None, None, log)
    means = {
        name: float(np.mean([mean_of(each.test[beside_of(study)], each.test_weights) for each in scored]))
        for name, scored in by_row.items()
    }
    if np.isnan(list(means.values())).any():  # no test query is in the log
        return Preference(beside_of(study), "", None, None, log)
    best = max(means, key=lambda name: (means[name], by_row[name] is next(iter(by_row.values()))))
    generator = _generator(study)
    pairs = [compared(by_row[best], chosen, metric, generator) for metric in (beside_of(study), study.metric)]
    beside, own = (None if pair is None else Interval(pair.difference, pair.low, pair.high) for pair in pairs)
    return Preference(beside_of(study), best, beside, own, log)


def _by_row(splits: Sequence[Sequence[Entry]]) -> dict[str, Sequence[Scored]]:
    """Return the entries of each row of the leaderboard, one a split, the chosen ones first."""
    by_solver = [{entry.candidate.solver: entry for entry in entries} for entries in splits]
    rows: dict[str, Sequence[Scored]] = {CHOSEN: [entries[0] for entries in splits]} if len(splits) > 1 else {}
    every = (name for name in by_solver[0] if all(name in entries for entries in by_solver))
    return {**rows, **{name: [entries[name] for entries in by_solver] for name in every}}


def _mean(scored: Sequence[Scored], study: Study) -> Interval | None:
    known = [each.test[beside_of(study)] for each in scored if each.test]
    if not known or len(known) < len(scored):
        return None
    return stratified_interval(known, _generator(study), weights=[each.test_weights for each in scored])


def _generator(study: Study) -> np.random.Generator:
    """Return a generator that nothing else uses: a click log beside changes no other number of a study."""
    return np.random.default_rng([study.seed, 11])
