"""The Python function, run where nothing but Python is, as whoever gets the file would. ONNX graphs, checked by onnx.
PMML documents, as the standard says. LightGBM's text, loaded and scored by LightGBM itself."""

import ast
import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import lightgbm
import numpy as np
import onnx
import pytest

from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.export import export
from ranktune.solvers.export.pmml import FIELDS
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.blend import BlendModel
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import joined, one_tree
from tests.support.export_evaluators import by_pmml4s
from tests.support.export_samples import (
    NAMES,
    SAMPLES,
    blend,
    linear,
    random_rows,
    random_trees,
    trees,
)


@pytest.mark.parametrize("model", [make() for make in SAMPLES.values()], ids=SAMPLES)
def test_it_needs_nothing_but_python(model: Model, tmp_path: Path) -> None:
    """Started as python -I -S: no path but the standard library's, no site packages."""
    export(model, "python", tmp_path / "exported.py")
    X = np.round(np.random.default_rng(0).normal(size=(20, 5)), 1)
    documents = [dict(zip(NAMES, row, strict=True)) for row in X.tolist()]
    code = (
        "import json, runpy, sys\n"
        "score = runpy.run_path(sys.argv[1])['score']\n"
        "print(json.dumps([score(document) for document in json.load(sys.stdin)]))\n"
        "assert not {'numpy', 'ranktune'} & set(sys.modules)"
    )
    command = [sys.executable, "-I", "-S", "-W", "error", "-c", code, str(tmp_path / "exported.py")]
    done = subprocess.run(command, input=json.dumps(documents), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(json.loads(done.stdout), model.predict(X), rtol=1e-14)


@pytest.mark.parametrize("model", [make() for make in SAMPLES.values()], ids=SAMPLES)
def test_it_imports_only_names_for_types_and_defines_one_function(model: Model) -> None:
    tree = ast.parse(str(export(model, "python")))
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert modules == {"__future__", "collections.abc"}
    assert not any(isinstance(node, ast.Import) for node in ast.walk(tree))
    (score,) = (node for node in tree.body if isinstance(node, ast.FunctionDef))
    assert ast.unparse(score.args) == "features: Mapping[str, float | None]"
    assert ast.unparse(score.returns or score) == "float"
    assert ast.get_docstring(tree) and ast.get_docstring(score)


def test_a_blend_lists_no_weight_that_is_0() -> None:
    made: dict[str, Any] = {}
    exec(str(export(blend(), "python")), made)
    assert made["WEIGHTS"] == {NAMES[0]: 1.0 / 3.0, NAMES[2]: -2.5e-7, NAMES[4]: -1.0}
    assert made["NAMES"] == (NAMES[0], *NAMES[2:])


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


DMG = "{http://www.dmg.org/PMML-4_4}"


def test_hostile_names_reach_the_evaluator() -> None:
    names = ("a<b", 'say "so"', "a & b", "größe", "\u202eright", "two\nlines", "tab\t", "'")
    weights = np.arange(1.0, 9.0)
    X = np.random.default_rng(0).normal(size=(5, 8))
    made = export(LinearModel(weights, "RankSVM", feature_names=names), "pmml")
    result = by_pmml4s(str(made), names)([dict(zip(names, row, strict=True)) for row in X.tolist()])
    np.testing.assert_allclose(result, X @ weights, rtol=1e-12)


def test_the_document_is_as_the_standard_says() -> None:
    for model, kind in ((linear(), "RegressionModel"), (trees(), "MiningModel"), (blend(), "MiningModel")):
        root = ElementTree.fromstring(str(export(model, "pmml")))
        assert root.tag == DMG + "PMML" and root.get("version") == "4.4"
        assert [child.tag for child in root] == [DMG + "Header", DMG + "DataDictionary", DMG + kind]
        fields = [field.get("name") for field in root.iter(DMG + "DataField")]
        assert fields == [NAMES[0], *NAMES[2:]]
        for schema in root.iter(DMG + "MiningSchema"):
            used = [field.get("name") for field in schema]
            assert used and set(used) <= set(fields)
        for node in root.iter(DMG + "Node"):
            assert node[0].tag in (DMG + "True", DMG + "SimplePredicate")
            assert len(node) in (1, 3) and (len(node) == 1) == (node.get("score") is not None)


def test_weights_of_a_blend_are_its_first_segment() -> None:
    root = ElementTree.fromstring(str(export(blend(), "pmml")))
    segments = list(root.iter(DMG + "Segment"))
    assert [segment[1].tag for segment in segments] == [DMG + "RegressionModel", *[DMG + "TreeModel"] * 3]
    assert [segment.get("id") for segment in segments] == ["1", "2", "3", "4"]
    used = [field.get("name") for field in segments[0].iter(DMG + "MiningField")]
    assert used == [predictor.get("name") for predictor in segments[0].iter(DMG + "NumericPredictor")]
    assert used == [NAMES[0], NAMES[2], NAMES[4]]


@pytest.mark.parametrize("more", [0, 1])
def test_what_jpmml_evaluator_loads_only_without_its_check_is_warned_of(more: int) -> None:
    model = LinearModel(np.ones(FIELDS + more), "RankSVM")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert str(export(model, "pmml")).count("<DataField") == FIELDS + more
    assert ["checkSchema" in str(each.message) for each in said] == [True] * more


def test_constants_and_unused_features_have_their_place() -> None:
    booster = lightgbm.Booster(model_str=str(export(trees(), "lightgbm")))
    X = np.round(np.random.default_rng(0).normal(size=(50, 5)), 1)
    np.testing.assert_array_equal(booster.predict(X), trees().predict(X))
    assert booster.num_trees() == 3
    assert booster.feature_name() == [
        "bm25_x28_title_x29_",
        "clicks",
        "page_x20_rank",
        "say_x20__x22_so_x22_",
        "gr_xf6__xdf_e",
    ]
    assert len(NAMES) == booster.num_feature()
    constant = TreeModel(joined([one_tree([], [], [], [], [0.5])]), 3, "GBDTRanker")
    booster = lightgbm.Booster(model_str=str(export(constant, "lightgbm")))
    np.testing.assert_array_equal(booster.predict(np.zeros((2, 3))), [0.5, 0.5])


def test_lightgbm_writes_it_back_alike(tmp_path: Path) -> None:
    model, X = TreeModel(random_trees(0), 6, "LambdaMART"), random_rows(3)
    export(model, "lightgbm", tmp_path / "model.txt")
    booster = lightgbm.Booster(model_file=str(tmp_path / "model.txt"))
    booster.save_model(str(tmp_path / "again.txt"))
    np.testing.assert_array_equal(lightgbm.Booster(model_file=str(tmp_path / "again.txt")).predict(X), model.predict(X))
