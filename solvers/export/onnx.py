"""Models as ONNX graphs: input features, (n, n_used) float32, output score, (n, 1) float32.

The input holds only the features that influence a score, in the order of metadata_props: feature_names (JSON), and
columns (JSON), their columns in the training data, from 0. Operators: MatMul and Add of ai.onnx 17,
TreeEnsembleRegressor of ai.onnx.ml 3; IsNaN and Where for weights, and Cast where they know missing values. These are
NaN, and count as 0 where training documents lacked none.

A model that compares the documents of a query has a second input, queries, (n,) int64: the number of the query of each
row. All rows of a query must be given, in any order.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

import numpy as np

from ranktune.solvers.core.arrays import Array, Floats, Json
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.export.onnx_comparisons import Comparisons
from ranktune.solvers.export.source import ExportedModel, check_single, single_thresholds
from ranktune.solvers.models.trees import Trees


def onnx_graph(source: ExportedModel) -> bytes:
    """Return a matrix product, an ensemble, or both and their sum. Raises ParameterError where onnx is missing."""
    onnx = _onnx()
    nodes: list[object] = []
    initializers: list[object] = []
    both = source.weights is not None and source.trees is not None
    if source.weights is not None:
        weighted, initializers = _weighted_sum(onnx, source, source.weights, "of_weights" if both else "score")
        nodes += weighted
    if source.trees is not None:
        check_single(source, source.trees.value)
        kind, score, columns = "TreeEnsembleRegressor", "of_trees" if both else "score", "features"
        if source.kinds is not None:
            compared = Comparisons(onnx, source.kinds, takes_missing=source.trees.missing_left is not None)
            nodes, initializers = nodes + compared.nodes, initializers + compared.constants
            columns = compared.columns
        nodes += [
            onnx.helper.make_node(kind, [columns], [score], domain="ai.onnx.ml", **_ensemble(source, source.trees))
        ]
    if both:
        nodes += [onnx.helper.make_node("Add", ["of_weights", "of_trees"], ["score"])]
    return _model(onnx, source, nodes, initializers)


def _weighted_sum(
    onnx: ModuleType, source: ExportedModel, weights: Floats, score: str
) -> tuple[list[object], list[object]]:
    """Return the nodes and constants of the weighted sum of what is not missing, and of what missing values add."""
    node, constant = onnx.helper.make_node, onnx.numpy_helper.from_array
    check_single(source, weights)
    constants = [constant(weights.astype(np.float32)[:, None], "weights"), constant(np.float32(0.0), "zero")]
    nodes = [
        node("IsNaN", ["features"], ["is_missing"]),
        node("Where", ["is_missing", "zero", "features"], ["present"]),
    ]
    if source.missing is None:
        return [*nodes, node("MatMul", ["present", "weights"], [score])], constants
    check_single(source, source.missing)
    constants.append(constant(source.missing.astype(np.float32)[:, None], "missing"))
    nodes += [
        node("MatMul", ["present", "weights"], ["of_present"]),
        node("Cast", ["is_missing"], ["marks"], to=onnx.TensorProto.FLOAT),
        node("MatMul", ["marks", "missing"], ["of_missing"]),
        node("Add", ["of_present", "of_missing"], [score]),
    ]
    return nodes, constants


def _ensemble(source: ExportedModel, trees: Trees) -> Json:
    """Return the attributes of the ensemble: of each tree its splits, numbered from 0, then its leaves."""
    counts = np.diff(trees.starts)
    tree_of_split = np.repeat(np.arange(trees.n_trees), counts)
    tree_of_leaf = np.repeat(np.arange(trees.n_trees), counts + 1)
    splits = np.arange(trees.n_splits) - trees.starts[tree_of_split]
    leaves = np.arange(len(trees.value)) - trees.starts[tree_of_leaf] - tree_of_leaf + counts[tree_of_leaf]
    children = trees.children.astype(np.int64)
    tree = tree_of_split[:, None]
    ids = np.where(children >= 0, children - trees.starts[tree], ~children - trees.starts[tree] - tree + counts[tree])
    none = np.zeros(len(leaves), dtype=np.int64)
    order = np.argsort(np.concatenate([tree_of_split, tree_of_leaf]), kind="stable")

    def both(of_splits: Array, of_leaves: Array) -> object:
        return np.concatenate([of_splits, of_leaves])[order].tolist()

    sides = trees.zero_left if trees.missing_left is None else trees.missing_left
    return {
        "nodes_missing_value_tracks_true": both(sides.astype(np.int64), none),
        "n_targets": 1,
        "nodes_treeids": both(tree_of_split, tree_of_leaf),
        "nodes_nodeids": both(splits, leaves),
        "nodes_featureids": both(source.positions(), none),
        "nodes_modes": both(np.full(trees.n_splits, "BRANCH_LEQ"), np.full(len(leaves), "LEAF")),
        "nodes_values": both(single_thresholds(source, trees), none.astype(np.float32)),
        "nodes_truenodeids": both(ids[:, 0], none),
        "nodes_falsenodeids": both(ids[:, 1], none),
        "target_treeids": tree_of_leaf.tolist(),
        "target_nodeids": leaves.tolist(),
        "target_ids": none.tolist(),
        "target_weights": trees.value.astype(np.float32).tolist(),
    }


def _model(onnx: ModuleType, source: ExportedModel, nodes: Sequence[object], initializers: Sequence[object]) -> bytes:
    helper, real = onnx.helper, onnx.TensorProto.FLOAT
    features = helper.make_tensor_value_info("features", real, ["n", len(source.columns)])
    score = helper.make_tensor_value_info("score", real, ["n", 1])
    inputs = [features]
    if source.kinds is not None:
        inputs.append(helper.make_tensor_value_info("queries", onnx.TensorProto.INT64, ["n"]))
    graph = helper.make_graph(nodes, "ranktune", inputs, [score], initializers)
    versions = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(graph, opset_imports=versions, ir_version=9, producer_name="ranktune")
    about = {
        "name": json.dumps(source.name),
        "feature_names": json.dumps(source.names),
        "columns": json.dumps(source.columns.tolist()),
        "solver": source.model.solver,
        "metric": source.model.metric or "",
        "data": source.model.fingerprint or "",
    }
    helper.set_model_props(model, {key: value.encode(errors="replace").decode() for key, value in about.items()})
    onnx.checker.check_model(model, full_check=True)
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def _onnx() -> ModuleType:
    try:
        return import_module("onnx")
    except ImportError:
        raise ParameterError(
            'to write ONNX the package onnx is needed: pip install "ranktune[onnx]". Or export to json, python or pmml.'
        ) from None
