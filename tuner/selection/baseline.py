"""The baseline of a study in its results: its row of the leaderboard, and the gain of the chosen model over it.

A baseline is fixed: nothing is fitted to any fold, so that its scores on the validation queries of all folds count as
one. It is compared on test; without test queries on those that validation scored, where the mean of the chosen model
is corrected for the selection bias.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.metrics.means import mean_of
from ranktune.tuner.selection.baseline_values import BaselineValues
from ranktune.tuner.selection.candidates import ALPHA
from ranktune.tuner.selection.finals import Entry
from ranktune.tuner.selection.results import ALIKE, BASELINE, BETTER, WORSE, Gain, Row
from ranktune.tuner.statistics.comparisons import Comparison, compare_splits
from ranktune.tuner.statistics.intervals import Interval, stratified_interval


def baseline_row(
    baselines: Sequence[BaselineValues], chosen: Sequence[Entry], metric: str, generator: np.random.Generator
) -> Row:
    """Return the row of the baseline, whose difference is the baseline less the chosen model, split by split."""
    rescored = all(entry.candidate.again is not None for entry in chosen)
    vali, again, test = _known(baselines, "vali"), _known(baselines, "again"), _tested(baselines, metric)
    by_vali, by_again = [own.vali_weights for own in baselines], [own.again_weights for own in baselines]
    by_test = [own.test_weights for own in baselines]
    against = None
    pairs = _pairs(baselines, chosen, metric)
    if pairs is not None:
        ours, theirs, weights = (list(side) for side in zip(*pairs, strict=True))
        against = compare_splits(theirs, ours, generator, weights=weights)
    nothing = float("nan")
    return Row(
        solver=BASELINE,
        params=None,
        vali=None if vali is None else stratified_interval(vali, generator, weights=by_vali),
        again=stratified_interval(again, generator, weights=by_again) if again is not None and rescored else None,
        test=None if test is None else stratified_interval(test, generator, weights=by_test),
        difference=None if against is None else Interval(against.difference, against.low, against.high),
        p_value=None if against is None else against.p_randomisation,
        p_holm=None,
        against=against,
        verdict=_verdict(against),
        nonzeros=nothing,
        bytes=nothing,
        microseconds=nothing,
        seconds=nothing,
        trials=0,
    )


def gain_over(
    name: str,
    baselines: Sequence[BaselineValues],
    chosen: Sequence[Entry],
    estimates: Sequence[Interval],
    metric: str,
    generator: np.random.Generator,
) -> Gain | None:
    """Return the gain of the chosen models over the baseline; None without queries that both scored.

    estimates are the means of the chosen models by validation, corrected for the selection bias.
    """
    pairs = _pairs(baselines, chosen, metric)
    if pairs is None:
        return None
    ours, theirs, weights = (list(side) for side in zip(*pairs, strict=True))
    if _tested(baselines, metric) is not None:
        return Gain(name, "test", compare_splits(ours, theirs, generator, weights=weights))
    fair = [
        own + (estimate.mean - mean_of(own, heavy))
        for own, heavy, estimate in zip(ours, weights, estimates, strict=True)
    ]
    found, plain = (compare_splits(own, theirs, generator, weights=weights) for own in (fair, ours))
    found = replace(found, wins=plain.wins, ties=plain.ties, losses=plain.losses)
    return Gain(name, "validation", found)


def _pairs(
    baselines: Sequence[BaselineValues], chosen: Sequence[Entry], metric: str
) -> list[tuple[Floats, Floats, Floats | None]] | None:
    """Return what the chosen model and the baseline scored on the same queries of each split, and their weights.

    None where some split has no such queries.
    """
    found = []
    for own, entry in zip(baselines, chosen, strict=True):
        one = entry.candidate
        if own.test and entry.test:
            found.append((entry.test[metric], own.test[metric], own.test_weights))
        elif one.again is not None and own.again is not None:
            found.append((one.again, own.again, own.again_weights))
        elif own.vali is not None and len(own.vali) == len(one.vali):
            found.append((one.vali, own.vali, own.vali_weights))
        else:
            return None
    return found


def _known(baselines: Sequence[BaselineValues], name: str) -> list[Floats] | None:
    found = [getattr(own, name) for own in baselines]
    return None if any(values is None for values in found) else found


def _tested(baselines: Sequence[BaselineValues], metric: str) -> list[Floats] | None:
    return [own.test[metric] for own in baselines] if all(metric in own.test for own in baselines) else None


def _verdict(against: Comparison | None) -> str:
    """Return the verdict on the baseline: one comparison that was planned, which is not corrected for others."""
    if against is None or not against.p_randomisation <= ALPHA:
        return ALIKE
    return WORSE if against.difference < 0.0 else BETTER
