"""Ranker: parts put together by value, checked once, and the face that all one-pass rankers share."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.core.errors import IncompatibleParts, ParameterError, RankTuneWarning
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import query_factors
from ranktune.solvers.linear.parts import general
from ranktune.solvers.losses.listwise import SoftmaxCrossEntropy
from ranktune.solvers.losses.pair_weights import DeltaNDCG
from ranktune.solvers.losses.pairwise import PairwiseHinge, PairwiseLogistic
from ranktune.solvers.losses.penalties import L1, L2, ElasticNet
from ranktune.solvers.optimizers.base import check_parts
from ranktune.solvers.optimizers.batch import LBFGS, OWLQN, GradientSteps
from ranktune.solvers.optimizers.one_pass import FOBOS, PSGD, RDA, TGD, AdaGrad
from tests.support.optimizer_runs import optimizer_run
from tests.support.plain_solvers import composed


def lists(seed: int = 0, n_lists: int = 60, length: int = 12) -> Any:
    generator = np.random.default_rng(seed)
    X = generator.random((n_lists * length, 5))
    y = np.digitize(X @ [3.0, -2.0, 1.0, 0.0, 0.5] + 0.3 * generator.normal(size=len(X)), [0.5, 1.0, 1.8]).astype(float)
    return X, y, np.repeat(np.arange(n_lists), length)


def test_the_weight_replaces_that_of_the_loss() -> None:
    X, y, qid = lists()
    given = composed(PairwiseLogistic(), DeltaNDCG(3)).fit(X, y, qid=qid).coef_
    np.testing.assert_array_equal(given, composed(PairwiseLogistic(DeltaNDCG(3))).fit(X, y, qid=qid).coef_)
    assert not np.array_equal(given, composed(PairwiseLogistic()).fit(X, y, qid=qid).coef_)


def test_no_penalty_is_one_of_strength_zero() -> None:
    X, y, qid = lists()
    spelt = composed(PairwiseHinge(), None, L2(0.0), FOBOS()).fit(X, y, qid=qid)
    np.testing.assert_array_equal(composed().fit(X, y, qid=qid).coef_, spelt.coef_)
    np.testing.assert_array_equal(composed(penalty="none").fit(X, y, qid=qid).coef_, spelt.coef_)


def test_fit_is_what_the_optimizer_yields_last() -> None:
    X, y, qid = lists(1)
    optimizer, penalty = RDA(AdaGrad(0.3)), ElasticNet(1e-3, 1e-3)
    *_, (weights, step) = optimizer_run(
        optimizer,
        PairwiseLogistic(),
        penalty,
        Queries.from_arrays(X, y, qid=qid),
        passes=3,
        generator=np.random.default_rng(4),
    )
    ranker = composed(PairwiseLogistic(), None, penalty, optimizer, passes=3, random_state=4).fit(X, y, qid=qid)
    np.testing.assert_array_equal(ranker.coef_, weights)
    assert ranker.n_lists_seen_ == step.iteration


@pytest.mark.parametrize("scaling", ["none", "standard", "minmax"])
def test_a_batch_fit_is_what_the_optimizer_yields_last(scaling: str) -> None:
    X, y, qid = lists(1)
    queries, loss = Queries.from_arrays(X, y, qid=qid), PairwiseLogistic()
    for penalty, optimizer in ((L2(0.01), LBFGS()), (ElasticNet(1e-3, 1e-3), OWLQN()), (L1(0.01), GradientSteps())):
        multiplier = query_factors(queries, scaling)
        *_, (weights, step) = optimizer_run(optimizer, loss, penalty, queries, multiplier=multiplier)
        ranker = composed(loss, None, penalty, optimizer, scaling=scaling).fit(queries)
        np.testing.assert_array_equal(ranker.coef_, weights)
        assert (ranker.n_iter_, ranker.objective_) == (step.iteration, step.objective)
        assert ranker.converged_ is (step.violation <= optimizer.tol)


def test_a_loss_needs_no_more_than_value_and_gradient() -> None:
    class Squares:
        def value_and_gradient(self, scores: Any, queries: Queries) -> Any:
            return 0.5 * float((scores - queries.grades) @ (scores - queries.grades)), scores - queries.grades

    X, y, qid = lists(3)
    coef = composed(Squares(), None, L2(1.0), LBFGS(tol=1e-10)).fit(X, y, qid=qid).coef_
    np.testing.assert_allclose(coef, np.linalg.solve(X.T @ X + np.eye(5), X.T @ y), rtol=1e-7)


def test_weights_of_lists_are_for_batch_optimizers() -> None:
    X, y, qid = lists(4)
    with pytest.raises(ParameterError, match="cannot weigh queries"):
        composed().fit(X, y, qid=qid, query_weights={3: 2.0})


def test_batch_optimizers_cannot_go_on_with_new_lists() -> None:
    with pytest.raises(IncompatibleParts, match="LBFGS looks at all lists at every step"):
        composed(PairwiseLogistic(), None, L2(0.1), LBFGS()).partial_fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("optimizer", [FOBOS(), RDA(AdaGrad(0.2)), PSGD(), TGD(threshold=9.0, every=7)], ids=repr)
@pytest.mark.parametrize("scaling", ["standard", "minmax"])
def test_one_pass_optimizers_see_features_as_if_scaled(scaling: str, optimizer: Any, form: Any) -> None:
    X, y, qid = lists(6)
    X[:, 2] = qid  # which is constant in every query
    queries = Queries.from_arrays(X, y, qid=qid)
    multiplier = query_factors(queries, scaling)
    penalty = L2(1e-3) if isinstance(optimizer, PSGD) else L1(1e-3)
    scaled = composed(penalty=penalty, optimizer=optimizer, passes=2).fit(form(X * multiplier), y, qid=qid)
    ranker = composed(penalty=penalty, optimizer=optimizer, passes=2, scaling=scaling).fit(form(X), y, qid=qid)
    np.testing.assert_allclose(ranker.coef_, scaled.coef_ * multiplier, atol=1e-9)
    np.testing.assert_allclose(ranker.predict(X), X @ ranker.coef_, atol=1e-12)
    assert np.count_nonzero(ranker.coef_) == 4


def test_progressive_scores_are_those_before_each_step() -> None:
    X, y, qid = lists(7, n_lists=8)
    queries = Queries.from_arrays(X, y, qid=qid)
    scores = composed(scaling="minmax").progressive(queries)
    ranker = composed(scaling="minmax")
    ranker.progressive(queries, [0])  # sets the scale, and learns from the first query
    ranker.partial_fit(queries.select(np.arange(1, 7)))
    np.testing.assert_allclose(scores[queries.starts[7] :], X[qid == 7] @ ranker.coef_, atol=1e-12)


def test_batch_parts_that_do_not_compose() -> None:
    with pytest.raises(IncompatibleParts, match=r"LBFGS needs Penalty.gradient, and L1 has none.*GradientSteps"):
        check_parts(PairwiseLogistic(), L1(0.1), LBFGS(), general)
    with pytest.raises(IncompatibleParts, match=r"FOBOS needs Loss.rule, and SoftmaxCrossEntropy has none.*LBFGS, OWL"):
        check_parts(SoftmaxCrossEntropy(), L1(0.1), FOBOS(), general)
    with pytest.raises(IncompatibleParts, match=r"object has none[.] None of LBFGS.* works with such a loss"):
        check_parts(object(), L2(0.1), LBFGS(), general)
    with pytest.raises(IncompatibleParts, match="SoftmaxCrossEntropy has no pair weight"):
        composed(SoftmaxCrossEntropy(), DeltaNDCG(5), None, LBFGS()).fit([[0.0], [1.0]], [0, 1])


def test_not_converging_warns_once_unless_the_steps_were_planned() -> None:
    X, y, qid = lists(5)
    with pytest.warns(RankTuneWarning, match="Ranker stopped before it converged") as caught:
        composed(PairwiseLogistic(), None, None, LBFGS(max_iterations=1)).fit(X, y, qid=qid)
    assert len(caught) == 1
    assert composed(PairwiseLogistic(), None, None, GradientSteps(max_iterations=1)).fit(X, y, qid=qid).n_iter_ == 1
