"""Linear models as RankLib and liblinear read them: text with a weight for each feature number, from 1.

RankLib reads features in single precision and weights in double; what it is not given is 0. liblinear's format has a
line for every feature. Neither has a place for names. The type L2R_L2LOSS_SVR is liblinear's for a plain weighted sum.
"""

from __future__ import annotations

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
"""The reader takes the first line for the kind of model; what the others say of training changes no score."""


def ranklib_linear(source: Source) -> str:
    """Return a model of RankLib's Coordinate Ascent."""
    assert source.weights is not None
    pairs = zip(source.columns.tolist(), source.weights.tolist(), strict=True)
    return _RANKLIB + " ".join(f"{column + 1}:{weight!r}" for column, weight in pairs) + "\n"


def liblinear_linear(source: Source) -> str:
    """Return a model that liblinear-predict reads."""
    assert source.weights is not None
    weights = [0.0] * source.model.n_features
    for column, weight in zip(source.columns.tolist(), source.weights.tolist(), strict=True):
        weights[column] = weight
    head = f"solver_type L2R_L2LOSS_SVR\nnr_class 2\nnr_feature {len(weights)}\nbias -1\nw\n"
    return head + "".join(f"{weight!r} \n" for weight in weights)
