"""Models as a Python function without dependencies, and as plain JSON.

Both keep double precision and allow trees of any depth, since a tree is five lists: feature (its position among the
names), threshold, left, right and value. A child k >= 0 is the split k of the tree, a child k < 0 the leaf ~k.

A model that compares the documents of a query becomes a function of all of them. After the names count columns of each
kind. Exported functions hold copies of what computes them here, by Python alone: it gives the bits of
`ranktune.solvers.models.within`, which says what each kind is. A missing value is None.
"""

from __future__ import annotations

import inspect
import json
import math
import struct
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from ranktune.solvers.core.arrays import Json
from ranktune.solvers.data.scaling import MIN_SPREAD
from ranktune.solvers.export.source import ExportedModel, check_distinct
from ranktune.solvers.models.within import LARGEST

_SCORE = '''

def score(features: Mapping[str, float | None]) -> float:
    """Return the score of one document; higher ranks first. A feature that is not there, None or NaN counts as 0."""
    known = {name: x for name, x in features.items() if x is not None and x == x}
'''
_LIBRARIES = "import math\nimport struct\n"
_SCORES = '''

def scores(documents: Sequence[Mapping[str, float | None]]) -> list[float]:
    """Return the score of each document of a query; higher ranks first. They are compared: give all of the query.

    A feature that is not there, None or NaN {0}.
    """
    rows = [{{name: x for name, x in document.items() if x is not None and x == x}} for document in documents]
    values: list[list[float | None]] = [[row.get(name{1}) for row in rows] for name in NAMES]
    columns = values + [column(x) for column in COLUMNS for x in values]
    return [_score(row, value) for row, value in zip(rows, zip(*columns))]


def _score({2}: Mapping[str, float], values: Sequence[float | None]) -> float:
'''
_ADD_WEIGHTS = """\
    for name, weight in WEIGHTS.items():
        total += weight * known.get(name, 0.0)
"""
_SCORE_MISSING = '''

def score(features: Mapping[str, float | None]) -> float:
    """Return the score of one document; higher ranks first. A feature that is not there, None or NaN is missing."""
'''
_ADD_WEIGHTS_MISSING = """\
    for name, (weight, missing) in WEIGHTS.items():
        value = features.get(name)
        total += missing if value is None or value != value else weight * value
"""
_ADD_TREES_MISSING = """\
    for feature, threshold, left, right, value, missing_left in TREES:
        node = 0 if feature else -1
        while node >= 0:
            x = values[feature[node]]
            is_left = missing_left[node] if x is None or x != x else x <= threshold[node]
            node = left[node] if is_left else right[node]
        total += value[~node]
"""
_ADD_TREES = """\
    for feature, threshold, left, right, value in TREES:
        node = 0 if feature else -1
        while node >= 0:
            node = left[node] if values[feature[node]] <= threshold[node] else right[node]
        total += value[~node]
"""


def python(source: ExportedModel) -> str:
    """Return a module with the function score, or scores of a model that compares documents."""
    check_distinct(source)
    tables, values, additions = "", "", ""
    missing = source.knows_missing
    if source.weights is not None:
        weighted = [(k, (weight, source.added(k)) if missing else weight) for k, weight in source.weighted()]
        pairs = "".join(f"    {source.names[position]!a}: {weight!r},\n" for position, weight in weighted)
        tables += f"WEIGHTS = {{\n{pairs}}}\n"
        additions += _ADD_WEIGHTS_MISSING if missing else _ADD_WEIGHTS
    if source.trees is not None:
        names = "".join(f"    {name!a},\n" for name in source.names)
        trees = "".join(f"    ({', '.join(repr(tuple(part)) for part in tree.values())}),\n" for tree in _flat(source))
        tables += f"NAMES = (\n{names})\n"
        more = ", missing_left" if missing else ""
        tables += f"# Each tree: feature, threshold, left, right, value{more}. A child below 0 is the leaf ~child.\n"
        tables += f"TREES = (\n{trees})\n"
        got = "features.get(name)" if missing else "known.get(name, 0.0)"
        values = f"    values = [{got} for name in NAMES]\n"
        additions += _ADD_TREES_MISSING if missing else _ADD_TREES
    begin, more_imports = (_SCORE_MISSING if missing else _SCORE) + values, ""
    if source.kinds is not None:
        tables += f"\n{copied(source.kinds)}\n\nCOLUMNS = [{', '.join(source.kinds)}]\n"
        words = ("is missing", "", "features") if missing else ("counts as 0", ", 0.0", "known")
        begin, more_imports = _SCORES.format(*words), ", Sequence"
    about = f"{source.title}. Made by RankTune."
    head = f"{about!a}\n\nfrom __future__ import annotations\n\n{'' if source.kinds is None else _LIBRARIES}"
    head += f"from collections.abc import Mapping{more_imports}\n\n"
    return f"{head}{tables}{begin}    total = 0.0\n{additions}    return total\n"


def plain_json(source: ExportedModel) -> str:
    """Return names and columns with weights, and trees, as JSON; the score adds the weighted features and the trees.

    For models that learned from missing values also what a missing value of each feature adds to the weighted sum
    (missing), and whether each split sends it left (missing_left). Without them a missing value counts as 0.
    """
    check_distinct(source)
    rows = zip(source.names, source.columns.tolist(), strict=True)
    features: list[Json] = [{"name": name, "column": column} for name, column in rows]
    if source.weights is not None:
        for feature, weight in zip(features, source.weights.tolist(), strict=True):
            feature["weight"] = weight
        if source.missing is not None:
            for feature, added in zip(features, source.missing.tolist(), strict=True):
                feature["missing"] = added
    model = source.model
    content = {
        "format": "ranktune-export",
        "version": 1,
        "kind": "linear" if source.trees is None else "trees" if source.weights is None else "blend",
        "name": source.name,
        "solver": model.solver,
        "metric": model.metric,
        "n_features": model.n_features,
    }
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in content.items()]
    for key, parts in (("features", features), ("trees", _flat(source))):
        if parts:
            items = ",\n".join(f"  {json.dumps(part, allow_nan=False)}" for part in parts)
            lines.append(f' "{key}": [\n{items}\n ]')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _flat(source: ExportedModel) -> list[Json]:
    """Return the lists of each tree, numbered within it, with missing_left if the model knows missing values."""
    trees, positions, sides = (
        source.trees,
        source.positions().tolist(),
        source.all_sides() if source.knows_missing else None,
    )
    if trees is None:
        return []
    nodes: list[Json] = []
    for t, (first, last) in enumerate(pairwise(trees.starts.tolist())):
        children = trees.children[first:last]
        left, right = np.where(children >= 0, children - first, children + first + t).T.tolist()
        nodes.append(
            {
                "feature": positions[first:last],
                "threshold": trees.threshold[first:last].tolist(),
                "left": left,
                "right": right,
                "value": trees.value[first + t : last + t + 1].tolist(),
            }
        )
        if sides is not None:
            nodes[-1]["missing_left"] = sides[first:last]
    return nodes


def single(x: float) -> float:
    """Return the number of single precision that is nearest to x."""
    rounded: float = struct.unpack("f", struct.pack("f", x))[0]
    return rounded


def rank(values: list[float | None]) -> list[float | None]:
    """Return 0 for the lowest value to 1 for the highest, for equal values their mean rank."""
    known = sorted(x for x in values if x is not None)
    ranks = dict.fromkeys(known, 0.5)
    if len(known) > 1:
        last = {x: k for k, x in enumerate(known)}
        first = {x: len(known) - 1 - k for k, x in enumerate(reversed(known))}
        ranks = {x: single(0.5 * (first[x] + last[x]) / (len(known) - 1)) for x in known}
    return [None if x is None else ranks[x] for x in values]


def zscore(values: list[float | None]) -> list[float | None]:
    """Return the values less their mean, by their standard deviation; 0 where they do not vary."""
    known = sorted(x for x in values if x is not None)
    half = 0.5 * known[-1] - 0.5 * known[0] if known else 0.0
    if half < MIN_SPREAD:
        return [None if x is None else 0.0 for x in values]
    scaled = {x: (0.5 * x - 0.5 * known[0]) / half for x in known}
    mean = variance = 0.0
    for x in known:
        mean += scaled[x] / len(known)
    for x in known:
        variance += (scaled[x] - mean) * (scaled[x] - mean) / len(known)
    return [None if x is None else single((scaled[x] - mean) / math.sqrt(variance)) for x in values]


def gap(values: list[float | None]) -> list[float | None]:
    """Return how far each value is below the highest."""
    highest = max((x for x in values if x is not None), default=0.0)
    return [None if x is None else single(min(highest - x, LARGEST)) for x in values]


def share(values: list[float | None]) -> list[float | None]:
    """Return the values by the highest; 0 where none is above 0."""
    highest = max((x for x in values if x is not None), default=0.0)
    return [None if x is None else single(max(x / highest, -LARGEST)) if highest > 0.0 else 0.0 for x in values]


_FUNCTIONS = {function.__name__: function for function in (rank, zscore, gap, share)}
"""Kind of column -> what computes it."""


def copied(kinds: Sequence[str]) -> str:
    """Return the text of what computes columns of these kinds."""
    functions: list[Callable[..., object]] = [single, *(_FUNCTIONS[kind] for kind in kinds)]
    constants = f"MIN_SPREAD, LARGEST = {MIN_SPREAD!r}, {LARGEST!r}"
    return "\n\n".join([constants, *(inspect.getsource(function) for function in functions)])
