"""Bags over seeds, and over solvers and objectives with weights, score 10,000 documents alike in every format."""

from functools import cache
from typing import Any

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.blend import blended
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.registry import make
from tests.solvers.export.test_scores import assert_close, scored

N_FEATURES = 50
FEW = {"vespa": 100, "pmml": 300, "solr": 1_000, "elasticsearch": 1_000}
"""Documents that readers which take long score."""
FORMATS = ("lightgbm", "onnx", "solr", "elasticsearch", "vespa", "pmml", "python")
MEMBERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("LambdaMART", {"leaves": 8}),
    ("LambdaMART", {"leaves": 8, "loss": "smoothed"}),
    ("LambdaMART", {"leaves": 8, "loss": "yetirank"}),
    ("GBDTRanker", {"leaves": 8}),
    ("SymmetricGBDT", {"depth": 3}),
    ("XGBoostRanker", {"depth": 3}),
    ("CatBoostRanker", {"depth": 3}),
)


def drawn(n_documents: int, missing: bool) -> Queries:
    """Queries of 20 documents whose features have few values, many values, or many ties at 0."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(n_documents, N_FEATURES)).astype(np.float32).astype(np.float64)
    X[:, ::3] = np.round(X[:, ::3], 1)
    X[:, 1::3] *= generator.random(X[:, 1::3].shape) < 0.5
    score = X[:, 0] + X[:, 1] * X[:, 2] + X[:, 3:9].sum(axis=1) + generator.normal(size=n_documents)
    if missing:
        X[generator.random(X.shape) < 0.2] = np.nan
    grades = np.digitize(score, np.quantile(score, [0.5, 0.8, 0.95])).astype(np.float64)
    return Queries.from_arrays(X, grades, group=[20] * (n_documents // 20))


@cache
def bag_of(kind: str, missing: bool) -> Model:
    queries = drawn(2_000, missing)
    if kind == "seeds":
        return make("LambdaMART", {"trees": 8, "leaves": 8, "loss": "smoothed", "seeds": 3}, 0).fit(queries).as_model()
    rankers = [make(solver, {"trees": 5, **params}, 0) for solver, params in MEMBERS]
    members = [ranker.fit(queries).as_model() for ranker in rankers]
    return blended(members, np.random.default_rng(1).uniform(0.1, 2.0, len(members)).tolist(), "Blend", {})


def documents(model: TreeModel, missing: bool) -> Floats:
    """10,000 documents, of which a tenth of the values lie on a threshold of their feature or beside it."""
    generator = np.random.default_rng(2)
    X = np.array(drawn(10_000, missing).features, dtype=np.float32)
    for feature in np.unique(model.trees.feature):
        limits = model.trees.threshold[model.trees.feature == feature].astype(np.float32)
        at = np.concatenate([np.nextafter(limits, np.float32(-9)), limits, np.nextafter(limits, np.float32(9))])
        at = at[np.isfinite(at) & (np.abs(at) > 1e-30) & (np.abs(np.frexp(at)[0]) > 0.5)]
        rows = generator.random(len(X)) < 0.1
        if len(at):
            X[rows, feature] = generator.choice(at, rows.sum())
    return X.astype(np.float64)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(("kind", "missing"), [("seeds", False), ("objectives", True)])
def test_documents_have_the_scores_of_the_model(kind: str, missing: bool, format: str) -> None:
    model = bag_of(kind, missing)
    assert isinstance(model, TreeModel)
    X = documents(model, missing)[: FEW.get(format)]
    result = scored(model, format, X)
    assert len(np.unique(result)) > 0.8 * min(len(X), 5_000)
    assert_close(result, model.predict(X), format)
