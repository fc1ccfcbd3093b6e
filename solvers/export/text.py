"""Models for RankLib and liblinear: text in which features are numbers, from 1.

RankLib reads features in single precision; an absent feature and NaN are 0. Weights are in double precision, trees in
single. The format of liblinear has a line for every feature; its type of a plain weighted sum is L2R_L2LOSS_SVR.

Source: RankLib, CoorAscent.java, Ensemble.java and Split.java, which goes left where x <= threshold.
"""

from __future__ import annotations

import numpy as np

from ranktune.solvers.export.source import ExportedModel, check_single, single_thresholds
from ranktune.solvers.models.trees import Trees

_LINEAR = """\
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
_TREES = "## LambdaMART\n"


def ranklib(source: ExportedModel) -> str:
    """Return a model of RankLib's Coordinate Ascent, or of its LambdaMART."""
    if source.trees is not None:
        return _ensemble(source, source.trees)
    assert source.weights is not None
    pairs = zip(source.columns.tolist(), source.weights.tolist(), strict=True)
    return _LINEAR + " ".join(f"{column + 1}:{weight!r}" for column, weight in pairs) + "\n"


def _ensemble(source: ExportedModel, trees: Trees) -> str:
    """Return trees a line each, without blanks between tags: RankLib takes the first child of a tag for a tag."""
    check_single(source, trees.value)
    numbers, thresholds = (source.columns + 1).tolist(), single_thresholds(source, trees).tolist()

    def split(number: int, position: int, left: str, right: str) -> str:
        test = f"<feature>{numbers[position]}</feature><threshold>{thresholds[number]!r}</threshold>"
        return f'{test}<split pos="left">{left}</split><split pos="right">{right}</split>'

    roots = source.nested(split, lambda value: f"<output>{value!r}</output>")
    lines = (f'<tree id="{t}" weight="1.0"><split>{root}</split></tree>\n' for t, root in enumerate(roots, start=1))
    return f"{_TREES}\n<ensemble>\n{''.join(lines)}</ensemble>\n"


def liblinear_linear(source: ExportedModel) -> str:
    """Return a model that liblinear-predict reads."""
    assert source.weights is not None
    weights = np.zeros(source.model.n_features)
    weights[source.columns] = source.weights
    head = f"solver_type L2R_L2LOSS_SVR\nnr_class 2\nnr_feature {len(weights)}\nbias -1\nw\n"
    return head + "".join(f"{weight!r} \n" for weight in weights.tolist())
