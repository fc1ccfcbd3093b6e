"""Whether to replicate a trial: the knowledge gradient of one more trial at a tried configuration.

t    configurations tried or running, and as the last the new one        E    (t, D) embedded configurations

After a study the configuration with the highest posterior mean is chosen. One more trial moves the means; the expected
rise of their maximum is its knowledge gradient. With large noise it may be highest at a tried configuration; without
noise it is zero there.

Source: Frazier, Powell & Dayanik 2009, "The Knowledge-Gradient Policy for Correlated Normal Beliefs", eq. 11.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy

from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.gp.posterior import Posterior, matern52, squared_distances

MAX_REPLICATE_CANDIDATES = 8
"""Tried configurations that may be replicated: those with the highest mean plus one standard deviation."""
MIN_RISE = 1e-3
"""Smallest knowledge gradient of a replicate, in standardised units."""
OUTCOME_QUANTILES = 33
"""Quantiles of the outcome of a trial that approximate the expectation."""


def knowledge_gradients(posterior: Posterior, E: Floats, places: Sequence[int]) -> Floats:
    """Return the expected rise of the highest mean by one more trial at each of the places, (len(places),).

    Cost n^2 len(places) + n t: only their columns of the covariance are formed.
    """
    cross = posterior.cross(E)
    mean = cross @ posterior.a
    some = list(places)
    solved, _ = scipy.linalg.lapack.dpotrs(posterior.L, cross[some].T, lower=1)
    root, scale = posterior.root, posterior.hyperparameters.scale
    covariance = matern52(squared_distances(E * root, E[some] * root), scale) - cross @ solved  # (t, len(places))
    variance = np.maximum(covariance[some, np.arange(len(some))], 1e-12 * scale)
    moves = covariance / np.sqrt(variance + posterior.hyperparameters.noise)
    z = scipy.special.ndtri((np.arange(OUTCOME_QUANTILES) + 0.5) / OUTCOME_QUANTILES)
    highest = (mean[:, None, None] + moves[:, :, None] * z).max(axis=0).mean(axis=1)
    rise: Floats = np.maximum(highest - mean.max(), 0.0)
    return rise


def best_replicate(posteriors: Sequence[Posterior], tried: Floats, new: Floats) -> int | None:
    """Return the place of the best tried row, (t - 1, D), to replicate; None if new, (D,), is better."""
    E = np.vstack([tried, new])
    moments = [posterior.mean_and_variance(tried) for posterior in posteriors]
    upper = np.mean([mean + np.sqrt(variance) for mean, variance in moments], axis=0)
    candidates = np.argsort(-upper, kind="stable")[:MAX_REPLICATE_CANDIDATES].tolist()
    rises = np.mean([knowledge_gradients(posterior, E, [*candidates, len(tried)]) for posterior in posteriors], axis=0)
    best = int(np.argmax(rises))
    return candidates[best] if rises[best] > max(MIN_RISE, rises[-1]) else None
