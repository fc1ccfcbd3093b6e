"""The race of a pass: when configurations are compared, which remain, and how many join.

values  (m, n) what each of m configurations scored on n queries before it learned from them; NaN where a query is
        skipped by the metric, for all alike

There is a look when the number of queries has doubled. It compares on the second half of the queries since the look
before, so that a configuration that joined there has learned from as many queries as are compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints, Mask
from ranktune.tuner.policy.policy import POLICY
from ranktune.tuner.policy.racing import t_quantile


@dataclass(frozen=True)
class Look:
    """A look at the race.

    after   the number of queries after which it comes, counted: how many of the last of them count
    places  how many configurations remain, with new ones if these join
    """

    after: int
    counted: int
    places: int
    fresh: bool

    @property
    def survivors(self) -> int:
        """The most configurations that remain."""
        return self.places - int(self.places * POLICY.one_pass.fresh) if self.fresh else self.places


def looks(n_queries: int, configurations: int, survivors: int) -> list[Look]:
    """Return the looks of a pass: after all queries, half of them, a quarter, and so on.

    Each halves the places, down to survivors. New configurations join at all but the last two.
    """
    result, places, before = list[Look](), configurations, 0
    for halvings in range(POLICY.one_pass.halvings, -1, -1):
        after = n_queries >> halvings
        if after >= POLICY.one_pass.first_queries or halvings == 0:
            places = max(places // 2, min(survivors, configurations)) if halvings else places
            result.append(Look(after, after - (after + before) // 2, places, halvings > 1))
            before = after
    return result


@dataclass(frozen=True, eq=False)
class Standing:
    """How configurations stand, by the queries that are not skipped; without any the first is the best.

    best    the row of the highest mean
    gaps    (m,) the mean differences to it, and their standard errors
    worse   (m,) which are significantly worse than the best, paired by query
    order   (m,) the rows, best first
    """

    best: int
    gaps: Floats
    errors: Floats
    worse: Mask
    order: Ints

    @classmethod
    def of(cls, values: Floats, n_looks: int) -> Self:
        """Return how the configurations stand that scored values.

        A one-sided t-test at an equal share of `Race.level` for each look and each rival (Bonferroni): whichever
        configuration is best on average, it is dropped by a test with a probability of at most that.
        """
        known = values[:, ~np.isnan(values).any(axis=0)]
        m, n = known.shape
        if n < 2:
            best = int(known[:, 0].argmax()) if n else 0
            gaps = known[:, 0] - known[best, 0] if n else np.zeros(m)
            return cls(best, gaps, np.full(m, np.inf), np.zeros(m, dtype=bool), np.argsort(-gaps, kind="stable"))
        best = int(known.mean(axis=1).argmax())
        differences = known - known[best]
        gaps, errors = differences.mean(axis=1), differences.std(axis=1, ddof=1) / np.sqrt(n)
        quantile = t_quantile(POLICY.race.level / (n_looks * max(m - 1, 1)), n - 1)
        worse = (np.count_nonzero(differences, axis=1) >= POLICY.race.min_queries) & (gaps < -quantile * errors)
        return cls(best, gaps, errors, worse, np.argsort(-gaps, kind="stable"))

    def going_on(self, most: int) -> Ints:
        """Return the rows that remain, best first; at most so many."""
        return self.order[~self.worse[self.order]][:most]
