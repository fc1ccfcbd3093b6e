"""SkoptSampler: scikit-optimize's Optimizer as an Optuna sampler, a well-known baseline.

Each suggestion fits a new Optimizer to the whole history, so that it depends on seed, number and history alone.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
from skopt import Optimizer
from skopt.space import Categorical, Real

from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.gp.encoding import Encoding
from ranktune.tuner.gp.posterior import standardise
from ranktune.tuner.samplers.history import History
from ranktune.tuner.samplers.thompson import EncodedSampler

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler

    from ranktune.tuner.samplers.registry import Wanted


class SkoptSampler(EncodedSampler):
    """Propose with scikit-optimize's Gaussian process and its default mix of acquisition functions.

    It has no conditional parameters: inactive ones are at the centre, or the first category. Running trials count with
    the mean of the finished ones.
    """

    multi_objective = False

    def _proposed(self, history: History, generator: np.random.Generator) -> Floats:
        encoding, trials = history.encoding, history.trials
        if not encoding.varying:
            return encoding.only()
        rows = np.concatenate([trials.rows, trials.pending])
        losses = np.concatenate([-standardise(trials.gains), np.zeros(len(trials.pending))])
        with warnings.catch_warnings():  # of bounds that a fit touches, and of points evaluated before
            warnings.simplefilter("ignore")
            axes = [encoding.axes[j] for j in encoding.varying]
            optimizer = Optimizer(
                [Categorical(range(axis.choices)) if axis.choices else Real(0.0, 1.0) for axis in axes],
                n_initial_points=0,
                random_state=int(generator.integers(2**31)),
            )
            optimizer.tell(_points(encoding, rows), losses.tolist())
            suggested = optimizer.ask()
        full = np.zeros((1, len(encoding.axes)))
        full[0, list(encoding.varying)] = suggested
        row: Floats = encoding.snap(full)[0]
        return row


def _points(encoding: Encoding, rows: Floats) -> list[list[float | int]]:
    """Return rows in scikit-optimize's format, without constant axes."""
    centres = np.array([0.0 if axis.choices else 0.5 for axis in encoding.axes])
    full = np.clip(np.where(np.isnan(rows), centres, rows), 0.0, [axis.choices or 1.0 for axis in encoding.axes])
    return [[int(row[j]) if encoding.axes[j].choices else float(row[j]) for j in encoding.varying] for row in full]


def made(wanted: Wanted) -> BaseSampler:
    """Return scikit-optimize's Gaussian process."""
    return SkoptSampler(seed=wanted.seed, startup=wanted.startup, conditions=wanted.space, number=wanted.number)
