"""The leaderboard: a row for each refitted candidate, compared with the chosen one, and its alternatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.metrics.means import linearised
from ranktune.solvers.models.blend import needs_of
from ranktune.tuner.selection.candidates import ALPHA, Candidate
from ranktune.tuner.selection.estimate import chosen_estimate
from ranktune.tuner.selection.finals import Entry
from ranktune.tuner.selection.results import ALIKE, BETTER, CHOSEN, FIRST, WORSE, Row
from ranktune.tuner.statistics.comparisons import Comparison, compare_splits, holm
from ranktune.tuner.statistics.intervals import Interval, mean_or_zero, stratified_interval
from ranktune.tuner.statistics.pareto import Option, knee
from ranktune.tuner.study.abilities import can_load


def leaderboard(
    splits: Sequence[Sequence[Entry]], metric: str, generator: np.random.Generator, serve: Sequence[str] = ()
) -> list[Row]:
    """Return a row for each solver and blend, the chosen first, then by validation; serve are the systems to load it.

    splits holds the entries of each split, the chosen entry first. Over several splits a first row shows what
    choosing on every split by its own validation gives; what succeeded on every split follows.
    """
    chosen = [entries[0] for entries in splits]
    if len(splits) == 1:
        rows = [_row(entry.candidate.solver, [entry], chosen, metric, generator, serve) for entry in splits[0]]
        return _judged(rows)
    by_solver = [{entry.candidate.solver: entry for entry in entries} for entries in splits]
    names = [name for name in by_solver[0] if all(name in entries for entries in by_solver)]
    rows = [_row(name, [own[name] for own in by_solver], chosen, metric, generator, serve) for name in names]
    total = sum(entry.candidate.trials for entries in splits for entry in entries)
    first = replace(_row(CHOSEN, chosen, chosen, metric, generator, serve), trials=total)
    return _judged([first, *sorted(rows, key=_merit, reverse=True)])


def _merit(row: Row) -> tuple[bool, float]:
    if row.again is not None:
        return (True, row.again.mean)
    return (False, row.vali.mean if row.vali else float("-inf"))


def _row(
    name: str,
    own: Sequence[Entry],
    chosen: Sequence[Entry],
    metric: str,
    generator: np.random.Generator,
    serve: Sequence[str],
) -> Row:
    scored = [entry.candidate for entry in own]
    vali = [one.vali for one in scored]
    again = [one.again for one in scored if one.again is not None]
    by_vali, by_again = [one.vali_weights for one in scored], [one.again_weights for one in scored]
    test, by_test = [entry.test[metric] for entry in own if entry.test], [entry.test_weights for entry in own]
    params = [dict(entry.candidate.params) for entry in own]
    against = _compared(own, chosen, metric, generator)
    return Row(
        solver=name,
        params=params[0] if len(own) == 1 else None,
        vali=stratified_interval(vali, generator, weights=by_vali) if all(map(len, vali)) else None,
        again=stratified_interval(again, generator, weights=by_again) if len(again) == len(own) else None,
        test=stratified_interval(test, generator, weights=by_test) if len(test) == len(own) else None,
        difference=None if against is None else Interval(against.difference, against.low, against.high),
        p_value=None if against is None else against.p_randomisation,
        p_holm=None,
        against=against,
        verdict=FIRST,
        nonzeros=float(np.mean([entry.model.nonzeros for entry in own])),
        bytes=float(np.mean([entry.model.bytes for entry in own])),
        microseconds=float(np.mean([entry.microseconds for entry in own])),
        seconds=float(np.sum([entry.seconds for entry in own])),
        trials=sum(entry.candidate.trials for entry in own),
        cost=None if any(entry.cost is None for entry in own) else float(np.mean([entry.cost for entry in own])),
        is_served=all(can_load(serve, needs_of(entry.model)) for entry in own),
    )


def _compared(
    own: Sequence[Entry], chosen: Sequence[Entry], metric: str, generator: np.random.Generator
) -> Comparison | None:
    """Return own against chosen; None for the chosen itself, or without queries that both scored."""
    if all(a is b for a, b in zip(own, chosen, strict=True)):
        return None
    pairs = [_values(a, b, metric) for a, b in zip(own, chosen, strict=True)]
    if any(pair is None for pair in pairs):
        return None
    known = [pair for pair in pairs if pair is not None]
    weights = [heavy for _, _, heavy in known]
    return compare_splits([one for one, _, _ in known], [other for _, other, _ in known], generator, weights=weights)


def _values(a: Entry, b: Entry, metric: str) -> tuple[Floats, Floats, Floats | None] | None:
    """Return what both scored on the same queries, and their weights: on test, else on fresh folds, else in trials."""
    if a.test and b.test:
        return a.test[metric], b.test[metric], a.test_weights
    if a.candidate.again is not None and b.candidate.again is not None:
        return a.candidate.again, b.candidate.again, a.candidate.again_weights
    (one, weights), (other, _) = (
        (own.again, own.again_weights) if own.again is not None and not len(own.vali) else (own.vali, own.vali_weights)
        for own in (a.candidate, b.candidate)
    )
    return (one, other, weights) if 0 < len(one) == len(other) else None


def _judged(rows: Sequence[Row]) -> list[Row]:
    """Return rows with p-values corrected for their number, and verdicts."""
    corrected = holm([row.p_value for row in rows])
    return [replace(row, p_holm=p, verdict=_verdict(row, p)) for row, p in zip(rows, corrected, strict=True)]


def _verdict(row: Row, p_holm: float | None) -> str:
    if row.difference is None or p_holm is None:
        return FIRST if row.p_value is None else ALIKE
    if p_holm > ALPHA:
        return ALIKE
    return WORSE if row.difference.mean < 0.0 else BETTER


def alternatives(rows: Sequence[Row]) -> dict[str, str]:
    """Return the smallest and the fastest row not significantly different from the chosen, and the knee, by name."""
    rows = [row for row in rows if row.solver != CHOSEN and row.is_served and not row.is_baseline]
    alike = [row for row in rows if row.verdict in (FIRST, ALIKE)]
    options = [Option(row.solver, _quality(row), nonzeros=row.nonzeros) for row in rows]
    at_knee = knee(options, "nonzeros")
    found = {"knee": at_knee.label} if at_knee else {}
    if alike:
        found["smallest"] = min(alike, key=lambda row: (row.bytes, -_quality(row))).solver
        found["fastest"] = min(alike, key=lambda row: (row.microseconds, -_quality(row))).solver
    return found


def _quality(row: Row) -> float:
    known = row.again or row.vali
    return known.mean if known else float("nan")


def estimate(
    chosen: Candidate,
    candidates: Sequence[Candidate],
    trials: Mapping[int, Floats],
    solvers: Mapping[int, str],
    generator: np.random.Generator,
) -> Interval:
    """Return the validation score of the chosen candidate, corrected for the selection bias.

    candidates  all candidates of the choice, the chosen one among them
    trials  number -> scores of each complete trial, (n validation queries,)
    solvers  number -> the solver of each complete trial
    """
    scored = [one for one in candidates if one.again is not None]
    weights = chosen.weights
    if chosen.again is None and chosen.members:
        return _estimate_of_blend(chosen, trials, solvers, generator)
    if chosen.again is None:
        values = np.stack(list(trials.values()))
        return chosen_estimate(values, list(trials).index(chosen.number), generator, weights=weights)
    again = np.stack([one.again for one in scored if one.again is not None])
    others = [values for number, values in trials.items() if number not in {one.number for one in scored}]
    if any(len(values) != again.shape[1] for values in trials.values()):
        # The trials were scored on other queries.
        return chosen_estimate(again, scored.index(chosen), generator, weights=weights)
    # Blends compete in the second stage only: there they take part whatever the trials were.
    first = [one.vali if len(one.vali) else one.again for one in scored]
    values = np.stack([*(own for own in first if own is not None), *others])
    padded = np.full_like(values, np.nan)
    padded[: len(again)] = again
    return chosen_estimate(values, scored.index(chosen), generator, again=padded, weights=weights)


def _estimate_of_blend(
    chosen: Candidate, trials: Mapping[int, Floats], solvers: Mapping[int, str], generator: np.random.Generator
) -> Interval:
    """Return the estimate of a blend of trials, as they were scored when they were chosen.

    The blend itself is taken unless it is significantly worse, which is no choice of a maximum. It inherits the bias of
    its members, with their shares: each was chosen among the trials of its solver.
    """
    weights = chosen.vali_weights
    found = chosen_estimate(chosen.vali[None, :], 0, generator, weights=weights)
    bias = 0.0
    shares = [float(share) for share in chosen.params.values()]  # type: ignore[arg-type]
    for member, share in zip(chosen.members, shares, strict=True):
        rivals = [number for number in trials if solvers[number] == member.solver]
        values = np.stack([trials[number] for number in rivals])
        single = chosen_estimate(values, rivals.index(member.number), generator, weights=weights)
        bias += share * max(0.0, mean_or_zero(member.vali, weights) - single.mean)
    return Interval(found.mean - bias, found.low - bias, found.high - bias)


def expected_on_test(promised: Interval, entry: Entry, metric: str) -> Interval | None:
    """Return promised with limits for the mean over the test queries of entry.

    Test queries are assumed to have the standard deviation of validation queries.
    """
    if metric not in entry.test:
        return None
    one, count = entry.candidate, int(np.count_nonzero(~np.isnan(entry.test[metric])))
    return for_few_queries(promised, one.values, count, one.weights)


def for_few_queries(promised: Interval, known: Floats, count: int, weights: Floats | None = None) -> Interval:
    """Return the limits of the mean of count queries like those of known, (n,), given those of the mean of all.

    With weights they count by weights like those of known.
    """
    known = linearised(known, weights)
    spread = 1.96 * float(np.nanstd(known, ddof=1)) / np.sqrt(max(count, 1)) if len(known) > 1 else 0.0
    low, high = (float(np.hypot(end - promised.mean, spread)) for end in (promised.low, promised.high))
    return Interval(promised.mean, promised.mean - low, promised.mean + high)


def mean_interval(intervals: Sequence[Interval]) -> Interval:
    """Return the mean of several estimates; their queries overlap, so that the limits are means too, not narrower."""
    return Interval(*(float(np.mean([getattr(own, end) for own in intervals])) for end in ("mean", "low", "high")))


def mean_expected(expected: Sequence[Interval | None], estimates: Sequence[Interval]) -> Interval | None:
    """Return the expected mean over the test sets of splits, whose queries differ, so that their noise averages out.

    expected and estimates are those of the splits; None where a split has no test queries.
    """
    known = [own for own in expected if own is not None]
    if len(known) < len(expected):
        return None
    whole = mean_interval(estimates)
    noise = [
        (own.high - own.mean) ** 2 - (estimate.high - estimate.mean) ** 2
        for own, estimate in zip(known, estimates, strict=True)
    ]
    spread = float(np.sqrt(max(sum(noise), 0.0))) / len(estimates)
    low, high = (float(np.hypot(end - whole.mean, spread)) for end in (whole.low, whole.high))
    return Interval(whole.mean, whole.mean - low, whole.mean + high)


def mean_metrics(chosen: Sequence[Entry], metrics: Sequence[str]) -> dict[str, float]:
    """Return metric -> mean over splits of the chosen entries' mean over test queries; empty without test."""
    if not all(entry.test for entry in chosen):
        return {}

    def mean(entry: Entry, name: str) -> np.floating:
        return np.nanmean(linearised(entry.test[name], entry.test_weights))

    return {name: float(np.mean([mean(entry, name) for entry in chosen])) for name in metrics}
