"""Paths of C and of folds: every point as good as a fit from nothing, for less."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.linear.rank_svm import cross_validated_path
from ranktune.solvers.optimizers.pairwise_objective import RankObjective
from tests.support.plain_solvers import rank_svm


def noisy(seed: int, n_queries: int, length: int = 20, n_features: int = 5) -> Any:
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n_queries * length, n_features)) * np.linspace(0.5, 2.0, n_features)
    score = X @ np.linspace(-2, 2, n_features) + generator.normal(size=len(X))
    y = np.digitize(score, np.quantile(score, [0.3, 0.6, 0.9])).astype(float)
    return X, y, np.repeat(np.arange(n_queries), length)


CS = np.geomspace(1e-4, 1e3, 12)


@pytest.mark.parametrize("n_queries", [10, 300])  # without a sample, and with one
@pytest.mark.parametrize("loss", ["l2", "l1"])
def test_every_point_is_as_good_as_a_cold_fit(loss: str, n_queries: int) -> None:
    X, y, qid = noisy(0, n_queries)
    ranker = rank_svm(loss=loss, average="pairs", scaling="standard", tol=1e-4)
    path = ranker.fit_path(X, y, Cs=CS, qid=qid)
    assert path.converged.all()
    for k in range(0, len(CS), 3):
        cold = rank_svm(C=CS[k], loss=loss, average="pairs", scaling="standard", tol=1e-4).fit(X, y, qid=qid)
        assert path.objectives[k] == pytest.approx(cold.objective_, rel=3e-4)
        model = path.at(k)
        assert model.C == CS[k]
        np.testing.assert_allclose(model.predict(X), X @ path.coefs[k], rtol=1e-9)
    assert not hasattr(ranker, "coef_")
    assert len(path.models) == len(CS)


def test_the_rule_of_the_gradient_holds_at_every_point() -> None:
    X, y, qid = noisy(1, 300)
    path = rank_svm(tol=1e-5).fit_path(X, y, Cs=CS, qid=qid)
    queries = Queries.from_arrays(X, y, qid=qid)
    for C, coef in zip(CS, path.coefs, strict=True):
        objective = RankObjective(queries, float(C))
        reference = np.linalg.norm(objective.at_zero()[1])
        assert np.linalg.norm(objective.value_and_gradient(coef)[1]) <= 1.001e-5 * reference


def test_many_features_have_a_path_too() -> None:
    generator = np.random.default_rng(2)
    X = sparse.random_array((200, 1500), density=0.02, format="csr", rng=generator)
    y, qid = generator.integers(0, 3, 200), np.arange(200) // 20
    path = rank_svm(tol=1e-6).fit_path(X, y, Cs=[0.01, 1.0, 10.0], qid=qid)
    assert path.converged.all()
    cold = rank_svm(C=10.0, tol=1e-6).fit(X, y, qid=qid)
    assert path.objectives[2] == pytest.approx(cold.objective_, rel=1e-4)


def test_folds_equal_paths_of_their_own_and_take_fewer_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, qid = noisy(3, 300)
    queries = Queries.from_arrays(X, y, qid=qid)
    numbers = np.arange(300)
    plan = [(numbers[numbers % 3 != fold], numbers[numbers % 3 == fold]) for fold in range(3)]
    evaluations = []
    evaluate = RankObjective.value_and_gradient

    def counted(self: RankObjective, weights: Any, image: Any = None) -> Any:
        if self.queries.n_documents == 4000:
            evaluations.append(1)
        return evaluate(self, weights, image)

    monkeypatch.setattr(RankObjective, "value_and_gradient", counted)
    together = cross_validated_path(queries, plan, CS, ranker=rank_svm(average="pairs", tol=1e-4))
    shared = len(evaluations)
    evaluations.clear()
    for fold, (train, vali) in enumerate(plan):
        path, scores = together.paths[fold], together.scores[fold]
        assert path.converged.all()
        held_out = queries.select(vali)
        np.testing.assert_allclose(scores, path.coefs @ held_out.features.T, rtol=1e-9, atol=1e-12)
        for k, C in enumerate(CS):
            cold = rank_svm(C=C, average="pairs", tol=1e-4).fit(queries.select(train))
            assert path.objectives[k] == pytest.approx(cold.objective_, rel=1e-3)
    assert shared < 0.8 * len(evaluations)


def test_a_warm_start_at_the_optimum_takes_no_step() -> None:
    X, y, qid = noisy(4, 20)
    ranker = rank_svm(warm_start=True, scaling="standard", tol=1e-6).fit(X, y, qid=qid)
    assert ranker.n_iter_ > 0
    coef = ranker.coef_
    assert ranker.fit(X, y, qid=qid).n_iter_ == 0
    np.testing.assert_allclose(ranker.coef_, coef, rtol=1e-12)
    ranker.set_params(warm_start=False).fit(X, y, qid=qid)
    assert ranker.n_iter_ > 0
    ranker.set_params(warm_start=True).fit(X[:, :3], y, qid=qid)  # other features: from nothing
    assert len(ranker.coef_) == 3


@pytest.mark.parametrize("Cs", [[], [1.0, 1.0], [2.0, 1.0], [0.0, 1.0], [1.0, float("nan")], [[1.0, 2.0]]])
def test_strengths_that_cannot_be(Cs: Any) -> None:
    X, y, qid = noisy(5, 3)
    with pytest.raises(ParameterError, match="Cs"):
        rank_svm().fit_path(X, y, Cs=Cs, qid=qid)


def test_nothing_to_learn_is_said() -> None:
    with pytest.raises(DataError, match="nothing to learn"):
        rank_svm().fit_path(np.ones((4, 2)), [1, 2, 1, 1], Cs=[1.0], qid=[0, 1, 2, 2])
