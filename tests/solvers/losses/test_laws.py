"""What every loss of the ranking of queries keeps: laws that need no formula."""

from dataclasses import replace

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.losses.base import Loss, prepared
from ranktune.solvers.losses.domination import DominationLoss
from ranktune.solvers.losses.listwise import SoftmaxCrossEntropy
from ranktune.solvers.losses.pair_weights import DeltaNDCG, DeltaRecall, NoisyNDCG, NoisyNeighbours, Uniform
from ranktune.solvers.losses.pairwise import PairwiseHinge, PairwiseLogistic, PairwiseSquaredHinge
from tests.support.copies import with_copies

LOSSES: list[Loss] = [
    *[
        make(weight)
        for make in (PairwiseHinge, PairwiseSquaredHinge, PairwiseLogistic)
        for weight in (Uniform(), DeltaNDCG(3), DeltaNDCG(None), DeltaRecall(4), NoisyNDCG(3), NoisyNeighbours(3))
    ],
    SoftmaxCrossEntropy(),
    SoftmaxCrossEntropy("exp2", 2.0),
    SoftmaxCrossEntropy(temperature=0.05),
    DominationLoss(),
    DominationLoss("two", margin=(0.5, 2.0), average="documents"),
    DominationLoss(margin="grade", margin_scale=0.3),
]

WITH_PAIRS = [1, 2, 3, 6, 7]
"""The hard queries of two grades or more."""


def drawn(queries: Queries) -> Floats:
    return np.round(2.0 * np.random.default_rng(3).normal(size=queries.n_documents), 6)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
class TestEveryLoss:
    def test_a_shift_of_all_scores_of_a_query_changes_nothing(self, loss: Loss, hard_queries: Queries) -> None:
        scores = drawn(hard_queries)
        shifts = 100.0 * np.random.default_rng(1).normal(size=hard_queries.n_queries)
        value, gradient = loss.value_and_gradient(scores, hard_queries)
        moved, same = loss.value_and_gradient(scores + shifts[hard_queries.query_of_document], hard_queries)
        assert moved == pytest.approx(value, rel=1e-10)
        np.testing.assert_allclose(same, gradient, atol=1e-10)
        np.testing.assert_allclose(np.add.reduceat(gradient, hard_queries.starts[:-1]), 0.0, atol=1e-12)

    def test_the_order_of_documents_does_not_matter(self, loss: Loss, hard_queries: Queries) -> None:
        if hasattr(getattr(loss, "weight", None), "samples"):
            pytest.skip("noise belongs to the places of documents")
        scores = drawn(hard_queries)
        order = np.lexsort((np.random.default_rng(2).random(len(scores)), hard_queries.query_of_document))
        shuffled = replace(hard_queries, features=hard_queries.features[order], grades=hard_queries.grades[order])
        value, gradient = loss.value_and_gradient(scores, hard_queries)
        other, permuted = loss.value_and_gradient(scores[order], shuffled)
        assert other == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(permuted, gradient[order], atol=1e-13)

    def test_queries_without_pairs_do_not_count(self, loss: Loss, hard_queries: Queries) -> None:
        scores, rows = drawn(hard_queries), np.isin(hard_queries.query_of_document, WITH_PAIRS)
        value, gradient = loss.value_and_gradient(scores, hard_queries)
        alone, by_score = loss.value_and_gradient(scores[rows], hard_queries.select(np.array(WITH_PAIRS)))
        assert value == pytest.approx(alone, rel=1e-14) and value > 0.0
        np.testing.assert_allclose(gradient[rows], by_score, rtol=1e-13, atol=1e-16)
        assert not gradient[~rows].any()

    def test_a_query_of_weight_two_equals_the_query_given_twice(self, loss: Loss, hard_queries: Queries) -> None:
        scores = drawn(hard_queries)
        weighted = hard_queries.weighted_by({1: 2.0, 4: 5.0, 7: 2.0})
        value, gradient = loss.value_and_gradient(scores, weighted)
        q = np.array([0, 1, 1, 2, 3, 4, 5, 6, 7, 7])
        rows = np.concatenate([np.arange(hard_queries.starts[k], hard_queries.starts[k + 1]) for k in q])
        twice, by_score = loss.value_and_gradient(scores[rows], hard_queries.select(q))
        assert value == pytest.approx(twice, rel=1e-13)
        np.testing.assert_allclose(gradient, np.bincount(rows, by_score), atol=1e-14)

    def test_gradients_with_weights_of_documents_match_central_differences(
        self, loss: Loss, hard_queries: Queries
    ) -> None:
        scores, h = drawn(hard_queries), 1e-6
        weighted = hard_queries.given(document_weights=np.random.default_rng(5).uniform(0.2, 3.0, len(scores)))
        along = np.random.default_rng(6).normal(size=len(scores))
        up, down = (loss.value_and_gradient(scores + sign * h * along, weighted)[0] for sign in (1.0, -1.0))
        value, gradient = loss.value_and_gradient(scores, weighted)
        assert gradient @ along == pytest.approx((up - down) / (2.0 * h), rel=1e-5)
        assert value != pytest.approx(loss.value_and_gradient(scores, hard_queries)[0], rel=1e-4)

    def test_a_document_of_weight_k_equals_k_of_them(self, loss: Loss, hard_queries: Queries) -> None:
        if getattr(loss, "weight", Uniform()) != Uniform():
            pytest.skip("copies would take ranks")
        scores, (weighted, copied, rows) = drawn(hard_queries), with_copies(hard_queries)
        value, gradient = loss.value_and_gradient(scores, weighted)
        of_copies, by_score = loss.value_and_gradient(scores[rows], copied)
        assert value == pytest.approx(of_copies, rel=1e-12)
        np.testing.assert_allclose(gradient, np.bincount(rows, by_score), atol=1e-12)

    def test_prepared_gives_the_same_bits(self, loss: Loss, hard_queries: Queries) -> None:
        evaluate, scores = prepared(loss, hard_queries), drawn(hard_queries)
        first = evaluate(scores)[1]
        for factor in (-2.0, 0.0, 1.0):
            value, gradient = loss.value_and_gradient(factor * scores, hard_queries)
            assert evaluate(factor * scores)[0] == value
            np.testing.assert_array_equal(evaluate(factor * scores)[1], gradient)
        np.testing.assert_array_equal(first, gradient)

    @pytest.mark.parametrize("size", [2e4, 1e300])
    def test_scores_far_apart_neither_overflow_nor_warn(self, loss: Loss, size: float) -> None:
        queries = Queries.from_arrays(np.zeros((5, 1)), [2.0, 0.0, 1.0, 0.0, 0.0])
        scores = size * np.array([-1.0, 0.0, 1.5, 0.5, 0.2])
        if isinstance(loss, PairwiseSquaredHinge):
            scores = np.sqrt(size) * np.sign(scores)
        with np.errstate(all="raise"):
            value, gradient = loss.value_and_gradient(scores, queries)
        assert np.isfinite(value) and value > 0.0
        assert np.isfinite(gradient).all()
