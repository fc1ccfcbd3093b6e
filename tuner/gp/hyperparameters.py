"""The hyperparameters of the Gaussian process: prior, marginal likelihood and MAP estimate.

theta  (d + 2,) logarithms of: inverse squared lengthscales w, scale (signal variance), noise variance

The prior is a density over theta, up to a constant:
    sum of -(0.1 / w + 0.1 w)          lengthscales of about 1, never 0 and never infinite
    log scale - scale                  Gamma(2, 1)
    0.1 log noise - 30 noise           Gamma(1.1, 30): little noise unless the data contradict
Source: the prior of Optuna's GPSampler, the best of those compared on mixed spaces; marginal likelihood and gradient:
Rasmussen & Williams 2006, eq. 5.8-5.9.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.tuner.gp.posterior import (
    cholesky,
    matern52,
    matern52_with_slope,
    squared_distances,
)

LOW_WEIGHT, HIGH_WEIGHT = np.log(1e-4), np.log(1e4)
LOW_SCALE, HIGH_SCALE = np.log(1e-3), np.log(1e3)
LOW_NOISE, HIGH_NOISE = np.log(1e-6), np.log(10.0)
NOISE_PRIOR_RATE = 30.0
"""Rate of the Gamma prior on noise: its mean is about a thirtieth of the variance of the gains."""
NOISE_FACTOR = 2.0
"""Factor by which a known noise variance may still be larger or smaller."""
TWO_STARTS_UP_TO = 60
"""Trials up to which the fit uses two starts."""


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
