"""RankSVM's objective, gradient and Hessian product against all pairs, written out."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.core.arrays import dense
from ranktune.solvers.data.grades import MAX_TABLE_GRADES as FEW
from ranktune.solvers.data.products import MANY_FEATURES, blocks
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.optimizers.rank_svm.pairwise_objective import RankObjective
from tests.support.copies import with_copies
from tests.support.rank_objectives import at_zero, hessian, hessian_product

Three = tuple[float, Any, Any]


def over_all_pairs(queries: Queries, C: float, w: Any, direction: Any) -> Three:
    """f, its gradient and H direction, one pair after the other."""
    X = dense(queries.features)
    X = X.astype(np.float64)
    value, gradient, product = 0.5 * w @ w, w.copy(), direction.copy()
    for a, b in zip(queries.starts[:-1], queries.starts[1:], strict=True):
        for i in range(a, b):
            for j in range(a, b):
                margin = X[i] @ w - X[j] @ w
                if queries.grades[i] > queries.grades[j] and margin < 1:
                    value += C * (1 - margin) ** 2
                    gradient -= 2 * C * (1 - margin) * (X[i] - X[j])
                    product += 2 * C * ((X[i] - X[j]) @ direction) * (X[i] - X[j])
    return value, gradient, product


def tied(seed: int, n_grades: int, form: str = "dense", dtype: Any = np.float64) -> Queries:
    """Queries of 1 to 50 documents on a grid of quarters, so that score gaps of exactly 0 and 1 are frequent."""
    generator = np.random.default_rng(seed)
    lengths = [1, 30, 5, 50, 2, 1, 22]
    qid = np.repeat(np.arange(len(lengths)), lengths)
    X = (np.round(generator.normal(size=(len(qid), 5)) * 2) / 2).astype(dtype)
    y = generator.integers(0, n_grades, len(qid)) * 0.7 - 1.0  # real-valued, some negative
    y[qid == 2] = 3.0
    return Queries.from_arrays(sparse.csr_array(X) if form == "csr" else X, y, qid=qid)


def assert_equal_to_all_pairs(queries: Queries, w: Any, C: float = 0.7) -> None:
    direction = np.random.default_rng(9).normal(size=queries.n_features)
    objective = RankObjective(queries, C)
    value, gradient = objective.value_and_gradient(w)
    product = hessian_product(objective, direction)
    expected = over_all_pairs(queries, C, w, direction)
    assert value == pytest.approx(expected[0], rel=1e-9)
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-9, atol=1e-9 * np.abs(expected[1]).max())
    np.testing.assert_allclose(product, expected[2], rtol=1e-9, atol=1e-9 * np.abs(expected[2]).max())


@pytest.mark.parametrize(("form", "dtype"), [("dense", np.float32), ("dense", np.float64), ("csr", np.float32)])
@pytest.mark.parametrize("n_grades", [2, 3, FEW, FEW + 1, 20, 1000])
def test_equal_to_all_pairs(n_grades: int, form: str, dtype: Any) -> None:
    queries = tied(n_grades, n_grades, form, dtype)
    w = np.round(np.random.default_rng(n_grades).normal(size=5) * 2) / 2
    gaps = np.subtract.outer(*[queries.features @ w] * 2)
    assert (gaps == 1.0).sum() > 10  # the hard case is there: a margin of exactly 1 is not active
    for scale in (1.0, 0.0, 1e-300, 30.0):  # at the small ones all pairs are active
        assert_equal_to_all_pairs(queries, scale * w)


@pytest.mark.parametrize("n_grades", [3, FEW, FEW + 1, 1000])
@pytest.mark.parametrize("adjacent", [False, True])
@pytest.mark.parametrize("smoothing", [None, 0.3])
@pytest.mark.parametrize("size", [0.0, 1e-3, 1.0])
def test_weights_of_documents_count_as_copies(
    n_grades: int, adjacent: bool, smoothing: float | None, size: float
) -> None:
    """Also where all pairs are active, at small weights, and where all scores are equal."""
    (w, direction), results = np.random.default_rng(2).normal(size=(2, 5)), []
    for given in with_copies(tied(n_grades, n_grades))[:2]:
        objective = RankObjective(given, 0.7, smoothing=smoothing, adjacent=adjacent)
        value, gradient = objective.value_and_gradient(size * w)
        many = (gradient, hessian_product(objective, direction), hessian(objective), objective.loss_diagonal())
        first = np.array([value, *at_zero(objective), *objective.hinges], dtype=object)
        results.append(np.concatenate([np.ravel(part) for part in (*first, *many, objective.pairs)]))
        if size == 0.0:
            objective.rank_at_zero()
            results[-1] = np.append(results[-1], np.ravel(hessian(objective)))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-9, atol=1e-9 * np.abs(results[1]).max())


def test_many_sparse_columns_agree_with_few() -> None:
    queries = tied(4, 5, "csr")
    at = np.random.default_rng(0).choice(MANY_FEATURES, size=5, replace=False)  # the columns among many empty ones
    X: Any = queries.features
    wide = queries.with_features(
        sparse.csr_array((X.data, at[X.indices], X.indptr), shape=(len(queries.grades), MANY_FEATURES))
    )
    w, multiplier = np.zeros(MANY_FEATURES), np.ones(MANY_FEATURES)
    w[at], multiplier[at] = [0.5, -1.0, 2.0, 0.1, 0.3], [1.0, 2.0, 0.5, 3.0, 1.0]
    few, many = RankObjective(queries, 0.7, multiplier=multiplier[at]), RankObjective(wide, 0.7, multiplier=multiplier)
    for here, there in (
        (few.value_and_gradient(w[at]), many.value_and_gradient(w)),
        (at_zero(few), at_zero(many)),
    ):
        assert here[0] == pytest.approx(there[0], rel=1e-12)
        np.testing.assert_allclose(there[1][at], here[1], rtol=1e-12)
        assert np.count_nonzero(there[1]) <= 5
    np.testing.assert_allclose(hessian_product(many, w)[at], hessian_product(few, w[at]), rtol=1e-12)
    np.testing.assert_allclose(many.loss_diagonal()[at], few.loss_diagonal(), rtol=1e-12)


@pytest.mark.parametrize("smoothing", [None, 0.3])
def test_images_of_sparse_features_are_scores_and_spare_their_computation(smoothing: float | None) -> None:
    queries = tied(6, 4, "csr")
    multiplier = np.array([1.0, 0.5, 2.0, 0.0, 3.0])
    w, direction = np.random.default_rng(1).normal(size=(2, 5))
    objective = RankObjective(queries, 0.7, multiplier=multiplier, smoothing=smoothing)
    value, gradient = objective.value_and_gradient(w)
    image = objective.image(w)
    product, along = objective.product_and_image(direction)
    assert image is not None and along is not None
    np.testing.assert_allclose(image, queries.features @ (multiplier * w), rtol=1e-12)
    np.testing.assert_allclose(along, queries.features @ (multiplier * direction), rtol=1e-12)
    assert not np.any(objective.image(np.zeros(5)))
    objective.value_and_gradient(direction)
    with_image = objective.value_and_gradient(w, image)
    assert with_image[0] == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(with_image[1], gradient, rtol=1e-12)
    np.testing.assert_allclose(hessian_product(objective, direction), product, rtol=1e-12)


@pytest.mark.parametrize("n_grades", range(1, 13))
def test_equal_to_all_pairs_for_every_number_of_grades_of_one_query(n_grades: int) -> None:
    X = np.random.default_rng(n_grades).normal(size=(12, 3))
    y = np.arange(12) % n_grades
    assert_equal_to_all_pairs(Queries.from_arrays(X, y, qid=np.zeros(12, dtype=int)), np.array([0.5, -1.0, 2.0]))


def test_one_score_far_from_the_others_is_sorted_too() -> None:
    # all but one score share a bucket, so that buckets and insertion alone would take n^2 steps
    generator = np.random.default_rng(0)
    X = generator.normal(size=(300, 1))
    X[17] = 1e9
    queries = Queries.from_arrays(X, generator.integers(0, 3, 300), qid=np.zeros(300, dtype=int))
    assert_equal_to_all_pairs(queries, np.array([1.0]))


@pytest.mark.parametrize("n_grades", [4, 30])
def test_scores_beyond_float64_are_said_by_a_value_that_is_not_finite(n_grades: int) -> None:
    queries = tied(0, n_grades)
    large = queries.with_features(queries.features * 1e300)
    value, _ = RankObjective(large, 1.0).value_and_gradient(np.full(5, 1e10))
    assert not np.isfinite(value)


def test_pairs_are_counted() -> None:
    queries = tied(8, 9)
    counted = [
        sum(x > y for x in queries.grades[a:b] for y in queries.grades[a:b])
        for a, b in zip(queries.starts[:-1], queries.starts[1:], strict=True)
    ]
    assert RankObjective(queries, 2.0).pairs.tolist() == counted


def test_counts_of_more_than_2_to_the_32_pairs_are_exact() -> None:
    n = 100_000  # one query, all grades distinct: n (n - 1) / 2 pairs, about 5e9
    queries = Queries.from_arrays(np.zeros((n, 1)), np.arange(n), qid=np.zeros(n, dtype=int))
    objective = RankObjective(queries, 1.0)
    assert objective.pairs[0] == n * (n - 1) // 2
    assert objective.value_and_gradient(np.ones(1))[0] == pytest.approx(0.5 + n * (n - 1) // 2, rel=1e-12)


def test_blocks_cover_all_queries_in_order() -> None:
    starts = np.array([0, 3, 4, 20, 21, 22, 23, 30])
    for rows in (1, 2, 5, 10, 29, 30, 1000):
        ranges = blocks(starts, rows)
        assert [q for first, last in ranges for q in range(first, last)] == list(range(7))


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("n_grades", [2, 5, 30])
def test_the_formed_hessian_does_what_its_product_does(n_grades: int, form: str) -> None:
    queries = tied(n_grades, n_grades, form)
    objective = RankObjective(
        queries, 0.3, multiplier=np.array([1.0, 0.5, 3.0, 0.0, 2.0]), query_weights=np.arange(1.0, 8.0)
    )
    objective.value_and_gradient(np.array([0.3, -0.2, 1.0, 0.0, 2.0]))
    products = np.stack([hessian_product(objective, axis) for axis in np.eye(5)])
    np.testing.assert_allclose(hessian(objective), products, rtol=1e-9, atol=1e-9)


def test_the_diagonal_counts_the_square_of_each_feature_once_for_each_active_pair() -> None:
    queries = tied(3, 4)
    objective, w = RankObjective(queries, 0.3), np.array([0.5, -0.25, 1.0, 0.0, 2.0])
    objective.value_and_gradient(w)
    expected = np.ones(5)
    for a, b in zip(queries.starts[:-1], queries.starts[1:], strict=True):
        for i in range(a, b):
            for j in range(a, b):
                if queries.grades[i] > queries.grades[j] and (queries.features[i] - queries.features[j]) @ w < 1:
                    expected += 0.6 * (queries.features[i] ** 2 + queries.features[j] ** 2)
    np.testing.assert_allclose(1.0 + objective.C * objective.loss_diagonal(), expected, rtol=1e-12)


@pytest.mark.parametrize("smoothing", [None, 0.4])
@pytest.mark.parametrize("adjacent", [False, True])
@pytest.mark.parametrize("n_grades", [3, 20])
def test_zero_weights_are_ranked_without_sorting(n_grades: int, adjacent: bool, smoothing: float | None) -> None:
    generator = np.random.default_rng(4)
    X, y = generator.normal(size=(90, 3)), generator.integers(0, n_grades, 90)
    queries = Queries.from_arrays(X, y, group=[60, 29, 1])
    here, there = (RankObjective(queries, 2.0, adjacent=adjacent, smoothing=smoothing) for _ in range(2))
    value, gradient = here.value_and_gradient(np.zeros(3))
    expected, slope = at_zero(there)
    there.rank_at_zero()
    assert expected == pytest.approx(value) and np.allclose(slope, gradient)
    assert np.allclose(there.hinges, here.hinges)
    assert np.allclose(there.degrees, here.degrees)
    direction = generator.normal(size=3)
    assert np.allclose(hessian_product(there, direction), hessian_product(here, direction), rtol=1e-12)
    assert np.allclose(hessian(there), hessian(here), rtol=1e-12)
