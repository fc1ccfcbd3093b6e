"""ONNX graphs, checked by onnx."""

import json
import sys

import numpy as np
import onnx
import pytest

from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.export import export
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.blend import BlendModel
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import one_tree
from tests.support.export_samples import SAMPLES, blend, linear


@pytest.mark.parametrize("model", [make() for make in SAMPLES.values()], ids=SAMPLES)
def test_the_graph_is_valid_and_says_what_it_is(model: Model) -> None:
    made = onnx.load_from_string(export(model, "onnx", name="mine"))
    onnx.checker.check_model(made, full_check=True)
    about = {entry.key: entry.value for entry in made.metadata_props}
    assert json.loads(about["feature_names"]) == ["bm25(title)", "page rank", 'say "so"', "größe"]
    assert json.loads(about["columns"]) == [0, 2, 3, 4]
    assert (json.loads(about["name"]), about["metric"], about["data"]) == ("mine", "ndcg@10", "abc")
    assert {opset.domain: opset.version for opset in made.opset_import} == {"": 17, "ai.onnx.ml": 3}
    assert [port.name for port in (*made.graph.input, *made.graph.output)] == ["features", "score"]


def test_a_blend_is_a_product_an_ensemble_and_their_sum() -> None:
    graph = onnx.load_from_string(export(blend(), "onnx")).graph
    assert [node.op_type for node in graph.node] == ["IsNaN", "Where", "MatMul", "TreeEnsembleRegressor", "Add"]
    weights, _ = (onnx.numpy_helper.to_array(initializer) for initializer in graph.initializer)
    np.testing.assert_array_equal(weights, np.array([[1.0 / 3.0], [-2.5e-7], [0.0], [-1.0]], np.float32))


@pytest.mark.parametrize("part", ["weights", "trees"])
def test_either_part_of_a_blend_must_fit_into_single_precision(part: str) -> None:
    weights = LinearModel(np.array([1e300 if part == "weights" else 1.0]), "RankSVM")
    value = 1e300 if part == "trees" else 1.0
    grown = TreeModel(one_tree([0], [0.5], [-1], [-2], [0.0, value]), 1, "LambdaMART")
    with pytest.raises(ParameterError, match=r"1e\+300, and onnx computes in single precision"):
        export(BlendModel((weights, grown), "Blend"), "onnx")


def test_without_the_package_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ParameterError, match=r'pip install "ranktune\[onnx\]"'):
        export(linear(), "onnx")
    assert export(linear(), "json")
