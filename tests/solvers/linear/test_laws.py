"""What linear rankers keep at more points of their parameters than the contracts of all solvers visit."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.core.errors import DataError
from tests.support.domination_samples import PENALTIES
from tests.support.linear_samples import CONFIGURATIONS, lists
from tests.support.plain_solvers import (
    composed,
    domination_rank,
    elastic_rank,
    lambda_rank,
    list_net,
    logistic_ranker,
    rank_svm,
    ridge_ranker,
    svr_ranker,
)

Case = tuple[str, Callable[[], Any], float]


def cases() -> Iterator[Case]:
    """Name, ranker, and how far apart the weights of two ways may be, as a part of the largest weight."""
    for k, parameters in enumerate(CONFIGURATIONS):
        yield f"ElasticRank {k}", partial(elastic_rank, **parameters), 1e-9
    for scaling in ("none", "standard", "minmax"):
        kind = "as-is" if scaling == "none" else scaling
        yield f"LambdaRank {kind}", partial(lambda_rank, scaling=scaling), 1e-7
        yield f"RankSVM {kind}", partial(rank_svm, scaling=scaling, tol=1e-12), 1e-8
        for l1 in (0.0, 0.01):
            options: dict[str, Any] = {"scaling": scaling, "l1": l1, "tol": 1e-8}
            yield f"ListNet {kind} l1={l1}", partial(list_net, **options), 1e-6
        for penalty in PENALTIES:
            options = {"scaling": scaling, "tol": 1e-9, "max_iterations": 20_000, **penalty}
            yield f"DominationRank {kind} {penalty['penalty']}", partial(domination_rank, **options), 1e-7
    for centre in ("query", "none"):
        yield f"RidgeRanker {centre}", partial(ridge_ranker, centre=centre), 1e-7
        yield f"LogisticRanker {centre}", partial(logistic_ranker, centre=centre, tol=1e-9), 1e-6
        for loss in ("l1", "l2"):
            options = {"centre": centre, "loss": loss, "tol": 1e-9}
            yield f"SVRRanker {loss} {centre}", partial(svr_ranker, **options), 1e-5


CASES = list(cases())


def those(pattern: str = "") -> pytest.MarkDecorator:
    """Run a test with the cases whose names match from their beginning."""
    chosen = [case for case in CASES if re.match(pattern, case[0])]
    return pytest.mark.parametrize(("ranker", "tolerance"), [c[1:] for c in chosen], ids=[c[0] for c in chosen])


def assert_close(coef: Any, expected: Any, tolerance: float) -> None:
    np.testing.assert_allclose(coef, expected, atol=tolerance * np.abs(expected).max())


@those()
def test_dense_sparse_and_single_precision_agree(ranker: Callable[[], Any], tolerance: float) -> None:
    X, y, qid = lists(1)
    X = X.astype(np.float32).astype(np.float64)
    expected = ranker().fit(X, y, qid=qid)
    for other in (sparse.csr_array(X), X.astype(np.float32), sparse.csr_array(X.astype(np.float32))):
        fitted = ranker().fit(other, y, qid=qid)
        assert_close(fitted.coef_, expected.coef_, tolerance)
        np.testing.assert_allclose(fitted.predict(other, qid=qid), expected.predict(X, qid=qid), atol=1e-5)


@those("(?!RankSVM (standard|minmax)|.* none$)")
def test_what_all_documents_of_a_query_share_changes_nothing(ranker: Callable[[], Any], tolerance: float) -> None:
    X, y, qid = lists(2)
    shifts = np.random.default_rng(1).integers(-50, 50, (91, 8)).astype(float)
    assert_close(ranker().fit(X + shifts[qid + 1], y, qid=qid).coef_, ranker().fit(X, y, qid=qid).coef_, tolerance)


@those("(?!ElasticRank)")
def test_a_query_of_weight_two_equals_the_query_given_twice(ranker: Callable[[], Any], tolerance: float) -> None:
    X, y, qid = lists(3)
    selected = qid == 7
    weighted = ranker().fit(X, y, qid=qid, query_weights={7: 2.0}).coef_
    twice = (np.vstack([X, X[selected]]), np.append(y, y[selected]))
    assert_close(ranker().fit(*twice, qid=np.append(qid, qid[selected] + 100)).coef_, weighted, tolerance)
    assert np.abs(ranker().fit(X, y, qid=qid).coef_ - weighted).max() > 1e-4 * np.abs(weighted).max()


@those("(RankSVM|ListNet|DominationRank) as-is")
def test_order_of_rows_and_queries_without_pairs_do_not_matter(ranker: Callable[[], Any], tolerance: float) -> None:
    X, y, qid = lists(4)
    more = np.vstack([X, X[:9]]), np.append(y, np.ones(9)), np.append(qid, [99] * 8 + [98])
    order = np.random.default_rng(0).permutation(len(more[1]))
    mixed = ranker().fit(more[0][order], more[1][order], qid=more[2][order])
    assert_close(mixed.coef_, ranker().fit(X, y, qid=qid).coef_, tolerance)


@pytest.mark.parametrize("ranker", [composed, rank_svm])
def test_nothing_to_learn_is_said(ranker: Callable[[], Any]) -> None:
    with pytest.raises(DataError, match="nothing to learn"):
        ranker().fit(np.ones((4, 2)), [1, 2, 1, 1], qid=[0, 1, 2, 2])
