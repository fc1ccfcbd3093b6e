"""Models for search engines: Solr, the learning-to-rank plugins of Elasticsearch and OpenSearch, and Vespa.

Solr and the plugins read JSON, in single precision. Solr sends a document left where x <= threshold + 1e-6, the plugins
where x < threshold; both add single-precision numbers. The written thresholds compensate for this, so that a
single-precision x takes the same path as in the model. Where Solr's slack cannot be taken away, since a threshold is
tiny beside it, the feature is multiplied by a power of 2. A feature that a document lacks is 0, unless training
documents lacked it: then a tree has a side for it, in Solr (9.2 and later) where the feature has "defaultValue": "NaN"
in the feature store. Weights cannot tell. A feature that no training document lacked is 0 to trees even where it is
NaN. What versions make of it is in `ranktune.solvers.export.absent`.

Vespa reads a rank profile in its schema language, in double precision. Every feature is a function of the profile, so
that its meaning can be changed in one place. A name that is a rank feature of Vespa with arguments, such as
bm25(title), means that rank feature, and one that the columns of a table give is computed from its attribute. All
others mean the attribute of that name, which is NaN where the document has no value: missing. A feature that no
training document lacked is 0 then.

Source: apache/solr, LinearModel.java and MultipleAdditiveTreesModel.java; o19s/elasticsearch-learning-to-rank,
LinearRankerParser.java, XGBoostJsonParser.java and NaiveAdditiveDecisionTree.java.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Set

import numpy as np

from ranktune.solvers.core.arrays import Json
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.export.definitions import (
    AGE,
    FIELD,
    FILL_IN,
    LEVEL,
    FeatureMeaning,
    is_match,
    is_rank_feature,
    meanings_of,
)
from ranktune.solvers.export.source import (
    ExportedModel,
    Singles,
    check_distinct,
    check_single,
    escaped,
    single_thresholds,
)

SLACK = np.float32(1e-6)
"""What Solr adds to the threshold of every split."""
CLAUSES = 1024
"""Clauses of a search that OpenSearch takes unless its settings say otherwise."""
ZERO = 1e-30
"""LightGBM splits at 1e-35 for 0."""
_NORM = "org.apache.solr.ltr.norm.MinMaxNormalizer"
"""Solr divides the value by max - min."""


def solr(source: ExportedModel) -> str:
    """Return a LinearModel or a MultipleAdditiveTreesModel for Solr's model store."""
    trees = source.trees
    params: Json
    powers = [1.0] * len(source.names)
    if trees is None:
        kind, params = "LinearModel", {"weights": _weights(source)}
    else:
        check_distinct(source)
        check_single(source, trees.value)
        powers, singles = scales(source, single_thresholds(source, trees))
        thresholds, sides = without_slack(singles).tolist(), source.sides()

        def split(number: int, position: int, left: Json, right: Json) -> Json:
            node: Json = {"feature": source.names[position], "threshold": repr(thresholds[number])}
            if sides is not None:
                node["missing"] = "left" if sides[number] else "right"
            return node | {"left": left, "right": right}

        roots = source.nested(split, lambda value: {"value": repr(value)})
        kind, params = "MultipleAdditiveTreesModel", {} if sides is None else {"isNullSameAsZero": False}
        params["trees"] = [{"weight": "1.0", "root": root} for root in roots]
    content = {
        "class": f"org.apache.solr.ltr.model.{kind}",
        "store": source.store,
        "name": source.name,
        "features": [
            {"name": name}
            | ({} if power == 1.0 else {"norm": {"class": _NORM, "params": {"min": "0.0", "max": repr(1.0 / power)}}})
            for name, power in zip(source.names, powers, strict=True)
        ],
        "params": params,
    }
    # A line for each part: Solr keeps models in ZooKeeper, whose files should be under 1 MB.
    return "{" + ",\n".join(f"{json.dumps(key)}:{_compact(value)}" for key, value in content.items()) + "}\n"


def scales(source: ExportedModel, thresholds: Singles) -> tuple[list[float], Singles]:
    """Return a power of 2 by feature, 1 where the slack can be taken away, and the thresholds times these.

    A threshold of at least 64 has no room for the slack. Below ZERO it is taken for 0.
    """
    powers, positions = np.ones(len(source.names)), source.positions()
    inexact = (without_slack(thresholds) + SLACK != thresholds) & (np.abs(thresholds) > ZERO)
    for k in np.unique(positions[inexact]):
        sizes = np.abs(thresholds[positions == k].astype(np.float64))
        wanted = 7.0 - np.floor(np.log2(sizes[sizes > ZERO].min()))
        powers[k] = 2.0 ** min(wanted, 126.0 - np.floor(np.log2(sizes.max())), 126.0)
    return powers.tolist(), (thresholds * powers[positions]).astype(np.float32)


def without_slack(thresholds: Singles) -> Singles:
    """Return numbers that plus SLACK, in single precision, give the thresholds or the next lower reachable number.

    That is the threshold itself except for tiny ones, below 2^-17, which are missed by at most 2^-42, and for negative
    ones less than SLACK above a power of 2, which may be missed by one unit in the last place.
    """
    lowered = (thresholds.astype(np.float64) - np.float64(SLACK)).astype(np.float32)
    while (above := lowered + SLACK > thresholds).any():
        lowered = np.where(above, np.nextafter(lowered, np.float32(-np.inf)), lowered)
    return lowered


def plugin(source: ExportedModel) -> str:
    """Return a model/linear or a model/xgboost+json for _ltr/_featureset/FEATURES/_createmodel."""
    trees = source.trees
    if source.format == "opensearch" and len(source.names) > CLAUSES:
        raise ParameterError(
            f"the model uses {len(source.names):,} features, each of which is a query to opensearch, and that takes at "
            f"most {CLAUSES:,} at once. Train a sparser model, or raise indices.query.bool.max_clause_count there and "
            "export to elasticsearch, whose format is the same."
        )
    definition: object
    if trees is None:
        kind, definition = "model/linear", _weights(source)
    else:
        check_distinct(source)
        check_single(source, trees.value)
        limits = np.nextafter(single_thresholds(source, trees), np.float32(np.inf)).tolist()
        sides = source.all_sides()

        def split(number: int, position: int, left: Json, right: Json) -> Json:
            return {
                "split": source.names[position],
                "split_condition": limits[number],
                "missing_left": sides[number],
                "children": [left, right],
            }

        roots = source.nested(split, lambda value: {"leaf": value})
        splits = [_numbered(root) for root in roots]
        kind, definition = (
            "model/xgboost+json",
            {"missing_as_zero": True, "splits": splits} if source.asks_zero else splits,
        )
    model = {"type": kind, "definition": _compact(definition)}
    return json.dumps({"model": {"name": source.name, "model": model}}, indent=1, allow_nan=False) + "\n"


def _weights(source: ExportedModel) -> dict[str, float]:
    assert source.weights is not None
    check_distinct(source)
    check_single(source, source.weights)
    return dict(zip(source.names, source.weights.tolist(), strict=True))


def _numbered(root: Json) -> Json:
    """Return root with the numbers and depths that the parser requires, and the node of missing values."""
    root["nodeid"] = root["depth"] = 0
    count, waiting = 1, [root]
    for node in waiting:
        if "children" not in node:
            continue
        left, right = node["children"]
        left["nodeid"], right["nodeid"] = node["yes"], node["no"] = count, count + 1
        left["depth"] = right["depth"] = node["depth"] + 1
        node["missing"] = node["yes"] if node.pop("missing_left") else node["no"]
        count += 2
        waiting += [left, right]
    return root


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


LETTERS = "[A-Za-z0-9_]"


def vespa(source: ExportedModel) -> str:
    """Return a rank profile whose second phase is the weighted sum, the sum of trees as nested ifs, or that of both."""
    may_be_nan = set(source.differing())
    check_distinct(source)
    ends = [escaped(name, k, LETTERS) for name, k in zip(source.names, source.columns.tolist(), strict=True)]
    pairs = zip(meanings_of(source), ends, strict=True)
    meanings = [_meaning(meaning, end, meaning.feature in may_be_nan) for meaning, end in pairs]
    begin = "x_"
    while re.search(rf"\b{begin}", " ".join(meanings)):  # a field of the name of a function would be that function
        begin = f"x{begin}"
    words = {name: f"{begin}{end}" for name, end in zip(source.names, ends, strict=True)}
    functions = "".join(
        f"    # {json.dumps(name)}\n    function {word}() {{\n{meaning}\n    }}\n"
        for (name, word), meaning in zip(words.items(), meanings, strict=True)
    )
    total = _sum(_weighted(source, words, may_be_nan) + _nested(source, words, may_be_nan))
    listed = "".join(f"        {word}\n" for word in words.values())
    return (
        f"# {json.dumps(source.title)[1:-1]}. Made by RankTune.\n"
        "# Goes into the schema, after its document. What a feature is stands in its function: change it to what your\n"
        "# schema has.\n"
        f"rank-profile {escaped(source.name, 0, LETTERS)} inherits default {{\n"
        f"{functions}    second-phase {{\n        expression {{\n{total}        }}\n    }}\n"
        f"    match-features {{\n{listed}    }}\n}}\n"
    )


def _weighted(source: ExportedModel, words: Mapping[str, str], may_be_nan: Set[str]) -> list[str]:
    """Return the weighted features, or what they add where they are missing.

    Weights are no constants of the profile: the numbers of these have no exponent.
    """
    terms = []
    for k, weight in source.weighted():
        word = words[source.names[k]]
        term = f"{weight!r} * {word}"
        is_nan = source.names[k] in may_be_nan
        terms.append(f"if (isNan({word}) == 1, {source.added(k)!r}, {term})" if is_nan else term)
    return terms


def _nested(source: ExportedModel, words: Mapping[str, str], may_be_nan: Set[str]) -> list[str]:
    trees = source.trees
    thresholds = [] if trees is None else trees.threshold.tolist()
    sides = source.all_sides()

    def split(number: int, position: int, left: str, right: str) -> str:
        word = words[source.names[position]]
        test = f"{word} <= {thresholds[number]!r}"
        if source.names[position] in may_be_nan and sides[number]:
            test = f"({test}) || (isNan({word}) == 1)"  # || came before <= until 2022
        return f"if ({test}, {left}, {right})"

    return source.nested(split, repr)


def _sum(terms: list[str]) -> str:
    total = " +\n            ".join(terms)
    return f"            {total}\n"


def _meaning(meaning: FeatureMeaning, word: str, may_be_nan: bool) -> str:
    """Return the line of what a feature is, after that of what a person must do.

    A rank feature is 0 where nothing matches, and an attribute NaN where a document has no value. A comparison of texts
    compares their hashes.
    """
    name, kind, attribute = meaning.feature, meaning.kind, f"attribute({meaning.column})"
    if is_match(name):
        return _line(name if is_rank_feature(name) else f"bm25({meaning.column})")
    if kind == LEVEL:
        # A brace would end the expression, and \\b is b there.
        value = re.sub(r'[\x00-\x1f"\\{}]', lambda match: f"\\u{ord(match[0]):04x}", meaning.value)
        return _line(f'if ({attribute} == "{value}", 1.0, 0.0)')
    if kind not in (FIELD, AGE):  # a field begins with a letter, and what begins with a digit may be a number
        attribute = f"attribute({word if word[0].isalpha() else f'f_{word}'})"
    what = f"({meaning.before // 10**6} - {attribute}) / 86400.0" if kind == AGE else attribute
    value = what if may_be_nan else f"if (isNan({attribute}) == 1, 0.0, {what})"
    return _line(value, "" if kind in (FIELD, AGE) else f"        # {FILL_IN}: what the feature is in your schema\n")


def _line(expression: str, comment: str = "") -> str:
    return f"{comment}        expression: {expression}"
