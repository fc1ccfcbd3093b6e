"""What is maximised to choose the next trial: a function drawn from the posterior, or the expected improvement.

Both are Surfaces over embedded configurations: E, (m, D), as in gaussian_process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import scipy

from ranktune.solvers.arrays import Floats
from ranktune.tuner.gaussian_process import Posterior
from ranktune.tuner.kernels import frequencies

FREQUENCIES = 256
"""Random frequencies of a prior path, a cosine and a sine each; more change a path by less than 0.1 deviations."""
SMALLEST = 1e-12
"""The smallest variance, in units of the prior's: rounding leaves no less."""
HALF_LOG_TAU = 0.5 * np.log(2.0 * np.pi)


class Surface(Protocol):
    """A differentiable function of one configuration."""

    def values(self, E: Floats) -> Floats:
        """Return the function at rows E, (m,)."""
        ...

    def value_and_gradient(self, e: Floats) -> tuple[float, Floats]:
        """Return the function at one row e, (D,), and its gradient, (D,)."""
        ...


@dataclass(frozen=True, eq=False)
class Path:
    """One function drawn from a Gaussian-process posterior; made by Path.drawn.

    f(x) = sum_j weights_j feature_j(x) + k(x, X) update:  a prior path, and the correction that makes it agree with
    the trials.
    Source: Wilson et al. 2020, "Efficiently Sampling Functions from Gaussian Process Posteriors", eq. 9 and 13.
    """

    posterior: Posterior
    omega: Floats  # (M, D) frequencies, for unscaled rows
    cosines: Floats  # (M,) weights
    sines: Floats  # (M,)
    update: Floats  # (n,)

    @classmethod
    def drawn(cls, posterior: Posterior, y: Floats, generator: np.random.Generator, count: int = FREQUENCIES) -> Self:
        """Return a path given the gains y that the posterior was made of."""
        raw = frequencies(count, len(posterior.root), generator)
        amplitude = np.sqrt(posterior.hyperparameters.scale / count)
        cosines, sines = amplitude * generator.standard_normal((2, count))
        phases = posterior.points @ raw.T
        prior = np.cos(phases) @ cosines + np.sin(phases) @ sines  # the prior path at the trials
        error = np.sqrt(posterior.noise) * generator.standard_normal(len(y))
        update, _ = scipy.linalg.lapack.dpotrs(posterior.L, y - prior - error, lower=1)
        return cls(posterior, raw * posterior.root, cosines, sines, np.asarray(update))

    def values(self, E: Floats) -> Floats:
        """Return the path at rows E, (m,)."""
        phases = E @ self.omega.T
        return np.cos(phases) @ self.cosines + np.sin(phases) @ self.sines + self.posterior.cross(E) @ self.update

    def value_and_gradient(self, e: Floats) -> tuple[float, Floats]:
        """Return the path at one row e, (D,), and its gradient, (D,)."""
        phases = self.omega @ e
        cos, sin = np.cos(phases), np.sin(phases)
        cross, slope = self.posterior.cross_and_slope(e)
        value = cos @ self.cosines + sin @ self.sines + cross @ self.update
        return float(value), self.omega.T @ (cos * self.sines - sin * self.cosines) + slope.T @ self.update


def log_improvement(z: Floats) -> Floats:
    """Return log E[max(0, z + N(0, 1))], exact far into the tail where the expectation underflows.

    Source: Ament et al. 2023, "Unexpected Improvements to Expected Improvement", eq. 9.
    """
    result = np.empty_like(z)
    near = z > -1.0
    a = z[near]
    result[near] = np.log(np.exp(-0.5 * a * a - HALF_LOG_TAU) + a * np.exp(scipy.special.log_ndtr(a)))
    far = np.maximum(z[~near], -1e6)  # there the series below has long taken over
    tail = scipy.special.erfcx(-far / np.sqrt(2.0)) * np.abs(far) * np.sqrt(np.pi / 2.0)
    series = far < -1e3
    rest = np.where(series, 1.0 / (far * far), 1.0 - np.where(series, 0.0, tail))
    result[~near] = -0.5 * far * far - HALF_LOG_TAU + np.log(rest)
    return result


@dataclass(frozen=True, eq=False)
class ExpectedImprovement:
    """The log of the improvement expected over each posterior's own best mean, averaged over posteriors."""

    posteriors: tuple[Posterior, ...]
    best: Floats  # (number of posteriors,) the largest posterior mean among the trials
    inverses: tuple[Floats, ...]  # K^-1, (n, n), of each posterior

    @classmethod
    def over(cls, posteriors: tuple[Posterior, ...], E: Floats) -> Self:
        """Return the improvement over the best of the trials E, (n, D)."""
        inverses = []
        for posterior in posteriors:
            lower, _ = scipy.linalg.lapack.dpotri(posterior.L, lower=1)
            inverses.append(np.tril(lower) + np.tril(lower, -1).T)
        return cls(posteriors, np.array([posterior.mean(E).max() for posterior in posteriors]), tuple(inverses))

    def values(self, E: Floats) -> Floats:
        """Return the log of the expected improvement at rows E, (m,)."""
        logs = np.empty((len(self.posteriors), len(E)))
        for k, (posterior, best, inverse) in enumerate(zip(self.posteriors, self.best, self.inverses, strict=True)):
            cross, scale = posterior.cross(E), posterior.hyperparameters.scale
            variance = scale - np.einsum("ij,ij->i", cross @ inverse, cross)
            sd = np.sqrt(np.maximum(variance, SMALLEST * scale))
            logs[k] = np.log(sd) + log_improvement((cross @ posterior.a - best) / sd)
        return _log_mean(logs)

    def value_and_gradient(self, e: Floats) -> tuple[float, Floats]:
        """Return the log of the expected improvement at one row e, (D,), and its gradient, (D,)."""
        count = len(self.posteriors)
        z, sd, z_slopes, sd_slopes = (
            np.empty(count),
            np.empty(count),
            np.empty((count, len(e))),
            np.zeros((count, len(e))),
        )
        for k, (posterior, best, inverse) in enumerate(zip(self.posteriors, self.best, self.inverses, strict=True)):
            cross, slope = posterior.cross_and_slope(e)
            solved, scale = inverse @ cross, posterior.hyperparameters.scale
            variance = float(scale - cross @ solved)
            sd[k] = np.sqrt(max(variance, SMALLEST * scale))
            if variance > SMALLEST * scale:
                sd_slopes[k] = -(solved @ slope) / sd[k]
            z[k] = (cross @ posterior.a - best) / sd[k]
            z_slopes[k] = (posterior.a @ slope - z[k] * sd_slopes[k]) / sd[k]
        log_h = log_improvement(z)  # its derivative is cdf / h
        logs = np.log(sd) + log_h
        ratio = np.exp(np.minimum(scipy.special.log_ndtr(z) - log_h, 700.0))
        slopes = sd_slopes / sd[:, None] + ratio[:, None] * z_slopes
        total = _log_mean(logs[:, None])[0]
        return float(total), np.exp(logs - total) @ slopes / count


def _log_mean(logs: Floats) -> Floats:
    """Return log(mean(exp(logs))) over the first axis, (m,), without overflow."""
    largest = logs.max(axis=0)
    mean: Floats = largest + np.log(np.exp(logs - largest).mean(axis=0))
    return mean
