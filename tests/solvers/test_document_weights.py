"""Document weights: a weight counts as that number of copies of the document, wherever there is such a law."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers import (
    PAMIR,
    SOLAR2,
    AdaRank,
    BestFeature,
    CatBoostRanker,
    DominationRank,
    ElasticRank,
    GBDTRanker,
    LambdaMART,
    LambdaRank,
    ListNet,
    LogisticRanker,
    PairwisePegasos,
    Prank,
    Queries,
    RandomForestRanker,
    RankBoost,
    Ranker,
    RankSVM,
    RidgeRanker,
    SVRRanker,
    XGBoostRanker,
)
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.queries import concatenate
from ranktune.solvers.data.rows import rows_of
from ranktune.solvers.data.scaling import factors, query_factors
from ranktune.solvers.names import SOLVERS
from ranktune.solvers.online import kernels, solar
from ranktune.solvers.online.pairs import by_grade
from ranktune.solvers.online.weighted_draws import draw_by_weight, mass_of
from ranktune.solvers.registry import solver_class

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
BY_PAIRS = [
    RankSVM(tol=1e-9),
    RankSVM(loss="l1", pairs="adjacent", average="queries", tol=1e-6),
    Ranker(pair_weight="uniform"),
    Ranker("pairwise_squared_hinge", "uniform", "l2", "lbfgs"),
    ElasticRank("pairwise_hinge", "uniform"),
    ListNet(tol=1e-8),
    RankBoost(rounds=20, average="queries"),
    AdaRank("pairwise", rounds=10),
    BestFeature("pairwise"),
    PAMIR(steps=3000),
    PairwisePegasos(steps=3000, sampling="documents"),
]
"""What all copies of a query count together does not depend on how many they are."""
BY_NUMBER = [
    RankSVM(C=1e-3, average="none", tol=1e-9),
    DominationRank(),
    DominationRank("l2", average="queries", curvature="tight"),
    Ranker("domination", None, "l2", "lbfgs"),
    Prank(passes=2),
    SOLAR2(),
]
BY_RANKS = [LambdaRank(), ElasticRank(), AdaRank(), AdaRank("recall@5"), BestFeature()]
"""A document takes one rank, whatever its weight, so that no copies stand for it."""


@pytest.mark.parametrize("ranker", LAWFUL, ids=repr)
def test_a_weight_counts_as_copies_of_the_document(ranker: Any) -> None:
    weighted = ranker.fit(X, Y, qid=QID, document_weights=WEIGHTS).predict(NEW)
    copied = ranker.fit(X[COPIES], Y[COPIES], qid=QID[COPIES]).predict(NEW)
    differences = np.subtract.outer(weighted, weighted) - np.subtract.outer(copied, copied)
    assert np.abs(differences).max() < 2e-5 * np.ptp(copied)
    plain = ranker.fit(X, Y, qid=QID).predict(NEW)
    assert np.abs(np.diff(plain) - np.diff(weighted)).max() > 1e-3 * np.ptp(plain)


@pytest.mark.parametrize("ranker", [*BY_PAIRS, *BY_NUMBER, CatBoostRanker(trees=9, randomness=0.0)], ids=repr)
def test_pairs_and_lists_of_weighted_documents_are_those_of_their_copies(ranker: Any) -> None:
    weighted = ranker.fit(X, Y, qid=QID, document_weights=WEIGHTS).predict(X)
    copied = ranker.fit(X[COPIES], Y[COPIES], qid=QID[COPIES]).predict(X)
    assert np.abs((weighted - weighted.mean()) - (copied - copied.mean())).max() < 1e-6 * np.ptp(copied)
    plain = ranker.fit(X, Y, qid=QID).predict(X)
    assert isinstance(ranker, BestFeature) or np.abs(plain - weighted).max() > 1e-3 * np.ptp(plain)


@pytest.mark.parametrize("name", SOLVERS)
def test_weights_of_one_change_no_bit(name: str) -> None:
    few = {"trees": 5} if "trees" in solver_class(name)().get_params() else {}
    ranker: Any = solver_class(name)(**few, **({"loss": "smoothed"} if name == "XGBoostRanker" else {}))
    scores = ranker.fit(X, Y, qid=QID, document_weights=np.ones(240)).predict(X)
    np.testing.assert_array_equal(scores, ranker.fit(X, Y, qid=QID).predict(X))


@pytest.mark.parametrize("ranker", [*BY_PAIRS, *BY_RANKS], ids=repr)
def test_only_the_ratios_of_weights_matter(ranker: Any) -> None:
    scores, doubled = (ranker.fit(X, Y, qid=QID, document_weights=k * WEIGHTS).predict(X) for k in (1.0, 2.0))
    np.testing.assert_allclose(doubled, scores, rtol=0.0, atol=1e-7 * np.ptp(scores))
    plain = ranker.fit(X, Y, qid=QID).predict(X)
    assert isinstance(ranker, BestFeature) or np.abs(plain - scores).max() > 1e-3 * np.ptp(plain)


@pytest.mark.parametrize("ranker", [*BY_PAIRS[:1], *BY_PAIRS[2:-2], *BY_NUMBER], ids=repr)
def test_a_document_of_hardly_any_weight_is_left_out(ranker: Any) -> None:
    kept = np.arange(240) % 12 != 5
    weights = np.where(kept, WEIGHTS, 1e-9)
    if isinstance(ranker, ListNet | RankSVM | Ranker | ElasticRank | DominationRank | SOLAR2):
        ranker = type(ranker)(**ranker.get_params() | {"scaling": "none"})  # a range has no weights
    scores = ranker.fit(X, Y, qid=QID, document_weights=weights).predict(X)
    alone = ranker.fit(X[kept], Y[kept], qid=QID[kept], document_weights=WEIGHTS[kept]).predict(X)
    assert np.abs((scores - scores.mean()) - (alone - alone.mean())).max() < 1e-5 * np.ptp(alone)


@pytest.mark.parametrize(
    "kind",
    [kernels.FIRST_ORDER, kernels.BOUNDED, kernels.PERCEPTRON, kernels.COMMITTEE, kernels.FULL, kernels.DIAGONAL],
)
def test_a_weighted_pair_is_so_many_pairs_in_a_row(kind: int) -> None:
    width = 1 if kind == kernels.DIAGONAL else 4  # of one feature, a diagonal neglects nothing
    learn = solar.learn if kind in (kernels.FULL, kernels.DIAGONAL) else kernels.learn
    rows, rule = rows_of(np.ascontiguousarray(X[:, :width])), kernels.UpdateRule(kind, 0.01)
    better, worse = np.random.default_rng(4).integers(0, 240, (2, 200))
    times, sigma = np.tile([1, 3, 2, 1, 7], 40), {kernels.FULL: np.eye(4), kernels.DIAGONAL: np.ones((1, 1))}.get(kind)
    weighted, copied = (
        kernels.new_state(np.ones(width), None if sigma is None else sigma.copy(), np.zeros((3, width)))
        for _ in range(2)
    )
    learn(rows, better, worse, times.astype(float), rule, weighted)
    learn(rows, np.repeat(better, times), np.repeat(worse, times), np.zeros(0), rule, copied)
    expected = kernels.current_weights(rule, copied)
    np.testing.assert_allclose(kernels.current_weights(rule, weighted), expected, rtol=1e-6, atol=1e-9)
    assert expected.any()


def test_pairs_of_a_query_are_drawn_by_the_product_of_weights() -> None:
    """Of 100,000 draws that are evenly spread, each pair gets its share."""
    grades, weights = np.array([2.0, 0.0, 1.0, 0.0, 2.0, 5.0]), np.array([0.1, 2.0, 1.0, 0.7, 3.0, 0.4])
    queries = Queries.from_arrays(np.eye(6), grades, document_weights=weights)
    rows, pairs = by_grade(queries), np.empty((2, 100_000), dtype=np.int64)
    draw_by_weight(grades, rows, mass_of(queries, rows), 0, 6, (np.arange(1e5) + 0.5) / 1e5, pairs)
    expected = np.outer(weights, weights) * (grades[:, None] > grades)
    shares = np.bincount(pairs[0] * 6 + pairs[1], minlength=36).reshape(6, 6) / 1e5
    np.testing.assert_allclose(shares, expected / expected.sum(), atol=1e-4)


def test_thresholds_of_prank_stay_in_order_by_steps_of_any_length() -> None:
    weights = generator.uniform(0.01, 3.0, 240)
    thresholds = Prank(passes=9).fit(X, X[:, 0] + X[:, 1], qid=QID, document_weights=weights).thresholds_
    assert (np.diff(thresholds) >= 0.0).all() and (thresholds % 1.0).any()


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


@pytest.mark.parametrize(
    ("ranker", "reason"),
    [
        (XGBoostRanker(), r"XGBoostRanker\(\) cannot weigh documents: .* take a solver that can\. XGBoost's own loss"),
        (CatBoostRanker(loss="YetiRank"), "cannot weigh documents: .* loss='QueryRMSE' does"),
        (AdaRank("map"), "metric='map' cannot weigh documents: .* Take one of ndcg, pairwise, recall"),
        (BestFeature("mrr"), "metric='mrr' cannot weigh documents"),
    ],
)
def test_what_cannot_weigh_documents_says_why(ranker: Any, reason: str) -> None:
    with pytest.raises(ParameterError, match=reason):
        ranker.fit(X, Y, qid=QID, document_weights=WEIGHTS)
