"""Sample paths of posteriors, and the Monte Carlo noisy improvement over them.

K    sample paths              m    query configurations        n    trials of a posterior
o    objectives                c    constraints

With one path, the configuration of highest improvement is its maximiser: Thompson sampling. With several it has the
highest mean improvement. The incumbent of each path is the path's own maximum over the tried configurations, which
accounts for noise; running trials count as tried.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.gp.posterior import Posterior, by_blocks, frequencies

FOURIER_FREQUENCIES = 128
"""Random frequencies of a prior path, a cosine and a sine each; more change it by less than 0.1 standard deviations."""
MOST_EXACT = 64
"""Rows up to which prior paths have double precision; of more, candidates, errors are 1e-6 and the time is a tenth."""
SOFTNESS, FRONT_SOFTNESS = 0.01, 1e-4
"""Width, in prior standard deviations, of the smoothed improvement and constraint indicators, of one objective and of
several.

A configuration as good as the incumbent seems to improve by that much in all paths. With one objective this keeps some
decisions near the incumbent. A front must be sharper: what extends it improves few of the paths, and by little.
"""
TAIL = 0.1
"""Weight of the heavy tail of the smoothed improvement, which far below the incumbent still has a slope."""
TINY = 1e-300
REFERENCE_DEPTH, REFERENCE_MARGIN = 0.6, 0.1
"""The reference point of several objectives lies below the best gains, and below the worst gains of the front, by at
least those shares of the range of all gains."""

Gradients: TypeAlias = Callable[[Floats], Floats]
"""Weights u, (m, K) -> the gradients at m rows, (m, D), of sum_k u_ik f_k(e_i)."""


@dataclass(frozen=True, eq=False)
class Paths:
    """K sample paths of a Gaussian-process posterior; made by Paths.drawn.

    f(x) = sum_j weights_j feature_j(x) + k(x, X) update: a prior path and its pathwise update by the trials.
    Source: Wilson et al. 2020, "Efficiently Sampling Functions from Gaussian Process Posteriors", eq. 9 and 13.
    """

    posterior: Posterior
    omega: Floats  # (M, D) frequencies, for unscaled rows
    cosines: Floats  # (M, K) weights
    sines: Floats  # (M, K)
    update: Floats  # (n, K)
    at_trials: Floats  # (n, K) the paths at the trials

    @classmethod
    def drawn(
        cls,
        posterior: Posterior,
        generator: np.random.Generator,
        draws: int,
        count: int = FOURIER_FREQUENCIES,
    ) -> Self:
        """Return paths of the posterior, which share count random frequencies."""
        y = posterior.y
        raw = frequencies(count, len(posterior.root), generator)
        amplitude = np.sqrt(posterior.hyperparameters.scale / count)
        cosines, sines = amplitude * generator.standard_normal((2, count, draws))
        phases = posterior.points @ raw.T
        prior = np.cos(phases) @ cosines + np.sin(phases) @ sines  # the prior paths at the trials
        error = np.sqrt(posterior.noise)[:, None] * generator.standard_normal((len(y), draws))
        update, _ = scipy.linalg.lapack.dpotrs(posterior.L, y[:, None] - prior - error, lower=1)
        at_trials = y[:, None] - error - posterior.noise[:, None] * update  # K update is y - prior - error
        return cls(posterior, raw * posterior.root, cosines, sines, np.asarray(update), at_trials)

    def averaged(self) -> Paths:
        """Return the mean of the paths, as one."""
        every = (self.cosines, self.sines, self.update, self.at_trials)
        return Paths(self.posterior, self.omega, *(weights.mean(axis=1, keepdims=True) for weights in every))

    @property
    def draws(self) -> int:
        """K."""
        return int(self.update.shape[1])

    @property
    def sd(self) -> float:
        """The prior standard deviation."""
        return math.sqrt(self.posterior.hyperparameters.scale)

    def values(self, E: Floats) -> Floats:
        """Return the paths at rows E, (m, K)."""
        return by_blocks(self._values, E, max(len(self.update), len(self.omega)))

    def _values(self, E: Floats) -> Floats:
        phases = E @ self.omega.T
        if len(E) > MOST_EXACT:
            phases = (phases - 2.0 * np.pi * np.rint(phases / (2.0 * np.pi))).astype(np.float32)
        prior = np.cos(phases) @ self.cosines.astype(phases.dtype) + np.sin(phases) @ self.sines.astype(phases.dtype)
        result: Floats = self.posterior.cross(E) @ self.update
        result += prior
        return result

    def with_gradients(self, E: Floats) -> tuple[Floats, Gradients]:
        """Return the paths at rows E, (m, K), and their Gradients there."""
        phases = E @ self.omega.T
        cos, sin = np.cos(phases), np.sin(phases)
        cross, slope = self.posterior.cross_and_slope(E)

        def gradients(u: Floats) -> Floats:
            by_phase = cos * (u @ self.sines.T) - sin * (u @ self.cosines.T)
            return by_phase @ self.omega + self.posterior.gradients(E, slope * (u @ self.update.T))

        return cos @ self.cosines + sin @ self.sines + cross @ self.update, gradients


@dataclass(frozen=True, eq=False)
class PathMixture:
    """Paths of several posteriors, which differ in their hyperparameters, one group after the other."""

    groups: tuple[Paths, ...]

    @property
    def draws(self) -> int:
        """K."""
        return sum(group.draws for group in self.groups)

    @property
    def sd(self) -> float:
        """The mean of those of the groups."""
        return sum(group.sd for group in self.groups) / len(self.groups)

    @property
    def at_trials(self) -> Floats:
        """The functions at the trials, (n, K)."""
        return np.concatenate([group.at_trials for group in self.groups], axis=1)

    def values(self, E: Floats) -> Floats:
        """Return the functions at rows E, (m, K)."""
        return np.concatenate([group.values(E) for group in self.groups], axis=1)

    def with_gradients(self, E: Floats) -> tuple[Floats, Gradients]:
        """Return the functions at rows E, (m, K), and their Gradients there."""
        parts = [group.with_gradients(E) for group in self.groups]
        ends = np.cumsum([values.shape[1] for values, _ in parts])

        def gradients(u: Floats) -> Floats:
            by_group = np.split(u, ends[:-1], axis=1)
            total = np.zeros_like(E)
            for (_, function), some in zip(parts, by_group, strict=True):
                total += function(some)
            return total

        return np.concatenate([values for values, _ in parts], axis=1), gradients


Functions: TypeAlias = Paths | PathMixture
"""K functions drawn from one posterior, or from several."""


def smoothed_improvement(z: Floats) -> tuple[Floats, Floats]:
    """Return a smooth, increasing, positive function close to max(0, z), and its derivative.

    Source: Ament et al. 2023, "Unexpected Improvements to Expected Improvement", appendix A.4, the fat softplus.
    """
    tail = 1.0 / (1.0 + z * z)
    value = np.logaddexp(0.0, z) + TAIL * tail
    return value, scipy.special.expit(z) - (2.0 * TAIL) * z * tail * tail


def smoothed_indicator(z: Floats) -> tuple[Floats, Floats]:
    """Return a smooth, increasing, positive function close to 0 below and 1 above 0, and its derivative.

    Its tail falls by z^4, faster than an improvement may rise, so that no improvement outweighs a violated constraint.
    """
    root = np.sqrt(1.0 + z * z)
    half = np.where(z < 0.0, 0.5 / (root * (root + np.abs(z))), 0.5 * (1.0 + z / root))
    return half * half, half / root**3


@dataclass(frozen=True, eq=False)
class PathwiseImprovement:
    """The log of the improvement over each path's incumbent, averaged over K paths; made by PathwiseImprovement.over.

    With several objectives each path has a random direction: its score is the smallest gain above a reference point
    divided by the direction, to the power of their number, so that the mean over paths is a hypervolume. Below the
    reference point the score is negative. A configuration that violates a constraint
    in a path is no improvement there. margin: how much better than the incumbent a configuration must be.

    Source: Letham et al. 2019, "Constrained Bayesian Optimization with Noisy Experiments", for incumbents by path;
    Zhang & Golovin 2020, "Random Hypervolume Scalarizations", for directions.
    """

    objectives: tuple[Functions, ...]
    constraints: tuple[Functions, ...]  # satisfied where not below 0
    reference: Floats  # (o,)
    directions: Floats  # (o, K) positive; one objective needs none
    best: Floats  # (K,)
    margin: float = 0.0

    @classmethod
    def over(
        cls,
        objectives: Sequence[Functions],
        constraints: Sequence[Functions],
        tried: Floats | None,
        reference: Floats,
        spans: Floats,
        generator: np.random.Generator,
        margin: float = 0.0,
    ) -> Self:
        """Return the improvement over the tried configurations, finished or running: embedded rows, (t, D).

        None stands for the trials of the posterior of the only objective, without constraints.
        spans, (o,), are the units in which gains of different objectives are compared.
        """
        draws = objectives[0].draws
        directions = np.abs(generator.standard_normal((len(objectives), draws))) + 1e-6
        directions *= spans[:, None] / np.sqrt((directions**2).sum(axis=0))
        self = cls(tuple(objectives), tuple(constraints), reference, directions, np.zeros(draws))
        scores = objectives[0].at_trials if tried is None else self.scores(tried)
        return cls(self.objectives, self.constraints, reference, directions, scores.max(axis=0), margin)

    @property
    def softness(self) -> float:
        """The width of the smoothed indicators, relative to that of the functions."""
        return SOFTNESS if len(self.objectives) == 1 else FRONT_SOFTNESS

    @property
    def width(self) -> float:
        """The width of the smoothed improvement; scores of several objectives are relative to their spans."""
        return self.softness * (self.objectives[0].sd if len(self.objectives) == 1 else 1.0)

    def scores(self, E: Floats) -> Floats:
        """Return the score of rows E in each path, (m, K); infeasible rows get the lowest."""
        scores = self._scored([paths.values(E) for paths in self.objectives])
        for paths in self.constraints:
            scores = np.where(paths.values(E) >= 0.0, scores, scores.min(axis=0))
        return scores

    def values(self, E: Floats) -> Floats:
        """Return the log of the mean improvement at rows E, (m,)."""
        score = self._scored([paths.values(E) for paths in self.objectives])
        improvement, _ = smoothed_improvement((score - self.best - self.margin) / self.width)
        for paths in self.constraints:
            improvement *= smoothed_indicator(paths.values(E) / (self.softness * paths.sd))[0]
        result: Floats = np.log(improvement.mean(axis=1) + TINY)
        return result

    def values_and_gradients(self, E: Floats) -> tuple[Floats, Floats]:
        """Return the log of the mean improvement at rows E, (m,), and its gradients, (m, D)."""
        objectives = [paths.with_gradients(E) for paths in self.objectives]
        constraints = [paths.with_gradients(E) for paths in self.constraints]
        gains = [values for values, _ in objectives]
        score, rises = self._scored(gains), self._rises(gains)
        improvement, slope = smoothed_improvement((score - self.best - self.margin) / self.width)
        slope = slope / self.width
        widths = [self.softness * paths.sd for paths in self.constraints]
        holds = [smoothed_indicator(limits / width) for (limits, _), width in zip(constraints, widths, strict=True)]
        share = np.prod([hold for hold, _ in holds], axis=0) if holds else np.ones_like(score)
        total = (improvement * share).sum(axis=1) + TINY
        gradient = np.zeros_like(E)
        for k, (_, pull) in enumerate(objectives):
            gradient += pull(slope * share * rises[k])
        for (_, pull), (hold, rise), width in zip(constraints, holds, widths, strict=True):
            gradient += pull(improvement * share * rise / (hold * width))
        return np.log(total / score.shape[1]), gradient / total[:, None]

    def _scored(self, gains: list[Floats]) -> Floats:
        """Return the score of each row in each path, (m, K)."""
        if len(gains) == 1:
            return gains[0]
        least: Floats = self._relative(gains).min(axis=0)
        return np.asarray(least * np.abs(least) ** (len(gains) - 1))

    def _rises(self, gains: list[Floats]) -> Floats:
        """Return the derivatives of the scores with respect to the gains, (o, m, K): 0 for all but the least."""
        if len(gains) == 1:
            return np.ones((1, *gains[0].shape))
        relative, count = self._relative(gains), len(gains)
        decides = np.arange(count)[:, None, None] == relative.argmin(axis=0)
        rise = count * np.abs(relative.min(axis=0)) ** (count - 1)
        return np.asarray(decides * rise / self.directions[:, None, :])

    def _relative(self, gains: list[Floats]) -> Floats:
        """Return the gains above the reference point divided by the directions, (o, m, K)."""
        return np.array([(g - r) / d for g, r, d in zip(gains, self.reference, self.directions, strict=True)])


def reference_point(means: Floats, allowed: NDArray[np.bool_] | None = None) -> tuple[Floats, Floats]:
    """Return the reference point of the hypervolume and the spans above it, (o,) each, given mean gains, (o, n).

    It is that of the allowed trials, (n,), or of all where none is allowed. It lies below the nadir, the worst gains of
    the front: so both ends of the front have some hypervolume. And it lies far below the best gains: a front of a few
    trials near one end would have a nadir that all the rest of the true front is below, and would never grow.
    Source: Ishibuchi et al. 2018, "How to Specify a Reference Point in Hypervolume Calculation", on the margin.
    """
    if allowed is not None and allowed.any():
        means = means[:, allowed]
    ideal, nadir = means.max(axis=1), means[:, on_front(means)].min(axis=1)
    spans = np.where(np.ptp(means, axis=1) > 1e-6, np.ptp(means, axis=1), 1.0)
    reference: Floats = np.minimum(nadir - REFERENCE_MARGIN * spans, ideal - REFERENCE_DEPTH * spans)
    return reference, ideal - reference


def on_front(gains: Floats) -> NDArray[np.bool_]:
    """Return which of n columns of gains, (o, n), no other one dominates."""
    if len(gains) == 1:
        return np.asarray(gains[0] == gains.max())
    no_worse = (gains[:, :, None] >= gains[:, None, :]).all(axis=0)
    better = (gains[:, :, None] > gains[:, None, :]).any(axis=0)
    return np.asarray(~(no_worse & better).any(axis=0))
