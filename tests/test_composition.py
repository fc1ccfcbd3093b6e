"""Ranker: parts put together by value, checked once, and the face that all one-pass rankers share."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from ranktune.solvers.composition import Parts, Ranker
from ranktune.solvers.errors import DataError, IncompatibleParts, ParameterError
from ranktune.solvers.losses import PairwiseHinge, PairwiseLogistic, PairwiseSquaredHinge
from ranktune.solvers.one_pass import FOBOS, PSGD, RDA, TGD
from ranktune.solvers.penalties import L1, L2, ElasticNet
from ranktune.solvers.queries import Queries
from ranktune.solvers.schedules import AdaGrad, Constant
from ranktune.solvers.weights import DeltaNDCG, DeltaRecall


def lists(seed: int = 0, n_lists: int = 60, length: int = 12) -> Any:
    generator = np.random.default_rng(seed)
    X = generator.random((n_lists * length, 5))
    y = np.digitize(X @ [3.0, -2.0, 1.0, 0.0, 0.5] + 0.3 * generator.normal(size=len(X)), [0.5, 1.0, 1.8]).astype(float)
    return X, y, np.repeat(np.arange(n_lists), length)


def test_the_weight_replaces_the_one_of_the_loss() -> None:
    X, y, qid = lists()
    given = Ranker(PairwiseLogistic(), DeltaNDCG(3)).fit(X, y, qid=qid).coef_
    np.testing.assert_array_equal(given, Ranker(PairwiseLogistic(DeltaNDCG(3))).fit(X, y, qid=qid).coef_)
    assert not np.array_equal(given, Ranker(PairwiseLogistic()).fit(X, y, qid=qid).coef_)


def test_defaults_are_the_hinge_by_fobos_without_a_penalty() -> None:
    X, y, qid = lists()
    spelt = Ranker(PairwiseHinge(), None, L2(0.0), FOBOS()).fit(X, y, qid=qid)
    np.testing.assert_array_equal(Ranker().fit(X, y, qid=qid).coef_, spelt.coef_)


def test_fit_is_what_the_optimizer_yields_last() -> None:
    X, y, qid = lists(1)
    optimizer, penalty = RDA(AdaGrad(0.3)), ElasticNet(1e-3, 1e-3)
    *_, (weights, step) = optimizer.iterate(
        PairwiseLogistic(), penalty, Queries.from_arrays(X, y, qid=qid), passes=3, generator=np.random.default_rng(4)
    )
    ranker = Ranker(PairwiseLogistic(), None, penalty, optimizer, passes=3, random_state=4).fit(X, y, qid=qid)
    np.testing.assert_array_equal(ranker.coef_, weights)
    assert ranker.n_lists_seen_ == step.iteration


@pytest.mark.parametrize("optimizer", [FOBOS(), RDA(), PSGD(), TGD(), FOBOS(Constant(0.1))], ids=repr)
@pytest.mark.parametrize("loss", [PairwiseHinge(), PairwiseSquaredHinge(), PairwiseLogistic(DeltaRecall(3))], ids=repr)
def test_every_combination_learns_to_rank(loss: Any, optimizer: Any) -> None:
    X, y, qid = lists(2)
    coef = Ranker(loss, None, None, optimizer, passes=3).fit(X, y, qid=qid).coef_
    truth = np.array([3.0, -2.0, 1.0, 0.0, 0.5])
    assert coef @ truth / np.linalg.norm(coef) / np.linalg.norm(truth) > 0.95


def test_parts_are_checked_once_before_training() -> None:
    for penalty, optimizer in ((L1(0.1), PSGD()), (L2(0.1), TGD())):
        with pytest.raises(IncompatibleParts, match=f"{type(optimizer).__name__} needs Penalty"):
            Parts(PairwiseHinge(), penalty, optimizer)
        with pytest.raises(IncompatibleParts, match="Optimizers that work with"):
            Ranker(penalty=penalty, optimizer=optimizer).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ParameterError, match="overshoots"):
        Ranker(penalty=L2(2.0), optimizer=PSGD(Constant(1.0))).fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"passes": 0}, "passes=0: it must be a whole number"),
        ({"scaling": "lists"}, "scaling='lists' is unknown. Did you mean 'list'"),
        ({"random_state": -1}, "random_state=-1.*or None"),
        ({"random_state": "0"}, "random_state='0'"),
    ],
)
def test_parameters_that_cannot_be(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Ranker(**parameters).fit([[0.0], [1.0]], [0, 1])


def test_clones_and_copies_learn_alike() -> None:
    X, y, qid = lists(3)
    ranker = Ranker(PairwiseLogistic(DeltaNDCG(5)), penalty=L1(1e-3), optimizer=RDA(), random_state=7)
    coef = ranker.fit(X, y, qid=qid).coef_
    np.testing.assert_array_equal(clone(ranker).fit(X, y, qid=qid).coef_, coef)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(ranker)).predict(X), ranker.predict(X))


def test_nothing_to_learn_is_said() -> None:
    with pytest.raises(DataError, match="nothing to learn"):
        Ranker().fit(np.ones((4, 2)), [1, 2, 1, 1], qid=[0, 1, 2, 2])


def test_scikit_learn_accepts() -> None:
    results: list[dict[str, Any]] = check_estimator(Ranker(), on_fail=None, on_skip=None)
    failed = {result["check_name"]: repr(result["exception"]) for result in results if result["status"] == "failed"}
    assert failed == {}
    assert sum(result["status"] == "passed" for result in results) > 30
