"""Exports of models that compare the documents of a query: a Python function and an ONNX graph of whole queries."""

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Floats, Ints, Matrix
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.export import FORMATS, export
from ranktune.solvers.export.check import agreement
from ranktune.solvers.export.python import gap, rank, share, zscore
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.blend import blended
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import joined, one_tree
from ranktune.solvers.models.within import KINDS, WithinModel, columns_within

D = 6
NAMES = ("bm25", "clicks", 'say "so"', "price", "größe", "age")
HOLDING = ("onnx", "python")


def drawn(documents: int = 600, longest: int = 30, *, missing: float = 0.2, seed: int = 0) -> Queries:
    """Return single-precision features with ties, missing values, a column that does not vary, and large values."""
    generator = np.random.default_rng(seed)
    sizes = generator.integers(1, longest, 2 * documents // longest)
    X = generator.normal(size=(int(sizes.sum()), D))
    X[:, 0] = X[:, 0].round(1)
    X[:, 1] = np.repeat(generator.normal(size=len(sizes)), sizes)
    X[:, 2] = -np.abs(X[:, 2])
    X[:, 3] *= 5e37
    X[:, 4] = np.where(X[:, 4] < 0.0, 0.0, X[:, 4])
    X[generator.random(X.shape) < missing] = np.nan
    return Queries.from_arrays(X.astype(np.float32), np.zeros(len(X)), group=sizes, feature_names=NAMES)


def of_kinds(*kinds: str, missing: bool = True, seed: int = 0) -> WithinModel:
    """Return a model that compares columns with values that they have in drawn(seed=seed), and adds up integers."""
    generator, queries = np.random.default_rng(seed), drawn(seed=seed)
    choices = np.concatenate([np.arange(D) + KINDS.index(kind) * D for kind in ("value", *kinds)])
    columns = columns_within(queries.features, queries.starts, choices)
    parts = []
    for _ in range(60):
        picked = generator.integers(len(choices), size=3)
        values = [generator.choice(known[~np.isnan(known)]) for known in columns[:, picked].T]
        sides = generator.random(3) < 0.5 if missing else None
        leaves = generator.integers(-50, 50, 4).astype(np.float64)
        parts.append(one_tree(choices[picked], values, [1, -1, -3], [2, -2, -4], leaves, sides))
    trees = TreeModel(joined(parts), D * len(KINDS), "")
    return WithinModel(trees, "LambdaMART", feature_names=NAMES, metric="ndcg@10")


def by_python(content: str, X: Matrix, starts: Ints) -> Floats:
    made: dict[str, Any] = {}
    exec(content, made)
    documents = [dict(zip(NAMES, row, strict=True)) for row in np.asarray(X, dtype=np.float64).tolist()]
    ends = zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
    return np.concatenate([made["scores"](documents[a:b]) for a, b in ends])


def by_onnx(content: bytes, X: Matrix, numbers: Ints) -> Floats:
    import onnxruntime  # type: ignore[import-untyped]

    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    assert [(port.name, port.type) for port in session.get_inputs()] == [
        ("features", "tensor(float)"),
        ("queries", "tensor(int64)"),
    ]
    used = [NAMES.index(name) for name in json.loads(session.get_modelmeta().custom_metadata_map["feature_names"])]
    scores = session.run(["score"], {"features": X[:, used].astype(np.float32), "queries": numbers})[0]
    return np.asarray(scores[:, 0], dtype=np.float64)


def scored(model: Model, format: str, queries: Queries) -> Floats:
    content: Any = export(model, format)
    if format == "python":
        return by_python(content, queries.features, queries.starts)
    return by_onnx(content, queries.features, np.repeat(np.arange(queries.n_queries), queries.lengths))


@pytest.mark.parametrize("function", [rank, zscore, gap, share], ids=lambda function: function.__name__)
def test_columns_of_python_have_the_bits_of_those_of_the_model(function: Any) -> None:
    for seed in range(3):
        queries = drawn(longest=(4, 30, 300)[seed], seed=seed)
        X = np.asarray(queries.features, dtype=np.float64)
        X[:, 5] *= 1.0 / 3.0  # in double precision
        expected = columns_within(X, queries.starts, np.arange(D) + KINDS.index(function.__name__) * D)
        for a, b in zip(queries.starts[:-1], queries.starts[1:], strict=True):
            for j in range(D):
                result = function([None if x != x else x for x in X[a:b, j].tolist()])
                np.testing.assert_array_equal(np.array(result, dtype=np.float64), expected[a:b, j])


@pytest.mark.parametrize("format", HOLDING)
@pytest.mark.parametrize("kinds", [(), ("rank",), ("zscore",), ("gap",), ("share",), KINDS[1:]], ids=str)
def test_scores_are_those_of_the_model_to_the_last_bit(format: str, kinds: tuple[str, ...]) -> None:
    """Thresholds are values of the columns: another last digit would change branches. Sums of integers are exact."""
    for seed in range(3):
        model, queries = of_kinds(*kinds, seed=seed), drawn(seed=seed)
        expected = model.predict(queries)
        assert len(np.unique(expected)) > 50
        np.testing.assert_array_equal(scored(model, format, queries), expected)


@pytest.mark.parametrize("format", HOLDING)
def test_a_missing_value_is_0_to_a_model_that_has_learned_from_none(format: str) -> None:
    model, absent = of_kinds("rank", "gap", missing=False), drawn()
    zero = absent.with_features(np.nan_to_num(absent.features))
    result = scored(model, format, absent)
    np.testing.assert_array_equal(result, model.predict(zero))
    np.testing.assert_array_equal(result, scored(model, format, zero))


@pytest.mark.parametrize("format", HOLDING)
def test_weights_are_added(format: str) -> None:
    weights = LinearModel(np.array([1.0, 0.0, 3.0, 0.0, 0.0, -2.0]), "RidgeRanker", feature_names=NAMES)
    model = blended([weights, of_kinds("rank", missing=False)], [1.0, 0.5], "Blend", {})
    queries = drawn(missing=0.0)
    result, expected = scored(model, format, queries), model.predict(queries)
    tolerance = 1e-6 if format == "onnx" else 1e-15
    assert np.abs(result - expected).max() <= tolerance * np.abs(expected).max()


def test_rows_and_numbers_of_queries_may_stand_in_any_order() -> None:
    model, queries, generator = of_kinds(*KINDS[1:]), drawn(), np.random.default_rng(1)
    content: Any = export(model, "onnx")
    numbers = np.repeat(generator.permutation(queries.n_queries) * 2**40 - 5, queries.lengths)
    order = generator.permutation(queries.n_documents)
    result = by_onnx(content, queries.features[order], numbers[order])
    np.testing.assert_array_equal(result, model.predict(queries)[order])


@pytest.mark.parametrize("missing", [False, True])
def test_the_graph_has_standard_operators_and_no_constant_that_is_not_used(missing: bool) -> None:
    import onnx

    made = onnx.load_from_string(export(of_kinds(*KINDS[1:], missing=missing), "onnx"))
    assert {entry.domain: entry.version for entry in made.opset_import} == {"": 17, "ai.onnx.ml": 3}
    assert {node.domain for node in made.graph.node} == {"", "ai.onnx.ml"}
    assert {entry.name for entry in made.graph.initializer} <= {name for node in made.graph.node for name in node.input}


def test_no_documents_have_no_scores() -> None:
    content: Any = export(of_kinds("rank"), "onnx")
    assert by_onnx(content, np.zeros((0, D)), np.zeros(0, dtype=np.int64)).shape == (0,)
    assert by_python(str(export(of_kinds("rank"), "python")), np.zeros((0, D)), np.array([0, 0])).shape == (0,)


@pytest.mark.parametrize("format", HOLDING)
def test_the_check_of_an_export_scores_whole_queries(format: str) -> None:
    model, queries = of_kinds(*KINDS[1:]), drawn()
    checked = agreement(model, format, export(model, format), queries)
    assert (checked.same, checked.difference) == (queries.n_queries, 0.0)


def test_it_needs_nothing_but_python(tmp_path: Path) -> None:
    export(of_kinds(*KINDS[1:]), "python", tmp_path / "exported.py")
    code = (
        "import runpy, sys\n"
        "scores = runpy.run_path(sys.argv[1])['scores']\n"
        "print(len(scores([{'bm25': 1.0}, {'bm25': None}, {}])))\n"
        "assert not {'numpy', 'ranktune'} & set(sys.modules)"
    )
    command = [sys.executable, "-I", "-S", "-W", "error", "-c", code, str(tmp_path / "exported.py")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "3\n"), done.stderr
    tree = ast.parse((tmp_path / "exported.py").read_text())
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert [node.name for node in functions] == ["single", *KINDS[1:], "scores", "_score"]
    assert all(ast.get_docstring(node) for node in functions[:-1])


@pytest.mark.parametrize("format", sorted(FORMATS.keys() - set(HOLDING)))
def test_formats_that_score_documents_alone_refuse_it(format: str) -> None:
    members = [of_kinds("rank"), LinearModel(np.ones(D), "RidgeRanker", feature_names=NAMES)]
    for model in (members[0], blended(members, [1.0, 1.0], "Blend", {})):
        said = rf'others of its query, and {format} .* one of onnx, python, .*within_query="none".*serve=.*distil'
        with pytest.raises(ParameterError, match=said):
            export(model, format)
