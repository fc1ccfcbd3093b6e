"""Models of trees as LightGBM's text, which its libraries load, and others such as Treelite.

Numbers are in double precision. Trees compare columns as in the training data, so that the header has a name for every
feature. A split sends a document left where x <= threshold, as in the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

import numpy as np

from ranktune.solvers.export.source import ExportedModel, escaped
from ranktune.solvers.export.vespa import LETTERS
from ranktune.solvers.models.trees import Trees

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
