"""Document weights: a weight counts as that number of copies of the document, wherever there is such a law."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers import (
    GBDTRanker,
    LambdaMART,
    LogisticRanker,
    Queries,
    RandomForestRanker,
    RankSVM,
    RidgeRanker,
    SVRRanker,
)
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.queries import concatenate
from ranktune.solvers.data.scaling import factors, query_factors
from ranktune.solvers.optimizers import least_squares

generator = np.random.default_rng(7)
X = generator.integers(0, 12, (240, 4)).astype(float)
QID = np.arange(240) // 12
Y = np.digitize(X[:, 0] - 0.5 * X[:, 1] + generator.normal(size=240) * 3, [0.0, 4.0]).astype(float)
WEIGHTS = generator.integers(1, 4, 240)
COPIES = np.repeat(np.arange(240), WEIGHTS)
NEW = np.array([[3.0, 1.0, 4.0, 1.0], [5.0, 9.0, 2.0, 6.0], [0.0, 8.0, 11.0, 7.0]])

UNDRAWN: dict[str, Any] = {"trees": 15, "min_documents": 8, "feature_share": 1.0, "row_share": 1.0}
LAWFUL = [
    RidgeRanker(alpha=5.0),
    RidgeRanker(alpha=5.0, centre="none"),
    LogisticRanker(tol=1e-9),
    LogisticRanker(centre="none", gain="exponential", tol=1e-9),
    SVRRanker(tol=1e-9),
    SVRRanker(loss="l1", centre="none", C=0.1, tol=1e-6),
    GBDTRanker(**UNDRAWN),
    GBDTRanker(**UNDRAWN, centre="none"),
    GBDTRanker(**UNDRAWN, start="linear"),
]


@pytest.mark.parametrize("ranker", LAWFUL, ids=repr)
def test_a_weight_counts_as_copies_of_the_document(ranker: Any) -> None:
    weighted = ranker.fit(X, Y, qid=QID, document_weights=WEIGHTS).predict(NEW)
    copied = ranker.fit(X[COPIES], Y[COPIES], qid=QID[COPIES]).predict(NEW)
    differences = np.subtract.outer(weighted, weighted) - np.subtract.outer(copied, copied)
    assert np.abs(differences).max() < 2e-5 * np.ptp(copied)
    plain = ranker.fit(X, Y, qid=QID).predict(NEW)
    assert np.abs(np.diff(plain) - np.diff(weighted)).max() > 1e-3 * np.ptp(plain)


def test_conjugate_gradients_and_sparse_features_weigh_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = RidgeRanker(alpha=5.0).fit(X, Y, qid=QID, document_weights=WEIGHTS).coef_
    monkeypatch.setattr(least_squares, "MAX_DENSE_FEATURES", 1)
    for features in (X, sparse.csr_array(X)):
        result = RidgeRanker(alpha=5.0).fit(features, Y, qid=QID, document_weights=WEIGHTS).coef_
        np.testing.assert_allclose(result, exact, rtol=1e-6)


@pytest.mark.parametrize("scale", [factors, query_factors])
def test_deviations_are_those_of_copies(scale: Any) -> None:
    copied = Queries.from_arrays(X[COPIES], Y[COPIES], qid=QID[COPIES])
    for features in (X, sparse.csr_array(X)):
        weighted = Queries.from_arrays(features, Y, qid=QID, document_weights=WEIGHTS)
        np.testing.assert_allclose(scale(weighted, "standard"), scale(copied, "standard"), rtol=1e-12)


@pytest.mark.parametrize("ranker", [LambdaMART(trees=10), RandomForestRanker(trees=10)], ids=repr)
def test_equal_weights_within_queries_are_weights_of_queries(ranker: Any) -> None:
    by_query = generator.uniform(0.5, 2.0, 20).round(1)
    scores = ranker.fit(X, Y, qid=QID, document_weights=np.repeat(by_query, 12)).predict(NEW)
    np.testing.assert_array_equal(scores, ranker.fit(X, Y, qid=QID, query_weights=by_query).predict(NEW))


def test_weights_follow_their_documents() -> None:
    order = generator.permutation(240)
    queries = Queries.from_arrays(X[order], Y[order], qid=QID[order], document_weights=WEIGHTS[order])
    rows = np.arange(240) if queries.rows is None else queries.rows
    np.testing.assert_array_equal(queries.document_weights, WEIGHTS[order][rows])
    part = queries.select([3, 0])
    assert part.document_weights is not None
    np.testing.assert_array_equal(part.document_weights[:12], queries.weight_of_document[36:48])
    plain = Queries.from_arrays(X, Y, qid=QID + 100)
    assert concatenate([queries, plain]).weight_of_document[240:].tolist() == [1.0] * 240
    assert queries.fingerprint != Queries.from_arrays(X[order], Y[order], qid=QID[order]).fingerprint


@pytest.mark.parametrize("weights", [np.ones(3), np.zeros(240), np.full(240, np.nan), np.full(240, -1.0)])
def test_weights_must_be_positive_and_one_a_document(weights: np.ndarray) -> None:
    with pytest.raises(DataError, match="document"):
        RidgeRanker().fit(X, Y, qid=QID, document_weights=weights)


def test_a_solver_that_cannot_weigh_documents_says_so() -> None:
    with pytest.raises(ParameterError, match=r"RankSVM\(\) cannot weigh documents: leave document_weights out"):
        RankSVM().fit(X, Y, qid=QID, document_weights=WEIGHTS)
