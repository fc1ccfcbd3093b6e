"""Models as Solr and the learning-to-rank plugins of Elasticsearch and OpenSearch take them: JSON, in single precision.

Solr sends a document left where x <= threshold + 1e-6, the plugins where x < threshold; both sums are of floats. What
is written undoes this, so that a single-precision x goes where the model sends it. What a document lacks is 0.

Source: apache/solr, LinearModel.java and MultipleAdditiveTreesModel.java; o19s/elasticsearch-learning-to-rank,
LinearRankerParser.java, XGBoostJsonParser.java and NaiveAdditiveDecisionTree.java.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.export.source import (
    Source,
    check_depth,
    check_distinct,
    check_single,
    nested,
    single_thresholds,
)

SLACK = np.float32(1e-6)
"""What Solr adds to the threshold of every split."""
_COMPACT: dict[str, Any] = {"separators": (",", ":"), "allow_nan": False}
_SOLR = "org.apache.solr.ltr.model."


def solr(source: Source) -> str:
    """Return a LinearModel or a MultipleAdditiveTreesModel for Solr's model store."""
    return _solr_linear(source) if source.trees is None else _solr_trees(source)


def _solr_linear(source: Source) -> str:
    assert source.weights is not None
    check_distinct(source)
    check_single(source, source.weights)
    weights = dict(zip(source.names, source.weights.tolist(), strict=True))
    return _solr(source, "LinearModel", {"weights": weights})


def _solr_trees(source: Source) -> str:
    trees = source.trees
    assert trees is not None
    check_distinct(source)
    check_depth(source)
    check_single(source, trees.value)
    thresholds, place = without_slack(single_thresholds(source)).tolist(), source.place()

    def split(number: int, left: Any, right: Any) -> Any:
        name = source.names[place[trees.feature[number]]]
        return {"feature": name, "threshold": repr(thresholds[number]), "left": left, "right": right}

    roots = [nested(trees, t, split, lambda value: {"value": repr(value)}) for t in range(trees.n_trees)]
    params = {"trees": [{"weight": "1.0", "root": root} for root in roots]}
    return _solr(source, "MultipleAdditiveTreesModel", params)


def without_slack(thresholds: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return what plus SLACK in single precision gives the thresholds, or the next below that any number gives.

    That is the threshold itself, but for tiny ones, of less than 2^-17, which are missed by at most 2^-42, and for
    negative ones less than SLACK above a power of 2, which may be missed by a unit in the last place.
    """
    found = (thresholds.astype(np.float64) - np.float64(SLACK)).astype(np.float32)
    while (above := found + SLACK > thresholds).any():
        found = np.where(above, np.nextafter(found, np.float32(-np.inf)), found)
    return found


def _solr(source: Source, kind: str, params: Any) -> str:
    """Return a line for each part: Solr keeps models in ZooKeeper, whose files should be under 1 MB."""
    content = {
        "class": _SOLR + kind,
        "store": source.store,
        "name": source.name,
        "features": [{"name": name} for name in source.names],
        "params": params,
    }
    parts = (f"{json.dumps(key)}:{json.dumps(value, **_COMPACT)}" for key, value in content.items())
    return "{" + ",\n".join(parts) + "}\n"


def plugin(source: Source) -> str:
    """Return a model/linear or a model/xgboost+json for _ltr/_featureset/FEATURES/_createmodel."""
    return _plugin_linear(source) if source.trees is None else _plugin_trees(source)


def _plugin_linear(source: Source) -> str:
    assert source.weights is not None
    check_distinct(source)
    check_single(source, source.weights)
    weights = dict(zip(source.names, source.weights.tolist(), strict=True))
    return _plugin(source, "model/linear", weights)


def _plugin_trees(source: Source) -> str:
    trees = source.trees
    assert trees is not None
    check_distinct(source)
    check_depth(source)
    check_single(source, trees.value)
    limits = np.nextafter(single_thresholds(source), np.float32(np.inf)).tolist()
    place = source.place()

    def split(number: int, left: Any, right: Any) -> Any:
        return {
            "split": source.names[place[trees.feature[number]]],
            "split_condition": limits[number],
            "zero": bool(trees.threshold[number] >= 0.0),
            "children": [left, right],
        }

    roots = [nested(trees, t, split, lambda value: {"leaf": value}) for t in range(trees.n_trees)]
    return _plugin(source, "model/xgboost+json", [_numbered(root) for root in roots])


def _numbered(root: dict[str, Any]) -> dict[str, Any]:
    """Return root with the numbers and depths that the parser wants; what a document lacks goes where 0 goes."""
    root["nodeid"] = root["depth"] = 0
    count, waiting = 1, [root]
    for node in waiting:
        if "children" not in node:
            continue
        left, right = node["children"]
        left["nodeid"], right["nodeid"] = node["yes"], node["no"] = count, count + 1
        left["depth"] = right["depth"] = node["depth"] + 1
        node["missing"] = node["yes"] if node.pop("zero") else node["no"]
        count += 2
        waiting += [left, right]
    return root


def _plugin(source: Source, kind: str, definition: Any) -> str:
    text = json.dumps(definition, **_COMPACT)
    content = {"model": {"name": source.name, "model": {"type": kind, "definition": text}}}
    return json.dumps(content, indent=1, allow_nan=False) + "\n"
