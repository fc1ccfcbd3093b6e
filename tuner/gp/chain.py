"""A Markov chain over the hyperparameters: elliptical slices, with the density around its maximum as their prior.

All coordinates move in each step, which takes two to four evaluations of the density; moving one after the other takes
as many for each. The prior is a multivariate t distribution whose covariance is the inverse of the curvature at the
maximum: heavy tails, since the density of hyperparameters that do not matter is flat.
Source: Murray, Adams and MacKay 2010, "Elliptical slice sampling"; Nishihara, Murray and Adams 2014, "Parallel MCMC
with Generalized Elliptical Slice Sampling", algorithm 2, for the t distribution.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.gp.hyperparameters import HyperparameterDensity

DEGREES = 4.0
"""Degrees of freedom of the t distribution."""
LARGEST_SD = 3.0
"""Largest standard deviation of its directions, in logarithms: the density of a length scale is that wide."""
STEP = 1e-3
"""Step of the finite differences of the gradient."""


def chain(evidence: HyperparameterDensity, centre: Floats, generator: np.random.Generator) -> Iterator[Floats]:
    """Yield an endless chain from centre, (d + 2,), the maximum of the density: one step each."""
    bounds = evidence.bounds()
    centre = np.clip(centre, bounds[:, 0], bounds[:, 1])  # the fit may have used other bounds
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
            if level >= height:
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
