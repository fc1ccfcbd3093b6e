"""Paths of C: every point as good as a fit from nothing, for less."""

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.data.queries import Queries
from ranktune.solvers.linear.rank_svm import RankSVM
from ranktune.solvers.optimizers.rank_svm.coarse_to_fine import Descent, SampledObjective
from ranktune.solvers.optimizers.rank_svm.pairwise_objective import RankObjective
from ranktune.solvers.optimizers.rank_svm.regularization_path import SamplePrediction
from ranktune.solvers.optimizers.second_order import PATH_TOLERANCE
from tests.support.plain_solvers import rank_svm
from tests.support.rank_objectives import at_zero, noisy

CS = np.geomspace(1e-4, 1e3, 12).tolist()


def followed(ranker: RankSVM, queries: Queries, Cs: Sequence[float]) -> list[RankSVM]:
    """The rankers of the path of ranker, each kept as it was."""
    results = []
    for C, fitted in ranker.fit_path(queries, Cs):
        assert fitted.get_params()["C"] == C
        results.append(copy(fitted))
    return results  # type: ignore[return-value]


@pytest.mark.parametrize("n_queries", [10, 300])  # without a sample, and with one
@pytest.mark.parametrize("loss", ["l2", "l1"])
def test_every_point_is_as_good_as_a_cold_fit(loss: str, n_queries: int) -> None:
    X, y, qid = noisy(0, n_queries)
    ranker = rank_svm(loss=loss, average="pairs", scaling="standard", tol=1e-4)
    path = followed(ranker, Queries.from_arrays(X, y, qid=qid), CS)
    assert len(path) == len(CS) and all(fitted.converged_ for fitted in path)
    for C, fitted in list(zip(CS, path, strict=True))[::3]:
        cold = rank_svm(C=C, loss=loss, average="pairs", scaling="standard", tol=1e-4).fit(X, y, qid=qid)
        assert fitted.objective_ == pytest.approx(cold.objective_, rel=3e-4)
        np.testing.assert_allclose(fitted.predict(X), X @ fitted.coef_, rtol=1e-9)
    assert not hasattr(ranker, "coef_")


def test_the_rule_of_the_gradient_holds_at_every_point() -> None:
    X, y, qid = noisy(1, 300)
    queries = Queries.from_arrays(X, y, qid=qid)
    for C, fitted in zip(CS, followed(rank_svm(tol=1e-5), queries, CS), strict=True):
        objective = RankObjective(queries, float(C))
        reference = np.linalg.norm(at_zero(objective)[1])
        assert np.linalg.norm(objective.value_and_gradient(fitted.coef_)[1]) <= 1.001e-5 * PATH_TOLERANCE * reference


def test_many_features_have_a_path_too() -> None:
    generator = np.random.default_rng(2)
    X = sparse.random_array((200, 1500), density=0.02, format="csr", rng=generator)
    y, qid = generator.integers(0, 3, 200), np.arange(200) // 20
    path = followed(rank_svm(tol=1e-6), Queries.from_arrays(X, y, qid=qid), [0.01, 1.0, 10.0])
    assert all(fitted.converged_ for fitted in path)
    cold = rank_svm(C=10.0, tol=1e-6).fit(X, y, qid=qid)
    assert path[2].objective_ == pytest.approx(cold.objective_, rel=1e-4)


def test_a_path_takes_fewer_evaluations_than_its_points(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, qid = noisy(3, 300)
    queries = Queries.from_arrays(X, y, qid=qid)
    evaluations = []
    evaluate = RankObjective.value_and_gradient

    def counted(self: RankObjective, weights: Any, image: Any = None) -> Any:
        if self.queries.n_documents == queries.n_documents:
            evaluations.append(1)
        return evaluate(self, weights, image)

    monkeypatch.setattr(RankObjective, "value_and_gradient", counted)
    followed(rank_svm(average="pairs", tol=1e-4), queries, CS)
    together = len(evaluations)
    evaluations.clear()
    for C in CS:
        rank_svm(C=C, average="pairs", tol=1e-4).fit(queries)
    assert together < 0.8 * len(evaluations)


def test_the_sample_of_all_documents_predicts_the_next_solution_itself() -> None:
    """Whatever the shift: it vanishes where the sample is the whole."""
    X, y, qid = noisy(5, 30)
    objective = RankObjective(Queries.from_arrays(X, y, qid=qid), 0.1)
    descent = Descent(objective)
    descent.sample = SampledObjective(objective, objective)
    prediction = SamplePrediction(descent, 1e-6)
    weights = np.zeros(objective.n_features)
    for before, C in ((0.1, 0.3), (0.3, 0.5), (0.5, 5.0)):
        _, gradient = objective.loss_and_gradient(weights)
        descent.set_strength(C)
        weights = prediction.at(C, weights, gradient, before)
        assert np.linalg.norm(objective.value_and_gradient(weights)[1]) <= 1e-6 * descent.reference


def test_where_c_hardly_matters_any_more_a_solution_is_that_of_the_next_c_too() -> None:
    X, y, qid = noisy(6, 300)
    queries = Queries.from_arrays(X, y, qid=qid)
    path = followed(rank_svm(average="pairs", tol=1e-3), queries, [1e4, 1e5, 1e6])
    assert path[0].coef_.tobytes() == path[1].coef_.tobytes() == path[2].coef_.tobytes()
    for C, fitted in zip((1e4, 1e5, 1e6), path, strict=True):
        loss = fitted.objective_ - 0.5 * fitted.coef_ @ fitted.coef_
        assert loss / C == pytest.approx((path[0].objective_ - 0.5 * fitted.coef_ @ fitted.coef_) / 1e4, rel=1e-12)
