"""The score of the chosen model on new queries: its validation score, corrected for the selection bias.

values    (K, n) per-query scores of the K candidates that competed; NaN marks a query that the metric skips
rescored  (K, n) scores of the finalists on fresh folds and seeds, same queries in the same columns; NaN rows elsewhere
final     (K, n) rescored where a candidate has it, values elsewhere: the score of the final decision
weights   (n,) how often each query counts, None if each counts once: all means are weighted, and their variances are
          those of `ranktune.solvers.metrics.means`
part      one of four random quarters of the queries; two of them are a half
overlap   of k-fold cross-validation k / (k - 1): scored queries for each that a model learns from; 0 for one model

The maximum of many noisy scores is biased upwards. So the choice is repeated on random halves of the queries and read
on the other half, where the bias of the first half is absent: the mean is right where all candidates are equally good,
and slightly low otherwise, since half the queries choose worse. The gain of choosing by a half instead of a quarter
estimates that of the whole over a half: for normal scores 0.5 to 1.4 times as much. GAIN_SHARE of it is added, and it
adds to the variance of the queries.
Source: Tsamardinos, Greasidou & Borboudakis 2018, "Bootstrapping the out-of-sample predictions for efficient and
accurate cross-validation", whose resamples also choose by as much as half the queries says; Politis, Romano & Wolf
1999 for drawing without replacement.

The estimand is the mean of the scored models over all queries like these. In k-fold cross-validation these models were
trained on (k - 1) / k of the queries; the small advantage of the refitted model is not added. These models share most
of their training queries, and score those of each other. So the variance of a mean is larger than the spread of the
queries says, by a factor of 1 + overlap. No unbiased estimate of it exists (Bengio & Grandvalet 2004). Where nothing
can be learned the factor is 2 at most: the score of a query by a model of another, and that of the other by a model of
the first, are the same luck.
Source of the factor: Nadeau & Bengio 2003, "Inference for the generalization error".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.metrics.means import linearised, mean_or_zero
from ranktune.tuner.selection.finals import Candidate, Finalist
from ranktune.tuner.statistics.measured import Interval

HOPELESS_Z = 10.0
"""Standard errors below the chosen candidate beyond which a candidate is left out."""
GAIN_SHARE, GAIN_VARIANCE = 0.75, 1.5
"""Share of the gain that is added to the mean, and of its square in the squared error of the mean."""
MIN_QUERIES = 4
"""Queries that repeated choices on parts need."""
BLOCK = 4_000_000  # marks of parts held at once


def chosen_estimate(
    values: Floats,
    chosen: int,
    generator: np.random.Generator,
    *,
    rescored: Floats | None = None,
    weights: Floats | None = None,
    overlap: float = 0.0,
    level: float = 0.95,
    splits: int = 200,
) -> Interval:
    """Return the chosen candidate's mean over queries like these, corrected for the choice, with its interval.

    The choice is taken to be that of the highest mean; with rescored, that of the highest mean of rescored among the
    finalists, which are those of highest values. Candidates that scored above the chosen one, and were passed over for
    another reason, take no part. Limits lie in [0, 1] where all scores do; NaN without a query that counts, and no
    width from a single one. Raises DataError on shapes that do not fit. Cost: 4 splits K n multiplications.
    """
    compared = _compared(*_checked(values, chosen, rescored), chosen, weights)
    scores = linearised(compared.final[compared.chosen], compared.weights)
    scores = scores[~np.isnan(scores)]
    if len(scores) < 2:
        alone = float(scores[0]) if len(scores) else float("nan")
        return Interval(alone, alone, alone)
    if len(scores) < MIN_QUERIES or len(compared.final) == 1:
        outcome = _Outcome(float(scores.mean()), float(scores.mean()), float(scores.var(ddof=1)))
    else:
        outcome = _choose_by_parts(compared, generator, splits)
    mean = min(float(scores.mean()), outcome.half + GAIN_SHARE * outcome.gain)
    width = float(scipy.special.stdtrit(len(scores) - 1, (1 + level) / 2))
    count = len(scores) / (1.0 + overlap)
    if np.nanmin(compared.final) >= 0.0 and np.nanmax(compared.final) <= 1.0:
        return _bounded(mean, outcome, count, width, _design_effect(compared.weights))
    half_width = width * float(np.sqrt(outcome.variance / count + outcome.gain_variance))
    return Interval(mean, mean - half_width, mean + half_width)


@dataclass(frozen=True, eq=False)
class _Compared:
    """Those that take part; first is None where the choice has one stage, else what chooses the finalists."""

    final: Floats
    first: Floats | None
    chosen: int
    finalists: int
    weights: Floats | None


@dataclass(frozen=True)
class _Outcome:
    """Mean score on the other half of what is chosen by a half and by a quarter, and its variance over queries."""

    half: float
    quarter: float
    variance: float

    @property
    def gain(self) -> float:
        """The gain of choosing by twice as many queries."""
        return self.half - self.quarter

    @property
    def gain_variance(self) -> float:
        """Squared error of what is added for it."""
        return GAIN_VARIANCE * self.gain**2


def _checked(values: Floats, chosen: int, rescored: Floats | None) -> tuple[Floats, Floats | None]:
    """Return values and rescored as arrays whose shapes fit."""
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 2 or not 0 <= chosen < len(values):
        raise DataError(
            f"values of shape {values.shape} and candidate {chosen} chosen: values must have a row for each candidate, "
            "a column for each query, and the chosen one must be among the rows."
        )
    if rescored is None:
        return values, None
    rescored = np.asarray(rescored, dtype=np.float64)
    if rescored.shape != values.shape or np.isnan(rescored[chosen]).all():
        raise DataError(
            f"rescored of shape {rescored.shape} and values of shape {values.shape}: both must have the same rows "
            "and columns, and the chosen candidate must be among those scored again."
        )
    return values, rescored


def _compared(values: Floats, rescored: Floats | None, chosen: int, weights: Floats | None) -> _Compared:
    """Return those that take part and the queries that any of them counts."""
    scored = np.full(len(values), True)
    final = values
    if rescored is not None:
        scored[:] = ~np.isnan(rescored).all(axis=1)
        final = np.where(scored[:, None], rescored, values)
    means = _ratio(np.nansum(linearised(final, weights), axis=1), (~np.isnan(final)).sum(axis=1))
    compared = (means > -np.inf) & ~(scored & (means > means[chosen]))
    compared[chosen] = True
    if rescored is None:
        compared &= ~_hopeless(final, chosen, weights)
    counted = ~np.isnan(final[compared]).all(axis=0)
    first = None if rescored is None else values[np.ix_(compared, counted)]
    finalists = int((compared & scored).sum())
    counted_weights = None if weights is None else weights[counted]
    return _Compared(final[np.ix_(compared, counted)], first, int(compared[:chosen].sum()), finalists, counted_weights)


def _hopeless(final: Floats, chosen: int, weights: Floats | None) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which candidates are HOPELESS_Z standard errors behind the chosen one, paired by query: (K,)."""
    behind = linearised(final[chosen] - final, weights)
    counted = (~np.isnan(behind)).sum(axis=1)
    total, squares = np.nansum(behind, axis=1), np.nansum(behind * behind, axis=1)
    error = np.sqrt(np.maximum(squares - total * total / np.maximum(counted, 1), 0.0))  # of the sum of differences
    hopeless: np.ndarray[tuple[int], np.dtype[np.bool_]] = (total > HOPELESS_Z * error) & (counted >= 10 * MIN_QUERIES)
    return hopeless


def _choose_by_parts(compared: _Compared, generator: np.random.Generator, splits: int) -> _Outcome:
    """Choose by every half and every quarter of splits random divisions, and score on the half left out."""
    n, weights = compared.final.shape[1], compared.weights
    by_half, by_quarter, variances = [], [], []
    block = max(1, BLOCK // (4 * n))
    for begin in range(0, splits, block):
        size = min(block, splits - begin)
        # quarters 0 and 2 first: halves {0, 1} and {2, 3} differ by one query at most
        number = generator.permuted(np.tile(np.array([0, 2, 1, 3])[np.arange(n) % 4], (size, 1)), axis=1)
        marks = (number[:, None, :] == np.arange(4)[:, None]).astype(np.float64)  # (size, 4, n)
        weighted = marks if weights is None else marks * weights
        final = _Sums.of(compared.final, weighted)
        first = None if compared.first is None else _Sums.of(compared.first, weighted)
        for nested_choice, scoring in (([0, 1], [2, 3]), ([2, 3], [0, 1])):
            left_out = final.means(scoring)
            winners = _winners(final, first, nested_choice, compared.finalists)
            by_half.append(np.take_along_axis(left_out, winners[:, None], axis=1)[:, 0])
            variances.append(_variances(compared.final[winners], marks[:, scoring].sum(axis=1), weights))
            for quarter in nested_choice:
                winners = _winners(final, first, [quarter], compared.finalists)
                by_quarter.append(np.take_along_axis(left_out, winners[:, None], axis=1)[:, 0])
    return _Outcome(*(_mean(np.concatenate(means)) for means in (by_half, by_quarter, variances)))


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums of weighted scores, and of the weights of queries that count, by split, quarter and candidate.

    Both are (splits, 4, K).
    """

    scores: Floats
    counts: Floats

    @classmethod
    def of(cls, values: Floats, marks: Floats) -> _Sums:
        flat = marks.reshape(-1, marks.shape[2])
        skipped = np.isnan(values)
        if skipped.any():
            scores, counts = flat @ np.where(skipped, 0.0, values).T, flat @ (~skipped).astype(np.float64).T
        else:
            scores, counts = flat @ values.T, np.broadcast_to(flat.sum(axis=1)[:, None], (len(flat), len(values)))
        shape = (*marks.shape[:2], len(values))
        return cls(scores.reshape(shape), counts.reshape(shape))

    def means(self, quarters: list[int]) -> Floats:
        """Return the mean on these quarters, (splits, K), -inf where no query counts."""
        return _ratio(self.scores[:, quarters].sum(axis=1), self.counts[:, quarters].sum(axis=1))


def _winners(
    final: _Sums, first: _Sums | None, quarters: list[int], finalists: int
) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Return who is chosen by these quarters in each split, (splits,)."""
    means = final.means(quarters)
    if first is not None and finalists < means.shape[1]:
        ranked = np.argpartition(-first.means(quarters), finalists - 1, axis=1)
        np.put_along_axis(means, ranked[:, finalists:], -np.inf, axis=1)
    winners: np.ndarray[tuple[int], np.dtype[np.intp]] = means.argmax(axis=1)
    return winners


def _variances(values: Floats, marks: Floats, weights: Floats | None) -> Floats:
    """Return the variance of each row's marked values, linearised, (splits,), -inf where fewer than two count."""
    values = linearised(np.where(marks > 0.0, values, np.nan), weights)
    counted = np.where(np.isnan(values), 0.0, marks)
    values = np.nan_to_num(values)
    n = counted.sum(axis=1)
    deviations = values - _ratio((counted * values).sum(axis=1), n)[:, None]
    with np.errstate(invalid="ignore"):  # 0 * inf of rows without a value, which the ratio below leaves out
        return _ratio((counted * deviations**2).sum(axis=1), n - 1)


def _design_effect(weights: Floats | None) -> float:
    """Return by how much weights raise the variance of a mean of values that do not depend on them (Kish 1965)."""
    return 1.0 if weights is None else float(np.mean(weights**2) / np.mean(weights) ** 2)


def _ratio(sums: Floats, counts: Floats) -> Floats:
    """Return sums / counts, -inf where counts are not positive."""
    ratio = np.full(np.shape(sums), -np.inf)
    np.divide(sums, counts, out=ratio, where=np.asarray(counts) > 0)
    return ratio


def _mean(values: Floats) -> float:
    """Return the mean of the finite values."""
    return float(values[np.isfinite(values)].mean())


def _bounded(mean: float, outcome: _Outcome, n: float, width: float, most: float) -> Interval:
    """Return the u in [0, 1] with (mean - u)^2 <= width^2 (c u (1 - u) / n + gain_variance).

    c is the variance in units of the largest that the mean allows without weights; it is at most `most`. The spread of
    bounded scores shrinks towards the bounds, so the limits are wider towards the middle than towards the bound.
    Source: Wilson 1927, with c = 1.
    """
    largest = outcome.half * (1.0 - outcome.half)
    c = min(most, outcome.variance / largest) if largest > 0.0 else most
    z = width**2 * c / n
    middle = mean + z / 2
    reach = float(np.sqrt(max(middle**2 - (1 + z) * (mean**2 - width**2 * outcome.gain_variance), 0.0)))
    low, high = max(0.0, (middle - reach) / (1 + z)), min(1.0, (middle + reach) / (1 + z))
    return Interval(mean, min(low, mean), max(high, mean))  # the mean is inside, up to rounding


def estimate(
    chosen: Candidate,
    candidates: Sequence[Candidate],
    trials: Mapping[int, Floats],
    solvers: Mapping[int, str],
    generator: np.random.Generator,
    nested: Floats | None = None,
    overlap: float = 0.0,
) -> Interval:
    """Return the validation score of the chosen candidate, corrected for the selection bias.

    candidates  all candidates of the choice, the chosen one among them
    trials  number -> scores of each complete trial, (n validation queries,)
    solvers  number -> the solver of each complete trial
    nested  (n,) what the choice among blends and candidates, made without a query's fold, scored on it; by default the
            chosen candidate's own values. A blend inherits, by its shares, the bias of its members, each of which was
            chosen among the trials of its solver.
    """
    if nested is None and not chosen.members:
        return _among(chosen, candidates, trials, generator, overlap)
    whole = chosen_estimate(
        (chosen.values if nested is None else nested)[None, :], 0, generator,
        weights=chosen.weights, overlap=overlap,
    )  # fmt: skip
    shares = [float(share) for share in chosen.params.values()] if chosen.members else [1.0]  # type: ignore[arg-type]
    bias = 0.0
    for member, share in zip(chosen.members or (chosen,), shares, strict=True):
        alike = [each for each in candidates if each.solver == member.solver and each.rescored is not None]
        alike = alike if member in alike else [member]
        rivals = {number: values for number, values in trials.items() if solvers[number] == member.solver}
        best = max(alike, key=lambda each: each.merit)
        seen = float(np.mean([mean_or_zero(each.values, each.weights) for each in alike]))
        bias += share * max(0.0, seen - _among(best, alike, rivals, generator).mean)
    return Interval(whole.mean - bias, whole.low - bias, whole.high - bias)


def _among(
    chosen: Candidate,
    candidates: Sequence[Candidate],
    trials: Mapping[int, Floats],
    generator: np.random.Generator,
    overlap: float = 0.0,
) -> Interval:
    """Return the estimate of a candidate that is the best of its trials, and of the candidates on fresh folds."""
    weights = chosen.weights
    if chosen.rescored is None:
        values = np.stack(list(trials.values()))
        return chosen_estimate(values, list(trials).index(chosen.number), generator, weights=weights, overlap=overlap)
    scored = [candidate for candidate in candidates if candidate.rescored is not None]
    rescored = np.stack([candidate.rescored for candidate in scored if candidate.rescored is not None])
    others = [values for number, values in trials.items() if number not in {candidate.number for candidate in scored}]
    if any(len(values) != rescored.shape[1] for values in trials.values()):
        # The trials were scored on other queries.
        return chosen_estimate(rescored, scored.index(chosen), generator, weights=weights, overlap=overlap)
    # Blends compete in the second stage only: there they take part whatever the trials were.
    first = [candidate.vali if len(candidate.vali) else candidate.rescored for candidate in scored]
    values = np.stack([*(values for values in first if values is not None), *others])
    padded = np.full_like(values, np.nan)
    padded[: len(rescored)] = rescored
    return chosen_estimate(values, scored.index(chosen), generator, rescored=padded, weights=weights, overlap=overlap)


def expected_on_test(promised: Interval, entry: Finalist, metric: str) -> Interval | None:
    """Return promised with limits for the mean over the test queries of entry.

    Test queries are assumed to have the standard deviation of validation queries.
    """
    if metric not in entry.test:
        return None
    candidate, count = entry.candidate, int(np.count_nonzero(~np.isnan(entry.test[metric])))
    return for_few_queries(promised, candidate.values, count, candidate.weights)


def for_few_queries(promised: Interval, values: Floats, count: int, weights: Floats | None = None) -> Interval:
    """Return the limits of the mean of count queries like those of values, (n,), given those of the mean of all.

    With weights they count by weights like those of values.
    """
    values = linearised(values, weights)
    spread = 1.96 * float(np.nanstd(values, ddof=1)) / np.sqrt(max(count, 1)) if len(values) > 1 else 0.0
    low, high = (float(np.hypot(end - promised.mean, spread)) for end in (promised.low, promised.high))
    return Interval(promised.mean, promised.mean - low, promised.mean + high)


def mean_interval(intervals: Sequence[Interval]) -> Interval:
    """Return the mean of several estimates; their queries overlap, so that the limits are means too, not narrower."""
    return Interval(*(float(np.mean([getattr(each, end) for each in intervals])) for end in ("mean", "low", "high")))


def mean_expected(expected: Sequence[Interval | None], estimates: Sequence[Interval]) -> Interval | None:
    """Return the expected mean over the test sets of splits, whose queries differ, so that their noise averages out.

    expected and estimates are those of the splits; None where a split has no test queries.
    """
    intervals = [interval for interval in expected if interval is not None]
    if len(intervals) < len(expected):
        return None
    whole = mean_interval(estimates)
    noise = [
        (interval.high - interval.mean) ** 2 - (estimate.high - estimate.mean) ** 2
        for interval, estimate in zip(intervals, estimates, strict=True)
    ]
    spread = float(np.sqrt(max(sum(noise), 0.0))) / len(estimates)
    low, high = (float(np.hypot(end - whole.mean, spread)) for end in (whole.low, whole.high))
    return Interval(whole.mean, whole.mean - low, whole.mean + high)
