"""Rankers that minimise one function of all queries: on blocks the same weights as on all documents."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktune.solvers import (
    L2,
    LambdaRank,
    ListNet,
    LogisticRanker,
    Newton,
    PairwiseSquaredHinge,
    Queries,
    Ranker,
    RidgeRanker,
    SVRRanker,
    fit_blocks,
)
from ranktune.solvers.data import blocked
from ranktune.solvers.data.blocked import LocalBlocks
from ranktune.solvers.data.disk.stored import read_queries, write_queries
from ranktune.solvers.optimizers import least_squares
from tests.support.blocks import Keeping, parts_of

POINTWISE: list[Any] = [
    RidgeRanker(10.0),
    RidgeRanker(10.0, centre="none"),
    LogisticRanker(0.1, tol=1e-9),
    LogisticRanker(0.1, centre="none", gain="exponential", tol=1e-9),
    SVRRanker(0.01, tol=1e-9),
    SVRRanker(0.01, loss="l1", epsilon=0.2, centre="none", tol=1e-7),
]
LISTWISE: list[Any] = [
    ListNet(l1=0.0, tol=1e-9),
    ListNet(tol=1e-9, gain="exp2", temperature=2.0, scaling="minmax"),
    LambdaRank(iterations=20),
    LambdaRank(iterations=20, at=None, gain="linear"),
    Ranker("pairwise_logistic", "uniform", "elastic_net", "fista", l1=1e-3),
    Ranker("pairwise_squared_hinge", "uniform", "l2", "lbfgs", scaling="none"),
    Ranker("pairwise_hinge", "recall", "l1", "gradient_steps", iterations=15, l1=1e-3),
    Ranker("pointwise_logistic", None, "elastic_net", "owlqn", l1=1e-3),
    Ranker("pointwise_squared", None, "l2", "newton"),
    Ranker("pairwise_squared_hinge", "uniform", "l2", Newton(tol=1e-10)),
    Ranker(PairwiseSquaredHinge(average="none"), None, L2(10.0), Newton(tol=1e-10)),
    Ranker("pairwise_hinge", "uniform", "l2", Newton(tol=1e-7)),
]


def check_alike(ranker: Any, parts: list[Queries], queries: Queries, *, near: float = 1e-6) -> None:
    """Fit to all documents and to blocks, whatever is kept of these, and compare."""
    whole = type(ranker)(**ranker.get_params()).fit(queries)
    scale = np.abs(whole.coef_).max()
    for workers in (LocalBlocks(max_rows=200), Keeping(), Keeping(0.5)):
        result = fit_blocks(type(ranker)(**ranker.get_params()), parts, workers)
        np.testing.assert_allclose(result.coef_, whole.coef_, rtol=0.0, atol=near * scale)
        if hasattr(whole, "objective_"):
            assert result.objective_ == pytest.approx(whole.objective_, rel=1e-6 if near > 1e-6 else 1e-8)
            assert result.converged_ == whole.converged_


@pytest.mark.parametrize("kind", ["dense", "sparse", "weighted", "documents"])
@pytest.mark.parametrize("ranker", POINTWISE, ids=repr)
def test_pointwise_rankers_find_the_weights_of_all_documents(ranker: Any, kind: str) -> None:
    check_alike(ranker, *parts_of(0, kind=kind))


@pytest.mark.parametrize("kind", ["dense", "sparse", "weighted", "documents"])
@pytest.mark.parametrize("ranker", LISTWISE, ids=repr)
def test_other_rankers_find_the_weights_of_all_documents(ranker: Any, kind: str) -> None:
    if kind == "weighted" and "query_weights" not in ranker.supports(ranker.get_params()):
        pytest.skip("it cannot weigh queries")
    by_gap = ranker.get_params().get("loss") == "pairwise_hinge"
    # A gap of t: the objective within t, weights within some roots of it, by the rounding of the processor too.
    check_alike(ranker, *parts_of(1, kind=kind), near=1e-2 if by_gap else 1e-6)


@pytest.mark.parametrize("ranker", [LogisticRanker(0.1, tol=1e-9), SVRRanker(0.01, tol=1e-9), LambdaRank(iterations=9)])
def test_conventions_follow_the_grades_of_all_blocks(ranker: Any) -> None:
    """One block lacks the highest and the lowest grade, and one alone has grades with a fraction."""
    parts, queries = parts_of(2)
    changed = queries.grades.copy()
    first = parts[0].n_documents
    changed[:first] = np.clip(changed[:first], 1.0, 3.0)
    changed[first:] -= 0.5
    queries = replace(queries, grades=changed)
    parts = [queries.select(np.arange(a, b)) for a, b in ((0, 40), (40, 119), (119, 120))]
    check_alike(ranker, parts, queries)


@pytest.mark.parametrize("centre", ["query", "none"])
def test_ridge_on_many_features_sums_products_of_blocks(centre: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(least_squares, "MAX_DENSE_FEATURES", 3)
    for kind in ("dense", "sparse", "documents"):
        check_alike(RidgeRanker(10.0, centre=centre), *parts_of(3, kind=kind))


@pytest.mark.parametrize("ranker", [RidgeRanker(), LogisticRanker(), SVRRanker(loss="l1")])
def test_many_stored_documents_are_divided_by_fit(ranker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, queries = parts_of(4)
    write_queries(queries, tmp_path / "q")
    whole = ranker.fit(queries).coef_
    monkeypatch.setattr(blocked, "MAX_WHOLE_ROWS", 100)
    monkeypatch.setattr("ranktune.solvers.data.blocked.LocalBlocks", lambda: LocalBlocks(100))
    divided = ranker.fit(read_queries(tmp_path / "q")).coef_
    assert not np.array_equal(divided, whole)  # sums of other parts
    np.testing.assert_allclose(divided, whole, rtol=1e-6, atol=1e-6 * np.abs(whole).max())
    for _value, path in ranker.fit_path(read_queries(tmp_path / "q"), [ranker.get_params()[ranker.path_parameter]]):
        np.testing.assert_allclose(path.coef_, divided, rtol=1e-6, atol=1e-6 * np.abs(whole).max())
