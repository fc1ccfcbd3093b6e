"""Solr and the plugins of Elasticsearch and OpenSearch, evaluated by what their Java does, in single precision."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.export.check import ranks_alike
from ranktune.solvers.export.formats import export
from ranktune.solvers.export.search_engines import SLACK, without_slack
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import one_tree
from tests.support.export_samples import NAMES, linear, random_rows, random_trees, trained, trees

Document = Mapping[str, np.float32]
Score = Callable[[Document], np.float32]
ZERO = np.float32(0)


def java(number: Any) -> np.float32:
    """Float.parseFloat, or a double made a float."""
    return np.float32(float(number))


def solr(text: str | bytes) -> Score:
    """LinearModel.score and MultipleAdditiveTreesModel.score, with the checks of their constructors and validate."""
    model = json.loads(text)
    names, params = [feature["name"] for feature in model["features"]], model["params"]
    assert model["name"] and model["store"] and names and len(set(names)) == len(names)
    if model["class"] == "org.apache.solr.ltr.model.LinearModel":
        assert set(params["weights"]) == set(names), "Model lacks weight(s) for"

        def linear_score(document: Document) -> np.float32:
            total = ZERO
            for name in names:
                total = np.float32(total + document.get(name, ZERO) * java(params["weights"][name]))
            return total

        return linear_score
    assert model["class"] == "org.apache.solr.ltr.model.MultipleAdditiveTreesModel"

    null_is_zero = params.get("isNullSameAsZero", "true") == "true"

    def node_score(node: dict[str, Any], document: Document) -> np.float32:
        while "feature" in node:
            assert node["feature"] in names
            threshold = np.float32(java(node["threshold"]) + np.float32(1e-6))
            if node["feature"] not in document and not null_is_zero:
                node = node[node["missing"]]
            else:
                node = node["left"] if document.get(node["feature"], ZERO) <= threshold else node["right"]
        assert "left" not in node and "right" not in node
        return java(node["value"])

    def tree_score(document: Document) -> np.float32:
        total = ZERO
        for tree in params["trees"]:
            total = np.float32(total + java(tree["weight"]) * node_score(tree["root"], document))
        return total

    return tree_score


def plugin(missing: str) -> Callable[[str | bytes], Score]:
    """LinearRanker and NaiveAdditiveDecisionTree; a lacking feature is zero, or goes its own way."""

    def parse(text: str | bytes) -> Score:
        model = json.loads(text)["model"]
        assert model["name"]
        definition = json.loads(model["model"]["definition"])
        if model["model"]["type"] == "model/linear":

            def linear_score(document: Document) -> np.float32:
                total = ZERO
                for name, weight in definition.items():
                    total = np.float32(total + java(weight) * document.get(name, ZERO))
                return total

            return linear_score
        assert model["model"]["type"] == "model/xgboost+json" and isinstance(definition, list)

        def checked(node: dict[str, Any], depth: int) -> None:
            assert isinstance(node["nodeid"], int) and node["depth"] == depth
            if "leaf" not in node:
                yes, no = node["children"]
                assert (node["yes"], node["no"]) == (yes["nodeid"], no["nodeid"])
                assert node["missing"] in (node["yes"], node["no"]) and isinstance(node["split"], str)
                checked(yes, depth + 1)
                checked(no, depth + 1)

        def tree_score(document: Document) -> np.float32:
            total = ZERO
            for node in definition:
                while "leaf" not in node:
                    if node["split"] not in document and missing == "its own way":
                        left = node["missing"] == node["yes"]
                    else:
                        left = bool(java(node["split_condition"]) > document.get(node["split"], ZERO))
                    node = node["children"][0 if left else 1]
                total = np.float32(total + java(node["leaf"]))
            return total

        for root in definition:
            checked(root, 0)
        return tree_score

    return parse


ENGINES = [("solr", solr), ("elasticsearch", plugin("zero")), ("opensearch", plugin("its own way"))]
engines = pytest.mark.parametrize(("format", "evaluator"), ENGINES, ids=[name for name, _ in ENGINES])


def scores(score: Score, X: Any, names: tuple[str, ...], sparse: bool = False) -> Any:
    """The scores of the rows of X; a sparse document lacks the features that are 0."""
    rows = X.astype(np.float32)
    made = ({n: x for n, x in zip(names, row, strict=True) if x != 0 or not sparse} for row in rows)
    return np.array([score(document) for document in made], dtype=np.float64)


@engines
@pytest.mark.parametrize("sparse", [False, True])
def test_scores_are_those_of_the_model(format: str, evaluator: Callable[[str | bytes], Score], sparse: bool) -> None:
    X = np.round(np.random.default_rng(0).lognormal(size=(300, 5)), 1).astype(np.float32)
    X[::3, 1:] = 0.0
    for model in (linear(), trees()):
        found = scores(evaluator(export(model, format)), X, NAMES, sparse)
        expected = model.predict(X)
        assert np.abs(found - expected).max() <= 2e-6 * np.abs(expected).max()
        assert len(np.unique(found)) >= 4


@engines
@pytest.mark.parametrize("seed", range(3))
def test_every_single_precision_value_goes_where_the_model_sends_it(
    format: str, evaluator: Callable[[str | bytes], Score], seed: int
) -> None:
    X = random_rows(seed + 1)
    model = TreeModel(random_trees(seed), 6, "LambdaMART")
    found = scores(evaluator(export(model, format)), X, tuple(f"f{k}" for k in range(1, 7)))
    assert np.abs(found - model.predict(X)).max() < 1e-5


@settings(deadline=None)
@given(st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**100), max_value=2.0**100))
@example(-0.49999997)
@example(1.0000000180025095e-35)
def test_what_solr_adds_is_taken_away(threshold: float) -> None:
    t = np.array([threshold], dtype=np.float32)
    reached = without_slack(t) + SLACK
    assert reached.dtype == np.float32 and reached[0] <= t[0]
    to_power = np.exp2(np.ceil(np.log2(abs(float(t[0]))))) - abs(float(t[0])) if threshold else 1.0
    if threshold == 0.0 or (abs(threshold) >= 2.0**-17 and (threshold > 0.0 or to_power > 2e-6)):
        assert reached[0] == t[0]
    else:  # no number plus the slack need give it: the last place is lost, or what is tiny beside the slack
        assert float(t[0]) - float(reached[0]) <= max(2.0**-42, float(np.spacing(np.abs(t[0]))))


@engines
@pytest.mark.parametrize("solver", ["RankSVM", "LambdaMART"])
def test_order_on_real_data(
    letor_folds: dict[str, Path], format: str, evaluator: Callable[[str | bytes], Score], solver: str
) -> None:
    model, queries = trained(letor_folds["MQ2008"], solver)
    names = tuple(f"f{k}" for k in range(1, model.n_features + 1))
    ours, first = model.predict(queries), int(queries.starts[40])  # the evaluators are slow
    theirs = scores(evaluator(export(model, format)), queries.features[:first], names)
    pairs = list(zip(queries.starts[:40], queries.starts[1:41], strict=True))
    assert sum(ranks_alike(ours[a:b], theirs[a:b]) for a, b in pairs) == 40
    assert np.abs(theirs - ours[:first]).max() <= 1e-5 * np.abs(ours).max()


@pytest.mark.parametrize("format", ["solr", "elasticsearch", "opensearch", "onnx"])
@pytest.mark.parametrize("weight", [1e39, -1e300, 1e-39, 5e-324])
def test_what_single_precision_cannot_hold_is_refused(format: str, weight: float) -> None:
    with pytest.raises(ParameterError, match=rf"{format} computes in single precision.*json, python"):
        export(LinearModel(np.array([0.0, weight]), "RankSVM"), format)


@pytest.mark.parametrize("format", ["solr", "elasticsearch", "onnx"])
def test_trees_that_single_precision_cannot_hold_are_refused(format: str) -> None:
    for threshold in (1e39, -1e300, 3.4028235e38):
        with pytest.raises(ParameterError, match=f"splits at .* and {format} compares in single precision"):
            export(TreeModel(one_tree([0], [threshold], [-1], [-2], [0.0, 1.0]), 1, "x"), format)
    with pytest.raises(ParameterError, match=f"and {format} computes in single precision"):
        export(TreeModel(one_tree([0], [0.0], [-1], [-2], [0.0, 1e40]), 1, "x"), format)


def test_names_of_the_model_and_of_the_store() -> None:
    made = json.loads(export(linear(), "solr", name="mine", store="features"))
    assert (made["name"], made["store"]) == ("mine", "features")
    assert json.loads(export(linear(), "solr"))["store"] == "_DEFAULT_"
    assert json.loads(export(linear(), "elasticsearch", name="mine"))["model"]["name"] == "mine"
