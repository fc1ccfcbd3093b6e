"""PAMIR against plain numpy on the pairs it draws, and that it draws them alike."""

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.online.sampled_pairs import draw, draw_from, pair_table
from tests.support.copies import with_copies
from tests.support.plain_solvers import pamir


@pytest.mark.parametrize("sampling", ["documents", "queries"])
@pytest.mark.parametrize("C", [1e-3, 10.0])
def test_pamir_is_passive_aggressive_on_the_pairs_drawn(sampling: str, C: float, hard_queries: Queries) -> None:
    better, worse = draw(pair_table(hard_queries), 500, sampling, np.random.default_rng(7))
    X, w = hard_queries.features, np.zeros(6)
    for i, j in zip(better, worse, strict=True):
        z = X[i] - X[j]
        loss = max(0.0, 1.0 - z @ w)
        if loss > 0.0 and z @ z > 0.0:
            w = w + min(C, loss / (z @ z)) * z
    model = pamir(C, steps=500, sampling=sampling, random_state=7).fit(hard_queries)
    np.testing.assert_allclose(model.coef_, w, rtol=1e-11, atol=1e-12)
    assert model.n_pairs_seen_ == 500


def counts(queries: Queries, better: np.ndarray, worse: np.ndarray) -> np.ndarray:
    assert (queries.grades[better] > queries.grades[worse]).all()
    assert np.array_equal(queries.query_of_document[better], queries.query_of_document[worse])
    table = np.zeros((queries.n_documents,) * 2)
    np.add.at(table, (better, worse), 1.0)
    return table


@pytest.mark.parametrize("sampling", ["documents", "queries"])
def test_weighted_documents_are_drawn_as_their_copies_are(sampling: str, hard_queries: Queries) -> None:
    weighted, copied, rows = with_copies(hard_queries)
    here, there = (
        [
            *draw(pair_table(queries), 2000, sampling, np.random.default_rng(1)),
            *draw_from(pair_table(queries), 3, 2000, np.random.default_rng(2)),
        ]
        for queries in (weighted, copied)
    )
    np.testing.assert_array_equal(hard_queries.features[here], hard_queries.features[rows[there]])
    assert min(len(np.unique(drawn)) for drawn in here) > 10


@pytest.mark.parametrize("sampling", ["documents", "queries"])
def test_pairs_are_drawn_with_the_frequencies_promised(sampling: str) -> None:
    qid = np.array([0, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3])
    y = np.array([1, 0, 1, 1, 2, 0, 1, 0, 2, 3, 3])
    queries = Queries.from_arrays(np.random.default_rng(0).normal(size=(11, 2)), y, qid=qid)
    expected = np.zeros((11, 11))
    for rows in ([1, 2, 3], [4, 5, 6, 7, 8]):
        for i in rows:
            partners = [j for j in rows if y[j] != y[i]]
            for j in partners:
                first = 1.0 / 8.0 if sampling == "documents" else 0.5 / len(rows)
                pair = (i, j) if y[i] > y[j] else (j, i)
                expected[pair] += first / len(partners)
    assert expected.sum() == pytest.approx(1.0)
    n = 200_000
    seen = counts(queries, *draw(pair_table(queries), n, sampling, np.random.default_rng(1))) / n
    assert np.abs(seen - expected).max() < 5.0 * np.sqrt(0.25 / n)
    assert np.array_equal(seen > 0.0, expected > 0.0)
    frequencies = counts(queries, *draw_from(pair_table(queries), 2, n, np.random.default_rng(2))) / n
    share = expected[4:9, 4:9] / expected[4:9, 4:9].sum()
    assert np.abs(frequencies[4:9, 4:9] - share).max() < 5.0 * np.sqrt(0.25 / n)


def test_sparse_rows_cost_their_nonzeros() -> None:
    """A million features, three stored a row: a dense step a pair would take minutes."""
    generator = np.random.default_rng(0)
    n, d = 2000, 1_000_000
    columns = generator.integers(0, 50, (n, 3)) * 20_000
    X = sparse.csr_array((np.ones(3 * n), (np.repeat(np.arange(n), 3), columns.ravel())), shape=(n, d))
    truth = np.zeros(d)
    truth[np.arange(50) * 20_000] = generator.normal(size=50)
    y = np.digitize(X @ truth, (-1.0, 1.0))
    queries = Queries.from_arrays(X, y, qid=np.repeat(np.arange(100), 20))
    model = pamir(0.1, steps=20_000).fit(queries)
    assert parse_metric("pairwise").mean(model.predict(queries), queries) > 0.95
    assert np.count_nonzero(model.coef_) <= 50
