"""SkoptSampler: scikit-optimize's Optimizer as an Optuna sampler, a baseline that users know.

Each suggestion tells a new Optimizer the whole history, so that it depends on seed, number and history alone.
"""

from __future__ import annotations

import warnings

import numpy as np
from skopt import Optimizer
from skopt.space import Categorical, Real

from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.gp.encoding import Axis, Encoding
from ranktune.tuner.gp.posterior import standardise
from ranktune.tuner.samplers.history import History
from ranktune.tuner.samplers.thompson import EncodedSampler


class SkoptSampler(EncodedSampler):
    """Propose what scikit-optimize proposes with its Gaussian process and its default mix of acquisitions.

    Inactive parameters are at the centre, or the first category, for it knows no conditions; running trials are told
    to it with the mean of the finished ones.
    """

    several = False

    def _proposed(self, history: History, generator: np.random.Generator) -> Floats:
        encoding, trials = history.encoding, history.trials
        if not encoding.varying:
            return encoding.only()
        rows = np.concatenate([trials.rows, trials.pending])
        losses = np.concatenate([-standardise(trials.gains), np.zeros(len(trials.pending))])
        with warnings.catch_warnings():  # of bounds that a fit touches, and of points evaluated before
            warnings.simplefilter("ignore")
            optimizer = Optimizer(
                [_dimension(encoding.axes[j]) for j in encoding.varying],
                n_initial_points=0,
                random_state=int(generator.integers(2**31)),
            )
            optimizer.tell(_points(encoding, rows), losses.tolist())
            suggested = optimizer.ask()
        full = np.zeros((1, len(encoding.axes)))
        full[0, list(encoding.varying)] = suggested
        row: Floats = encoding.masked(encoding.snap(full))[0]
        return row


def _dimension(axis: Axis) -> Categorical | Real:
    return Categorical(range(axis.choices)) if axis.choices else Real(0.0, 1.0)


def _points(encoding: Encoding, rows: Floats) -> list[list[float | int]]:
    """Return rows as scikit-optimize wants them, without the axes that cannot vary."""
    points: list[list[float | int]] = []
    for row in rows:
        point: list[float | int] = []
        for j in encoding.varying:
            missing = bool(np.isnan(row[j]))
            if encoding.axes[j].choices:
                point.append(0 if missing else int(row[j]))
            else:
                point.append(0.5 if missing else float(np.clip(row[j], 0.0, 1.0)))
        points.append(point)
    return points
