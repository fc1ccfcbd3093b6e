"""AdaRank against a plain implementation, and what its parameters promise."""

from typing import Any

import numpy as np
import pytest

from ranktune.solvers.boosting.adarank import AdaRank
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.grades import with_pairs
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.tuner.samplers.space import UnionSpace
from tests.support.plain_solvers import ada_rank


def plain(
    queries: Queries, spelling: str, rounds: int, both: bool, repeats: str, reweigh: str
) -> tuple[list[int], list[float]]:
    """The algorithm as its card states it, with every measure computed anew in every round."""
    metric, X = parse_metric(spelling), np.asarray(queries.features, dtype=np.float64)
    rankers = [(f, s) for s in ((1.0, -1.0) if both else (1.0,)) for f in range(X.shape[1])]
    kept = with_pairs(queries) & ~np.isnan(metric.per_query(np.zeros(len(X)), queries))
    query_weights = queries.weight_of_query[kept]
    P = query_weights / query_weights.sum()
    features: list[int] = []
    alphas: list[float] = []
    for _ in range(rounds):
        best, chosen = -np.inf, (-1, 0.0)
        for f, s in rankers:
            if (repeats == "never" and f in features) or (repeats == "pause" and features[-1:] == [f]):
                continue
            merit = float(P @ metric.per_query(s * X[:, f], queries)[kept])
            if merit > best + 1e-15:
                best, chosen = merit, (f, s)
        if chosen[0] < 0:
            break
        features.append(chosen[0])
        alphas.append(chosen[1] * 0.5 * np.log((1 + best) / (1 - best)))
        weights = np.bincount(features, alphas, minlength=X.shape[1])
        if reweigh == "model":
            P = query_weights * np.exp(-metric.per_query(X @ weights, queries)[kept])
        else:
            P = P * np.exp(-abs(alphas[-1]) * metric.per_query(chosen[1] * X[:, chosen[0]], queries)[kept])
        P /= P.sum()
    return features, alphas


@pytest.mark.parametrize("reweigh", ["model", "feature"])
@pytest.mark.parametrize("repeats", ["pause", "never", "allow"])
@pytest.mark.parametrize("directions", ["both", "up"])
@pytest.mark.parametrize("metric", ["ndcg@5", "map", "kendall"])
def test_it_does_what_the_paper_says(
    hard_queries: Queries, metric: str, directions: str, repeats: str, reweigh: str
) -> None:
    parameters: dict[str, Any] = {"directions": directions, "repeats": repeats, "reweigh": reweigh}
    ranker = ada_rank(metric, rounds=8, stop="never", **parameters).fit(hard_queries)
    features, alphas = plain(hard_queries, metric, 8, directions == "both", repeats, reweigh)
    n = len(ranker.features_)
    assert n >= (1 if metric == "kendall" else 6)
    assert ranker.features_.tolist() == features[:n]
    assert np.allclose(ranker.alphas_, alphas[:n], rtol=0, atol=1e-12)
    assert np.allclose(ranker.coef_, np.bincount(features[:n], alphas[:n], minlength=6), atol=1e-12)


def test_the_ada_rank_of_the_paper_is_a_point_of_the_space() -> None:
    paper: dict[str, Any] = {"directions": "up", "repeats": "allow", "reweigh": "model"}
    result = UnionSpace({"AdaRank": AdaRank.space}).configuration("AdaRank", paper)
    assert result is not None
    assert paper.items() <= {name.removeprefix("AdaRank."): value for name, value in result.items()}.items()


def test_training_stops_when_nothing_gets_better_and_keeps_the_best(hard_queries: Queries) -> None:
    ranker = ada_rank("ndcg@5", rounds=200, stop="train", patience=5)
    values = [-step.objective for step in ranker.fit_steps(hard_queries)]
    assert len(values) == ranker.n_iter_ + 5
    assert ranker.score_ == max(values) == values[ranker.n_iter_ - 1]
    taught = hard_queries.select(np.flatnonzero(with_pairs(hard_queries)))
    assert parse_metric("ndcg@5").mean(ranker.predict(taught), taught) == pytest.approx(ranker.score_)
    assert len(ranker.features_) == ranker.n_iter_


def test_validation_queries_choose_the_round(hard_queries: Queries) -> None:
    other = hard_queries.with_features(hard_queries.features[:, ::-1].copy())
    ranker = ada_rank("map", rounds=12, stop="vali", patience=12)
    values = [-step.objective for step in ranker.fit_steps(hard_queries, vali=other)]
    assert ranker.score_ == max(values)
    assert parse_metric("map").mean(ranker.predict(other), other) == pytest.approx(ranker.score_)


def test_a_feature_that_is_always_right_gets_a_finite_weight() -> None:
    queries = Queries.from_arrays(np.array([[0.0, 1], [1, 0], [0, 1], [1, 1]]), [0, 1, 0, 1], qid=[0, 0, 1, 1])
    ranker = ada_rank("map", rounds=5, stop="never").fit(queries)
    assert np.isfinite(ranker.coef_).all() and ranker.coef_[0] > 5.0


def test_a_metric_that_skips_every_query_is_reported() -> None:
    queries = Queries.from_arrays(np.eye(4), [-1, 0, -1, 0], qid=[0, 0, 1, 1])
    with pytest.raises(DataError, match="skips every training query"):
        ada_rank("map").fit(queries)
