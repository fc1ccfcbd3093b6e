"""Acquisition functions of embedded configurations E, (m, D), and the trust region in which they may be maximised.

The noisy expected improvement is in closed form; ranktune.tuner.gp.paths has its Monte Carlo version. Costs: the
logarithm of the seconds of a trial is a ridge regression on the embedded row: one intercept a solver and a slope for
each parameter, whose axes are already logarithmic where that fits. It needs few trials and extrapolates safely. The
seconds of a trial that was stopped early are those it used, so a region where trials are stopped early counts as cheap.

The trust region is around the incumbent. Its side and its share of decisions are recomputed from all trials each time,
so there is no state. The side doubles after an improvement, halves after several trials without one, and restarts at
the initial side when it gets too small. The share is that of the rate of improvements by trials near the incumbent of
their time, beside the rate of those far from it: in a long valley nearly all improvements are near, among many local
optima hardly any.
Source: Eriksson et al. 2019, "Scalable Global Optimization via Local Bayesian Optimization" (TuRBO); Wan et al. 2021,
"Think Global and Act Local" (Casmopolitan), for categories: a bounded number of them may differ from the centre.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, Self

import numpy as np
import scipy
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.gp.encoding import SpaceEncoding
from ranktune.tuner.gp.posterior import Posterior, by_blocks

MIN_VARIANCE = 1e-12
"""Lower bound of a variance, in units of the prior variance: rounding errors are of this size."""
HALF_LOG_TAU = 0.5 * np.log(2.0 * np.pi)
TIE_MARGIN, MAX_TIES = 0.02, 5
"""How much better than the best an improvement must be for each further trial as good as that, in standard deviations.

On a plateau the neighbours of the best trials are as good, and a little uncertain: without a margin they would be tried
until none is left.
"""
MIN_TRIALS = 5
"""Trials with a known cost that the model needs."""
RIDGE = 0.3
"""Penalty of the ridge regression."""
MIN_SECONDS = 1e-3
"""Seconds below which trials count as equally cheap: a suggestion takes longer."""
INITIAL_SIDE, MIN_SIDE = 0.8, 0.05
"""Initial side, as a share of a number's range, and the side below which the region restarts."""
MIN_IMPROVEMENT = 1e-3
"""Smallest improvement that counts as a success, in standard deviations of the gains before."""
FIRST_COUNTED = 10
"""Trials before those that count for the share: of the first, many improve by chance."""
NEAR = 0.25
"""Squared distance from the incumbent up to which a trial is near it, as a share of that of two random ones."""
FORGETTING = 0.95
"""Weight of a trial, relative to that of the next one."""
PRIOR_IMPROVEMENTS, PRIOR_TRIALS = 0.5, 4.0
"""Improvements and trials, near and far each, that are assumed before any are counted."""
MIN_SHARE, MAX_SHARE = 0.1, 0.9
"""Smallest and largest share of decisions restricted to the trust region."""


def tie_margin(gains: Floats) -> float:
    """Return how much better than the best an improvement must be, in standard deviations of gains, (n,)."""
    ties = int(np.count_nonzero(gains.max() - gains <= 1e-9 * np.ptp(gains))) - 1
    return TIE_MARGIN * min(ties, MAX_TIES) if np.ptp(gains) > 0.0 else 0.0


class Acquisition(Protocol):
    """A differentiable function of configurations."""

    def values(self, E: Floats) -> Floats:
        """Return the function at rows E, (m,)."""
        ...

    def values_and_gradients(self, E: Floats) -> tuple[Floats, Floats]:
        """Return the function at rows E, (m,), and its gradients, (m, D)."""
        ...


def log_improvement(z: Floats) -> Floats:
    """Return log E[max(0, z + N(0, 1))], exact far into the tail where the expectation underflows.

    Source: Ament et al. 2023, "Unexpected Improvements to Expected Improvement", eq. 9.
    """
    result = np.empty_like(z)
    near = z > -1.0
    a = z[near]
    result[near] = np.log(np.exp(-0.5 * a * a - HALF_LOG_TAU) + a * np.exp(scipy.special.log_ndtr(a)))
    far = np.maximum(z[~near], -1e6)  # the series below is used there
    tail = scipy.special.erfcx(-far / np.sqrt(2.0)) * np.abs(far) * np.sqrt(np.pi / 2.0)
    series = far < -1e3
    rest = np.where(series, 1.0 / (far * far), 1.0 - np.where(series, 0.0, tail))
    result[~near] = -0.5 * far * far - HALF_LOG_TAU + np.log(rest)
    return result


@dataclass(frozen=True, eq=False)
class _Incumbent:
    """The trial with the highest posterior mean, which a configuration is to improve on.

    Its noise-free gain is uncertain and correlated with that of its neighbours. The variance of the difference is
    k(x, x) - k(x, X) K^-1 k(X, x) + variance - 2 k(x, X) shared.
    """

    posterior: Posterior
    mean: float
    variance: float
    shared: Floats  # (n,)

    @classmethod
    def of(cls, posterior: Posterior, E: Floats) -> Self:
        best = int(np.argmax(posterior.means[: len(E)]))
        cross = posterior.cross(E[best : best + 1])[0]
        solved, _ = scipy.linalg.lapack.dpotrs(posterior.L, cross, lower=1)
        shared = -np.asarray(solved)
        variance = posterior.hyperparameters.scale + float(cross @ shared)
        shared[best] += 1.0
        return cls(posterior, float(posterior.means[best]), max(variance, 0.0), shared)

    def difference(self, cross: Floats, margin: float) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
        """Return z and standard deviation of the difference from the incumbent, (m,) each, given k(E, X), (m, n).

        It is reduced by margin. Also L^-1 k(X, E), (n, m), and where the variance is at its lower bound, (m,). The
        memory of k(E, X) is used.
        """
        scale = self.posterior.hyperparameters.scale
        rise, common = cross @ self.posterior.a - self.mean - margin, self.variance - 2.0 * (cross @ self.shared)
        half, _ = scipy.linalg.lapack.dtrtrs(self.posterior.L, cross.T, lower=1, overwrite_b=1)
        smallest = MIN_VARIANCE * scale
        variance = scale - np.einsum("ij,ij->j", half, half) + common
        sd = np.sqrt(np.maximum(variance, smallest))
        return rise / sd, sd, np.asarray(half), variance <= smallest

    def logs(self, E: Floats, margin: float) -> Floats:
        """Return the log of the expected improvement at rows E, (m,)."""
        z, sd, _, _ = self.difference(self.posterior.cross(E), margin)
        return np.asarray(np.log(sd) + log_improvement(z))


@dataclass(frozen=True, eq=False)
class ExpectedImprovement:
    """The log of the expected improvement over each posterior's own incumbent, averaged over posteriors.

    margin: how much better than the incumbent a configuration must be, in the units of the posteriors.
    """

    incumbents: tuple[_Incumbent, ...]
    margin: float = 0.0

    @classmethod
    def over(cls, posteriors: Iterable[Posterior], E: Floats, margin: float = 0.0) -> Self:
        """Return the improvement over the best of E, (m, D), the first m of the posteriors' trials."""
        return cls(tuple(_Incumbent.of(posterior, E) for posterior in posteriors), margin)

    def mean(self, E: Floats) -> Floats:
        """Return the expected improvement at rows E, (m,), in the units of the posteriors; it has no margin."""
        return np.exp(replace(self, margin=0.0).values(E))

    def values(self, E: Floats) -> Floats:
        """Return the log of the expected improvement at rows E, (m,)."""
        each = [by_blocks(partial(one.logs, margin=self.margin), E, len(one.shared)) for one in self.incumbents]
        return _log_mean(np.array(each))

    def values_and_gradients(self, E: Floats) -> tuple[Floats, Floats]:
        """Return the log of the expected improvement at rows E, (m,), and its gradients, (m, D)."""
        logs = np.empty((len(self.incumbents), len(E)))
        slopes = np.empty((len(self.incumbents), *E.shape))
        for k, incumbent in enumerate(self.incumbents):
            posterior = incumbent.posterior
            cross, slope = posterior.cross_and_slope(E)
            z, sd, half, at_bound = incumbent.difference(cross, self.margin)
            solved, _ = scipy.linalg.lapack.dtrtrs(posterior.L, half, lower=1, trans=1)  # K^-1 k(X, E)
            log_h = log_improvement(z)  # its derivative is cdf / h
            ratio = np.exp(np.minimum(scipy.special.log_ndtr(z) - log_h, 700.0))
            # d log(sd h(z)) = d sd / sd + ratio dz, with dz = (d mean - z d sd) / sd
            by_mean = posterior.gradients(E, slope * posterior.a)
            by_variance = -2.0 * posterior.gradients(E, slope * (solved.T + incumbent.shared))
            by_variance[at_bound] = 0.0
            logs[k] = np.log(sd) + log_h
            slopes[k] = (ratio / sd)[:, None] * by_mean
            slopes[k] += (0.5 * (1.0 - ratio * z) / (sd * sd))[:, None] * by_variance
        totals = _log_mean(logs)
        return totals, np.einsum("km,kmd->md", np.exp(logs - totals), slopes) / len(self.incumbents)


def _log_mean(logs: Floats) -> Floats:
    """Return log(mean(exp(logs))) over the first axis, (m,), without overflow."""
    largest = logs.max(axis=0)
    mean: Floats = largest + np.log(np.exp(logs - largest).mean(axis=0))
    return mean


@dataclass(frozen=True, eq=False)
class LogCost:
    """The logarithm of the expected seconds: linear in E, clipped to the observed range."""

    level: float
    weights: Floats  # (D,)
    low: float
    high: float

    @classmethod
    def of(cls, E: Floats, seconds: Floats) -> Self | None:
        """Return the model of seconds, (n,), NaN where unknown, at E; None for too few trials."""
        timed = np.isfinite(seconds) & (seconds > 0.0)
        if np.count_nonzero(timed) < MIN_TRIALS:
            return None
        logs, rows = np.log(np.maximum(seconds[timed], MIN_SECONDS)), E[timed]
        Z, level = rows - rows.mean(axis=0), float(logs.mean())
        weights = np.linalg.solve(Z.T @ Z + RIDGE * np.eye(Z.shape[1]), Z.T @ (logs - level))
        return cls(level - float(rows.mean(axis=0) @ weights), weights, float(logs.min()), float(logs.max()))

    def values(self, E: Floats) -> Floats:
        """Return the logarithm of the expected seconds at rows E, (m,)."""
        return self.values_and_gradients(E)[0]

    def values_and_gradients(self, E: Floats) -> tuple[Floats, Floats]:
        """Return the same, and its gradients, (m, D)."""
        expected = self.level + E @ self.weights
        inside = (expected > self.low) & (expected < self.high)
        return np.clip(expected, self.low, self.high), np.where(inside[:, None], self.weights, 0.0)


@dataclass(frozen=True, eq=False)
class ImprovementPerCost:
    """The logarithm of an improvement divided by a power of its cost.

    Power 1 is improvement per second (Snoek et al. 2012, section 3.2), which neglects expensive good configurations;
    power 0 ignores the cost.
    """

    acquisition_function: Acquisition
    cost: LogCost
    power: float

    def values(self, E: Floats) -> Floats:
        """Return the logarithm at rows E, (m,)."""
        return self.acquisition_function.values(E) - self.power * self.cost.values(E)

    def values_and_gradients(self, E: Floats) -> tuple[Floats, Floats]:
        """Return the logarithm at rows E, (m,), and its gradients, (m, D)."""
        values, gradients = self.acquisition_function.values_and_gradients(E)
        costs, slopes = self.cost.values_and_gradients(E)
        return values - self.power * costs, gradients - self.power * slopes


def share_after(encoding: SpaceEncoding, rows: Floats, gains: Floats) -> float:
    """Return the share of decisions for the region after trials at rows, (n, d), in the order in which they were made.

    It is 0.5 until the trials give a rate.
    """
    n = len(gains)
    if n <= FIRST_COUNTED:
        return 0.5
    E = encoding.embed(rows)
    highest = np.maximum.accumulate(gains)
    is_record = np.r_[True, gains[1:] > highest[:-1]]
    incumbents = np.maximum.accumulate(np.where(is_record, np.arange(n), 0))[:-1]  # before each trial but the first
    squares = ((E[1:] - E[incumbents]) ** 2).sum(axis=1)
    axes = [encoding.axes[j] for j in encoding.varying]
    # The expected squared distance of two embedded random rows, if all parameters are active.
    expected = sum(1.0 - 1.0 / axis.choices if axis.choices else 1.0 / 6.0 for axis in axes)
    near = squares <= NEAR * expected
    improves = gains[1:] > highest[:-1] + MIN_IMPROVEMENT * _spreads_before(gains)[1:]
    weights = FORGETTING ** np.arange(n - 2, -1, -1.0)
    weights[: FIRST_COUNTED - 1] = 0.0
    rates = [
        (PRIOR_IMPROVEMENTS + weights[some & improves].sum()) / (PRIOR_TRIALS + weights[some].sum())
        for some in (near, ~near)
    ]
    return float(np.clip(rates[0] / (rates[0] + rates[1]), MIN_SHARE, MAX_SHARE))


def side_after(gains: Floats, patience: int) -> float:
    """Return the side of the region after trials with gains, (n,), finite, in the order in which they were made."""
    side, best, failures = INITIAL_SIDE, -np.inf, 0
    for gain, least in zip(gains.tolist(), (MIN_IMPROVEMENT * _spreads_before(gains)).tolist(), strict=True):
        if gain > best + least:
            side, failures = min(2.0 * side, INITIAL_SIDE), 0
        else:
            failures += 1
        best = max(best, gain)
        if failures == patience:
            side, failures = (0.5 * side if 0.5 * side >= MIN_SIDE else INITIAL_SIDE), 0
    return side


def _spreads_before(gains: Floats) -> Floats:
    """Return the standard deviation of the gains before each gain, (n,); 0 before the third."""
    unit = max(float(np.abs(gains).max(initial=0.0)), 1e-300)
    scaled = gains / unit
    centred = scaled - scaled.mean() if len(gains) else scaled
    count = np.maximum(np.arange(len(gains)), 1)
    first, second = (np.cumsum(np.r_[0.0, centred[:-1] ** power])[: len(gains)] / count for power in (1, 2))
    spreads: Floats = unit * np.sqrt(np.maximum(second - first * first, 0.0))
    return spreads


@dataclass(frozen=True, eq=False)
class TrustRegion:
    """Rows with numbers in [low, high], (d,) each, and at most some changes of categories from the centre.

    centre  (d,) full row      fixed  (d,) categories that may not change      counted  (d,) categories that may
    """

    centre: Floats
    low: Floats
    high: Floats
    fixed: NDArray[np.bool_]
    counted: NDArray[np.bool_]
    changes: int

    @classmethod
    def around(
        cls, encoding: SpaceEncoding, centre: Floats, side: float = np.inf, weights: Floats | float = 1.0
    ) -> Self:
        """Return the region around a full row, given the inverse squared lengthscales of the varying axes.

        Parameters that are inactive in the centre are free, and its branch is fixed: it is all that an infinite side
        leaves fixed.
        """
        active = encoding.activity(centre[None])[0]
        category = np.array([axis.choices > 0 for axis in encoding.axes])
        fixed = active & encoding.branching
        lengths = np.ones(len(category))
        lengths[list(encoding.varying)] = 1.0 / np.sqrt(weights)
        numbers = active & ~category
        lengths /= np.exp(np.log(lengths[numbers]).mean()) if numbers.any() else 1.0
        half = np.where(numbers, np.maximum(0.5 * side * lengths, 0.5 * MIN_SIDE), np.inf)
        counted = active & category & ~fixed
        changes = max(1, round(min(side, 1.0) * float(counted.sum())))
        low, high = np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)
        low, high = np.where(category, -np.inf, low), np.where(category, np.inf, high)
        return cls(centre, low, high, fixed, counted, changes)

    def holds(self, rows: Floats) -> NDArray[np.bool_]:
        """Return which full rows are in the region, (m,)."""
        inside = ((rows >= self.low - 1e-9) & (rows <= self.high + 1e-9)).all(axis=1)
        stays = (rows[:, self.fixed] == self.centre[self.fixed]).all(axis=1)
        differ = ((rows != self.centre) & self.counted).sum(axis=1)
        return np.asarray(inside & stays & (differ <= self.changes))

    def within(self, rows: Floats, generator: np.random.Generator) -> Floats:
        """Return full rows moved into the region."""
        rows = np.clip(rows, self.low, self.high)
        rows[:, self.fixed] = self.centre[self.fixed]
        differs = (rows != self.centre) & self.counted
        ranks = np.where(differs, generator.random(rows.shape), np.inf).argsort(axis=1).argsort(axis=1)
        return np.where(differs & (ranks >= self.changes), self.centre, rows)

    def spread(self, rows: Floats, generator: np.random.Generator) -> Floats:
        """Return full rows that fill the cube as rows that fill the region."""
        numbers = np.isfinite(self.low)
        low, high = np.where(numbers, self.low, 0.0), np.where(numbers, self.high, 1.0)
        return self.within(np.where(numbers, low + rows * (high - low), rows), generator)
