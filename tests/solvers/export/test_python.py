"""The Python function, run where nothing but Python is, as whoever gets the file would."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktune.solvers.export.check import ranks_alike
from ranktune.solvers.export.formats import export
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.tree_model import TreeModel
from tests.support.export_samples import (
    NAMES,
    SAMPLES,
    blend,
    linear,
    random_blend,
    random_rows,
    random_trees,
    trained,
    trees,
)


def function(model: Model) -> Callable[[Mapping[str, float | None]], float]:
    made: dict[str, Any] = {}
    exec(str(export(model, "python")), made)
    score: Callable[[Mapping[str, float | None]], float] = made["score"]
    return score


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


def test_what_is_not_there_counts_as_0() -> None:
    for model in (linear(), trees(), blend()):
        assert function(model)({}) == pytest.approx(model.predict(np.zeros((1, 5)))[0], rel=1e-14)
        assert function(model)({"nothing": 3.0}) == function(model)({})
        for nothing in (None, float("nan")):
            assert function(model)(dict.fromkeys(NAMES, nothing)) == function(model)({})


@pytest.mark.parametrize("seed", range(5))
def test_trees_answer_to_the_bit(seed: int) -> None:
    X = random_rows(seed + 1)
    model = TreeModel(random_trees(seed), 6, "LambdaMART")
    score, names = function(model), [f"f{k}" for k in range(1, 7)]
    assert [score(dict(zip(names, row, strict=True))) for row in X.tolist()] == model.predict(X).tolist()


@pytest.mark.parametrize("seed", range(5))
def test_blends_answer_but_for_the_order_of_additions(seed: int) -> None:
    X, model = random_rows(seed + 1, 300), random_blend(seed)
    score, names, expected = function(model), [f"f{k}" for k in range(1, 7)], model.predict(X)
    found = np.array([score(dict(zip(names, row, strict=True))) for row in X.tolist()])
    assert np.abs(found - expected).max() <= 1e-12 * np.abs(expected).max()
    assert ranks_alike(expected, found)


def test_a_blend_lists_no_weight_that_is_0() -> None:
    made: dict[str, Any] = {}
    exec(str(export(blend(), "python")), made)
    assert made["WEIGHTS"] == {NAMES[0]: 1.0 / 3.0, NAMES[2]: -2.5e-7, NAMES[4]: -1.0}
    assert made["NAMES"] == (NAMES[0], *NAMES[2:])


@pytest.mark.parametrize("solver", ["RankSVM", "LambdaMART", "Blend"])
def test_order_on_real_data(letor_folds: dict[str, Path], solver: str) -> None:
    model, queries = trained(letor_folds["MQ2008"], solver)
    names, score, ours = [f"f{k}" for k in range(1, model.n_features + 1)], function(model), model.predict(queries)
    theirs = np.array([score(dict(zip(names, row, strict=True))) for row in queries.features.tolist()])
    pairs = zip(queries.starts, queries.starts[1:], strict=False)
    assert sum(ranks_alike(ours[a:b], theirs[a:b]) for a, b in pairs) == queries.n_queries
