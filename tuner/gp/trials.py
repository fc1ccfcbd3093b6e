"""The trials that the Gaussian process is fitted to, in arrays and without Optuna."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class Trials:
    """The trials so far.

    rows         (n, d) masked configurations, in the order in which they were tried
    gains        (n,) finite, larger is better; more: those of further objectives, (n,) each
    noise        (n,) relative noise variances; level: the variance of gains they are relative to, 0 if unknown
    pending      (q, d) running configurations
    constraints  (n,) each, satisfied where not above 0, NaN where unknown
    extra        (n,) additional noise variance of trials that were evaluated on a part of the plan
    seconds      (n,) cost of each trial, NaN where unknown
    whole        all trials, where these are some of them: the hyperparameters are fitted to all
    """

    rows: Floats
    gains: Floats
    noise: Floats
    pending: Floats
    more: tuple[Floats, ...] = ()
    constraints: tuple[Floats, ...] = ()
    level: float = 0.0
    extra: Floats | float = 0.0
    seconds: Floats | float = np.nan
    whole: Trials | None = None

    @property
    def is_single_objective(self) -> bool:
        """Whether there is one objective, and no constraint."""
        return not self.more and not self.constraints

    def within(self, most: int) -> Trials:
        """Return at most that many trials: half of them the best that keep the constraints, the others the latest."""
        if len(self.gains) <= most:
            return self
        return replace(self.chosen(self.window(most, self.allowed)), whole=self)

    @property
    def allowed(self) -> NDArray[np.bool_]:
        """Which trials keep the constraints, (n,); a value that is unknown violates none."""
        return np.asarray(~np.any([values > 0.0 for values in (np.zeros_like(self.gains), *self.constraints)], axis=0))

    def window(self, most: int, eligible: NDArray[np.bool_]) -> Ints:
        """Return rising places of at most that many trials: half of them the best eligible ones, the others the latest.

        Several objectives have no best.
        """
        if len(self.gains) <= most:
            return np.arange(len(self.gains))
        kept = np.zeros(len(self.gains), dtype=bool)
        if not self.more and eligible.any():
            kept[np.argsort(-np.where(eligible, self.gains, -np.inf), kind="stable")[: most // 2]] = True
        kept[np.flatnonzero(~kept)[-(most - np.count_nonzero(kept)) :]] = True
        return np.flatnonzero(kept)

    def chosen(self, places: Ints) -> Trials:
        """Return the trials at those places."""
        return replace(
            self,
            rows=self.rows[places],
            gains=self.gains[places],
            noise=self.noise[places],
            more=tuple(values[places] for values in self.more),
            constraints=tuple(values[places] for values in self.constraints),
            extra=np.broadcast_to(self.extra, self.gains.shape)[places],
            seconds=np.broadcast_to(self.seconds, self.gains.shape)[places],
        )
