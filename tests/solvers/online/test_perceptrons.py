"""Perceptrons against plain Python, and their thresholds and committees."""

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.queries import Queries
from tests.support.pass_samples import differences
from tests.support.plain_solvers import committee_perceptron, pairwise_perceptron, prank_ranker


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
