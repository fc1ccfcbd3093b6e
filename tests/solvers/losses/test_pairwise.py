"""Losses in score space: a contract that every loss and weight keeps, and sums over all pairs written out. Pair
weights: what they say about grades and ranks, and what they refuse. Their sums: test_pairwise."""

from dataclasses import replace
from math import log2
from typing import Any

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.losses import pairwise as losses_module
from ranktune.solvers.losses.pair_kernels import LONG
from ranktune.solvers.losses.pair_weights import DeltaNDCG, DeltaRecall, PairWeight, Uniform
from ranktune.solvers.losses.pairwise import (
    PairwiseHinge,
    PairwiseLogistic,
    PairwiseLoss,
    PairwiseSquaredHinge,
)

WEIGHTS: list[PairWeight] = [Uniform(), DeltaNDCG(3), DeltaNDCG(None), DeltaRecall(4)]
LOSSES: list[PairwiseLoss] = [
    *[PairwiseHinge(w) for w in WEIGHTS],
    *[PairwiseSquaredHinge(w) for w in WEIGHTS],
    *[PairwiseLogistic(w) for w in WEIGHTS],
    PairwiseHinge(margin=0.3),
    PairwiseSquaredHinge(margin=2.5),
]
LOSSES += [replace(loss, average="none") for loss in LOSSES]  # type: ignore[type-var]


def grouped(grades: Any, qid: Any = None) -> Queries:
    return Queries.from_arrays(np.zeros((len(grades), 1)), grades, qid=qid)


def phi(loss: PairwiseLoss, lead: Floats) -> Floats:
    short = np.maximum(getattr(loss, "margin", 0.0) - lead, 0.0)
    if isinstance(loss, PairwiseHinge):
        return short
    return short**2 if isinstance(loss, PairwiseSquaredHinge) else np.logaddexp(0.0, -lead)


def swap_change(weight: PairWeight, s: Floats, y: Floats) -> Floats:
    """(n, n) how much the measure, whose best is 1, changes when i and j swap, by computing it before and after."""
    order = np.lexsort((y, -s))  # ties against us

    def sum_of(order: Any) -> float:
        at = len(y) if weight.at is None else weight.at  # type: ignore[attr-defined]
        ranked = y[order][:at]
        if isinstance(weight, DeltaRecall):
            return float((ranked >= 1).sum())
        return float(((2**ranked - 1) / np.log2(np.arange(len(ranked)) + 2.0)).sum())

    best = sum_of(np.argsort(-y)) if not isinstance(weight, DeltaRecall) else float((y >= 1).sum())
    change = np.zeros((len(y), len(y)))
    for a in range(len(y)):
        for b in range(len(y)):
            swapped = order.copy()
            swapped[a], swapped[b] = order[b], order[a]
            change[order[a], order[b]] = abs(sum_of(swapped) - sum_of(order)) / max(best, 1e-300)
    return change


def pair_weights(loss: PairwiseLoss, s: Floats, y: Floats) -> Floats:
    """(n, n) weight of the pair (better i, worse j), 0 where that is no pair."""
    weight = np.ones((len(y), len(y))) if loss.weight == Uniform() else swap_change(loss.weight, s, y)
    return weight * (y[:, None] > y)


def all_weights(loss: PairwiseLoss, scores: Floats, queries: Queries) -> list[Floats]:
    """The pair weights of each query at scores, times the weights of both documents."""
    ranges, x = zip(queries.starts[:-1], queries.starts[1:], strict=True), queries.weight_of_document
    return [pair_weights(loss, scores[a:b], queries.grades[a:b]) * np.outer(x[a:b], x[a:b]) for a, b in ranges]


def brute_value(loss: PairwiseLoss, scores: Floats, queries: Queries, weights: list[Floats] | None = None) -> float:
    """The loss at scores by all pairs; pair weights as given, or as they are at scores."""
    weights = all_weights(loss, scores, queries) if weights is None else weights
    values = []
    for a, b, weight in zip(queries.starts[:-1], queries.starts[1:], weights, strict=True):
        if len(set(queries.grades[a:b])) > 1:
            total = (weight * phi(loss, scores[a:b, None] - scores[a:b])).sum()
            values.append(total / weight.sum() if weight.sum() and loss.average == "queries" else total)
    return float(np.mean(values) if loss.average == "queries" else np.sum(values)) if values else 0.0


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
class TestLossContract:
    """What every loss keeps."""

    @pytest.fixture(params=["once", "weighted"])
    def queries(self, request: Any, hard_queries: Queries) -> Queries:
        weights = np.random.default_rng(5).uniform(0.2, 3.0, hard_queries.n_documents)
        return hard_queries if request.param == "once" else hard_queries.given(document_weights=weights)

    def scores(self, queries: Queries) -> Floats:
        return 2.0 * np.random.default_rng(3).normal(size=queries.n_documents)

    def test_value_is_the_weighted_mean_over_all_pairs(self, loss: PairwiseLoss, queries: Queries) -> None:
        for scores in (self.scores(queries), np.round(self.scores(queries))):  # which are tied
            value, _ = loss.value_and_gradient(scores, queries)
            assert value == pytest.approx(brute_value(loss, scores, queries), rel=1e-12)
            assert value > 0.0

    def test_gradient_matches_central_differences_with_weights_held(self, loss: PairwiseLoss, queries: Queries) -> None:
        scores, h = self.scores(queries), 1e-6
        _, gradient = loss.value_and_gradient(scores, queries)
        held = all_weights(loss, scores, queries)
        up, down = (
            [brute_value(loss, scores + sign * move, queries, held) for move in np.eye(len(scores)) * h]
            for sign in (1, -1)
        )
        expected = (np.array(up) - np.array(down)) / (2 * h)
        np.testing.assert_allclose(gradient, expected, atol=1e-8 if loss.average == "queries" else 1e-5)
        assert np.abs(gradient).max() > 1e-3


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("grades", [2, 8, 300])
@pytest.mark.parametrize("loss", [PairwiseHinge(), PairwiseSquaredHinge(margin=0.7)], ids=repr)
def test_long_lists_by_sorting_equal_all_pairs(loss: PairwiseLoss, grades: int, is_weighted: bool) -> None:
    generator, length = np.random.default_rng(grades), LONG + 1
    y, s = generator.integers(0, grades, length).astype(float), np.round(generator.normal(size=length), 2) + 1e6
    queries = grouped(y).given(document_weights=generator.uniform(0.2, 3.0, length) if is_weighted else None)
    value, gradient = loss.value_and_gradient(s, queries)
    (weight,) = all_weights(loss, s, queries)
    assert value == pytest.approx(brute_value(loss, s, queries, [weight]), rel=1e-9)
    lead = s[:, None] - s
    short = np.where(lead < loss.margin, loss.margin - lead, 0.0)  # type: ignore[attr-defined]
    slope = weight * ((short > 0) if isinstance(loss, PairwiseHinge) else 2 * short)
    np.testing.assert_allclose(gradient, (slope.sum(axis=0) - slope.sum(axis=1)) / weight.sum(), atol=1e-9)


@pytest.mark.parametrize("width", [1e-3, 20.0, 249.0, 251.0, 1e4])
@pytest.mark.parametrize("weight", [Uniform(), DeltaNDCG(1), DeltaNDCG(7), DeltaNDCG(100), DeltaRecall(7)], ids=repr)
def test_the_logistic_loss_of_a_long_list_equals_all_pairs(weight: PairWeight, width: float) -> None:
    """It is the sum over the pairs, of logarithms of numbers up to exp(249)."""
    generator = np.random.default_rng(1)
    queries, loss = grouped(generator.integers(0, 5, 70).astype(float)), PairwiseLogistic(weight)
    scores = generator.normal(size=70)
    scores *= width / np.ptp(scores)
    value, gradient = loss.value_and_gradient(scores, queries)
    weights = pair_weights(loss, scores, queries.grades)
    by_pair = weights / weights.sum() / (1.0 + np.exp(np.clip(scores[:, None] - scores, -700.0, 700.0)))
    assert value == pytest.approx(brute_value(loss, scores, queries, [weights]), rel=1e-12)
    expected = by_pair.sum(axis=0) - by_pair.sum(axis=1)
    np.testing.assert_allclose(gradient, expected, rtol=1e-10, atol=1e-13)


def test_too_many_pairs_are_refused_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    queries = grouped(np.arange(2000.0) % 3, qid=np.zeros(2000))
    monkeypatch.setattr(losses_module, "MAX_PAIRS", 1e6)
    with pytest.raises(DataError, match=r"a list of 2000 documents has about 2e\+06 pairs.*use a hinge"):
        PairwiseLogistic().value_and_gradient(np.zeros(2000), queries)
    for cheap in (PairwiseHinge(), PairwiseSquaredHinge(), PairwiseLogistic(DeltaNDCG(10))):
        assert cheap.value_and_gradient(np.zeros(2000), queries)[0] > 0.0


def test_margins_that_cannot_be() -> None:
    for loss in (PairwiseHinge, PairwiseSquaredHinge):
        with pytest.raises(ParameterError, match="margin=0"):
            loss(margin=0.0)


def test_losses_are_values() -> None:
    assert PairwiseLogistic(DeltaNDCG(10)) == PairwiseLogistic(weight=DeltaNDCG(at=10))
    assert hash(PairwiseHinge()) == hash(PairwiseHinge(Uniform(), 1.0))
    assert PairwiseHinge(margin=2.0) != PairwiseHinge()


def test_uniform_has_no_ranks() -> None:
    assert len(Uniform().ranks(7)) == 0


def test_ndcg_counts_gains_and_discounts() -> None:
    np.testing.assert_allclose(DeltaNDCG(2).gains(np.array([0.0, 1.0, 3.0])), [0, 1, 7])
    np.testing.assert_allclose(DeltaNDCG(2).ranks(9), [1, 1 / log2(3)])
    assert len(DeltaNDCG(5).ranks(3)) == len(DeltaNDCG(None).ranks(3)) == 3


def test_recall_counts_relevant_documents_among_the_first() -> None:
    np.testing.assert_array_equal(DeltaRecall(4).gains(np.array([-1.0, 0.0, 0.5, 1.0, 4.0])), [0, 0, 0, 1, 1])
    np.testing.assert_array_equal(DeltaRecall(4).ranks(9), np.ones(4))


@pytest.mark.parametrize("weight", [DeltaNDCG(10), DeltaNDCG(None), DeltaRecall(10)], ids=repr)
def test_the_value_never_falls_with_the_grade_nor_rises_with_the_rank(weight: PairWeight) -> None:
    assert (np.diff(weight.gains(np.arange(31.0))) >= 0).all()
    assert (np.diff(weight.ranks(50)) <= 0).all()
    assert (weight.ranks(50) > 0).all()


@pytest.mark.parametrize(("grade", "rule"), [(-1.0, "at least 0"), (31.0, "at most 30.*Use gain=linear")])
def test_ndcg_refuses_grades_without_a_gain(grade: float, rule: str) -> None:
    with pytest.raises(DataError, match=rf"document 1 has grade {grade:g}.*{rule}.*weight='uniform' or 'recall'"):
        DeltaNDCG().gains(np.array([0.0, grade]))


def test_click_rates_are_relevant_above_the_lowest() -> None:
    assert DeltaRecall().gains(np.array([0.07, 0.0, 0.41, 0.0])).tolist() == [1.0, 0.0, 1.0, 0.0]
    assert DeltaRecall().gains(np.array([0.07, 0.0, 1.0, 0.5])).tolist() == [0.0, 0.0, 1.0, 0.0]


def test_linear_gains_take_any_grade_of_at_least_zero() -> None:
    np.testing.assert_array_equal(DeltaNDCG(gain="linear").gains(np.array([0.0, 1.5, 900.0])), [0, 1.5, 900])
    with pytest.raises(DataError, match="at least 0"):
        DeltaNDCG(gain="linear").gains(np.array([0.0, -1.0]))


def test_gains_chosen_by_the_grades() -> None:
    auto = DeltaNDCG(gain="auto")
    np.testing.assert_array_equal(auto.gains(np.array([0.0, 1.0, 30.0])), [0, 1, 2**30 - 1])
    for grades in ([-1.0, 0.0, 2.0], [0.5, 1.0, 2.0], [0.0, 3.0, 31.0]):
        np.testing.assert_array_equal(auto.gains(np.array(grades)), np.array(grades) - min(grades))


@pytest.mark.parametrize("at", [0, -1, 1.5, "10", True])
def test_cutoffs_that_cannot_be(at: Any) -> None:
    for weight in (DeltaNDCG, DeltaRecall):
        with pytest.raises(ParameterError, match=r"at=.*whole number of at least 1"):
            weight(at)
