"""What all online learners share: pieces equal the whole, progressive scores, sparse, invariances, refusals."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.rows import rows_of
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.online import pairs as online_pairs
from ranktune.solvers.online.base import OnlineRanker
from ranktune.solvers.online.kernels import UpdateRule, learn, list_pairs, new_state
from ranktune.solvers.online.perceptrons import Prank
from tests.support.linear_samples import CONFIGURATIONS
from tests.support.plain_solvers import (
    committee_perceptron,
    elastic_rank,
    pairwise_pegasos,
    pairwise_perceptron,
    pamir,
    prank_ranker,
    solar1,
    solar2,
)

GRADES = (0.0, 1.0, 2.0, 3.0, 4.0)
IN_TURN: list[OnlineRanker] = [
    solar1(0.3),
    solar1(0.3, pairs_per_query=20),
    solar2(5.0),
    solar2(5.0, covariance="diagonal", pair_order="rows"),
    pairwise_perceptron(),
    pairwise_perceptron(pairs_per_query=7),
    committee_perceptron(4),
    prank_ranker(GRADES),
]
SAMPLED: list[OnlineRanker] = [pamir(0.05, pairs_per_document=3), pairwise_pegasos(0.1, pairs_per_document=3)]
ALL = IN_TURN + SAMPLED


def pieces(queries: Queries, size: int) -> list[Queries]:
    numbers = np.arange(queries.n_queries)
    return [queries.select(numbers[k : k + size]) for k in range(0, len(numbers), size)]


def as_sparse(queries: Queries) -> Queries:
    return queries.with_features(sparse.csr_array(queries.features))


@pytest.mark.parametrize("ranker", [*IN_TURN, *(elastic_rank(**each) for each in CONFIGURATIONS)], ids=repr)
def test_pieces_leave_the_bits_of_the_whole(ranker: OnlineRanker, hard_queries: Queries) -> None:
    whole = clone(ranker).fit(hard_queries)
    for size in (1, 3):
        model = clone(ranker)
        for piece in pieces(hard_queries, size):
            model.partial_fit(piece)
        assert np.array_equal(model.coef_, whole.coef_)
    assert np.abs(whole.coef_).max() > 0.0
    twice = clone(ranker).set_params(passes=2).fit(hard_queries)
    assert np.array_equal(model.partial_fit(hard_queries).coef_, twice.coef_)
    assert not np.array_equal(twice.coef_, whole.coef_)


@pytest.mark.parametrize("ranker", [*ALL, elastic_rank(), elastic_rank(scaling="list", optimizer="rda")], ids=repr)
@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
def test_progressive_scores_before_it_learns(ranker: Any, is_sparse: bool, hard_queries: Queries) -> None:
    queries = as_sparse(hard_queries) if is_sparse else hard_queries
    order = np.random.default_rng(3).permutation(queries.n_queries)[:-2]
    model, by_hand = clone(ranker), clone(ranker)
    scores, expected = model.progressive(queries, order), np.full(queries.n_documents, np.nan)
    by_hand.partial_fit(queries.select(np.array([4])))  # a query of one document: begins, and teaches pairs nothing
    if isinstance(ranker, Prank):
        by_hand = clone(ranker)
    for q in order:
        piece = queries.select(np.array([q]))
        known = hasattr(by_hand, "coef_")
        expected[queries.starts[q] : queries.starts[q + 1]] = by_hand.predict(piece) if known else 0.0
        by_hand.partial_fit(piece)
    np.testing.assert_allclose(scores, expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(model.coef_, by_hand.coef_, rtol=1e-12, atol=1e-12)
    assert np.nanmax(np.abs(scores)) > 0.0


@pytest.mark.parametrize("ranker", [solar1(0.3, pairs_per_query=5), pamir(0.05)], ids=repr)
def test_the_seed_draws_the_pairs_of_pieces_too(ranker: OnlineRanker, hard_queries: Queries) -> None:
    models = [clone(ranker).set_params(random_state=s).partial_fit(hard_queries) for s in (None, 0, 7)]
    assert np.array_equal(models[0].coef_, models[1].coef_)
    assert not np.array_equal(models[1].coef_, models[2].coef_)


def test_progressive_goes_on_and_is_a_fit_in_the_end(hard_queries: Queries) -> None:
    model = solar2(5.0)
    model.progressive(hard_queries)
    assert np.array_equal(model.coef_, solar2(5.0).fit(hard_queries).coef_)
    learnt = model.predict(hard_queries)
    first = model.progressive(hard_queries)[: hard_queries.starts[1]]
    np.testing.assert_allclose(first, learnt[: hard_queries.starts[1]], rtol=1e-12)


@pytest.mark.parametrize("order", [[-1], [8], [0.5], [[0]], [], ["a"]], ids=repr)
def test_an_order_that_names_no_queries_is_refused(order: Any, hard_queries: Queries) -> None:
    for model in (solar1(), elastic_rank()):
        with pytest.raises(ParameterError, match="whole from 0 to 7"):
            model.progressive(hard_queries, order)


def test_parameters_are_checked_however_learning_begins(hard_queries: Queries) -> None:
    ranker = solar1(C=0.0)
    for learn_from in (ranker.fit, ranker.partial_fit, ranker.progressive):
        with pytest.raises(ParameterError, match=r"C=0\.0"):
            learn_from(hard_queries)


def test_too_many_pairs_are_refused_and_drawing_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    queries = Queries.from_arrays(
        np.random.default_rng(0).normal(size=(20_000, 3)), np.arange(20_000.0), group=[20_000]
    )
    with pytest.raises(DataError, match="pairs_per_query"):
        solar1().fit(queries)
    assert solar1(pairs_per_query=1000).fit(queries).n_pairs_seen_ == 1000
    monkeypatch.setattr(online_pairs, "MAX_PAIRS", 10.0)
    with pytest.raises(DataError, match="query 1 has 14 pairs"):
        solar1().fit(np.eye(8), [0, 1, 0, 0, 1, 2, 3, 3.5], qid=[0, 0, 1, 1, 1, 1, 1, 1])


@pytest.mark.parametrize("pair_order", online_pairs.ORDERS)
@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_pairs_that_are_listed_in_parts_leave_the_same_bits(
    pair_order: str, covariance: str, hard_queries: Queries, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranker = solar2(5.0, covariance=covariance, pair_order=pair_order)
    whole = clone(ranker).fit(hard_queries)
    monkeypatch.setattr(online_pairs, "LISTED", 20)
    in_parts = clone(ranker).fit(hard_queries)
    assert np.array_equal(in_parts.coef_, whole.coef_) and np.array_equal(in_parts.covariance_, whole.covariance_)
    assert (in_parts.n_pairs_seen_, in_parts.n_queries_seen_) == (whole.n_pairs_seen_, whole.n_queries_seen_)


def test_drawn_pairs_are_alike() -> None:
    """Every pair of a query is drawn equally often: perceptron steps on one-hot differences count them."""
    y = np.array([2.0, 0.0, 1.0, 0.0, 2.0, 5.0])
    queries = Queries.from_arrays(np.eye(6), y)
    lists = online_pairs.lists_of(queries, "shuffled", 1)
    assert lists.pairs[0] == 13
    draws = (np.arange(13_000) + 0.5) / 13_000
    counts = np.zeros((6, 6))
    for u in draws:
        state = new_state(np.ones(6))
        pairs, weights = np.empty((2, 1), dtype=np.int64), np.zeros(0)
        assert list_pairs(lists, np.array([0]), 0, 6, np.array([u]), pairs, weights) == 1
        learn(rows_of(queries.features), pairs[0], pairs[1], weights, UpdateRule(4, 1.0), state)
        counts[state.weights.argmax(), state.weights.argmin()] += 1
    assert np.array_equal(counts > 0, y[:, None] > y[None, :])
    assert counts[counts > 0].min() >= counts.max() - 2


@pytest.mark.parametrize("make", [pairwise_perceptron, solar1])
def test_a_fit_goes_on_from_the_weights_of_a_model(make: Any, hard_queries: Queries) -> None:
    """Of learners whose state is the weights: a pass that goes on is what partial_fit does after the first."""
    half = hard_queries.n_queries // 2
    parts = hard_queries.select(np.arange(half)), hard_queries.select(np.arange(half, hard_queries.n_queries))
    ranker = make(passes=1, scaling="none", random_state=None)
    model = clone(ranker).fit(parts[0]).as_model()
    further = clone(ranker).fit(parts[0]).partial_fit(parts[1])
    goes_on = clone(ranker).continue_from(model).fit(parts[1])
    assert np.allclose(goes_on.coef_, further.coef_, rtol=1e-12, atol=1e-300)
    for passes, along in clone(ranker).continue_from(model).fit_path(parts[1], [1, 2]):
        assert passes > 1 or np.array_equal(along.coef_, goes_on.coef_)
    assert not np.allclose(goes_on.coef_, clone(ranker).fit(parts[1]).coef_)
    anew = goes_on.continue_from(None).fit(parts[1])
    assert np.array_equal(anew.coef_, clone(ranker).fit(parts[1]).coef_)


def test_what_a_fit_cannot_go_on_from_is_refused(hard_queries: Queries) -> None:
    with pytest.raises(ParameterError, match="weights of a linear model"):
        solar1().continue_from(LinearModel(np.ones(3), "RankSVM", list_scaling=True))
    with pytest.raises(DataError, match="has 3 features"):
        solar1().continue_from(LinearModel(np.ones(3), "RankSVM")).fit(hard_queries)
