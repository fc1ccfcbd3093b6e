"""Whether to try again what was tried: how much the choice among the tried is expected to gain by one more trial.

t    configurations tried or at work, and as the last the new one        E    (t, D) embedded configurations

After a study, the configuration with the highest posterior mean is chosen. One more trial somewhere moves the means;
what the highest of them rises by, on average over what the trial may show, is what that trial is worth. Where noise is
large that may well be more at one of the best tried than at any new place, and without noise it is nothing there.

Source: Frazier, Powell & Dayanik 2009, "The Knowledge-Gradient Policy for Correlated Normal Beliefs", eq. 11.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy

from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.gp.kernels import matern52, squared_distances
from ranktune.tuner.gp.posterior import Posterior

MAX_REPLICATE_CANDIDATES = 8
"""Tried configurations that may be tried again: those of the highest means plus a deviation."""
MIN_RISE = 1e-3
"""Rise, in standardised units, below which no repeat is worth a trial: nothing is open then."""
OUTCOME_QUANTILES = 33
"""Quantiles of what a trial may show."""


def knowledge_gradients(posterior: Posterior, E: Floats, asked: Sequence[int]) -> Floats:
    """Return how much one more trial at each of the asked rows is expected to raise the highest mean of all, (len,).

    Cost n^2 (number asked) + n t: only the columns of the covariance that belong to them are formed.
    """
    cross = posterior.cross(E)
    mean = cross @ posterior.a
    some = list(asked)
    solved, _ = scipy.linalg.lapack.dpotrs(posterior.L, cross[some].T, lower=1)
    root, scale = posterior.root, posterior.hyperparameters.scale
    covariance = _prior(E * root, E[some] * root, scale) - cross @ solved  # (t, number asked)
    variance = np.maximum(covariance[some, np.arange(len(some))], 1e-12 * scale)
    moves = covariance / np.sqrt(variance + posterior.hyperparameters.noise)
    z = scipy.special.ndtri((np.arange(OUTCOME_QUANTILES) + 0.5) / OUTCOME_QUANTILES)
    highest = (mean[:, None, None] + moves[:, :, None] * z).max(axis=0).mean(axis=1)
    worth: Floats = np.maximum(highest - mean.max(), 0.0)
    return worth


def best_replicate(posteriors: Sequence[Posterior], tried: Floats, new: Floats) -> int | None:
    """Return the place of the tried row, (t - 1, D), whose repeat is worth most; None if new, (D,), is worth more."""
    E = np.vstack([tried, new])
    moments = [posterior.mean_and_variance(tried) for posterior in posteriors]
    hopeful = np.mean([mean + np.sqrt(variance) for mean, variance in moments], axis=0)
    candidates = np.argsort(-hopeful, kind="stable")[:MAX_REPLICATE_CANDIDATES].tolist()
    asked = [*candidates, len(tried)]
    worths = np.mean([knowledge_gradients(posterior, E, asked) for posterior in posteriors], axis=0)
    best = int(np.argmax(worths))
    return candidates[best] if worths[best] > max(MIN_RISE, worths[-1]) else None


def _prior(scaled: Floats, others: Floats, scale: float) -> Floats:
    covariance: Floats = scale * matern52(squared_distances(scaled, others))
    return covariance
