"""Scores of blocks of queries are the scores of all, to the bit, for every kind of model."""

from dataclasses import replace

import numpy as np
import pytest

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data import blocks
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.blend import blended
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.rankings.base import FeatureRanking, WantedFeatures
from ranktune.solvers.registry import make


def some(*, missing: bool = False) -> Queries:
    """Return queries whose rows the caller gave in another order."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(400, 5))
    X[generator.random(X.shape) < 0.2] = np.nan if missing else 0.0
    qid = generator.integers(0, 30, 400)
    return Queries.from_arrays(X, (X[:, 0] > 0).astype(int) + (X[:, 1] > 1), qid=qid, feature_names=list("abcde"))


def models(queries: Queries) -> dict[str, Model]:
    """Return a model of every kind that is fitted to queries."""
    solvers = {
        "linear": make("RankSVM", {}, 0),
        "list": make("Ranker", {"optimizer": "fobos", "scaling": "list"}, 0),
        "trees": make("GBDTRanker", {}, 0),
        "within": make("LambdaMART", {"within_query": "all", "trees": 20}, 0),
    }
    names = queries.feature_names
    result = {kind: solver.fit(queries).as_model(feature_names=names) for kind, solver in solvers.items()}
    return result | {"blend": blended([result["linear"], result["trees"]], [0.5, 0.5], "Blend", {})}


@pytest.mark.parametrize("missing", [False, True])
def test_blocks_change_no_score(missing: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    queries = some(missing=missing)
    assert queries.rows is not None
    moved = queries.with_columns(np.array([3, 1, 4, 0, 2]))
    ranked = replace(moved, rows=None)
    for kind, model in models(queries).items():
        ranking = FeatureRanking(kind, WantedFeatures(queries.feature_names), model.predict)
        whole, external = model.predict(moved), ranking.scores(moved)
        with monkeypatch.context() as patch:
            patch.setattr(blocks, "SCORED_ROWS", 37)
            assert model.predict(moved).tobytes() == whole.tobytes()
            parts = list(model.score_blocks(ranked))
            assert ranking.scores(moved).tobytes() == external.tobytes()
        assert len(parts) > 5 and max(map(len, parts)) <= 37
        assert np.concatenate(parts).tobytes() == model.predict(ranked).tobytes()


def test_a_score_that_is_not_finite_is_reported_with_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "SCORED_ROWS", 50)
    X = np.ones((300, 1))
    X[222] = 1e300
    model = LinearModel(np.array([1e10]), "RankSVM")
    with pytest.raises(DataError, match="score of row 222 is inf"):
        model.predict(Queries.from_arrays(X, np.zeros(300), qid=np.arange(300) // 7))
