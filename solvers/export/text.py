"""Models as text: for RankLib and liblinear, and trees for LightGBM and what loads its files, such as Treelite.

In RankLib and liblinear features are numbers, from 1. RankLib reads features in single precision; an absent feature and
NaN are 0. Weights are in double precision, trees in single. The format of liblinear has a line for every feature; its
type of a plain weighted sum is L2R_L2LOSS_SVR.

LightGBM's numbers are in double precision. Trees compare columns as in the training data, so that the header has a name
for every feature.

Source: RankLib, CoorAscent.java, Ensemble.java and Split.java. It goes left where x <= threshold, as LightGBM and the
model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

import numpy as np

from ranktune.solvers.export.search_engines import LETTERS
from ranktune.solvers.export.source import ExportedModel, check_single, escaped, single_thresholds
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


_NUMERICAL, _RIGHT, _LEFT = 2, 8, 10
"""The decision types of a number: without missing values, or with them, sent right or left."""


def lightgbm(source: ExportedModel) -> str:
    """Return the text of a booster."""
    assert source.trees is not None
    trees, width = source.trees, source.model.n_features
    names = source.model.feature_names or tuple(f"f{k + 1}" for k in range(width))
    parts = [_tree(trees, t, first, last) for t, (first, last) in enumerate(pairwise(trees.starts.tolist()))]
    head = {
        "version": "v4",
        "num_class": 1,
        "num_tree_per_iteration": 1,
        "label_index": 0,
        "max_feature_idx": width - 1,
        "objective": "regression",
        "feature_names": _joined(escaped(name, k, LETTERS) for k, name in enumerate(names)),
        "feature_infos": _joined(_ranges(trees, width)),
        "tree_sizes": _joined(len(part) for part in parts),
    }
    return f"tree\n{_lines(head)}\n{''.join(parts)}end of trees\n"


def _tree(trees: Trees, t: int, first: int, last: int) -> str:
    """Return tree t, whose splits are those from first to last, numbered within it; a child below 0 is a leaf."""
    value = trees.value[first + t : last + t + 1]
    children = trees.children[first:last]
    left, right = np.where(children >= 0, children - first, children + first + t).T
    fields: dict[str, object] = {"num_leaves": len(value), "num_cat": 0}
    if last > first:
        fields |= {
            "split_feature": _joined(trees.feature[first:last].tolist()),
            "split_gain": _joined([0] * (last - first)),
            "threshold": _joined(map(repr, trees.threshold[first:last].tolist())),
            "decision_type": _joined(_decisions(trees, first, last)),
            "left_child": _joined(left.tolist()),
            "right_child": _joined(right.tolist()),
        }
    fields |= {"leaf_value": _joined(map(repr, value.tolist())), "is_linear": 0, "shrinkage": 1}
    return f"Tree={t}\n{_lines(fields)}\n\n"


def _decisions(trees: Trees, first: int, last: int) -> list[int]:
    if trees.missing_left is None:  # LightGBM takes NaN for 0 there
        return [_NUMERICAL] * (last - first)
    return [_LEFT if side else _RIGHT for side in trees.missing_left[first:last].tolist()]


def _ranges(trees: Trees, width: int) -> list[str]:
    """Return for each feature the range of its thresholds, none for one that no split compares."""
    low, high = np.full(width, np.inf), np.full(width, -np.inf)
    np.minimum.at(low, trees.feature, trees.threshold)
    np.maximum.at(high, trees.feature, trees.threshold)
    return [f"[{a!r}:{b!r}]" if a <= b else "none" for a, b in zip(low.tolist(), high.tolist(), strict=True)]


def _lines(fields: Mapping[str, object]) -> str:
    return "".join(f"{name}={value}\n" for name, value in fields.items())


def _joined(values: Iterable[object]) -> str:
    return " ".join(map(str, values))
