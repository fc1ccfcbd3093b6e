"""The hyperparameters of the Gaussian process: prior, marginal likelihood, MAP estimate, and samples of a chain.

theta  (d + 2,) logarithms of: inverse squared lengthscales w, scale (signal variance), noise variance

The prior is a density over theta, up to a constant:
    sum of -(0.1 / w + 0.1 w)          lengthscales of about 1, never 0 and never infinite
    log scale - scale                  Gamma(2, 1)
    0.1 log noise - 30 noise           Gamma(1.1, 30): little noise unless the data contradict
Source: the prior of Optuna's GPSampler, the best of those compared on mixed spaces; marginal likelihood and gradient:
Rasmussen & Williams 2006, eq. 5.8-5.9.

The samples are of elliptical slices, whose prior is a multivariate t distribution: its covariance is the inverse of the
curvature at the MAP estimate, and its tails are heavy, since the density of a length scale without an effect is flat.
All coordinates move in each step, which takes two to four evaluations of the density; moving one after the other takes
as many for each.
Source: Murray, Adams and MacKay 2010, "Elliptical slice sampling"; Nishihara, Murray and Adams 2014, "Parallel MCMC
with Generalized Elliptical Slice Sampling", algorithm 2, for the t distribution.

Fit and samples are renewed each time the number of trials has grown by a tenth, so that they depend on the trials
alone, and a cache of recent ones does not change them. More than MAX_FITTED_TRIALS trials are thinned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from typing import TypeAlias

import numpy as np
import scipy

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.tuner.gp.posterior import (
    factor,
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
TWO_STARTS_UP_TO = 60
"""Trials up to which the fit uses two starts."""
MAX_FITTED_TRIALS = 300
"""Trials that the hyperparameters are fitted to: the likelihood of that many is sharp, and the cost is cubic."""
REFIT_EACH_TRIAL_UP_TO, REFIT_GROWTH = 12, 1.1
"""Up to 12 trials every one refits; beyond, growth by 10 %."""
SAMPLES, BURN_IN, THINNING = 16, 12, 2
"""Samples of a fit, steps of the chain before the first, and from one to the next."""
DEGREES = 4.0
"""Degrees of freedom of the t distribution."""
LARGEST_SD = 3.0
"""Largest standard deviation of its directions, in logarithms: the density of a length scale is that wide."""
STEP = 1e-3
"""Step of the finite differences of the gradient."""

Scaled: TypeAlias = Callable[[Floats], Floats]
"""Gains, (n,), to y, (n,)."""
Fitted: TypeAlias = tuple[bytes, bytes, bytes, bytes, bytes, int, Scaled]
"""The trials of a fit, hashable: E, gains, noise, extra and columns as bytes, the number of columns, and the scale of
gains."""


@dataclass(frozen=True, eq=False)
class HyperparameterDensity:
    """The log posterior density of theta given the trials; E, y, v and e as in ranktune.tuner.gp.posterior."""

    E: Floats
    y: Floats
    v: Floats
    axis_of_column: Ints
    e: Floats | float = 0.0

    @property
    def size(self) -> int:
        """The length of theta."""
        return (int(self.axis_of_column.max()) + 1 if len(self.axis_of_column) else 0) + 2

    def bounds(self) -> Floats:
        """Return the box that theta stays in, (d + 2, 2)."""
        weights = [(LOW_WEIGHT, HIGH_WEIGHT)] * (self.size - 2)
        return np.array([*weights, (LOW_SCALE, HIGH_SCALE), (LOW_NOISE, HIGH_NOISE)])

    @cached_property
    def _pairs(self) -> tuple[Ints, Ints]:
        """The two trials of each pair, (2, p), and the place of the pair in K by columns, (p,)."""
        later, earlier = np.tril_indices(len(self.y), -1)
        return np.array([later, earlier]), earlier * len(self.y) + later

    @cached_property
    def _squares(self) -> Floats:
        """The squared distances of each pair by axis, (d, p): the kernel needs them for each theta."""
        later, earlier = self._pairs[0]
        axes = (self.E[:, self.axis_of_column == axis] for axis in range(self.size - 2))
        return np.array([squared_distances(rows, rows)[later, earlier] for rows in axes]).reshape(
            self.size - 2, len(later)
        )

    def value(self, theta: Floats) -> float:
        """Return the log density at theta. Cost n^3 / 3 + n^2 d."""
        L = self._factor(matern52(np.exp(theta[:-2]) @ self._squares), theta)
        half, _ = scipy.linalg.lapack.dtrtrs(L, self.y, lower=1)
        return float(-0.5 * half @ half - np.log(L.diagonal()).sum()) + _log_prior(theta)

    def value_and_gradient(self, theta: Floats) -> tuple[float, Floats]:
        """Return the log density at theta and its gradient, (d + 2,). Cost n^3 + n^2 d."""
        w, (scale, noise) = np.exp(theta[:-2]), np.exp(theta[-2:])
        correlation, slope = matern52_with_slope(w @ self._squares)
        L = self._factor(correlation, theta)
        log_determinant = np.log(L.diagonal()).sum()
        a, _ = scipy.linalg.lapack.dpotrs(L, self.y, lower=1)
        inverse, _ = scipy.linalg.lapack.dpotri(L, lower=1, overwrite_c=1)  # below the diagonal
        value = float(-0.5 * self.y @ a - log_determinant) + _log_prior(theta)
        # Derivative of the evidence by K, eq. 5.9: of a pair, which K has twice, and of the diagonal.
        (later, earlier), places = self._pairs
        pairs = a[later] * a[earlier] - inverse.ravel(order="F")[places]
        diagonal = 0.5 * (a * a - inverse.diagonal())
        gradient = _log_prior_gradient(theta)
        gradient[:-2] += scale * w * (self._squares @ (pairs * slope))
        gradient[-2] += scale * float(pairs @ correlation + diagonal.sum())
        gradient[-1] += noise * float(diagonal @ self.v)
        return value, gradient

    def _factor(self, correlation: Floats, theta: Floats) -> Floats:
        """Return the Cholesky factor of K, given the correlation of each pair, (p,), in place of the one before."""
        n, (scale, noise) = len(self.y), np.exp(theta[-2:])

        def filled() -> Floats:
            self._columns[self._pairs[1]] = scale * correlation
            self._columns[:: n + 1] = scale + noise * self.v + self.e  # the diagonal
            return self._columns.reshape(n, n).T

        return factor(filled)

    @cached_property
    def _columns(self) -> Floats:
        """The memory of K, by columns."""
        return np.zeros(len(self.y) ** 2)


def _log_prior(theta: Floats) -> float:
    w, scale, noise = np.exp(theta[:-2]), np.exp(theta[-2]), np.exp(theta[-1])
    return float(-0.1 * (1.0 / w + w).sum() + theta[-2] - scale + 0.1 * theta[-1] - NOISE_PRIOR_RATE * noise)


def _log_prior_gradient(theta: Floats) -> Floats:
    w, scale, noise = np.exp(theta[:-2]), np.exp(theta[-2]), np.exp(theta[-1])
    return np.concatenate([0.1 * (1.0 / w - w), [1.0 - scale, 0.1 - NOISE_PRIOR_RATE * noise]])


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


def chain(evidence: HyperparameterDensity, centre: Floats, generator: np.random.Generator) -> Iterator[Floats]:
    """Yield an endless chain from centre, (d + 2,), the maximum of the density: one step each."""
    bounds = evidence.bounds()
    root, size = _root(evidence, centre, bounds), len(centre)

    def relative(z: Floats) -> float:
        """Return the log density relative to that of the t distribution."""
        theta = centre + root @ z
        if (theta < bounds[:, 0]).any() or (theta > bounds[:, 1]).any():
            return -np.inf
        return evidence.value(theta) + 0.5 * (DEGREES + size) * float(np.log1p(z @ z / DEGREES))

    z = np.zeros(size)
    level = relative(z)
    while True:
        variance = 0.5 * (DEGREES + z @ z) / generator.gamma(0.5 * (DEGREES + size))
        other = np.sqrt(variance) * generator.standard_normal(size)
        height = level - generator.exponential()
        high = generator.uniform(0.0, 2.0 * np.pi)
        angle, low = high, high - 2.0 * np.pi
        while True:
            proposed = z * np.cos(angle) + other * np.sin(angle)
            level = relative(proposed)
            if level >= height or high - low < 1e-9:  # rounding may hide the old point, which is on the slice
                break
            low, high = (angle, high) if angle < 0.0 else (low, angle)
            angle = generator.uniform(low, high)
        z = proposed
        yield centre + root @ z


def _root(evidence: HyperparameterDensity, centre: Floats, bounds: Floats) -> Floats:
    """Return a square root of the inverse curvature at the centre, (d + 2, d + 2), of bounded deviations."""
    _, gradient = evidence.value_and_gradient(centre)
    steps = np.where(centre + STEP <= bounds[:, 1], STEP, -STEP)
    moved = centre + np.diag(steps)
    curvature = np.array([(gradient - evidence.value_and_gradient(theta)[1]) for theta in moved]) / steps[:, None]
    values, vectors = np.linalg.eigh(0.5 * (curvature + curvature.T))
    root: Floats = vectors / np.sqrt(np.maximum(values, LARGEST_SD**-2))
    return root


@dataclass(frozen=True, eq=False)
class FittedTrials:
    """The trials that hyperparameters are fitted to, in the order in which they were made; scaled maps gains to y.

    E, v, e as in ranktune.tuner.gp.posterior; gains, (n,). extra, (n,): additional noise
    variances of single trials.
    """

    E: Floats
    gains: Floats
    v: Floats
    axis_of_column: Ints
    scaled: Scaled = standardise
    extra: Floats | float = 0.0

    def fit(self) -> Floats:
        """Return the MAP theta, (d + 2,)."""
        return np.array(_maximum(self._key()))

    def samples(self) -> Floats:
        """Return thetas drawn from their density, (SAMPLES, d + 2)."""
        return np.array(_samples(self._key()))

    def _key(self) -> Fitted:
        n = _fit_size(len(self.gains))
        chosen = representatives(self.gains[:n], MAX_FITTED_TRIALS)
        extra = np.broadcast_to(self.extra, self.gains.shape)
        E, gains, v, e = (array[:n][chosen].tobytes() for array in (self.E, self.gains, self.v, extra))
        return E, gains, v, e, self.axis_of_column.tobytes(), self.E.shape[1], self.scaled


def relative_variances(gains: Floats, extra: Floats | float) -> Floats:
    """Return variances of gains in the units of standardised gains; 0 where gains are all equal."""
    spread = standard_deviation(gains) if np.any(extra) else 0.0
    return np.asarray(extra) / spread / spread if spread > 0.0 else np.zeros(np.shape(extra))


def relative_variance(variance: Floats) -> Floats:
    """Return variances relative to about their median, within [0.1, 100]; 1 where variance, (n,), is not positive.

    The unit is a power of two. The median itself moves with each trial: the variances of all trials before would
    change, and the hyperparameters, which are kept while the trials that they were fitted to are the same, would be
    fitted each time.
    """
    positive = variance[variance > 0]
    unit = float(np.exp2(np.rint(np.log2(np.median(positive))))) if len(positive) else 1.0
    return np.where(variance > 0, np.clip(variance / unit, 0.1, 100.0), 1.0)


def _fit_size(n: int) -> int:
    """Return how many of the first of n trials the fit uses."""
    if n <= REFIT_EACH_TRIAL_UP_TO:
        return n
    steps = int(np.floor(np.log(n / REFIT_EACH_TRIAL_UP_TO) / np.log(REFIT_GROWTH) + 1e-9))
    return max(REFIT_EACH_TRIAL_UP_TO, min(n, int(np.ceil(REFIT_EACH_TRIAL_UP_TO * REFIT_GROWTH**steps))))


def representatives(gains: Floats, most: int) -> Ints:
    """Return rising indices of at most that many trials: the best half of them, and an even choice of the others."""
    if len(gains) <= most:
        return np.arange(len(gains))
    order = np.argsort(-gains, kind="stable")
    half = most // 2
    evenly = np.linspace(half, len(gains) - 1, most - half).astype(np.int64)
    return np.sort(np.concatenate([order[:half], order[evenly]]))


@lru_cache(maxsize=16)
def _maximum(fitted: Fitted) -> tuple[float, ...]:
    return tuple(maximum_a_posteriori(_density(fitted)).tolist())


@lru_cache(maxsize=16)
def _samples(fitted: Fitted) -> tuple[tuple[float, ...], ...]:
    density = _density(fitted)
    steps = chain(density, np.array(_maximum(fitted)), np.random.default_rng(len(density.y)))  # always the same
    every = islice(steps, BURN_IN, BURN_IN + SAMPLES * THINNING, THINNING)
    return tuple(tuple(theta.tolist()) for theta in every)


def _density(fitted: Fitted) -> HyperparameterDensity:
    E, gains, v, extra, axes, n_columns, scaled = fitted
    observed = np.frombuffer(gains)
    rows = np.frombuffer(E).reshape(len(observed), n_columns)
    e = relative_variances(observed, np.frombuffer(extra))
    axis_of_column = np.frombuffer(axes, dtype=np.int64)
    return HyperparameterDensity(rows, scaled(observed), np.frombuffer(v), axis_of_column, e)
