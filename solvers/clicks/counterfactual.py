"""What a ranking policy would have earned, from a log that another policy made: expected clicks, with intervals.

reward    (n,) what happened at each impression, such as 1 for a click
weight    (n,) how much likelier the new policy makes that outcome: a ratio of probabilities
cluster   (n,) numbers of sessions or users, whose impressions depend on each other

Every estimate is a ratio of two sums over impressions, and its interval that of the linearised ratio between clusters,
by Student's t with a correction for skewness: a few clicks of large weight are rare, and a log that lacks them would
seem to be sure of too little. Weights are ratios of the probabilities that a document is shown at a position
(`item_position`), or of the examination of the positions where both policies show it (`position`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from ranktune.solvers.clicks.counts import sums
from ranktune.solvers.clicks.examination import Examination
from ranktune.solvers.core.arrays import Floats, Ints, as_floats, as_ints
from ranktune.solvers.core.checks import check_positive
from ranktune.solvers.core.errors import DataError

LEVEL = 0.95
SYMMETRIC = 1e-6
"""Skewness of a mean below which rounding would exceed its correction."""


@dataclass(frozen=True)
class Estimate:
    """The reward of an impression under a new policy.

    Attributes
    ----------
    value : float
        In units of the reward, such as clicks an impression.
    low, high : float
        Its 95 % interval; infinite where there is one cluster only.
    clipped : float
        Share of the impressions whose weight was clipped. Where there are some the value is too low, by what is lost.
    mean_weight : float
        Of the log, before clipping. Of weights by `item_position` it is far from 1 where the new policy shows what the
        log never showed; of weights by `position` it is not 1.
    effective : float
        The number of impressions with equal weights that would tell as much, sum(w)^2 / sum(w^2).
    """

    value: float
    low: float
    high: float
    clipped: float
    mean_weight: float
    effective: float


def item_position(propensity: Floats, target: Floats) -> Floats:
    """Return weights from the probabilities that the logging and the new policy show a document at its position, (n,).

    Raises DataError where the log's are not above 0.
    """
    if not (propensity > 0.0).all():
        raise DataError(
            "a propensity is not above 0: what was shown must have been possible. Leave out such impressions."
        )
    return as_floats(target / propensity)


def position(examination: Examination, logged: Ints, target: Ints) -> Floats:
    """Return weights from the positions at which the logging and the new policy show a document, (n,).

    target is 0 where the new policy does not show it. Clicks on a document are proportional to the examination of its
    position, whatever else is shown. Raises DataError where examination of the log's positions is not above 0.
    Source: Li et al. 2018, "Offline Evaluation of Ranking Policies with Click Models".
    """
    seen = examination.at(logged)
    if not (seen > 0.0).all():
        raise DataError("a position of the log has examination 0: its clicks tell nothing. Leave out its impressions.")
    return as_floats(np.where(target > 0, examination.at(target), 0.0) / seen)


def ips(reward: Floats, weight: Floats, cluster: Ints, *, clip: float = np.inf) -> Estimate:
    """Return the mean of weighted rewards: unbiased without clipping.

    Raises ParameterError unless clip is positive, DataError unless the arrays have equal lengths and weights are not
    negative.

    Examples
    --------
    >>> import numpy as np
    >>> ips(np.array([1.0, 0.0]), np.array([0.5, 1.5]), np.array([0, 1])).value
    0.25
    """
    used, about = _clipped(reward, weight, cluster, clip)
    return ratio(used * reward, np.ones(len(reward)), cluster, about)


def snips(reward: Floats, weight: Floats, cluster: Ints, *, clip: float = np.inf) -> Estimate:
    """Return the weighted mean of rewards: a little biased, and varies less, since its weights add up to 1.

    It is for weights whose expectation is 1, as those by `item_position`; with those by `position` it is wrong.

    Source: Swaminathan & Joachims 2015, "The Self-Normalized Estimator for Counterfactual Learning".
    """
    used, about = _clipped(reward, weight, cluster, clip)
    return ratio(used * reward, used, cluster, about)


def doubly_robust(
    reward: Floats, weight: Floats, cluster: Ints, predicted: Floats, target: Floats, *, clip: float = np.inf
) -> Estimate:
    """Return the predicted reward of the new policy, corrected by the weighted errors of the prediction.

    It is unbiased where the weights or the predictions are right. Source: Dudík, Langford & Li 2011, "Doubly
    Robust Policy Evaluation and Learning".

    predicted   (n,) the reward that a model expects of what was shown
    target      (n,) the reward that it expects under the new policy, the mean over what that would show
    """
    used, about = _clipped(reward, weight, cluster, clip)
    return ratio(target + used * (reward - predicted), np.ones(len(reward)), cluster, about)


_About = tuple[float, float, float]


def _clipped(reward: Floats, weight: Floats, cluster: Ints, clip: float) -> tuple[Floats, _About]:
    """Return the weights after clipping; the share that was clipped, the mean before, and the effective number."""
    if clip != np.inf:
        check_positive("clip", clip)
    if not (len(reward) == len(weight) == len(cluster) > 0 and (weight >= 0.0).all()):
        raise DataError(
            f"{len(reward)} rewards, {len(weight)} weights and {len(cluster)} clusters: give one of each an "
            "impression, and weights of at least 0."
        )
    used = np.minimum(weight, clip)
    effective = used.sum() ** 2 / max(float((used**2).sum()), np.finfo(float).tiny)
    return used, (float((weight > clip).mean()), float(weight.mean()), float(effective))


def ratio(top: Floats, bottom: Floats, cluster: Ints, about: _About) -> Estimate:
    """Return sum(top) / sum(bottom) with its interval; about has clipped, mean_weight and effective.

    Source: Cochran 1977, Sampling Techniques, chapter 6.
    """
    total = float(bottom.sum())
    if not total > 0.0:
        raise DataError(
            "all weights are 0: the new policy shows nothing that the log has shown, which tells nothing of it."
        )
    value = float(top.sum()) / total
    numbers, place = np.unique(cluster, return_inverse=True)
    n = len(numbers)
    rest = sums(as_ints(place), top - value * bottom, n)
    if n == 1:
        return Estimate(value, -np.inf, np.inf, *about)
    error = float(np.sqrt(n / (n - 1) * float(rest @ rest)) / total)
    low, high = (value - error * quantile for quantile in reversed(_quantiles(rest)))
    return Estimate(value, low, high, *about)


def _quantiles(values: Floats) -> tuple[float, float]:
    """Return the ends of the middle 95 % of the studentised mean of values, (n,), whose mean is 0, with their skewness.

    A transformation makes the mean as symmetric as Student's t. Source: Hall 1992, "On the Removal of Skewness by
    Transformation", Journal of the Royal Statistical Society B 54.
    """
    n = len(values)
    cubes, squares = float((values**3).mean()), float((values**2).mean())
    skew = cubes / squares**1.5 / np.sqrt(n) if squares > 0.0 else 0.0
    ends = stdtrit(n - 1, np.array([0.5 - LEVEL / 2, 0.5 + LEVEL / 2]))
    if abs(skew) > SYMMETRIC:
        ends = 3.0 / skew * (np.cbrt(1.0 + skew * (ends - skew / 6.0)) - 1.0)
    return float(ends[0]), float(ends[1])
