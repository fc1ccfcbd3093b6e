"""RankLib's text, read as its CoorAscent and LambdaMART do, and liblinear's, read by liblinear itself."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any
from xml.dom import minidom

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Features, Floats
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.export.check import ranks_alike
from ranktune.solvers.export.formats import export
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from tests.support.export_samples import linear, random_rows, random_trees, trained, trees


def ranklib(text: str, X: Features) -> Floats:
    """CoorAscent.eval: features numbered from 1, in single precision, weights and sum in double."""
    first, *rest = text.splitlines()
    assert first.startswith("## Coordinate Ascent")  # by which RankerFactory chooses
    line = next(line for line in rest if line.strip() and not line.startswith("##"))
    pairs = [(int(number), float(weight)) for number, _, weight in (part.partition(":") for part in line.split())]
    assert all(1 <= number <= X.shape[1] for number, _ in pairs)
    values = X.astype(np.float32).astype(np.float64)
    total = np.zeros(len(X))
    for number, weight in pairs:
        total += weight * values[:, number - 1]
    return total


def ranklib_trees(text: str, X: Features) -> Floats:
    """Ensemble.eval: the first child of a tag is taken as it is, all numbers are single-precision ones."""
    first, *rest = text.splitlines()
    assert first == "## LambdaMART" and text.endswith("\n")
    document: Any = minidom.parseString("".join(line.rstrip() for line in rest if not line.startswith("#")))
    total = np.zeros(len(X), dtype=np.float32)
    rows = X.astype(np.float32)

    def output(node: Any, row: Floats) -> np.float32:
        while node.firstChild.nodeName == "feature":
            feature, threshold, left, right = node.childNodes
            at_most = row[int(feature.firstChild.nodeValue) - 1] <= np.float32(threshold.firstChild.nodeValue)
            node = left if at_most else right
        return np.float32(node.firstChild.firstChild.nodeValue)

    for tree in document.getElementsByTagName("tree"):
        weight = np.float32(tree.getAttribute("weight"))
        total += np.array([output(tree.firstChild, row) * weight for row in rows], dtype=np.float32)
    return total.astype(np.float64)


def liblinear(model: Model, X: Features, folder: Path) -> Floats:
    """What the program prints of rows in its own format."""
    program = shutil.which("liblinear-predict")
    if program is None:
        pytest.skip("liblinear-predict is not here: apt install liblinear-tools")
    export(model, "liblinear", folder / "model")
    rows = ("0 " + " ".join(f"{k}:{x!r}" for k, x in enumerate(row, 1) if x) for row in X.tolist())
    (folder / "rows").write_text("\n".join(rows) + "\n")
    subprocess.run([program, folder / "rows", folder / "model", folder / "out"], check=True, capture_output=True)
    return np.loadtxt(folder / "out")


def test_ranklib_reads_the_weights() -> None:
    X = np.round(np.random.default_rng(0).normal(size=(50, 5)), 1).astype(np.float32).astype(np.float64)
    np.testing.assert_allclose(ranklib(str(export(linear(), "ranklib")), X), linear().predict(X), rtol=1e-14)
    extreme = LinearModel(np.array([0.0, 1e300, -1e-300]), "RankSVM")
    assert ranklib(str(export(extreme, "ranklib")), np.array([[5.0, 2.0, 0.0]])).tolist() == [2e300]


def test_ranklib_reads_the_trees() -> None:
    for seed in range(3):
        model, X = TreeModel(random_trees(seed), 6, "LambdaMART"), random_rows(seed + 10)
        found = ranklib_trees(str(export(model, "ranklib")), X)
        np.testing.assert_allclose(found, model.predict(X), rtol=1e-5, atol=1e-5)
    X = np.round(np.random.default_rng(0).normal(size=(50, 5)), 1)
    found = ranklib_trees(str(export(trees(), "ranklib")), X.astype(np.float32))
    np.testing.assert_allclose(found, trees().predict(X.astype(np.float32)), rtol=1e-6)


def test_liblinear_reads_the_weights(tmp_path: Path) -> None:
    X = np.round(np.random.default_rng(0).normal(size=(50, 5)), 1)
    expected = linear().predict(X)
    found = liblinear(linear(), X, tmp_path)
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()  # it prints six digits


def alike(model: Model, queries: Queries, theirs: Floats) -> int:
    ours = model.predict(queries)
    return sum(ranks_alike(ours[a:b], theirs[a:b]) for a, b in zip(queries.starts, queries.starts[1:], strict=False))


def test_order_on_real_data_by_ranklib(letor_folds: dict[str, Path]) -> None:
    model, queries = trained(letor_folds["MQ2008"], "RankSVM")
    theirs = ranklib(str(export(model, "ranklib")), queries.features)
    assert alike(model, queries, theirs) == queries.n_queries > 100


def test_order_of_trees_on_real_data_by_ranklib(letor_folds: dict[str, Path]) -> None:
    model, queries = trained(letor_folds["MQ2008"], "LambdaMART")
    part = queries.select(np.arange(40))
    assert alike(model, part, ranklib_trees(str(export(model, "ranklib")), part.features)) == 40


def test_order_on_real_data_by_liblinear(letor_folds: dict[str, Path], tmp_path: Path) -> None:
    """It prints six digits: scores that differ by less may come out alike, but never the other way round."""
    model, queries = trained(letor_folds["MQ2008"], "RankSVM")
    theirs, ours = liblinear(model, queries.features, tmp_path), model.predict(queries)
    assert np.abs(theirs - ours).max() <= 1e-5 * np.abs(ours).max()
    assert (np.diff(theirs[np.argsort(ours, kind="stable")]) >= 0.0).all()
