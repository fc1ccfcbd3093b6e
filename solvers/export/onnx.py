"""Models as ONNX graphs: input features, (n, n_used) float32, output score, (n, 1) float32.

The input holds only the features that influence a score, in the order of metadata_props: feature_names (JSON), and
columns (JSON), their columns in the training data, from 0. Operators: MatMul and Add of ai.onnx 17,
TreeEnsembleRegressor of ai.onnx.ml 3; IsNaN and Where for weights, and Cast where they know missing values. These are
NaN, and count as 0 where training documents lacked none.

A model that compares the documents of a query has a second input, queries, (n,) int64: the number of the query of each
row. All rows of a query must be given, in any order. They are sorted by query and value, by two stable sorts. Numbers
are double ones until the end, so that the columns have the bits of `ranktune.solvers.models.within`: sums of z-scores
are added row by row, in a Scan. Memory: a few arrays of as many numbers as the features.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import ModuleType

import numpy as np

from ranktune.solvers.core.arrays import Array, Floats, Json
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.data.scaling import MIN_SPREAD
from ranktune.solvers.export.source import ExportedModel, check_single, single_thresholds
from ranktune.solvers.models.trees import Trees
from ranktune.solvers.models.within import LARGEST


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


_PREFIX = "within_"
_FIRST, _SECOND, _END = np.array([0]), np.array([1]), np.array([2])


class Comparisons:
    """The nodes and constants that make columns of features, (n, n_used) float32, by queries, (n,) int64.

    columns    the name of the features, with n_used columns of each kind beside them
    """

    def __init__(self, onnx: ModuleType, kinds: tuple[str, ...], *, takes_missing: bool) -> None:
        self.onnx = onnx
        self.nodes: list[object] = []
        self.constants: list[object] = []
        missing, absent = self.add("IsNaN", "features"), self.constant(np.float32(np.nan if takes_missing else 0.0))
        filled = "features" if takes_missing else self.add("Where", missing, absent, "features")
        made = [filled]
        if kinds:
            self._sort(filled)
        for kind in kinds:
            column = self._unsorted(self.single(_KINDS[kind](self)))
            made.append(self.add("Where", missing, absent, column) if takes_missing else column)
        self.columns = self.add("Concat", *made, axis=1)

    def constant(self, value: Array | np.generic | float) -> str:
        """Return the name of a constant; of a Python number in double precision."""
        name = f"{_PREFIX}c{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, kind: str, *inputs: str, outputs: int = 1, **attributes: object) -> str:
        """Return the name of the last output of a new node."""
        names = [f"{_PREFIX}{len(self.nodes)}_{k}" for k in range(outputs)]
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, names, **attributes))
        return names[-1]

    def double(self, name: str) -> str:
        """Return the numbers in double precision."""
        return self.add("Cast", name, to=self.onnx.TensorProto.DOUBLE)

    def single(self, name: str) -> str:
        """Return the numbers rounded to single precision."""
        return self.add("Cast", name, to=self.onnx.TensorProto.FLOAT)

    def whole(self, name: str) -> str:
        """Return the numbers, which are whole, as integers."""
        return self.add("Cast", name, to=self.onnx.TensorProto.INT64)

    def at(self, values: str, rows: str) -> str:
        """Return the values of each column in other rows."""
        return self.add("GatherElements", values, rows, axis=0)

    def _sort(self, features: str) -> None:
        """Sort each column by query and value, missing values last, and number the rows of queries and of ties."""
        one, zero = self.constant(np.array(1)), self.constant(np.array(0))
        self.shape = self.add("Shape", features)
        count = self.add("Slice", self.shape, self.constant(_FIRST), self.constant(_SECOND))
        infinite = self.constant(np.float32(np.inf))
        filled = self.add("Where", self.add("IsNaN", features), infinite, features)
        by_value = self.add("TopK", filled, count, outputs=2, axis=0, largest=0)
        queries = self.add("Gather", "queries", by_value)
        by_query = self.add("TopK", queries, count, outputs=2, axis=0, largest=0)
        self.order = self.at(by_value, by_query)
        values, queries = self.at(filled, self.order), self.at(queries, by_query)
        row = self.add("Range", zero, self.add("Squeeze", count), one)
        before = self.add("Max", self.add("Sub", row, one), zero)

        def differs(name: str) -> str:
            return self.add("Not", self.add("Equal", name, self.add("Gather", name, before)))

        self.of_next_query = differs(queries)
        is_other = self.add("Or", self.of_next_query, differs(values))
        self.query, self.ties = (self.add("CumSum", self.whole(mark), zero) for mark in (self.of_next_query, is_other))
        self.present = self.add("Less", values, infinite)
        self.values = self.double(values)
        column = self.add("Unsqueeze", self.double(row), self.constant(_SECOND))
        self.rows = self.add("Expand", column, self.shape)
        self.sizes = self.total(self.query, self.add("Expand", self.constant(1.0), self.shape))
        self.n_present = self.total(self.query, self.double(self.present))
        half = self.add("Mul", self.constant(0.5), self.add("Sub", self.sizes, self.constant(1.0)))
        self.first = self.add("Sub", self._middle(self.query), half)
        last = self.add("Sub", self.add("Add", self.first, self.n_present), self.constant(1.0))
        self.lowest, self.highest = (self.at(self.values, self.whole(place)) for place in (self.first, last))

    def total(self, groups: str, terms: str) -> str:
        """Return for each row the sum of whole terms over its group, whose order does not matter."""
        zeros = self.add("Expand", self.constant(0.0), self.shape)
        return self.at(self.add("ScatterElements", zeros, groups, terms, axis=0, reduction="add"), groups)

    def _middle(self, groups: str) -> str:
        """Return for each row the mean row of its group."""
        ones = self.add("Expand", self.constant(1.0), self.shape)
        return self.add("Div", self.total(groups, self.rows), self.total(groups, ones))

    def _unsorted(self, column: str) -> str:
        return self.add("ScatterElements", column, self.order, column, axis=0)

    def rank(self) -> str:
        """Return the ranks: the mean row of equal values in the query, by its last."""
        one = self.constant(1.0)
        others = self.add("Max", self.add("Sub", self.n_present, one), one)
        rank = self.add("Div", self.add("Sub", self._middle(self.ties), self.first), others)
        return self.add("Where", self.add("Equal", self.n_present, one), self.constant(0.5), rank)

    def gap(self) -> str:
        """Return the distances to the highest."""
        return self.add("Min", self.add("Sub", self.highest, self.values), self.constant(LARGEST))

    def share(self) -> str:
        """Return the values by the highest."""
        zero = self.constant(0.0)
        share = self.add("Max", self.add("Div", self.values, self.highest), self.constant(-LARGEST))
        return self.add("Where", self.add("Greater", self.highest, zero), share, zero)

    def zscore(self) -> str:
        """Return the values less their mean, by their standard deviation."""
        zero = self.constant(0.0)
        half, low, high = (self.add("Mul", x, self.constant(0.5)) for x in (self.values, self.lowest, self.highest))
        spread = self.add("Sub", high, low)
        varies = self.add("Not", self.add("Less", spread, self.constant(MIN_SPREAD)))
        scaled = self.add("Div", self.add("Sub", half, low), spread)
        less = self.add("Sub", scaled, self._added(self.add("Div", scaled, self.n_present)))
        variance = self._added(self.add("Div", self.add("Mul", less, less), self.n_present))
        return self.add("Where", varies, self.add("Div", less, self.add("Sqrt", variance)), zero)

    def _added(self, terms: str) -> str:
        """Return for each row the sum of the known terms of its query, added in the order of the rows."""
        helper, real = self.onnx.helper, self.onnx.TensorProto.DOUBLE
        zero = self.constant(0.0)
        nodes = [
            helper.make_node("Where", ["is_next", zero, "sum"], ["before"]),
            helper.make_node("Add", ["before", "term"], ["after"]),
            helper.make_node("Identity", ["after"], ["so_far"]),
        ]
        kinds = {"sum": real, "is_next": self.onnx.TensorProto.BOOL, "term": real, "after": real, "so_far": real}
        ports = [helper.make_tensor_value_info(name, kind, ["n_used"]) for name, kind in kinds.items()]
        body = helper.make_graph(nodes, "added", ports[:3], ports[3:])
        present = self.add("Where", self.present, terms, zero)
        n_used = self.add("Slice", self.shape, self.constant(_SECOND), self.constant(_END))
        start = self.add("Expand", zero, n_used)
        sums = self.add("Scan", start, self.of_next_query, present, outputs=2, body=body, num_scan_inputs=2)
        last = self.add("Sub", self.add("Add", self.first, self.sizes), self.constant(1.0))
        return self.at(sums, self.whole(last))


_KINDS: Mapping[str, Callable[[Comparisons], str]] = {
    "rank": Comparisons.rank,
    "zscore": Comparisons.zscore,
    "gap": Comparisons.gap,
    "share": Comparisons.share,
}
