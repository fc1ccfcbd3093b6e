"""RankBoost against a plain implementation over all pairs, its bound, and its laws."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.boosting.bins import binned, thresholds
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from tests.support.plain_solvers import rank_boost


def all_pairs(queries: Queries) -> Any:
    """The pairs (better, worse) of all queries, with the number of their query."""
    result = []
    for q in range(queries.n_queries):
        a, b = queries.starts[q], queries.starts[q + 1]
        better, worse = np.nonzero(queries.grades[a:b, None] > queries.grades[None, a:b])
        result.append(np.column_stack([a + better, a + worse, np.full(len(better), q)]))
    return np.concatenate(result).T


def plain(queries: Queries, rounds: int, by_query: bool) -> list[tuple[int, float, float]]:
    """The algorithm as its card states it, every pair with a separate weight, every midpoint tried."""
    X = np.asarray(queries.features)
    better, worse, of = all_pairs(queries)
    D = queries.weight_of_query[of] / (np.bincount(of, minlength=queries.n_queries)[of] if by_query else 1.0)
    result = []
    for _ in range(rounds):
        D = D / D.sum()
        best = (0, 0.0, 0.0)
        for f in range(X.shape[1]):
            levels = np.unique(X[:, f])
            for theta in 0.5 * (levels[1:] + levels[:-1]):
                h = (X[:, f] > theta).astype(float)
                r = float(D @ (h[better] - h[worse]))
                if abs(r) > abs(best[2]) + 1e-12:
                    best = (f, theta, r)
        f, theta, r = best
        alpha = 0.5 * np.log((1 + r) / (1 - r))
        h = (X[:, f] > theta).astype(float)
        D = D * np.exp(-alpha * (h[better] - h[worse]))
        result.append((f, float(theta), alpha))
    return result


@pytest.mark.parametrize("average", ["pairs", "queries"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_it_does_what_the_paper_says(hard_queries: Queries, average: str, weighted: bool, layout: Any) -> None:
    queries = hard_queries.weighted_by([0.5, 2.0, 1.0, 1.5, 1.0, 3.0, 0.7, 1.1]) if weighted else hard_queries
    expected = plain(queries, 12, average == "queries")
    ranker = rank_boost(12, average=average).fit(queries.with_features(layout(queries.features)))
    scores = np.zeros(queries.n_documents)
    for (f, theta, alpha), ours, cut, weight in zip(
        expected, ranker.features_, ranker.thresholds_, ranker.alphas_, strict=True
    ):
        assert (ours, weight) == (f, pytest.approx(alpha, abs=1e-9))
        assert np.array_equal(queries.features[:, f] > theta, queries.features[:, f] > cut)
        scores += alpha * (queries.features[:, f] > theta)
    assert np.allclose(ranker.predict(queries.with_features(layout(queries.features))), scores, atol=1e-9)


def test_the_share_of_misordered_pairs_keeps_its_bound(hard_queries: Queries) -> None:
    better, worse, _ = all_pairs(hard_queries)
    ranker = rank_boost(40)
    bounds = []
    for step in ranker.fit_steps(hard_queries):
        scores = ranker.predict(hard_queries)
        assert float((scores[better] <= scores[worse]).mean()) <= step.objective + 1e-12
        bounds.append(step.objective)
    assert len(bounds) == 40 and (np.diff(bounds) < 0.0).all()


def test_stretching_a_feature_changes_nothing(hard_queries: Queries) -> None:
    stretched = hard_queries.with_features(np.exp(2.0 * hard_queries.features) + 5.0)
    ours, theirs = rank_boost(30).fit(hard_queries), rank_boost(30).fit(stretched)
    assert np.array_equal(ours.predict(hard_queries), theirs.predict(stretched))


def test_the_best_round_by_validation_is_kept(hard_queries: Queries) -> None:
    other = hard_queries.with_features(hard_queries.features[:, ::-1].copy())
    ranker = rank_boost(60, stop="vali", metric="map", patience=20)
    values = [
        parse_metric("map").mean(ranker.predict(other), other) for _ in ranker.fit_steps(hard_queries, vali=other)
    ]
    assert ranker.score_ == pytest.approx(max(values))
    assert len(values) in (60, ranker.n_iter_ + 20)
    assert len(ranker.alphas_) == ranker.n_iter_


def test_leads_of_hundreds_do_not_overflow() -> None:
    X = np.arange(40.0)[:, None]
    queries = Queries.from_arrays(X, np.arange(40) // 4)
    ranker = rank_boost(2000).fit(queries)
    assert np.isfinite(ranker.predict(X)).all()
    assert (np.diff(ranker.predict(X)[::4]) > 0.0).all()


@pytest.mark.parametrize("most", [2, 5, 256])
def test_bins_are_no_more_than_asked_for_and_hold_what_they_say(most: int) -> None:
    column = np.round(np.random.default_rng(0).normal(size=500), 2).astype(np.float32).astype(np.float64)
    cuts = thresholds(column, 0.0, most)
    assert 1 <= len(cuts) < most and (np.diff(cuts) > 0.0).all()
    assert not np.isin(cuts, column).any()
    counts = np.bincount(np.searchsorted(cuts, column, side="left"))
    assert counts.min() > 0
    if most == 5:
        assert counts.max() < 130
    X = np.column_stack([column, np.where(column > 0, column, 0.0)])
    dense, thin = binned(X, most), binned(sparse.csr_array(X), most)
    columns = thin.values
    assert not isinstance(columns, np.ndarray)
    for f in range(2):
        assert np.array_equal(dense.cuts[f], thin.cuts[f])
        codes = np.full(500, thin.zero[f])
        at = slice(columns.indptr[f], columns.indptr[f + 1])
        codes[columns.indices[at]] = columns.data[at]
        assert np.array_equal(codes, dense.values[f])


def test_thresholds_lie_where_float32_and_float64_agree() -> None:
    close = np.array([1.0, np.nextafter(np.float32(1.0), np.float32(2.0))], dtype=np.float64)
    (cut,) = thresholds(close, 0.0, 256)
    assert close[0] <= cut < close[1]


def test_a_row_that_counts_twice_moves_the_quantiles_as_two_rows() -> None:
    generator = np.random.default_rng(3)
    X, often = generator.random((60, 2)) * (generator.random((60, 2)) < 0.7), generator.integers(1, 4, 60)
    repeated = np.repeat(X, often, axis=0)
    for layout in (np.asarray, sparse.csr_array):
        ours, theirs = binned(layout(X), 8, often.astype(float)), binned(layout(repeated), 8)
        assert all(np.array_equal(a, b) for a, b in zip(ours.cuts, theirs.cuts, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(binned(X, 8).cuts, theirs.cuts, strict=True))
