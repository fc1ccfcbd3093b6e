"""Linear models for RankLib and liblinear: text with a weight for each feature number, from 1.

RankLib reads features in single precision and weights in double; an absent feature is 0. The format of liblinear has a
line for every feature. Neither has names. liblinear's type of a plain weighted sum is L2R_L2LOSS_SVR.
"""

from __future__ import annotations

import numpy as np

from ranktune.solvers.export.source import Source

_RANKLIB = """\
## Coordinate Ascent
## Restart = 5
## MaxIteration = 25
## StepBase = 0.05
## StepScale = 2.0
## Tolerance = 0.001
## Regularized = false
## Slack = 0.001
"""
"""RankLib reads the kind of the model from the first line; the other lines do not change scores."""


def ranklib_linear(source: Source) -> str:
    """Return a model of RankLib's Coordinate Ascent."""
    assert source.weights is not None
    pairs = zip(source.columns.tolist(), source.weights.tolist(), strict=True)
    return _RANKLIB + " ".join(f"{column + 1}:{weight!r}" for column, weight in pairs) + "\n"


def liblinear_linear(source: Source) -> str:
    """Return a model that liblinear-predict reads."""
    assert source.weights is not None
    weights = np.zeros(source.model.n_features)
    weights[source.columns] = source.weights
    head = f"solver_type L2R_L2LOSS_SVR\nnr_class 2\nnr_feature {len(weights)}\nbias -1\nw\n"
    return head + "".join(f"{weight!r} \n" for weight in weights.tolist())
