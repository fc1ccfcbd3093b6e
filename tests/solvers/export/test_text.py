"""RankLib's text, read as its CoorAscent does, and liblinear's, read by liblinear itself."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Features, Floats
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.export.check import ranks_alike
from ranktune.solvers.export.formats import export
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.linear import LinearModel
from tests.support.export_samples import linear, trained


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


def test_order_on_real_data_by_liblinear(letor_folds: dict[str, Path], tmp_path: Path) -> None:
    """It prints six digits: scores that differ by less may come out alike, but never the other way round."""
    model, queries = trained(letor_folds["MQ2008"], "RankSVM")
    theirs, ours = liblinear(model, queries.features, tmp_path), model.predict(queries)
    assert np.abs(theirs - ours).max() <= 1e-5 * np.abs(ours).max()
    assert (np.diff(theirs[np.argsort(ours, kind="stable")]) >= 0.0).all()
