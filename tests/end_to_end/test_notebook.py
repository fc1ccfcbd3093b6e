"""A notebook that a kernel executes shows the progress, the result as a table and as text, and a figure."""

import json
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import pytest

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(
        find_spec("nbconvert") is None or find_spec("ipykernel") is None,
        reason="notebooks cannot be executed: pip install nbconvert ipykernel",
    ),
]

CELLS = (
    "import numpy as np, ranktune\n"
    "X = np.random.default_rng(0).random((240, 3))\n"
    "y, qid = (X[:, 0] > X[:, 1]).astype(int), np.repeat(np.arange(24), 10)\n"
    "result = ranktune.tune((X, y, qid), solvers=('RidgeRanker', 'BestFeature'), trials=4, jobs=1, name='s')",
    "result",
    "print(result)",
    "result.plot_leaderboard()",
    "ranktune.RankSVM(C=0.5)",
    "found = ranktune.explain(result.best_model, (X, y, qid), query=0)\n"
    "added = sum(one['contribution'] for one in found['contributions'])\n"
    "abs(added - found['difference']) < 1e-9",
    "result.plot('weights', 'importance')",
)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> list[list[dict[str, Any]]]:
    """The outputs of each cell."""
    folder = tmp_path_factory.mktemp("notebook")
    cells: list[dict[str, Any]] = [
        {"cell_type": "code", "id": f"c{k}", "metadata": {}, "source": text, "outputs": [], "execution_count": None}
        for k, text in enumerate(CELLS)
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": kernel, "cells": cells}
    (folder / "n.ipynb").write_text(json.dumps(notebook))
    command = [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "--output", "done.ipynb", "n.ipynb"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [cell["outputs"] for cell in json.loads((folder / "done.ipynb").read_text())["cells"]]


def of_kind(outputs: list[dict[str, Any]], kind: str) -> str:
    return "".join("".join(result["data"][kind]) for result in outputs if kind in result.get("data", {}))


def test_progress_is_one_output_without_a_time_left(outputs: list[list[dict[str, Any]]]) -> None:
    shown = [output for output in outputs[0] if output["output_type"] == "display_data"]
    assert len(shown) == 1
    assert "trials 4/4, best" in of_kind(shown, "text/plain") and "left" not in of_kind(shown, "text/plain")


def test_figures_and_estimators_show_themselves(outputs: list[list[dict[str, Any]]]) -> None:
    assert any("application/vnd.plotly.v1+json" in output["data"] for output in outputs[3] if "data" in output)
    assert "<b>C</b>" in of_kind(outputs[4], "text/html")


def test_explanations_add_up_and_are_drawn(outputs: list[list[dict[str, Any]]]) -> None:
    assert of_kind(outputs[5], "text/plain") == "True"
    assert any("application/vnd.plotly.v1+json" in output["data"] for output in outputs[6] if "data" in output)
