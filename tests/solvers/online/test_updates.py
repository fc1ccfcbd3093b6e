"""SOLAR against plain numpy, and what its covariance must be. Perceptrons against plain Python, and their thresholds
and committees. PAMIR against plain numpy on the pairs it draws, and that it draws them alike. Pegasos against plain
numpy on the pairs it draws."""

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.online.sampled_pairs import draw, draw_from, pair_table
from tests.support.copies import with_copies
from tests.support.pass_samples import differences
from tests.support.plain_solvers import (
    committee_perceptron,
    pairwise_pegasos,
    pairwise_perceptron,
    pamir,
    prank_ranker,
    solar1,
    solar2,
)


def first_order(queries: Queries, C: float) -> tuple[Floats, float]:
    w, total = np.zeros(queries.n_features), 0.0
    for z in differences(queries):
        loss = max(0.0, 1.0 - float(z @ w))
        total += loss**2
        w = w + loss / (z @ z + 0.5 / C) * z
    return w, total


def second_order(queries: Queries, gamma: float, diagonal: bool) -> tuple[Floats, Floats, float]:
    w, sigma, total = np.zeros(queries.n_features), np.eye(queries.n_features), 0.0
    for z in differences(queries):
        loss = max(0.0, 1.0 - float(z @ w))
        total += loss**2
        if loss > 0.0:
            beta, v = z @ sigma @ z + gamma, sigma @ z
            w = w + loss / beta * v
            sigma = sigma - np.outer(v, v) / beta
            sigma = np.diag(np.diag(sigma)) if diagonal else sigma
    return w, sigma, total


@pytest.mark.parametrize("C", [1e-5, 0.01, 100.0])
def test_first_order_is_the_papers_update(C: float, hard_queries: Queries) -> None:
    model = solar1(C, pair_order="rows").fit(hard_queries)
    weights, loss = first_order(hard_queries, C)
    np.testing.assert_allclose(model.coef_, weights, rtol=1e-12, atol=1e-13)
    assert model.cumulative_loss_ == pytest.approx(loss, rel=1e-12)
    assert model.n_pairs_seen_ == len(differences(hard_queries))


@pytest.mark.parametrize("gamma", [0.1, 10.0, 1e4])
@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_second_order_is_the_papers_update(gamma: float, covariance: str, hard_queries: Queries) -> None:
    model = solar2(gamma, covariance=covariance, pair_order="rows").fit(hard_queries)
    weights, sigma, loss = second_order(hard_queries, gamma, covariance == "diagonal")
    np.testing.assert_allclose(model.coef_, weights, rtol=1e-12, atol=1e-12)
    expected = sigma if covariance == "full" else np.diag(sigma)
    np.testing.assert_allclose(model.covariance_, expected, rtol=1e-12, atol=1e-12)
    assert model.cumulative_loss_ == pytest.approx(loss, rel=1e-12)


def test_sparse_second_order_is_the_papers_update() -> None:
    generator = np.random.default_rng(0)
    X = sparse.random_array((120, 30), density=0.15, rng=generator, format="csr")
    queries = Queries.from_arrays(X, generator.integers(0, 3, 120), qid=np.repeat(np.arange(12), 10))
    for covariance in ("full", "diagonal"):
        model = solar2(2.0, covariance=covariance, pair_order="rows").fit(queries)
        weights, _, _ = second_order(queries, 2.0, covariance == "diagonal")
        np.testing.assert_allclose(model.coef_, weights, rtol=1e-12, atol=1e-12)


def test_covariance_stays_symmetric_and_positive_definite(hard_queries: Queries) -> None:
    for gamma in (1e-6, 1.0, 1e4):
        sigma = solar2(gamma, passes=20).fit(hard_queries).covariance_
        assert np.array_equal(sigma, sigma.T)
        eigenvalues = np.linalg.eigvalsh(sigma)
        assert eigenvalues[0] > 0.0
        assert eigenvalues[-1] <= 1.0
        assert (solar2(gamma, covariance="diagonal", passes=20).fit(hard_queries).covariance_ > 0.0).all()


def test_a_full_covariance_of_many_features_is_refused() -> None:
    X = sparse.csr_array((np.array([1.0, 2.0, 3.0]), (np.array([0, 1, 2]), np.array([5, 70_000, 99_999]))))
    with pytest.raises(ParameterError, match="covariance='diagonal'"):
        solar2().fit(X, [0.0, 1.0, 2.0])
    assert np.count_nonzero(solar2(covariance="diagonal").fit(X, [0.0, 1.0, 2.0]).coef_) == 3


def test_auto_is_full_where_that_is_small(hard_queries: Queries) -> None:
    ours, full = (solar2(covariance=covariance).fit(hard_queries) for covariance in ("auto", "full"))
    assert np.array_equal(ours.coef_, full.coef_) and ours.covariance_.shape == (6, 6)
    wide = hard_queries.with_features(np.tile(hard_queries.features, (1, 400)))
    ours, thin = (solar2(covariance=covariance).fit(wide) for covariance in ("auto", "diagonal"))
    assert np.array_equal(ours.coef_, thin.coef_) and ours.covariance_.shape == (2400,)


@pytest.mark.parametrize("pair_order", ["rows", "worse"])
def test_pairwise_perceptron_is_the_textbooks(pair_order: str, hard_queries: Queries) -> None:
    w, mistakes = np.zeros(6), 0
    for z in differences(hard_queries, pair_order):
        if z @ w <= 0.0:
            w, mistakes = w + z, mistakes + 1
    model = pairwise_perceptron(pair_order=pair_order).fit(hard_queries)
    np.testing.assert_allclose(model.coef_, w, rtol=1e-12, atol=1e-12)
    assert model.cumulative_loss_ == mistakes


@pytest.mark.parametrize("size", [1, 3, 20])
def test_committee_holds_the_longest_runs(size: int, hard_queries: Queries) -> None:
    w, run, committee = np.zeros(6), 0, [(0, np.zeros(6))] * size

    def enter() -> None:
        shortest = min(range(size), key=lambda h: committee[h][0])
        if run > committee[shortest][0]:
            committee[shortest] = (run, w)

    for z in differences(hard_queries):
        if z @ w > 0.0:
            run += 1
            continue
        enter()
        w, run = w + z, 0
    enter()
    expected = sum(r * v for r, v in committee) / sum(r for r, _ in committee)
    model = committee_perceptron(size, pair_order="rows").fit(hard_queries)
    np.testing.assert_allclose(model.coef_, expected, rtol=1e-11, atol=1e-12)


def prank(queries: Queries, n_grades: int) -> tuple[Floats, Floats, float]:
    """Crammer and Singer's algorithm, thresholds with their infinite last one."""
    w, b, loss = np.zeros(queries.n_features), np.append(np.zeros(n_grades - 1), np.inf), 0.0
    for x, grade in zip(queries.features, queries.grades, strict=True):
        y = int(grade) + 1
        predicted = min(r for r in range(1, n_grades + 1) if w @ x < b[r - 1])
        loss += abs(predicted - y)
        if predicted != y:
            side = [1.0 if y > r else -1.0 for r in range(1, n_grades)]
            tau = [s if (w @ x - b[r]) * s <= 0.0 else 0.0 for r, s in enumerate(side)]
            w = w + sum(tau) * x
            b[:-1] -= tau
    return w, b[:-1], loss


def test_prank_is_the_papers(hard_queries: Queries) -> None:
    model = prank_ranker(pair_order="rows").fit(hard_queries)
    weights, thresholds, loss = prank(hard_queries, 5)
    np.testing.assert_allclose(model.coef_, weights, rtol=1e-12, atol=1e-12)
    assert np.array_equal(model.thresholds_, thresholds)
    assert model.cumulative_loss_ == loss
    assert model.n_documents_seen_ == hard_queries.n_documents


def test_prank_refuses_a_grade_it_did_not_begin_with() -> None:
    model = prank_ranker().partial_fit(np.eye(3), [0.0, 1.0, 2.5])
    with pytest.raises(DataError, match=r"grade 2 is not among those of the first training data, \[0.0, 1.0, 2.5\]"):
        model.partial_fit(np.eye(3), [0.0, 1.0, 2.0])


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


@pytest.mark.parametrize("alpha", [1e-3, 0.5])
def test_pegasos_is_the_papers_on_the_pairs_drawn(alpha: float, hard_queries: Queries) -> None:
    better, worse = draw(pair_table(hard_queries), 800, "documents", np.random.default_rng(3))
    X, w = hard_queries.features, np.zeros(6)
    for t, (i, j) in enumerate(zip(better, worse, strict=True), start=1):
        z, eta = X[i] - X[j], 1.0 / (alpha * t)
        active = z @ w < 1.0
        w = (1.0 - eta * alpha) * w + (eta * z if active else 0.0)
    model = pairwise_pegasos(alpha, steps=800, random_state=3).fit(hard_queries)
    np.testing.assert_allclose(model.coef_, w, rtol=1e-10, atol=1e-11)


def test_steps_add_up_over_calls(hard_queries: Queries) -> None:
    model = pairwise_pegasos(0.1, pairs_per_document=2).fit(hard_queries)
    useful = hard_queries.n_documents - 3  # two queries of one document; one of a single grade has 12
    assert model.n_pairs_seen_ == 2 * (useful + 1 - 12)
    before = model.n_pairs_seen_
    assert model.partial_fit(hard_queries).n_pairs_seen_ == 2 * before
