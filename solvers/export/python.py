"""Models as a Python function that needs nothing but Python, and as plain JSON for whatever else reads numbers.

Both keep double precision and trees of any depth, since a tree is five lists: feature (its place among the names),
threshold, left, right and value. A child k >= 0 is the split k of the tree, a child k < 0 the leaf ~k.
"""

from __future__ import annotations

import json
from typing import Any

from ranktune.solvers.export.source import Source, check_distinct

_SCORE = '''

def score(features: Mapping[str, float]) -> float:
    """Return the score of one document; higher ranks first. A feature that is not there counts as 0."""
'''
_ADD_WEIGHTS = """\
    for name, weight in WEIGHTS.items():
        total += weight * features.get(name, 0.0)
"""
_ADD_TREES = """\
    for feature, threshold, left, right, value in TREES:
        node = 0 if feature else -1
        while node >= 0:
            node = left[node] if values[feature[node]] <= threshold[node] else right[node]
        total += value[~node]
"""


def python(source: Source) -> str:
    """Return a module with the function score."""
    check_distinct(source)
    tables, values, additions = "", "", ""
    if source.weights is not None:
        pairs = "".join(f"    {source.names[place]!a}: {weight!r},\n" for place, weight in source.weighted())
        tables += f"WEIGHTS = {{\n{pairs}}}\n"
        additions += _ADD_WEIGHTS
    if source.trees is not None:
        names = "".join(f"    {name!a},\n" for name in source.names)
        trees = "".join(f"    ({', '.join(repr(tuple(part)) for part in tree.values())}),\n" for tree in _flat(source))
        tables += f"NAMES = (\n{names})\n"
        tables += "# Each tree: feature, threshold, left, right, value. A child below 0 is the leaf ~child.\n"
        tables += f"TREES = (\n{trees})\n"
        values = "    values = [features.get(name, 0.0) for name in NAMES]\n"
        additions += _ADD_TREES
    return f"{_head(source)}{tables}{_SCORE}{values}    total = 0.0\n{additions}    return total\n"


def _head(source: Source) -> str:
    about = f"{source.title}. Made by RankTune."
    return f"{about!a}\n\nfrom __future__ import annotations\n\nfrom collections.abc import Mapping\n\n"


def plain_json(source: Source) -> str:
    """Return names and columns with weights, and trees, as JSON; the score adds up what weights and trees give."""
    check_distinct(source)
    rows = zip(source.names, source.columns.tolist(), strict=True)
    features: list[dict[str, Any]] = [{"name": name, "column": column} for name, column in rows]
    if source.weights is None:
        return _json(source, "trees", features, _flat(source))
    for feature, weight in zip(features, source.weights.tolist(), strict=True):
        feature["weight"] = weight
    return _json(source, *(("linear", features, []) if source.trees is None else ("blend", features, _flat(source))))


def _json(source: Source, kind: str, features: list[dict[str, Any]], trees: list[dict[str, Any]]) -> str:
    model = source.model
    content: dict[str, Any] = {
        "format": "ranktune-export",
        "version": 1,
        "kind": kind,
        "name": source.name,
        "solver": model.solver,
        "metric": model.metric,
        "n_features": model.n_features,
    }
    head = "".join(f" {json.dumps(key)}: {json.dumps(value)},\n" for key, value in content.items())
    parts = {"features": features} | ({"trees": trees} if trees else {})
    body = [
        f' "{key}": [\n' + ",\n".join("  " + json.dumps(row, allow_nan=False) for row in rows) + "\n ]"
        for key, rows in parts.items()
    ]
    return "{\n" + head + ",\n".join(body) + "\n}\n"


def _flat(source: Source) -> list[dict[str, Any]]:
    """Return the five lists of each tree, numbered within it."""
    trees, place = source.trees, source.place()
    assert trees is not None
    found = []
    for t in range(trees.n_trees):
        first, last = int(trees.starts[t]), int(trees.starts[t + 1])
        children = [
            [child - first if child >= 0 else child + first + t for child in pair]
            for pair in trees.children[first:last].tolist()
        ]
        found.append(
            {
                "feature": place[trees.feature[first:last]].tolist(),
                "threshold": trees.threshold[first:last].tolist(),
                "left": [left for left, _ in children],
                "right": [right for _, right in children],
                "value": trees.value[first + t : last + t + 1].tolist(),
            }
        )
    return found
