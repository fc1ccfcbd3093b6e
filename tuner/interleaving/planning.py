"""How many searches an interleaving test needs, by the exact power of the sign test."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np
from scipy import stats

from ranktune.solvers.core.arrays import Json
from ranktune.solvers.core.checks import check_finite
from ranktune.solvers.core.errors import ParameterError
from ranktune.tuner.interleaving.judging import FEWEST, TestOutcome

ALPHA = 0.05
"""Level of the two-sided sign test, as that of a verdict."""
MOST_SEARCHES, NODES = 10**9, 4001
POWERS = (0.5, 0.8, 0.95)


@dataclass(frozen=True)
class TestSize:
    """How large a test must be.

    Attributes
    ----------
    searches : int
        The searches that it needs, also those without clicks: at least as many as a verdict needs.
    power : float
        The probability that it finds the effect.
    effect : float
        The preference to be found: searches that the better ranking wins, less those that it loses, as a share.
    ties : float
        The share of searches that are ties.
    design_effect : float
        How many times as many searches are needed because those of a user are alike.
    """

    searches: int
    power: float
    effect: float
    ties: float
    design_effect: float

    def as_dict(self) -> Json:
        """Return everything as plain values."""
        return asdict(self)


def plan(
    effect: float,
    *,
    ties: float | None = None,
    seen: TestOutcome | None = None,
    power: float = 0.8,
) -> TestSize:
    """Return the searches that a test needs to find a preference, if there is one of this size.

    Parameters
    ----------
    effect : float
        The smallest preference that matters: the share of searches that the better ranking wins, less the share that it
        loses. Where it wins 12 % and loses 9 %, 0.03.
    ties : float, optional
        The share of searches that are ties, also those without clicks: 0.79 in this example.
    seen : Judged, optional
        What judge says of a log so far, in place of ties: it has the share of ties, and how much searches of a user are
        alike. The preference seen so far is not used: a plan for what chance has shown promises too much.
    power : float, default=0.8
        The probability with which the test is to find it.

    Returns
    -------
    Plan
        searches, and the power that so many have by the exact two-sided sign test at level 0.05.

    Raises
    ------
    ParameterError
        An argument is invalid, effect and ties do not fit together, or more than 10**9 searches are needed.

    Examples
    --------
    >>> from ranktune.tuner.interleaving import plan
    >>> found = plan(0.03, ties=0.79)
    >>> found.searches, round(found.power, 2)
    (1888, 0.8)
    """
    if (ties is None) == (seen is None):
        raise ParameterError("the noise must be known: give either ties, a share, or the judgment of a log so far.")
    tied = float(ties or 0.0) if seen is None else seen.ties
    alike = 1.0 if seen is None else max(1.0, seen.design_effect)
    for name, value in (("effect", effect), ("ties", tied), ("power", power)):
        check_finite(name, value)
    if not 0.0 <= tied < 1.0:
        raise ParameterError(
            f"ties={tied!r}: they must be a share of at least 0 and below 1, as wins and losses are left."
        )
    if not 0.0 < effect <= 1.0 - tied:
        raise ParameterError(
            f"effect={effect!r}: it must be above 0 and at most {1.0 - tied:g}, the share of searches that are no ties."
        )
    if not ALPHA < power < 1.0:
        raise ParameterError(f"power={power!r}: it must be above {ALPHA} and below 1, such as 0.8.")
    enough = _enough(effect, tied, alike, power)
    if enough is None:
        raise ParameterError(f"an effect of {effect!r} needs more than {MOST_SEARCHES:,} searches. Give a larger one.")
    return TestSize(enough, _power(int(enough / alike), effect, tied), effect, tied, alike)


def sizes(planned: TestSize) -> list[tuple[float, list[int | None]]]:
    """Return half the effect of a plan, the effect and twice it, each with the searches for POWERS; None: too many."""
    effects = [share * planned.effect for share in (0.5, 1.0, 2.0) if share * planned.effect <= 1.0 - planned.ties]
    return [
        (effect, [_enough(effect, planned.ties, planned.design_effect, power) for power in POWERS])
        for effect in effects
    ]


def _enough(effect: float, ties: float, alike: float, power: float) -> int | None:
    """Return the searches of which the test has the power; None where they are more than MOST_SEARCHES."""
    most = int(MOST_SEARCHES / alike)
    if _power(most, effect, ties) < power:
        return None
    low, high = FEWEST - 1, FEWEST
    while _power(high, effect, ties) < power:
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _power(middle, effect, ties) >= power else (middle, high)
    return math.ceil(high * alike)


def _power(searches: int, effect: float, ties: float) -> float:
    """Return the probability that the sign test finds the better ranking in as many searches.

    How many are no ties is binomial. The better ranking must win all of these but so many that as few are likely by
    chance. Of numbers that are likely, at most NODES are computed.
    """
    decided = 1.0 - ties
    loses = (1.0 - effect / decided) / 2.0
    spread = 8.0 * math.sqrt(searches * decided * ties) + 1.0
    first, last = max(0, int(searches * decided - spread)), min(searches, math.ceil(searches * decided + spread))
    n = np.unique(np.linspace(first, last, min(last - first + 1, NODES)).astype(np.int64))
    weight = stats.binom.pmf(n, searches, decided)
    most = stats.binom.ppf(ALPHA / 2, n, 0.5)
    most = np.where(stats.binom.cdf(most, n, 0.5) <= ALPHA / 2, most, most - 1)
    return float((weight * stats.binom.cdf(most, n, loses)).sum() / weight.sum())
