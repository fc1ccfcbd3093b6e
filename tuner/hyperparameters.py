"""How the hyperparameters of the Gaussian process are chosen: their prior, the evidence, its maximum, and samples.

theta  (d + 2,) logarithms of: inverse squared length scales w, scale, noise

The prior is a density over theta, up to a constant:
    sum of -(0.1 / w + 0.1 w)          length scales of about 1, never 0 and never infinite
    log scale - scale                  Gamma(2, 1)
    0.1 log noise - 30 noise           Gamma(1.1, 30): little noise unless the trials say so
Source: the prior of Optuna's GPSampler, the best of those compared on mixed spaces; evidence and gradient:
Rasmussen & Williams 2006, eq. 5.8-5.9; slice sampling: Neal 2003, "Slice Sampling", figures 3 and 5.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy

from ranktune.solvers.arrays import Floats, Ints
from ranktune.tuner.gaussian_process import cholesky, standardised
from ranktune.tuner.kernels import matern52, matern52_with_slope, squared_distances

LOW_WEIGHT, HIGH_WEIGHT = np.log(1e-4), np.log(1e4)
LOW_SCALE, HIGH_SCALE = np.log(1e-3), np.log(1e3)
LOW_NOISE, HIGH_NOISE = np.log(1e-6), np.log(10.0)
MAX_FITTED = 300
"""Trials that the hyperparameters are fitted to: the evidence of so many is sharp, and the cost grows with n^3."""
STEPS = 4
"""Widths that a slice's interval may have in the end."""
COORDINATES = 12
"""Coordinates of theta that one sweep of the slice sampler moves."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """The log posterior density of theta given the trials; E, y and v as in gaussian_process."""

    E: Floats
    y: Floats
    v: Floats
    owner: Ints

    @property
    def size(self) -> int:
        """The length of theta."""
        return (int(self.owner.max()) + 1 if len(self.owner) else 0) + 2

    def bounds(self) -> Floats:
        """Return the box that theta stays in, (d + 2, 2)."""
        weights = [(LOW_WEIGHT, HIGH_WEIGHT)] * (self.size - 2)
        return np.array([*weights, (LOW_SCALE, HIGH_SCALE), (LOW_NOISE, HIGH_NOISE)])

    def value(self, theta: Floats) -> float:
        """Return the log density at theta. Cost n^3 / 3 + n^2 D."""
        scaled = self.E * np.exp(0.5 * theta[self.owner])
        K = np.exp(theta[-2]) * matern52(squared_distances(scaled, scaled))
        L = self._factor(K, theta)
        half, _ = scipy.linalg.lapack.dtrtrs(L, self.y, lower=1)
        return float(-0.5 * half @ half - np.log(L.diagonal()).sum()) + _log_prior(theta)

    def value_and_gradient(self, theta: Floats) -> tuple[float, Floats]:
        """Return the log density at theta and its gradient, (d + 2,). Cost n^3 + n^2 D."""
        scaled = self.E * np.exp(0.5 * theta[self.owner])
        correlation, slope = matern52_with_slope(squared_distances(scaled, scaled))
        scale, noise = np.exp(theta[-2:])
        L = self._factor(scale * correlation, theta)
        inverse, _ = scipy.linalg.lapack.dpotri(L, lower=1)
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        a = inverse @ self.y
        value = float(-0.5 * self.y @ a - np.log(L.diagonal()).sum()) + _log_prior(theta)
        G = 0.5 * (np.outer(a, a) - inverse)  # derivative of the evidence by K, eq. 5.9
        H = G * slope * scale
        # sum_ij H_ij (e_i - e_j)^2 = 2 (sum_i e_i^2 sum_j H_ij - e' H e), column by column
        by_column = 2.0 * ((scaled * scaled).T @ H.sum(axis=1) - np.einsum("ij,ij->j", scaled, H @ scaled))
        gradient = _log_prior_gradient(theta)
        gradient[:-2] += np.bincount(self.owner, by_column, minlength=self.size - 2)
        gradient[-2] += float(np.sum(G * correlation)) * scale
        gradient[-1] += float(np.diag(G) @ self.v) * noise
        return value, gradient

    def _factor(self, K: Floats, theta: Floats) -> Floats:
        """Return the Cholesky factor of K with its diagonal set; overwrites K."""
        K.flat[:: len(K) + 1] = np.exp(theta[-2]) + np.exp(theta[-1]) * self.v  # the diagonal
        return cholesky(K)


def _log_prior(theta: Floats) -> float:
    w, scale, noise = np.exp(theta[:-2]), np.exp(theta[-2]), np.exp(theta[-1])
    return float(-0.1 * (1.0 / w + w).sum() + theta[-2] - scale + 0.1 * theta[-1] - 30.0 * noise)


def _log_prior_gradient(theta: Floats) -> Floats:
    w, scale, noise = np.exp(theta[:-2]), np.exp(theta[-2]), np.exp(theta[-1])
    return np.concatenate([0.1 * (1.0 / w - w), [1.0 - scale, 0.1 - 30.0 * noise]])


def most_probable(evidence: Evidence) -> Floats:
    """Return the theta of the highest density that two ascents find: one from little noise, one from much."""
    bounds = evidence.bounds()
    best, highest = np.zeros(evidence.size), -np.inf
    for scale, noise in ((1.0, 1e-3), (0.5, 0.1)):
        start = np.zeros(evidence.size)
        start[-2:] = np.log([scale, noise])
        found = scipy.optimize.minimize(
            _negative, start, args=(evidence,), jac=True, method="L-BFGS-B", bounds=bounds,
            options={"maxiter": 60, "ftol": 1e-6, "gtol": 1e-3},
        )  # fmt: skip
        if -found.fun > highest:
            best, highest = np.clip(found.x, bounds[:, 0], bounds[:, 1]), -found.fun
    return best


def _negative(theta: Floats, evidence: Evidence) -> tuple[float, Floats]:
    value, gradient = evidence.value_and_gradient(theta)
    return -value, -gradient


def fit(E: Floats, gains: Floats, v: Floats, owner: Ints) -> Floats:
    """Return the most probable theta for the trials, in the order in which they were made; gains as observed.

    Up to MAX_FITTED trials all are used. Beyond, the best half and an even choice of the rest stand for them, and the
    fit is renewed each time their number has grown by 5 %: so its result depends on the trials alone, and a
    memory of recent fits saves the work without changing it.
    """
    n = len(gains)
    if n > MAX_FITTED:
        steps = int(np.floor(np.log(n / MAX_FITTED) / np.log(1.05)))
        n = max(MAX_FITTED, min(n, int(np.ceil(MAX_FITTED * 1.05**steps))))
    kept = _representatives(gains[:n])
    arrays = (E[:n][kept], gains[:n][kept], v[:n][kept], owner)
    return np.array(_remembered(*(array.tobytes() for array in arrays), E.shape[1]))


def _representatives(gains: Floats) -> Ints:
    """Return the indices of at most MAX_FITTED trials: the best ones, and an even choice of the others."""
    if len(gains) <= MAX_FITTED:
        return np.arange(len(gains))
    order = np.argsort(-gains, kind="stable")
    half = MAX_FITTED // 2
    spread = np.linspace(half, len(gains) - 1, MAX_FITTED - half).astype(np.int64)
    return np.sort(np.concatenate([order[:half], order[spread]]))


@lru_cache(maxsize=8)
def _remembered(E: bytes, gains: bytes, v: bytes, owner: bytes, n_columns: int) -> tuple[float, ...]:
    """Return most_probable of arrays given as bytes, so that they can be looked up."""
    y = standardised(np.frombuffer(gains))
    rows = np.frombuffer(E).reshape(len(y), n_columns)
    evidence = Evidence(rows, y, np.frombuffer(v), np.frombuffer(owner, dtype=np.int64))
    return tuple(most_probable(evidence).tolist())


def samples(evidence: Evidence, theta: Floats, generator: np.random.Generator) -> Iterator[Floats]:
    """Yield an endless chain of thetas distributed as their density, from theta on: one sweep of slices each."""
    theta = theta.copy()
    level = evidence.value(theta)
    bounds = evidence.bounds()
    while True:
        order = generator.permutation(evidence.size)[:COORDINATES]
        noise_and_scale = np.arange(evidence.size - 2, evidence.size)  # these two move in every sweep
        for k in np.union1d(order, noise_and_scale):
            level = _slice(evidence, theta, int(k), level, bounds[k], generator)
        yield theta.copy()


def _slice(
    evidence: Evidence, theta: Floats, k: int, level: float, bounds: Floats, generator: np.random.Generator
) -> float:
    """Move coordinate k of theta in place to a point of its slice and return the log density there."""
    height = level - generator.exponential()
    old, width = theta[k], 2.0
    low = old - width * generator.random()
    high = low + width
    to_the_left = int(generator.integers(STEPS))  # the limit is shared at random, or the chain would not be reversible
    low = _stepped_out(evidence, theta, k, (low, -width, bounds[0]), height, to_the_left)
    high = _stepped_out(evidence, theta, k, (high, width, bounds[1]), height, STEPS - 1 - to_the_left)
    while True:
        theta[k] = generator.uniform(low, high)
        level = evidence.value(theta)
        if level >= height or high - low < 1e-9:
            return level
        if theta[k] < old:
            low = theta[k]
        else:
            high = theta[k]


def _stepped_out(
    evidence: Evidence, theta: Floats, k: int, way: tuple[float, float, float], height: float, limit: int
) -> float:
    """Return the end of the slice's interval after at most limit steps out, until the density there is below height.

    way is where the end is, the step, and the bound beyond which the density is zero.
    """
    end, step, bound = way
    old = theta[k]
    for _ in range(limit):
        theta[k] = end
        if (end - bound) * step >= 0 or evidence.value(theta) < height:
            break
        end += step
    theta[k] = old
    return min(end, bound) if step > 0 else max(end, bound)
