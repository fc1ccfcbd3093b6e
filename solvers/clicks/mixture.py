"""Click models in which a document attracts or not, and the position says how often each is clicked: fitted by EM.

    P(click) = up(position) * attraction(query, document) + down(position) * (1 - attraction(query, document))

up, down    (n_positions,) the probabilities of a click on what attracts, and on what does not
attraction  (n_pairs,) the probability that a document attracts, drawn at each impression

The position-based model is the one with down = 0: examination is up, and what is examined and attracts is clicked.
With trust bias (Agarwal et al. 2019, "Addressing Trust Bias for Unbiased Learning-to-Rank"), up = theta * epsilon+ and
down = theta * epsilon-: clicks tell these products only. EM treats attraction as what is hidden; the
prior of attraction is a beta distribution, written as clicks and impressions that are added to those of the log.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import xlog1py, xlogy

from ranktune.solvers.clicks.counts import ClickCounts, sums
from ranktune.solvers.core.arrays import Floats, Ints, Mask

SMALLEST = 1e-12
"""Probabilities stay that far from 0 and 1, where EM cannot move them any more."""
MAX_STEPS = 2000


@dataclass(frozen=True, eq=False)
class ClickMixture:
    """The problem: counts, priors, and what is fixed.

    row                    the number of the position of each row, (n,)
    expected, strength     of attraction, (n_pairs,), and the clicks that it counts for
    fixed                  positions whose up is given, (n_positions,)
    trust                  whether down is fitted, else it stays
    """

    counts: ClickCounts
    row: Ints
    expected: Floats
    strength: float
    fixed: Mask
    trust: bool

    def split(self, values: Floats) -> tuple[Floats, Floats, Floats]:
        """Return up, down and attraction, which follow one another in values."""
        n = len(self.fixed)
        return values[:n], values[n : 2 * n], values[2 * n :]

    def step(self, values: Floats) -> Floats:
        """Return the values after a step of EM."""
        counts, (up, down, attraction) = self.counts, self.split(values)
        a, u, _, p = self._by_row(values)
        clicked = self.attracted_clicks(values)
        attracted = clicked + (counts.shown - counts.clicks) * (1.0 - u) * a / (1.0 - p)
        free = self._rates(clicked, attracted)
        if self.trust:
            down = self._rates(counts.clicks - clicked, counts.shown - attracted)
        total = counts.by_pair(counts.shown) + self.strength / self.expected
        attraction = (counts.by_pair(attracted) + self.strength) / total
        moved = np.concatenate([np.where(self.fixed, up, free), down, attraction])
        return np.asarray(np.clip(moved, SMALLEST, 1.0 - SMALLEST))

    def value(self, values: Floats) -> float:
        """Return the logarithm of the likelihood times the density of the prior, which no step lowers."""
        attraction, p = self.split(values)[2], self._by_row(values)[3]
        fit = xlogy(self.counts.clicks, p) + xlog1py(self.counts.shown - self.counts.clicks, -p)
        expected, strength = self.expected, self.strength
        prior = xlogy(strength, attraction) + xlog1py(strength / expected - strength, -attraction)
        return float(fit.sum() + prior.sum())

    def attracted_clicks(self, values: Floats) -> Floats:
        """Return the clicks of each row on what attracted, (n,); without down, all are."""
        a, u, _, p = self._by_row(values)
        return np.asarray(self.counts.clicks * u * a / p)

    def _by_row(self, values: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return attraction, up, down and the probability of a click of each row."""
        up, down, attraction = self.split(values)
        a, u, d = attraction[self.counts.pair], up[self.row], down[self.row]
        return a, u, d, np.clip(d + (u - d) * a, SMALLEST, 1.0 - SMALLEST)

    def _rates(self, clicks: Floats, shown: Floats) -> Floats:
        clicked, seen = (sums(self.row, each, len(self.fixed)) for each in (clicks, shown))
        return clicked / np.maximum(seen, SMALLEST)


def climb(
    step: Callable[[Floats], Floats], value: Callable[[Floats], float], start: Floats, tolerance: float
) -> tuple[Floats, list[float]]:
    """Return where steps of EM lead, and the values on the way, which rise until a gain is at most the tolerance.

    Two steps are extrapolated, on a logarithmic scale, where that is better than they are. Source: Varadhan & Roland
    2008, Scandinavian Journal of Statistics 35, scheme SqS3.
    """
    here, values = start, [value(start)]
    for _ in range(MAX_STEPS):
        first = step(here)
        second = step(first)
        moved, bend = np.log(first / here), np.log(second * here / first**2)
        length = float(np.linalg.norm(moved)) / max(float(np.linalg.norm(bend)), SMALLEST)
        far = np.log(here) + 2.0 * length * moved + length**2 * bend
        jumped = step(np.exp(np.clip(far, np.log(SMALLEST), np.log1p(-SMALLEST))))
        here, best = max(((each, value(each)) for each in (second, jumped)), key=lambda found: found[1])
        gain = best - values[-1]
        if gain > 0.0:
            values.append(best)
        if gain <= tolerance:
            break
    return here, values
