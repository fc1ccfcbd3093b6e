"""Position-based models: a click needs that the position is examined and that the document attracts.

What a log shows. The model multiplies examination(position) and attraction(query, document), so that a log shows both
up to one factor in each component of the graph of positions that pairs connect (`known_positions`). The factor is fixed
by the first position, where examination is 1: relevance is the probability of a click there.

- A position outside of the first one's component is unknown: any examination there explains the clicks equally well,
  with the attraction of the pairs seen there divided by it.
- A pair that was seen only at unknown positions is unknown, and is not graded.
- A pair that was seen at one known position only is identified: its rate divided by the examination that other pairs
  show. Nothing of its own can contradict the model, so that its status says so.
- Where propensities are given, those positions are known, and what they are connected with.

Trust bias adds a rate of clicks on what does not attract. A log then shows clicks at a position as a linear function of
the clicks that the same pairs have at the first one, its offset and its slope, and needs two pairs to join a position,
with enough clicks that their noise does not pass for a spread of attraction; other positions are unknown. The pairs
must differ, too: where their relevances are alike, as those of the bad documents at the end of a page, slope and offset
can hardly be distinguished, which the information on them says (`Examination.estimable`). Theta, epsilon+ and epsilon-
cannot be separated. Source: Vardasbi, Oosterhuis & de Rijke 2020, "When Inverse Propensity Scoring does not Work:
Affine Corrections for Unbiased Learning to Rank".

Where relevance has no prior, examination is fitted from the pairs that were seen at several positions, whatever
attraction they have:

    value = sum of clicks * log up(position) - sum over pairs of clicks(pair) * log exposure(pair)

exposure(pair) is the sum of impressions times up. That is the likelihood of the positions of each pair's clicks, given
how many there are: attraction cancels from it, so that it is right for pairs of few impressions too, where the
likelihood of up and attraction together is not. Clicks are assumed to be rare; where they are not, errors are a little
smaller than is said. Source: Cameron & Trivedi 2013, "Regression Analysis of Count Data", section 9.4.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from ranktune.solvers.clicks.counts import ClickCounts, sums
from ranktune.solvers.clicks.examination import Examination, known_positions, smoothed
from ranktune.solvers.clicks.fitted import FittedMixture, check_shares, precision
from ranktune.solvers.clicks.mixture import SMALLEST, ClickMixture, climb
from ranktune.solvers.clicks.prior import HIGHEST, prior_of, shrunken
from ranktune.solvers.core.arrays import Floats, Ints, Mask, as_ints
from ranktune.solvers.core.errors import DataError

ROUNDS = 30
"""The most times that a prior is estimated and the model is fitted with it."""
SETTLED = 1e-2
"""Relative change of examination after which priors are not estimated again."""
WIDE = 0.1
"""Standard error, relative to examination, above which a joint model uses its prior for examination too."""
FINE, ROUGH = 1e-11, 1e-6
MIN_CLICKS = 20.0
"""Expected clicks of the pairs that tell trust."""


@dataclass(frozen=True)
class PositionBased:
    """P(click) = examination(position) * attraction(query, document), fitted by EM.

    Parameters
    ----------
    shrink : bool, default=True
        Whether attraction is shrunken to what the query and the pair's mean position let expect, and examination to a
        smooth curve over the logarithm of the position, as strongly as the log says; else likelihood is the highest.
        Examination is estimated without a prior of attraction, so that better documents may stand higher.
    propensities : Examination or None, default=None
        Examination that is known by position (`Examination.given`, `randomised`), which is used as it is, with
        its standard errors; that of other positions is estimated.

    Examples
    --------
    >>> fitted = PositionBased().fit(ClickCounts.of(batches))  # doctest: +SKIP
    >>> fitted.judgments().save("judgments.parquet")  # doctest: +SKIP
    """

    shrink: bool = True
    propensities: Examination | None = None

    def fit(self, counts: ClickCounts) -> FittedMixture:
        """Return the fitted model. Raises DataError where a weight of clicks is no share of its impressions."""
        return _Fit(counts, self.shrink, self.propensities).run()


@dataclass(frozen=True)
class TrustBias:
    """P(click) = offset(position) + examination(position) * relevance(query, document), fitted by EM.

    Users click what is ranked high also where it does not attract them. Source: Agarwal et al. 2019, "Addressing Trust
    Bias for Unbiased Learning-to-Rank", whose theta * (epsilon+ - epsilon-) is examination here, up to a factor.
    """

    def fit(self, counts: ClickCounts) -> FittedMixture:
        """Return the fitted model, which begins at that without trust.

        Raises DataError as PositionBased does, and where the log does not tell trust.
        """
        return _Fit(counts, True).run(trust=True)


@dataclass(frozen=True)
class Joint:
    """The position-based model whose attraction is shrunken to a product of factors of queries and documents.

    It is for logs where most pairs were seen a few times. Where the pairs that change places do not tell examination
    well, the prior tells it too: that is right if documents of equal factors come to their positions by chance.
    Raises DataError as PositionBased.

    Parameters
    ----------
    propensities : Examination or None, default=None
        As those of PositionBased.
    """

    propensities: Examination | None = None

    def fit(self, counts: ClickCounts) -> FittedMixture:
        """Return the fitted model."""
        return _Fit(counts, True, self.propensities, joint=True).run()


class _Fit:
    """One fit: the arrays by position, and what is fitted in turn."""

    def __init__(
        self,
        counts: ClickCounts,
        shrink: bool,
        propensities: Examination | None = None,
        joint: bool = False,
    ) -> None:
        check_shares(counts)
        if not counts.clicks.sum() > 0.0:
            raise DataError("the log has no clicks: a model of clicks needs some. Give more of the log.")
        self.counts, self.shrink, self.propensities = counts, shrink, propensities
        self.joint = self.random = joint
        self.places, row = np.unique(counts.position, return_inverse=True)
        self.row = as_ints(row)
        self.fixed = np.zeros(len(self.places), dtype=bool)
        self.error = np.zeros(len(self.places))  # of the logarithms of what is given
        if propensities is not None:
            self.fixed = np.isin(self.places, propensities.position[propensities.known])
            where = np.searchsorted(propensities.position, self.places[self.fixed])
            self.error[self.fixed] = (propensities.standard_error / np.maximum(propensities.value, SMALLEST))[where]
        self.first = int(np.argmax(self.fixed))  # the first given position, else the first
        self.seeds = self.fixed if self.fixed.any() else np.arange(len(self.places)) == self.first
        self.identified = known_positions(counts, self.seeds)
        self.telling = np.ones(len(counts.firsts), dtype=bool)

    def run(self, *, trust: bool = False) -> FittedMixture:
        """Fit examination, smooth it or fit trust, and fit attraction with a prior to that."""
        n = len(self.places)
        none, down, every = np.zeros((n, n)), np.full(n, SMALLEST), np.ones(n, dtype=bool)
        up, fixed = self._without_prior()
        if not self.shrink:
            values, steps = self._settled(up, down, fixed, False)
            return self._fitted(values, steps, none, self._spread(values[:n], none))
        spread = self._spread(up, none)
        self.random = self.random and bool((np.diag(spread)[~self.fixed] > WIDE**2).any() or not self.identified.all())
        if self.random:
            self.identified = every  # the prior compares all positions
            values, steps = self._settled(self._start(), down, self.fixed, True)
            up, rough = values[:n], self._fitted(values, steps, none)
            spread = rough.precision.covariance / np.outer(rough.precision.slope, rough.precision.slope)
        added = none
        if trust:
            up, down = self._trusted(up)
        else:
            up, added = self._smoothed(up, spread)
            spread = self._spread(up, added)
        values, steps = self._settled(up, down, every, True)
        return self._fitted(values, steps, added, None if trust or self.random else spread, trust=trust)

    def _without_prior(self) -> tuple[Floats, Mask]:
        """Return up that makes the log likeliest, and the positions where nothing tells it, which are as at the start.

        Only pairs that were clicked, and seen at several positions, tell it: attraction explains all of any other.
        """
        counts, up = self.counts, self._start()
        rows = ((counts.by_pair(np.ones(len(self.row))) > 1.0) & (counts.by_pair(counts.clicks) > 0.0))[counts.pair]
        linked = sums(self.row, rows.astype(float), len(up)) > 0.0
        if rows.any():
            fixed = self.fixed
            found = conditional(counts.select(rows), self.row[rows], up, fixed)
            up = np.where(linked & ~self.fixed, np.minimum(found, HIGHEST), up)
        return up, self.fixed | ~linked

    def _spread(self, up: Floats, added: Floats) -> Floats:
        """Return the covariance of the logarithms of examination without a prior, 0 where it is exact or unknown."""
        free = np.ix_(*[self.identified & ~self.seeds] * 2)
        spread = np.diag(self.error**2)
        spread[free] = np.linalg.pinv((information(self.counts, self.row, up) + added)[free], hermitian=True)
        return spread

    def _start(self) -> Floats:
        """Return what is given, and of other positions the rates of clicks; the largest is below 1."""
        n = len(self.places)
        clicks, shown = (sums(self.row, each, n) for each in (self.counts.clicks, self.counts.shown))
        rates = shrunken(clicks, shown * (clicks.sum() / shown.sum()))
        up = 0.9 * rates / rates.max()
        if self.propensities is not None:
            examination = self.propensities.at(self.places)
            up = np.where(self.fixed, 1.0, 0.9) * examination / max(1.0, float(examination.max()))
        return np.asarray(np.clip(up, SMALLEST, 1.0 - SMALLEST))

    def _settled(self, up: Floats, down: Floats, fixed: Mask, shrink: bool) -> tuple[Floats, list[float]]:
        """Fit the prior and the model in turn until they change no more; return the values, and the posterior's."""
        counts, clicks, n, attraction = self.counts, self.counts.clicks, len(up), None
        for _ in range(ROUNDS):
            exposure = counts.by_pair(counts.shown * up[self.row])
            self.prior = prior_of(replace(counts, clicks=clicks), exposure, not self.random, self.joint)
            self.strength = self.prior.strength if shrink else 0.0
            problem = ClickMixture(counts, self.row, self.prior.pairs, self.strength, fixed, trust=False)
            if attraction is None:  # where nothing was clicked, the highest likelihood is at 0
                attraction = np.where((counts.by_pair(clicks) > 0.0) | shrink, self.prior.pairs, SMALLEST)
            before = np.concatenate([up, down, attraction])
            tolerance = ROUGH if self.shrink else FINE
            values, steps = climb(problem.step, problem.value, before, tolerance)
            up, clicks, attraction = values[:n], problem.attracted_clicks(values), values[2 * n :]
            change = values[:n] / up[self.first] * before[self.first] / before[:n]
            if not shrink or fixed.all() or np.abs(change - 1.0).max() < SETTLED:
                break
        return values, steps

    def _trusted(self, up: Floats) -> tuple[Floats, Floats]:
        """Return up and down with trust, from the pairs with many expected clicks; without trust elsewhere.

        The noise of attractions that few clicks tell would pass for a spread of attraction, and make slopes wrong.
        """
        exposure = self.counts.by_pair(self.counts.shown * up[self.row])
        expected = prior_of(self.counts, exposure, True, self.joint).pairs * exposure
        self.telling = expected >= MIN_CLICKS
        rows = self.telling[self.counts.pair]
        links = np.zeros(len(up), dtype=bool)
        if rows.any():
            counts, row = self.counts.select(rows), self.row[rows]
            attraction = np.clip(counts.by_pair(counts.clicks) / counts.by_pair(counts.shown * up[row]), 0.01, 0.99)
            problem = ClickMixture(counts, row, attraction, 0.0, self.fixed, trust=True)
            start = np.concatenate([0.95 * up, 0.05 * up * attraction.mean(), attraction])
            seen = np.unique(problem.row)
            links[seen] = known_positions(problem.counts, seen == self.first, 2)
        if links.sum() < 2:
            raise DataError(
                f"no two positions share two pairs of a query and a document with {MIN_CLICKS:.0f} expected clicks: "
                "the log does not tell trust from attraction. Give more of the log, or use a model without trust."
            )
        self.identified = links
        fitted, down, _ = problem.split(climb(problem.step, problem.value, start, FINE)[0])
        rest = up * fitted[self.first] / up[self.first]
        return np.where(links, fitted, rest), np.where(links, down, SMALLEST)

    def _smoothed(self, up: Floats, spread: Floats) -> tuple[Floats, Floats]:
        """Return up after smoothing of the positions that are known and not given, and the information of the curve."""
        free = np.flatnonzero(self.identified & ~self.seeds)
        place, block = np.maximum(self.places, 0.5), np.ix_(free, free)
        value, information = smoothed(place[free] / place[self.first], up[free] / up[self.first], spread[block])
        up, added = up.copy(), np.zeros_like(spread)
        added[block] = information
        up[free] = np.minimum(value * up[self.first], HIGHEST)
        return up, added

    def _fitted(
        self, values: Floats, steps: list[float], added: Floats, spread: Floats | None = None, *, trust: bool = False
    ) -> FittedMixture:
        """Return the model relative to its first position, whatever the scale of up and down is."""
        counts, first, n = self.counts, self.first, len(self.places)
        up, down, attraction = values[:n], values[n : 2 * n] * trust, values[2 * n :]
        unit = 1.0 if self.propensities is None else float(self.propensities.at(self.places)[first])
        slope = unit * (up - down) / (up - down)[first]
        shift, scale = float(down[first]) / unit, float((up - down)[first]) / unit
        offset, relevance = down - slope * shift, shift + scale * attraction
        identified, expected = self.identified, self.prior.pairs
        prior = self.strength * (1.0 / attraction**2 + (1.0 / expected - 1.0) / (1.0 - attraction) ** 2) / scale**2
        free = identified & ~(self.seeds if spread is None else self.seeds & (self.error == 0.0))
        exact = precision(
            counts, self.row, slope, offset, relevance, free, identified, self.telling, prior, added, spread, trust
        )
        examination = Examination(self.places, slope, np.sqrt(np.diag(exact.covariance)), identified)
        return FittedMixture(counts, examination, offset, relevance, self.prior, shift, scale, exact, steps)


TOLERANCE = 1e-9


def conditional(counts: ClickCounts, row: Ints, start: Floats, fixed: Mask) -> Floats:
    """Return the likeliest up, (n_positions,), from a start; where nothing was clicked, that of half a click.

    row    (n,) the number of the position of each row; fixed   positions whose up stays
    """
    clicks, of_pair = sums(row, counts.clicks, len(start)), counts.by_pair(counts.clicks)

    def exposure(up: Floats) -> Floats:
        return np.maximum(counts.by_pair(counts.shown * up[row]), SMALLEST)

    def expected(up: Floats) -> Floats:
        rates = (of_pair / exposure(up))[counts.pair]
        return np.maximum(sums(row, counts.shown * rates, len(up)), SMALLEST)

    def step(up: Floats) -> Floats:
        moved = np.where(fixed, up, clicks / expected(up))
        return np.asarray(np.maximum(moved if fixed.any() else moved / moved.max(), SMALLEST))

    def value(up: Floats) -> float:
        return float(clicks @ np.log(up) - of_pair @ np.log(exposure(up)))

    up, _ = climb(step, value, np.maximum(start, SMALLEST), TOLERANCE)
    return np.where(fixed, up, np.maximum(up, 0.5 / expected(up)))


def information(counts: ClickCounts, row: Ints, up: Floats) -> Floats:
    """Return the information on the logarithms of up, (n_positions, n_positions)."""
    share = counts.shown * up[row]
    share = share / np.maximum(counts.by_pair(share), SMALLEST)[counts.pair]
    clicks = counts.by_pair(counts.clicks)
    shares = sparse.csr_array((share, (counts.pair, row)), shape=(len(clicks), len(up)))
    weighted = sparse.csr_array(sparse.diags_array(clicks) @ shares)
    return np.asarray(np.diag(weighted.sum(axis=0)) - (shares.T @ weighted).toarray())
