"""The Gaussian-process posterior of gains over embedded configurations, and its covariance.

n    observed trials               m    query configurations
E    (n, D) embedded configurations (ranktune.tuner.gp.encoding)
y    (n,)   gains, standardised: larger is better
v    (n,)   relative noise variances, 1 by default
e    (n,)   additional known noise variances: that of trial i is noise * v[i] + e[i]; mostly 0
K    (n, n) scale * matern52 + diag(noise * v + e);   L  its lower Cholesky factor;   a = K^-1 y

The covariance is Matern 5/2 with automatic relevance determination:

owner   (D,) the axis of each embedded column; the columns of a category share one lengthscale
w       (d,) inverse squared lengthscales;  s = sum over columns of w[owner] (e - e')^2, the squared distance
k       scale * (1 + sqrt(5 s) + 5 s / 3) exp(-sqrt(5 s))

Because a category is embedded as a simplex, s counts w for every category that differs (Hamming), and the kernel on
mixed spaces is a plain Matern kernel on the embedding: positive definite, with a known spectral density.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy

from ranktune.solvers.core.arrays import Floats, Ints

BLOCK, CACHED = 16_384, 65_536
"""Numbers that the kernel, and functions of it, are computed for at a time: they stay in the cache, and new memory for
large arrays would take longer than the arithmetic."""


def by_blocks(function: Callable[[Floats], Floats], E: Floats, n: int) -> Floats:
    """Return a function of rows E, (m, D), that needs n numbers for each, computed for a part of them at a time."""
    count = -(-len(E) * n // CACHED)
    return np.concatenate([function(some) for some in np.array_split(E, count)]) if count > 1 else function(E)


def squared_distances(A: Floats, B: Floats) -> Floats:
    """Return |a - b|^2, (n, m), of scaled rows A, (n, D), and B, (m, D).

    The expanded square loses about 1e-16 |a|^2, which the kernel, smooth in the squared distance, does not magnify.
    """
    squares = A @ B.T
    squares *= -2.0
    squares += np.einsum("ij,ij->i", A, A)[:, None]
    squares += np.einsum("ij,ij->i", B, B)
    return np.maximum(squares, 0.0, out=squares)


def matern52(squares: Floats, scale: float = 1.0) -> Floats:
    """Return the covariance at squared distances, in their place; squares are contiguous.

    Source: Rasmussen & Williams 2006, eq. 4.17.
    """
    numbers = squares.reshape(-1)
    for start in range(0, len(numbers), BLOCK):
        result = numbers[start : start + BLOCK]
        root = 5.0 * result
        np.sqrt(root, out=root)
        np.multiply(root, root, out=result)
        result /= 3.0
        result += root
        result += 1.0
        np.negative(root, out=root)
        result *= np.exp(root, out=root)
        if scale != 1.0:
            result *= scale
    return squares


def matern52_with_slope(squares: Floats) -> tuple[Floats, Floats]:
    """Return the correlation and its derivative by the squared distance, which is finite at zero."""
    root = 5.0 * squares
    np.sqrt(root, out=root)
    decay = np.negative(root)
    np.exp(decay, out=decay)
    slope = root + 1.0
    root *= root
    root /= 3.0
    root += slope
    root *= decay
    slope *= decay
    slope *= -5.0 / 6.0
    return root, slope


def frequencies(count: int, n_columns: int, generator: np.random.Generator) -> Floats:
    """Return draws from the spectral density of matern52, (count, n_columns): Student's t with 5 degrees of freedom.

    Source: Rasmussen & Williams 2006, eq. 4.15 (nu = 5/2); Rahimi & Recht 2007 for their use as features.
    """
    normal = generator.standard_normal((count, n_columns))
    return normal / np.sqrt(generator.chisquare(5.0, size=(count, 1)) / 5.0)


MAX_COMPRESSED_LOSS = 3.0
"""Largest distance of a compressed gain below the median, in units of the distance from median to best."""


@dataclass(frozen=True, eq=False)
class Hyperparameters:
    """weights (d,): inverse squared lengthscales; scale: signal variance; noise: noise variance of a trial."""

    weights: Floats
    scale: float
    noise: float

    @classmethod
    def from_log(cls, theta: Floats) -> Self:
        """Return the hyperparameters whose logarithms are theta, (d + 2,): weights, scale, noise."""
        values = np.exp(theta)
        return cls(values[:-2], float(values[-2]), float(values[-1]))


def compress_losers(gains: Floats) -> Floats:
    """Return gains with those below the median compressed; their order stays.

    Extreme losses would dominate the variance. Below the median a distance u, in units of that from median to best,
    becomes log(1 + u), at most MAX_COMPRESSED_LOSS. Equal gains count once in the median: on a plateau most are.
    """
    median, best = float(np.median(np.unique(gains))), float(gains.max())
    unit = best - median
    if not unit > 0.0:
        return gains
    below = np.clip(median - gains, 0.0, unit * np.expm1(MAX_COMPRESSED_LOSS))
    return np.where(gains < median, median - unit * np.log1p(below / unit), gains)


def standardise(gains: Floats) -> Floats:
    """Return compressed gains with mean 0 and variance 1; zeros where all are equal. Gains must be finite."""
    centred, spread, _ = _centred(gains)
    return centred / spread if spread > 0.0 else centred


def standard_deviation(gains: Floats) -> float:
    """Return the divisor of standardise, 0 where all gains are equal up to rounding."""
    _, spread, unit = _centred(gains)
    return unit * spread


def _centred(gains: Floats) -> tuple[Floats, float, float]:
    """Return compressed gains with mean 0 in some unit, zeros where all are equal; their deviation; and that unit."""
    largest = float(np.abs(gains).max())
    unit = 1.0 if 1e-100 < largest < 1e100 or largest == 0.0 else largest  # squares of others would leave the range
    gains = compress_losers(gains / unit)
    centred = gains - gains.mean()
    spread = float(np.sqrt(np.mean(centred * centred)))
    if spread <= 1e-12 * float(np.abs(gains).max()):
        return np.zeros_like(gains), 0.0, unit
    return centred, spread, unit


LARGEST = 10.0
"""Medians beyond which a value of a constraint is as good as any larger one: a single one would hide all others."""


def scale_signed(gains: Floats) -> Floats:
    """Return arcsinh(gains / median magnitude): keeps the sign, compresses large values, and bounds them."""
    sizes = np.abs(gains[np.isfinite(gains)])
    unit = float(np.median(sizes)) if len(sizes) else 1.0
    unit = unit if unit > 0.0 else float(sizes.max())
    unit = unit if unit > 0.0 else 1.0
    return np.asarray(np.arcsinh(np.clip(gains / unit, -LARGEST, LARGEST)))


def cholesky(K: Floats) -> Floats:
    """Return the lower factor of K, (n, n), with as little jitter on the diagonal as makes it succeed."""
    L, info = scipy.linalg.lapack.dpotrf(K, lower=1)
    jitter = 0.0
    while info != 0:
        jitter = jitter or 1e-12 * float(np.trace(K)) / len(K)
        jitter *= 10.0
        L, info = scipy.linalg.lapack.dpotrf(K + jitter * np.eye(len(K)), lower=1)
    return np.asarray(L)


def factor(filled: Callable[[], Floats]) -> Floats:
    """Return the factor, as `cholesky`, of the matrix that filled returns, in its memory if that is by columns.

    What is above the diagonal is not read. New memory would cost as much as the arithmetic.
    """
    L, info = scipy.linalg.lapack.dpotrf(filled(), lower=1, overwrite_a=1)
    return np.asarray(L) if info == 0 else cholesky(filled())


@dataclass(frozen=True, eq=False)
class Posterior:
    """The posterior of the noise-free gain given n trials; made by Posterior.of."""

    hyperparameters: Hyperparameters
    root: Floats  # (D,) sqrt(w[owner]): multiplies the columns of E
    points: Floats  # (n, D) scaled rows
    noise: Floats  # (n,) noise variances
    L: Floats  # (n, n)
    y: Floats  # (n,)
    a: Floats  # (n,)
    means: Floats  # (n,) the expected gains at the trials

    @classmethod
    def of(
        cls,
        E: Floats,
        y: Floats,
        v: Floats,
        hyperparameters: Hyperparameters,
        axis_of_column: Ints,
        e: Floats | float = 0.0,
    ) -> Self:
        """Return the posterior given gains y at E.

        Source: Rasmussen & Williams 2006, Algorithm 2.1. Cost n^3 / 3 time, n^2 memory.
        """
        root = np.sqrt(hyperparameters.weights[axis_of_column])
        return cls._after(E * root, y, hyperparameters.noise * v + e, hyperparameters, root)

    @classmethod
    def _after(cls, points: Floats, y: Floats, noise: Floats, hyperparameters: Hyperparameters, root: Floats) -> Self:
        def covariance() -> Floats:
            K = matern52(squared_distances(points, points), hyperparameters.scale)
            K.flat[:: len(K) + 1] = hyperparameters.scale + noise  # the diagonal
            return K.T

        L = factor(covariance)
        a, _ = scipy.linalg.lapack.dpotrs(L, y, lower=1)
        return cls(hyperparameters, root, points, noise, L, y, np.asarray(a), y - noise * a)

    def with_fantasies(self, pending: Floats) -> Self:
        """Return the posterior given y and, for each pending configuration, (q, D), its posterior mean as a fantasy.

        The mean stays; the variance around running trials falls.
        """
        if not len(pending):
            return self
        points = np.vstack([self.points, pending * self.root])
        noise = np.concatenate([self.noise, np.full(len(pending), self.hyperparameters.noise)])
        with_means = np.concatenate([self.y, self.mean(pending)])
        return self._after(points, with_means, noise, self.hyperparameters, self.root)

    def cross(self, E: Floats) -> Floats:
        """Return the prior covariance of the gains at E, (m, D), with those at the trials, (m, n)."""
        return matern52(squared_distances(E * self.root, self.points), self.hyperparameters.scale)

    def mean(self, E: Floats) -> Floats:
        """Return the expected gain at E, (m,)."""
        expected: Floats = self.cross(E) @ self.a
        return expected

    def mean_and_variance(self, E: Floats) -> tuple[Floats, Floats]:
        """Return the expected gain at E and its variance, each (m,). Cost n^2 m."""
        cross = self.cross(E)
        half = scipy.linalg.solve_triangular(self.L, cross.T, lower=True, check_finite=False)  # L^-1 k(X, x)
        variance = self.hyperparameters.scale - np.einsum("ij,ij->j", half, half)
        expected: Floats = cross @ self.a
        return expected, np.maximum(variance, 1e-12 * self.hyperparameters.scale)

    def cross_and_slope(self, E: Floats) -> tuple[Floats, Floats]:
        """Return k(E, X) and its derivative by the squared scaled distance, each (m, n)."""
        value, slope = matern52_with_slope(squared_distances(E * self.root, self.points))
        value *= self.hyperparameters.scale
        slope *= self.hyperparameters.scale
        return value, slope

    def gradients(self, E: Floats, weighted: Floats) -> Floats:
        """Return the gradients at rows E, (m, D), of sum_j u_ij k(e_i, x_j), given u times the slopes, (m, n)."""
        total = weighted.sum(axis=1, keepdims=True) * (E * self.root)
        result: Floats = (2.0 * self.root) * (total - weighted @ self.points)
        return result
