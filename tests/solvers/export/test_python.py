"""The Python function, run where nothing but Python is, as whoever gets the file would."""

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktune.solvers.export import export
from ranktune.solvers.models.base import Model
from tests.support.export_samples import (
    NAMES,
    SAMPLES,
    blend,
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
