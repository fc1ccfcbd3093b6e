"""LightGBM's trees as our own arrays. Read from its text at training time only: no model is ever loaded through it.

The text gives every threshold and leaf with the 17 digits that make a double exact, and numbers splits and leaves of
each tree as ranktune.solvers.models.trees does: a child k >= 0 is the split k, a child k < 0 the leaf ~k, and splits
come before their children.
"""

from __future__ import annotations

from collections.abc import Mapping

from ranktune.solvers.models.trees import Trees, joined, one_tree


def trees_of(text: str) -> Trees:
    """Return the trees in the text of a booster that was trained on finite features without categories."""
    body = text[text.index("\nTree=") :].partition("\nend of trees")[0]
    return joined([_tree(_fields(part)) for part in body.split("\nTree=")[1:]])


def _fields(part: str) -> Mapping[str, str]:
    return dict(line.split("=", 1) for line in part.splitlines() if "=" in line)


def _tree(fields: Mapping[str, str]) -> Trees:
    if int(fields["num_leaves"]) == 1:
        return one_tree([], [], [], [], [float(fields["leaf_value"].split()[0])])
    whole = {name: [int(k) for k in fields[name].split()] for name in ("split_feature", "left_child", "right_child")}
    threshold, value = ([float(k) for k in fields[name].split()] for name in ("threshold", "leaf_value"))
    return one_tree(whole["split_feature"], threshold, whole["left_child"], whole["right_child"], value)
