"""The domination loss: the sum over pairs written out, finite differences, laws, scores that must not overflow."""

from typing import Any

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.losses import domination_kernels as kernels
from ranktune.solvers.losses.base import prepared
from ranktune.solvers.losses.domination import DominationLoss

LOSSES = [
    DominationLoss(),
    DominationLoss(average="none"),
    DominationLoss(average="documents"),
    DominationLoss("two"),
    DominationLoss("two", relevant_from=3.0),
    DominationLoss(margin="grade"),
    DominationLoss(margin="grade", margin_scale=0.3, average="none"),
    DominationLoss(margin=(0.0, 0.5, 0.5, 2.0, 5.0), average="none"),
    DominationLoss("two", margin=(0.5, 2.0), margin_scale=2.0),
]


def brute_value(loss: DominationLoss, scores: Floats, queries: Queries) -> float:
    """The loss by all pairs, as the definition reads."""
    y = queries.grades
    if loss.grades == "two":
        y = (y >= (np.unique(y)[1] if loss.relevant_from is None else loss.relevant_from)).astype(float)
    u = np.zeros(len(y))
    if loss.margin == "grade":
        u = loss.margin_scale * y
    elif not isinstance(loss.margin, str):
        u = loss.margin_scale * np.array([dict(zip(sorted(set(y)), loss.margin, strict=True))[g] for g in y])
    sums, counts = [], []
    for a, b in zip(queries.starts[:-1], queries.starts[1:], strict=True):
        terms = []
        for i in range(a, b):
            worse = [j for j in range(a, b) if y[j] < y[i]]
            if worse:
                terms.append(np.log1p(sum(np.exp(scores[j] - scores[i] + u[i] - u[j]) for j in worse)))
        sums.append(sum(terms))
        counts.append(len(terms))
    total, count, weight = np.array(sums), np.array(counts), queries.weight_of_query
    if loss.average == "none":
        return float(weight @ total)
    if loss.average == "documents":
        return float(weight @ total / (weight @ count))
    some = count > 0
    return float(weight[some] @ (total[some] / count[some]) / weight[some].sum())


def weighted(queries: Queries) -> Queries:
    return queries.replaced(query_weights=np.linspace(0.5, 3.0, queries.n_queries))


def random_scores(queries: Queries) -> Floats:
    return 2.0 * np.random.default_rng(3).normal(size=queries.n_documents)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
class TestDefinition:
    """Every variant against the sum over pairs."""

    def test_value(self, loss: DominationLoss, hard_queries: Queries) -> None:
        for queries in (hard_queries, weighted(hard_queries)):
            scores = random_scores(queries)
            value, _ = loss.value_and_gradient(scores, queries)
            assert value == pytest.approx(brute_value(loss, scores, queries), rel=1e-12)
            lists = loss.lists(queries)
            assert kernels.value(lists, scores, np.empty(len(scores))) == pytest.approx(value, rel=1e-13)

    def test_gradient_by_score_matches_central_differences(self, loss: DominationLoss, hard_queries: Queries) -> None:
        queries, h = weighted(hard_queries), 1e-5
        scores = random_scores(queries)
        _, gradient = loss.value_and_gradient(scores, queries)
        moves = np.eye(len(scores)) * h
        expected = [
            (brute_value(loss, scores + move, queries) - brute_value(loss, scores - move, queries)) / (2 * h)
            for move in moves
        ]
        np.testing.assert_allclose(gradient, expected, atol=1e-8 * max(1.0, np.abs(expected).max()))
        assert np.abs(gradient).max() > 1e-3

    def test_second_derivatives_match_differences_of_gradients(
        self, loss: DominationLoss, hard_queries: Queries
    ) -> None:
        queries, h = weighted(hard_queries), 1e-5
        X, w = queries.features, np.random.default_rng(1).normal(size=6)
        lists = loss.lists(queries)
        state = kernels.new_state(lists)
        kernels.evaluate(lists, X @ w, state)
        columns = np.array([4, 0, 2, 5])
        H = kernels.hessian(X, columns, lists, state)
        expected = [
            (X.T @ loss.value_and_gradient(X @ (w + move), queries)[1])[columns]
            - (X.T @ loss.value_and_gradient(X @ (w - move), queries)[1])[columns]
            for move in (np.eye(6) * h)[columns]
        ]
        np.testing.assert_allclose(H, np.array(expected) / (2 * h), atol=2e-8 * max(1.0, np.abs(H).max()))


def test_middle_grade_far_below_the_best_still_feels_its_rivals() -> None:
    """exp underflows when the maximum of the whole query is subtracted: 2000 below it two documents are still close."""
    queries = Queries.from_arrays(np.zeros((3, 1)), [2.0, 1.0, 0.0])
    value, gradient = DominationLoss(average="none").value_and_gradient(np.array([2000.0, 0.0, 0.0]), queries)
    assert value == pytest.approx(np.log(2.0), rel=1e-14)
    np.testing.assert_allclose(gradient, [0.0, -0.5, 0.5], atol=1e-14)


def test_many_grades_cost_no_more_than_linear() -> None:
    """As many grades as documents: neither pairs nor documents times levels could be looked at."""
    n = 300_000
    queries = Queries.from_arrays(np.zeros((n, 1)), np.arange(n, dtype=float), group=[n])
    value, gradient = DominationLoss(average="none").value_and_gradient(np.zeros(n), queries)
    assert value == pytest.approx(np.log(np.arange(1, n + 1)).sum(), rel=1e-10)
    assert gradient.sum() == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"grades": "three"}, "grades='three'"),
        ({"margin": "big"}, "margin='big'"),
        ({"margin": (0.0, 2.0, 1.0)}, r"must not fall.*Sort them"),
        ({"margin": (0.0, np.nan)}, "finite"),
        ({"margin": ("a", "b")}, "sequence of numbers"),
        ({"margin": 3.0}, "sequence of numbers"),
        ({"margin_scale": -1.0}, "margin_scale=-1.0"),
        ({"margin_scale": np.inf}, "margin_scale=inf"),
        ({"average": "mean"}, "average='mean'"),
        ({"relevant_from": np.inf}, "relevant_from=inf"),
        ({"relevant_from": "2"}, "relevant_from='2'"),
    ],
)
def test_bad_parameters(parameters: dict[str, Any], match: str) -> None:
    with pytest.raises(ParameterError, match=match):
        DominationLoss(**parameters)


def test_prepared_refuses_what_cannot_be_learnt_from(hard_queries: Queries) -> None:
    with pytest.raises(DataError, match=r"no query has both relevant and other documents\. Lower relevant_from"):
        prepared(DominationLoss("two", relevant_from=99.0), hard_queries)


def test_equal_by_value_and_hashable() -> None:
    assert DominationLoss(margin=[0.0, 1.0]) == DominationLoss(margin=(0, 1))
    assert hash(DominationLoss(margin=[0.0, 1.0])) == hash(DominationLoss(margin=(0.0, 1.0)))
