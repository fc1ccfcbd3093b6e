"""The hyperparameters of the Gaussian process: prior, marginal likelihood, MAP estimate and slice samples.

theta  (d + 2,) logarithms of: inverse squared lengthscales w, scale (signal variance), noise variance

The prior is a density over theta, up to a constant:
    sum of -(0.1 / w + 0.1 w)          lengthscales of about 1, never 0 and never infinite
    log scale - scale                  Gamma(2, 1)
    0.1 log noise - 30 noise           Gamma(1.1, 30): little noise unless the data contradict
Source: the prior of Optuna's GPSampler, the best of those compared on mixed spaces; marginal likelihood and gradient:
Rasmussen & Williams 2006, eq. 5.8-5.9; slice sampling: Neal 2003, "Slice Sampling", figure 5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.tuner.gp.posterior import (
    cholesky,
    matern52,
    matern52_with_slope,
    squared_distances,
    standard_deviation,
    standardise,
)

LOW_WEIGHT, HIGH_WEIGHT = np.log(1e-4), np.log(1e4)
LOW_SCALE, HIGH_SCALE = np.log(1e-3), np.log(1e3)
LOW_NOISE, HIGH_NOISE = np.log(1e-6), np.log(10.0)
NOISE_PRIOR_RATE = 30.0
"""Rate of the Gamma prior on noise: its mean is about a thirtieth of the variance of the gains."""
NOISE_FACTOR = 2.0
"""Factor by which a known noise variance may still be larger or smaller."""
MAX_FITTED_TRIALS = 300
"""Trials that the hyperparameters are fitted to: the likelihood of that many is sharp, and the cost is cubic."""
REFIT_EACH_TRIAL_UP_TO, REFIT_GROWTH, LATE_REFIT_GROWTH = 12, 1.1, 1.05
"""Up to 12 trials every one refits; beyond, growth by 10 %, and beyond MAX_FITTED_TRIALS by 5 %."""
TWO_STARTS_UP_TO = 60
"""Trials up to which the fit uses two starts."""
SLICE_WIDTH = 4.0
"""Initial interval of the slice sampler, in logarithms: a little wider than a typical slice."""
COORDINATES_PER_SWEEP = 8
"""Coordinates of theta that one sweep of the slice sampler moves."""


@dataclass(frozen=True, eq=False)
class HyperparameterDensity:
    """The log posterior density of theta given the trials; E, y, v and e as in ranktune.tuner.gp.posterior.

    level: the noise variance, where it is known up to a factor of NOISE_FACTOR; else 0, and it is estimated.
    """

    E: Floats
    y: Floats
    v: Floats
    axis_of_column: Ints
    level: float = 0.0
    e: Floats | float = 0.0

    @property
    def size(self) -> int:
        """The length of theta."""
        return (int(self.axis_of_column.max()) + 1 if len(self.axis_of_column) else 0) + 2

    def bounds(self) -> Floats:
        """Return the box that theta stays in, (d + 2, 2)."""
        weights = [(LOW_WEIGHT, HIGH_WEIGHT)] * (self.size - 2)
        noise = (LOW_NOISE, HIGH_NOISE)
        if self.level > 0.0:
            around = np.log(self.level) + np.log(NOISE_FACTOR) * np.array([-1.0, 1.0])
            noise = tuple(np.clip(around, LOW_NOISE, HIGH_NOISE).tolist())
        return np.array([*weights, (LOW_SCALE, HIGH_SCALE), noise])

    @property
    def rate(self) -> float:
        """Rate of the prior on noise: 0 where the noise is known."""
        return 0.0 if self.level > 0.0 else NOISE_PRIOR_RATE

    def value(self, theta: Floats) -> float:
        """Return the log density at theta. Cost n^3 / 3 + n^2 D."""
        scaled = self.E * np.exp(0.5 * theta[self.axis_of_column])
        K = np.exp(theta[-2]) * matern52(squared_distances(scaled, scaled))
        L = self._factor(K, theta)
        half, _ = scipy.linalg.lapack.dtrtrs(L, self.y, lower=1)
        return float(-0.5 * half @ half - np.log(L.diagonal()).sum()) + _log_prior(theta, self.rate)

    def value_and_gradient(self, theta: Floats) -> tuple[float, Floats]:
        """Return the log density at theta and its gradient, (d + 2,). Cost n^3 + n^2 D."""
        scaled = self.E * np.exp(0.5 * theta[self.axis_of_column])
        correlation, slope = matern52_with_slope(squared_distances(scaled, scaled))
        scale, noise = np.exp(theta[-2:])
        L = self._factor(scale * correlation, theta)
        inverse, _ = scipy.linalg.lapack.dpotri(L, lower=1)
        inverse = inverse + inverse.T  # the upper triangle of what lapack leaves is zero
        inverse.flat[:: len(inverse) + 1] *= 0.5
        a = inverse @ self.y
        value = float(-0.5 * self.y @ a - np.log(L.diagonal()).sum()) + _log_prior(theta, self.rate)
        G = 0.5 * (np.outer(a, a) - inverse)  # derivative of the evidence by K, eq. 5.9
        H = G * slope * scale
        # sum_ij H_ij (e_i - e_j)^2 = 2 (sum_i e_i^2 sum_j H_ij - e' H e), column by column
        by_column = 2.0 * ((scaled * scaled).T @ H.sum(axis=1) - np.einsum("ij,ij->j", scaled, H @ scaled))
        gradient = _log_prior_gradient(theta, self.rate)
        gradient[:-2] += np.bincount(self.axis_of_column, by_column, minlength=self.size - 2)
        gradient[-2] += float(np.sum(G * correlation)) * scale
        gradient[-1] += float(np.diag(G) @ self.v) * noise
        return value, gradient

    def _factor(self, K: Floats, theta: Floats) -> Floats:
        """Return the Cholesky factor of K with its diagonal set; overwrites K."""
        K.flat[:: len(K) + 1] = np.exp(theta[-2]) + np.exp(theta[-1]) * self.v + self.e  # the diagonal
        return cholesky(K)


def _log_prior(theta: Floats, rate: float) -> float:
    w, scale, noise = np.exp(theta[:-2]), np.exp(theta[-2]), np.exp(theta[-1])
    return float(-0.1 * (1.0 / w + w).sum() + theta[-2] - scale + 0.1 * theta[-1] - rate * noise)


def _log_prior_gradient(theta: Floats, rate: float) -> Floats:
    w, scale, noise = np.exp(theta[:-2]), np.exp(theta[-2]), np.exp(theta[-1])
    return np.concatenate([0.1 * (1.0 / w - w), [1.0 - scale, 0.1 - rate * noise]])


def maximum_a_posteriori(evidence: HyperparameterDensity) -> Floats:
    """Return the maximum a posteriori theta of two L-BFGS-B runs, from little and from much noise.

    With many trials the density has one relevant mode, and the start of higher density finds it.
    """
    bounds = evidence.bounds()
    starts = []
    for scale, noise in ((1.0, 1e-3), (0.5, 0.1)):
        starts.append(np.zeros(evidence.size))
        starts[-1][-2:] = np.log([scale, noise])
    if len(evidence.y) > TWO_STARTS_UP_TO:
        starts = [max(starts, key=evidence.value)]

    def negative(theta: Floats) -> tuple[float, Floats]:
        value, gradient = evidence.value_and_gradient(theta)
        return -value, -gradient

    best, highest = starts[0], -np.inf
    for start in starts:
        optimum = scipy.optimize.minimize(
            negative, start, jac=True, method="L-BFGS-B", bounds=bounds,
            options={"maxiter": 40, "ftol": 1e-5, "gtol": 1e-3},
        )  # fmt: skip
        if -optimum.fun > highest:
            best, highest = np.clip(optimum.x, bounds[:, 0], bounds[:, 1]), -optimum.fun
    return best


def fit(
    E: Floats,
    gains: Floats,
    v: Floats,
    axis_of_column: Ints,
    scaled: Callable[[Floats], Floats] = standardise,
    level: float = 0.0,
    extra: Floats | float = 0.0,
) -> Floats:
    """Return the MAP theta for the trials, in the order in which they were made; scaled maps gains to y.

    level: the known noise variance of gains, or 0; extra, (n,): additional noise variances of single trials.

    The fit is renewed each time the number of trials has grown by a fixed share, so its result depends on the trials
    alone, and a cache of recent fits does not change it. More than MAX_FITTED_TRIALS trials are thinned.
    """
    n = _fit_size(len(gains))
    kept = representatives(gains[:n], MAX_FITTED_TRIALS)
    extra = np.broadcast_to(extra, gains.shape)
    arrays = (E[:n][kept], gains[:n][kept], v[:n][kept], extra[:n][kept], axis_of_column)
    return np.array(_cached_fit(*(array.tobytes() for array in arrays), E.shape[1], scaled, level))


def relative_variances(gains: Floats, extra: Floats | float) -> Floats:
    """Return variances of gains in the units of standardised gains; 0 where gains are all equal."""
    spread = standard_deviation(gains) if np.any(extra) else 0.0
    return np.asarray(extra) / spread / spread if spread > 0.0 else np.zeros(np.shape(extra))


def _fit_size(n: int) -> int:
    """Return how many of the first of n trials the fit uses."""
    if n <= REFIT_EACH_TRIAL_UP_TO:
        return n
    first, growth = (
        (REFIT_EACH_TRIAL_UP_TO, REFIT_GROWTH) if n <= MAX_FITTED_TRIALS else (MAX_FITTED_TRIALS, LATE_REFIT_GROWTH)
    )
    steps = int(np.floor(np.log(n / first) / np.log(growth) + 1e-9))
    return max(first, min(n, int(np.ceil(first * growth**steps))))


def representatives(gains: Floats, most: int) -> Ints:
    """Return rising indices of at most that many trials: the best half of them, and an even choice of the others."""
    if len(gains) <= most:
        return np.arange(len(gains))
    order = np.argsort(-gains, kind="stable")
    half = most // 2
    evenly = np.linspace(half, len(gains) - 1, most - half).astype(np.int64)
    return np.sort(np.concatenate([order[:half], order[evenly]]))


@lru_cache(maxsize=16)
def _cached_fit(
    E: bytes,
    gains: bytes,
    v: bytes,
    extra: bytes,
    axis_of_column: bytes,
    n_columns: int,
    scaled: Callable[[Floats], Floats],
    level: float,
) -> tuple[float, ...]:
    """Return maximum_a_posteriori of arrays given as bytes, which are hashable."""
    observed = np.frombuffer(gains)
    y = scaled(observed)
    rows = np.frombuffer(E).reshape(len(y), n_columns)
    relative = float(relative_variances(observed, level)), relative_variances(observed, np.frombuffer(extra))
    axes = np.frombuffer(axis_of_column, dtype=np.int64)
    evidence = HyperparameterDensity(rows, y, np.frombuffer(v), axes, *relative)
    return tuple(maximum_a_posteriori(evidence).tolist())


def slice_samples(evidence: HyperparameterDensity, theta: Floats, generator: np.random.Generator) -> Iterator[Floats]:
    """Yield an endless slice-sampling chain from theta: one sweep each."""
    bounds = evidence.bounds()
    theta = np.clip(theta, bounds[:, 0], bounds[:, 1])  # the fit may have used other bounds
    level = evidence.value(theta)
    while True:
        order = generator.permutation(evidence.size)[:COORDINATES_PER_SWEEP]
        noise_and_scale = np.arange(evidence.size - 2, evidence.size)  # these two move in every sweep
        for k in np.union1d(order, noise_and_scale):
            level = _slice(evidence, theta, int(k), level, bounds[k], generator)
        yield theta.copy()


def _slice(
    evidence: HyperparameterDensity, theta: Floats, k: int, level: float, bounds: Floats, generator: np.random.Generator
) -> float:
    """Move coordinate k of theta in place to a point of its slice and return the log density there.

    The interval lies at random around the old point and only shrinks: there is no stepping out.
    """
    height = level - generator.exponential()
    old = theta[k]
    low = old - SLICE_WIDTH * generator.random()
    low, high = max(low, bounds[0]), min(low + SLICE_WIDTH, bounds[1])
    while True:
        theta[k] = generator.uniform(low, high)
        level = evidence.value(theta)
        if level >= height or high - low < 1e-9:
            return level
        if theta[k] < old:
            low = theta[k]
        else:
            high = theta[k]
