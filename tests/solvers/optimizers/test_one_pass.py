"""One-pass optimizers: the lazy kernels against plain numpy that moves every weight at every list."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.arrays import dense as to_dense
from ranktune.solvers.core.errors import IncompatibleParts, ParameterError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.losses.pair_weights import DeltaNDCG, DeltaRecall
from ranktune.solvers.losses.pairwise import PairwiseHinge, PairwiseLogistic, PairwiseLoss, PairwiseSquaredHinge
from ranktune.solvers.losses.penalties import L1, L2, ElasticNet, Penalty
from ranktune.solvers.optimizers.base import Parts, check_parts
from ranktune.solvers.optimizers.one_pass import (
    FOBOS,
    ONE_PASS,
    PSGD,
    RDA,
    TGD,
    AdaGrad,
    Constant,
    InverseRoot,
    OnePassOptimizer,
    Schedule,
)
from ranktune.solvers.optimizers.one_pass_kernels import DELTA
from tests.support.optimizer_runs import optimizer_run

SCHEDULES: list[Schedule] = [InverseRoot(0.7), Constant(0.2), AdaGrad(0.15)]
ANY = [L1(0.01), L2(0.05), ElasticNet(0.01, 0.05), L2(0.0)]
CASES: list[tuple[OnePassOptimizer, Any]] = [
    *[(make(s), p) for make in (FOBOS, RDA) for s in SCHEDULES for p in ANY],
    *[(PSGD(s, 0.02, k), p) for s in SCHEDULES for k in (1, 7) for p in (L2(0.3), L2(0.0))],
    *[(TGD(s, 0.1, k), p) for s in SCHEDULES for k in (1, 7) for p in (L1(0.02), L1(0.0))],
]


def sparse_lists(seed: int = 0, n_lists: int = 80, d: int = 40) -> Queries:
    """Lists that store about 5 of d features each, some of them constant or in all rows, some lists of one grade."""
    generator = np.random.default_rng(seed)
    rows, grades, qid = [], [], []
    for q in range(n_lists):
        n = int(generator.integers(1, 9))
        X = np.zeros((n, d))
        columns = generator.choice(d, 5, replace=False)
        X[:, columns] = generator.normal(size=(n, 5)) * (generator.random((n, 5)) < 0.7)
        X[:, columns[0]] = 3.0
        rows.append(X)
        grades.append(generator.integers(0, 3, n) if q % 7 else np.ones(n))
        qid.append(np.full(n, q))
    return Queries.from_arrays(sparse.csr_array(np.vstack(rows)), np.concatenate(grades), qid=np.concatenate(qid))


def dense(queries: Queries) -> Queries:
    return queries.with_features(np.ascontiguousarray(to_dense(queries.features)))


def prox(penalty: Penalty, weights: Floats, step: Floats) -> Floats:
    """The v that minimises |v - weights|^2 / (2 step) + the penalty of v, for each weight with its own step."""
    l1, l2 = penalty.strengths
    return np.sign(weights) * np.maximum(np.abs(weights) - step * l1, 0.0) / (1.0 + step * l2)


def eager(
    optimizer: OnePassOptimizer, loss: PairwiseLoss, penalty: Any, queries: Queries, scaled: bool, passes: int
) -> Floats:
    """The weights after passes over the lists, every weight moved at every list."""
    X = to_dense(queries.features)
    w, total, squares, t = np.zeros(X.shape[1]), np.zeros(X.shape[1]), np.zeros(X.shape[1]), 0
    every = getattr(optimizer, "every", 1)
    for q in list(range(queries.n_queries)) * passes:
        a, b = queries.starts[q], queries.starts[q + 1]
        if len(set(queries.grades[a:b])) < 2:
            continue
        t += 1
        spread = np.ptp(X[a:b], axis=0)
        x = X[a:b] * np.divide(1.0, spread if scaled else 1.0, out=np.zeros(len(w)), where=spread > 0)
        _, slope = loss.value_and_gradient(x @ w, Queries.from_arrays(x, queries.grades[a:b]))
        g = x.T @ slope
        total, squares = total + g, squares + g**2
        eta = optimizer.schedule.eta0 * np.ones(len(w))
        if isinstance(optimizer.schedule, InverseRoot):
            eta = eta / np.sqrt(t)
        if isinstance(optimizer.schedule, AdaGrad):
            eta = eta / (DELTA + np.sqrt(squares))
        if isinstance(optimizer, FOBOS):
            w = prox(penalty, w - eta * g, eta)
        elif isinstance(optimizer, RDA):  # argmin G w + penalty + |w|^2 / (2 eta t)
            w = prox(penalty, -eta * t * (total / t), eta * t)
        elif isinstance(optimizer, PSGD):
            w = np.where(eta * penalty.strength < 1, w - eta * penalty.gradient(w), 0.0) - eta * g
            w = np.where(np.abs(w) < optimizer.threshold, 0.0, w) if t % every == 0 else w
        elif isinstance(optimizer, TGD):
            w = w - eta * g
            w = penalty.truncate(w, every * eta, optimizer.threshold) if t % every == 0 else w
    return w


def learnt(optimizer: OnePassOptimizer, loss: PairwiseLoss, penalty: Any, queries: Queries, **options: Any) -> Floats:
    *_, (weights, _) = optimizer_run(optimizer, loss, penalty, queries, **options)
    return weights


@pytest.mark.parametrize(("optimizer", "penalty"), CASES, ids=repr)
def test_lazy_sparse_and_dense_equal_eager(optimizer: OnePassOptimizer, penalty: Any) -> None:
    queries, loss = sparse_lists(), PairwiseSquaredHinge()
    for scaled in (False, True):
        expected = eager(optimizer, loss, penalty, queries, scaled, passes=2)
        lazy = learnt(optimizer, loss, penalty, queries, scaled=scaled, passes=2)
        np.testing.assert_allclose(lazy, expected, atol=1e-10)
        np.testing.assert_allclose(
            learnt(optimizer, loss, penalty, dense(queries), scaled=scaled, passes=2), expected, atol=1e-10
        )
        assert np.abs(expected).max() > 0.01


@pytest.mark.parametrize(
    "loss",
    [PairwiseHinge(DeltaNDCG(3)), PairwiseLogistic(DeltaRecall(2)), PairwiseLogistic(), PairwiseHinge()],
    ids=repr,
)
def test_every_loss_drives_the_same_kernels(loss: PairwiseLoss) -> None:
    queries, penalty = sparse_lists(1), ElasticNet(0.003, 0.02)
    expected = eager(FOBOS(Constant(0.3)), loss, penalty, queries, True, 1)
    np.testing.assert_allclose(learnt(FOBOS(Constant(0.3)), loss, penalty, queries, scaled=True), expected, atol=1e-10)


def test_a_weight_is_touched_only_by_the_lists_that_store_it() -> None:
    queries, optimizer, loss = sparse_lists(2), FOBOS(AdaGrad()), PairwiseHinge()
    state, penalty = optimizer.start(queries.n_features + 100), ElasticNet(0.01, 0.01)
    parts, wider = Parts(loss, penalty, optimizer), sparse.csr_array(queries.features)
    wider.resize(queries.n_documents, queries.n_features + 100)
    for _ in optimizer.learn(state, parts, queries.with_features(wider), np.arange(queries.n_queries)):
        pass
    last, t = np.zeros(queries.n_features + 100, dtype=int), 0
    for a, b in pairwise(queries.starts):
        if len(set(queries.grades[a:b])) > 1:
            t += 1
            last[np.unique(wider[a:b].indices)] = t
    np.testing.assert_array_equal(state.seen, last)


def test_asking_for_weights_changes_no_state() -> None:
    queries, optimizer, penalty = sparse_lists(3), FOBOS(Constant(0.1)), ElasticNet(0.01, 0.01)
    state = optimizer.start(queries.n_features)
    list(optimizer.learn(state, Parts(PairwiseHinge(), penalty, optimizer), queries, np.arange(30)))
    before = [part.copy() for part in state]
    weights = optimizer.weights(penalty, state)
    assert not np.array_equal(weights, state.vector)  # some weights lag behind
    for part, copy in zip(state, before, strict=True):
        np.testing.assert_array_equal(part, copy)


def test_steps_count_lists_and_tell_the_objective() -> None:
    queries, penalty = sparse_lists(4, n_lists=2500), L2(0.01)
    steps = list(optimizer_run(FOBOS(InverseRoot(0.1)), PairwiseLogistic(), penalty, queries))
    some = np.flatnonzero([len(set(queries.grades[a:b])) > 1 for a, b in pairwise(queries.starts)])
    assert [step.iteration for _, step in steps] == sorted({step.iteration for _, step in steps})
    assert steps[-1][1].iteration == len(some)
    assert len(steps) == 3
    first = optimizer_run(FOBOS(InverseRoot(0.1)), PairwiseLogistic(), penalty, queries.select(some[:1]))
    weights, step = next(first)
    assert step.objective == pytest.approx(np.log(2) + penalty.value(weights), rel=1e-12)  # weights were zero before


def test_order_is_drawn_from_the_generator_anew_each_pass() -> None:
    queries = sparse_lists(5)

    def run(seed: int) -> Floats:
        generator = np.random.default_rng(seed)
        return learnt(FOBOS(), PairwiseHinge(), L2(0.0), queries, passes=2, generator=generator)

    np.testing.assert_array_equal(run(0), run(0))
    assert not np.array_equal(run(0), run(1))
    assert not np.array_equal(run(0), learnt(FOBOS(), PairwiseHinge(), L2(0.0), queries, passes=2))


@pytest.mark.parametrize(
    ("optimizer", "penalty", "message"),
    [
        (PSGD(), L1(0.1), r"PSGD needs Penalty.gradient, and L1 has none. .*L1: FOBOS, RDA, TGD\."),
        (PSGD(), ElasticNet(0.1, 0.1), r"PSGD needs Penalty.gradient.*ElasticNet: FOBOS, RDA\."),
        (TGD(), L2(0.1), r"TGD needs Penalty.truncate, and L2 has none. .*L2: FOBOS, PSGD, RDA\."),
        (FOBOS(), object(), "FOBOS needs Penalty.strengths, and object has none. None of FOBOS, PSGD, RDA, TGD works"),
    ],
)
def test_parts_that_do_not_compose_are_named(optimizer: OnePassOptimizer, penalty: Any, message: str) -> None:
    with pytest.raises(IncompatibleParts, match=message):
        check_parts(PairwiseHinge(), penalty, optimizer, lambda: ONE_PASS)


def test_overflow_is_an_error_with_the_way_out() -> None:
    queries = sparse_lists(6, n_lists=900)
    with pytest.raises(ParameterError, match=r"overflowed within \d+ lists: eta0=1e\+06.*Lower eta0"):
        learnt(FOBOS(Constant(1e6)), PairwiseSquaredHinge(), L2(0.0), queries, passes=3)


def test_parameters_that_cannot_be() -> None:
    rates: list[Any] = [0.0, -1.0, float("inf"), "1"]
    for make in (InverseRoot, Constant, AdaGrad):
        for eta0 in rates:
            with pytest.raises(ParameterError, match=r"eta0=.*positive"):
                make(eta0)
    for make_optimizer in (PSGD, TGD):
        with pytest.raises(ParameterError, match=r"threshold=-1.*at least 0"):
            make_optimizer(threshold=-1.0)
        with pytest.raises(ParameterError, match="every=0"):
            make_optimizer(every=0)
    with pytest.raises(ParameterError, match=r"eta0=2 times l2=0.5 is 1.*overshoots"):
        PSGD(Constant(2.0)).rule(L2(0.5))
