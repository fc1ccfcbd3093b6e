"""ONNX graphs, scored by onnxruntime and checked by onnx."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.export.check import agreement, ranks_alike
from ranktune.solvers.export.formats import export
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.blend import BlendModel
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import one_tree
from tests.support.export_samples import SAMPLES, blend, linear, random_blend, random_rows, random_trees, trained

onnx: Any = pytest.importorskip("onnx")
onnxruntime: Any = pytest.importorskip("onnxruntime")


def scores(model: Model, X: Floats) -> Floats:
    """What onnxruntime gives for rows with all of the model's columns, as the metadata says to pick them."""
    session = onnxruntime.InferenceSession(export(model, "onnx"), providers=["CPUExecutionProvider"])
    columns = json.loads(session.get_modelmeta().custom_metadata_map["columns"])
    (found,) = session.run(None, {"features": X[:, columns].astype(np.float32)})
    assert found.shape == (len(X), 1) and found.dtype == np.float32
    return np.asarray(found[:, 0], dtype=np.float64)


@pytest.mark.parametrize("model", [make() for make in SAMPLES.values()], ids=SAMPLES)
def test_scores_are_those_of_the_model(model: Model) -> None:
    X = np.round(np.random.default_rng(0).normal(size=(500, 5)), 1).astype(np.float32).astype(np.float64)
    expected = model.predict(X)
    assert np.abs(scores(model, X) - expected).max() <= 1e-6 * np.abs(expected).max()
    assert scores(model, X[:0]).shape == (0,)


@pytest.mark.parametrize("seed", range(5))
def test_every_single_precision_value_goes_where_the_model_sends_it(seed: int) -> None:
    X = random_rows(seed + 1, 500)
    model = TreeModel(random_trees(seed), 6, "LambdaMART")
    assert np.abs(scores(model, X) - model.predict(X)).max() < 1e-5


@pytest.mark.parametrize("model", [make() for make in SAMPLES.values()], ids=SAMPLES)
def test_the_graph_is_valid_and_says_what_it_is(model: Model) -> None:
    made = onnx.load_from_string(export(model, "onnx", name="mine"))
    onnx.checker.check_model(made, full_check=True)
    about = {entry.key: entry.value for entry in made.metadata_props}
    assert json.loads(about["feature_names"]) == ["bm25(title)", "page rank", 'say "so"', "größe"]
    assert json.loads(about["columns"]) == [0, 2, 3, 4]
    assert (json.loads(about["name"]), about["metric"], about["data"]) == ("mine", "ndcg@10", "abc")
    assert {one.domain: one.version for one in made.opset_import} == {"": 17, "ai.onnx.ml": 3}
    assert [port.name for port in (*made.graph.input, *made.graph.output)] == ["features", "score"]


@pytest.mark.parametrize("seed", range(5))
def test_blends_rank_as_the_model_does(seed: int) -> None:
    """On rows that differ by more than single precision: the ensemble's thresholds are tested above."""
    X = np.random.default_rng(seed + 1).normal(size=(300, 6)).astype(np.float32).astype(np.float64)
    model = random_blend(seed)
    found, expected = scores(model, X), model.predict(X)
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()
    assert ranks_alike(expected, found)


def test_a_blend_is_a_product_an_ensemble_and_their_sum() -> None:
    graph = onnx.load_from_string(export(blend(), "onnx")).graph
    assert [node.op_type for node in graph.node] == ["IsNaN", "Where", "MatMul", "TreeEnsembleRegressor", "Add"]
    weights, _ = (onnx.numpy_helper.to_array(one) for one in graph.initializer)
    np.testing.assert_array_equal(weights, np.array([[1.0 / 3.0], [-2.5e-7], [0.0], [-1.0]], np.float32))


@pytest.mark.parametrize("part", ["weights", "trees"])
def test_either_part_of_a_blend_must_fit_into_single_precision(part: str) -> None:
    weights = LinearModel(np.array([1e300 if part == "weights" else 1.0]), "RankSVM")
    value = 1e300 if part == "trees" else 1.0
    grown = TreeModel(one_tree([0], [0.5], [-1], [-2], [0.0, value]), 1, "LambdaMART")
    with pytest.raises(ParameterError, match=r"1e\+300, and onnx computes in single precision"):
        export(BlendModel((weights, grown), "Blend"), "onnx")


@pytest.mark.parametrize("data", ["MQ2008", "OHSUMED"])
@pytest.mark.parametrize("solver", ["RankSVM", "LambdaMART", "Blend"])
def test_order_on_real_data(letor_folds: dict[str, Path], data: str, solver: str) -> None:
    model, queries = trained(letor_folds[data], solver)
    found = agreement(model, "onnx", export(model, "onnx"), queries)
    assert found.queries == queries.n_queries
    assert found.difference <= 1e-6
    # Weights and trees together score hardly two documents alike: a few pairs lie closer than single precision tells.
    assert found.same >= found.queries - (3 if solver == "Blend" else 0)


def test_without_the_package_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ParameterError, match=r'pip install "ranktune\[onnx\]"'):
        export(linear(), "onnx")
    assert export(linear(), "json")
