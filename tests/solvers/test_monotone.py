"""Monotone constraints: every solver keeps them, and linear ones lose little by it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import lsq_linear, minimize

from ranktune.solvers import (
    FISTA,
    L2,
    LBFGS,
    OWLQN,
    ElasticNet,
    LambdaMART,
    PairwiseLogistic,
    Queries,
    Ranker,
    RankSVM,
    RidgeRanker,
    SymmetricGBDT,
)
from ranktune.solvers.boosting.catboost import CatBoostRanker
from ranktune.solvers.boosting.objectives import NOISY
from ranktune.solvers.boosting.xgboost import XGBoostRanker
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.core.registrations import REGISTERED, Registration
from ranktune.solvers.data.queries import concatenate
from ranktune.solvers.distillation import distil
from ranktune.solvers.models.base import Model
from ranktune.solvers.optimizers.least_squares import within_signs
from ranktune.solvers.registry import NAMES, make

NAMED = ("title", "body", "price", "age", "clicks", "noise")
SIGNS = {"title": -1, "body": 1, "price": 1}


def data(seed: int = 0, n: int = 480, *, missing: bool = False) -> Queries:
    """Return queries whose grades go against two of SIGNS, with correlated features."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, 6))
    X[:, 1] += X[:, 0]
    y = np.digitize(X[:, 0] - 0.7 * X[:, 1] + 0.5 * X[:, 2] + generator.normal(size=n), [0.0, 1.0, 2.0])
    if missing:
        X[generator.random((n, 6)) < 0.15] = np.nan
    return Queries.from_arrays(X, y, qid=np.arange(n) // 12, feature_names=NAMED)


def swept_the_wrong_way(model: Model, queries: Queries, signs: dict[str, int]) -> float:
    """Return how far a score moves against a sign, over a grid of values of each constrained feature."""
    worst = 0.0
    for name, sign in signs.items():
        column = NAMED.index(name)
        scores = []
        for value in np.linspace(-4.0, 4.0, 81):
            X = np.array(queries.features)
            X[:, column] = np.where(np.isnan(X[:, column]), np.nan, value)
            scores.append(model.predict(queries.with_features(X)))
        worst = max(worst, float((-sign * np.diff(scores, axis=0)).max()))
    return worst


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore::ranktune.solvers.core.errors.RankTuneWarning")
def test_every_solver_keeps_constraints(name: str, missing: bool) -> None:
    queries = data(missing=missing)
    params = {"loss": "QueryRMSE", "trees": 30} if name == "CatBoostRanker" else {}
    model = make(name, params, 0).fit(queries, monotone=SIGNS).as_model(feature_names=NAMED)
    assert model.monotone == SIGNS
    assert swept_the_wrong_way(model, queries.select(range(5)), SIGNS) <= 1e-12


def test_without_constraints_the_same_data_break_them() -> None:
    queries = data()
    for name in ("RidgeRanker", "LambdaMART"):
        model = make(name, {}, 0).fit(queries).as_model(feature_names=NAMED)
        assert model.monotone == {}
        assert swept_the_wrong_way(model, queries, SIGNS) > 1e-3


@pytest.mark.parametrize("start", ["none", "linear"])
@pytest.mark.parametrize("kind", [LambdaMART, SymmetricGBDT, XGBoostRanker, CatBoostRanker])
def test_trees_that_start_from_a_linear_model_keep_constraints(kind: type, start: str) -> None:
    more = {"loss": "QueryRMSE"} if kind is CatBoostRanker else {}
    assert_keeps_constraints(kind(trees=20, start=start, **more))


@pytest.mark.parametrize("loss", NOISY)
@pytest.mark.parametrize("kind", [LambdaMART, SymmetricGBDT])
def test_trees_by_noisy_rankings_keep_constraints(kind: type, loss: str) -> None:
    assert_keeps_constraints(kind(trees=20, bins=15, loss=loss))


def assert_keeps_constraints(ranker: Any) -> None:
    model = ranker.fit(data(), monotone=SIGNS).as_model(feature_names=NAMED)
    assert model.monotone == SIGNS
    assert swept_the_wrong_way(model, data(1, 60), SIGNS) <= 1e-12


def test_a_model_to_continue_must_keep_the_constraints() -> None:
    free = RidgeRanker().fit(data()).as_model()
    with pytest.raises(DataError, match="somewhere with 'f1', against its monotone constraint -1"):
        LambdaMART(trees=5).continue_from(free).fit(data(), monotone=SIGNS)
    kept = RidgeRanker().fit(data(), monotone=SIGNS).as_model()
    assert LambdaMART(trees=5).continue_from(kept).fit(data(), monotone=SIGNS).as_model().monotone


def test_least_squares_within_signs_is_that_of_scipy() -> None:
    generator = np.random.default_rng(1)
    for _ in range(60):
        d = int(generator.integers(1, 20))
        A, b = generator.normal(size=(50, d)) @ generator.normal(size=(d, d)), generator.normal(size=50)
        signs = generator.integers(-1, 2, d)
        gram, side = A.T @ A + 0.1 * np.eye(d), A.T @ b
        root = np.linalg.cholesky(gram).T
        bounds = np.where(signs > 0, 0.0, -np.inf), np.where(signs < 0, 0.0, np.inf)
        known = lsq_linear(root, np.linalg.solve(root.T, side), bounds, method="bvls", tol=1e-14).x
        np.testing.assert_allclose(within_signs(gram, side, signs), known, atol=1e-8 * max(1.0, np.abs(known).max()))


@pytest.mark.parametrize("optimizer", [LBFGS(tol=1e-8), OWLQN(tol=1e-8), FISTA(tol=1e-8)], ids=repr)
@pytest.mark.parametrize("penalty", [L2(0.05), ElasticNet(0.01, 0.05)], ids=repr)
def test_batch_optimizers_find_the_best_weights_within_the_bounds(optimizer: Any, penalty: Any) -> None:
    if isinstance(optimizer, LBFGS) and isinstance(penalty, ElasticNet):
        pytest.skip("L-BFGS takes no L1 penalty")
    queries = data()
    signs = queries.constrained(SIGNS).monotone
    assert signs is not None
    ranker = Ranker(PairwiseLogistic(), None, penalty, optimizer, scaling="none").fit(queries, monotone=SIGNS)
    l1, l2 = penalty.strengths

    def objective(parts: np.ndarray) -> tuple[float, np.ndarray]:
        weights = parts[:6] - parts[6:]
        value, by_score = PairwiseLogistic().value_and_gradient(queries.features @ weights, queries)
        gradient = np.asarray(queries.features.T @ by_score) + l2 * weights
        return value + 0.5 * l2 * weights @ weights + l1 * parts.sum(), np.concatenate([gradient, -gradient]) + l1

    above = [(0.0, 0.0 if sign < 0 else None) for sign in signs]
    below = [(0.0, 0.0 if sign > 0 else None) for sign in signs]
    known = minimize(objective, np.zeros(12), jac=True, method="L-BFGS-B", bounds=above + below, tol=1e-14)
    np.testing.assert_allclose(ranker.coef_, known.x[:6] - known.x[6:], atol=2e-5)
    assert ranker.objective_ == pytest.approx(known.fun, rel=1e-9)
    assert ranker.converged_


def projected(value_and_gradient: Callable[[np.ndarray], tuple[float, np.ndarray]], signs: np.ndarray) -> float:
    """Return the least value within signs, by SciPy's L-BFGS-B."""
    bounds = [(0.0 if sign > 0 else None, 0.0 if sign < 0 else None) for sign in signs]
    return float(minimize(value_and_gradient, np.zeros(len(signs)), jac=True, method="L-BFGS-B", bounds=bounds).fun)


def test_leaving_features_out_loses_little_of_the_objective_of_ranksvm() -> None:
    losses = []
    for seed in range(6):
        queries = data(seed, 240)
        X, y, q = np.asarray(queries.features), queries.grades, queries.query_of_document
        better, worse = np.nonzero((q[:, None] == q) & (y[:, None] > y))
        differences = X[better] - X[worse]

        def objective(weights: np.ndarray, differences: np.ndarray = differences) -> tuple[float, np.ndarray]:
            slack = np.maximum(0.0, 1.0 - differences @ weights)
            return 0.5 * weights @ weights + 0.1 * slack @ slack, weights - 0.2 * differences.T @ slack

        signs = np.array([-1, 1, 1, 1, -1, 1])
        ranker = RankSVM(C=0.1, scaling="none", average="none", tol=1e-8, max_iterations=500)
        coef = ranker.fit(queries, monotone=signs).coef_
        assert (coef * signs >= 0.0).all()
        best = projected(objective, signs)
        losses.append(objective(coef)[0] / best - 1.0)
    assert min(losses) > -1e-6
    assert max(losses) < 0.01


def test_constraints_go_by_name_glob_number_or_one_by_one() -> None:
    queries = data()
    given: list[Any] = [SIGNS, {0: -1, 1: 1, 2: 1}, {"0": -1, "bod*": 1, "price": 1}, [-1, 1, 1, 0, 0, 0]]
    for monotone in given:
        result = queries.constrained(monotone).monotone
        assert result is not None
        assert result.tolist() == [-1, 1, 1, 0, 0, 0]
    later = queries.constrained({"*": 1, "noise": 0, "age": -1}).monotone
    assert later is not None
    assert later.tolist() == [1, 1, 1, -1, 1, 0]
    unnamed = Queries.from_arrays(queries.features, queries.grades).constrained({"f2": 1}).monotone
    assert unnamed is not None
    assert unnamed.tolist() == [0, 1, 0, 0, 0, 0]
    selected = queries.constrained(SIGNS).select([0, 1])
    joined = concatenate([selected, queries.select([2])])
    assert joined.monotone is not None
    assert joined.monotone.tolist() == [-1, 1, 1, 0, 0, 0]


@pytest.mark.parametrize("monotone", [{"prise": 1}, {9: 1}, {"price": 2}, {"price": "up"}, [1, 1], {"price": True}])
def test_constraints_that_cannot_be_are_refused(monotone: Any) -> None:
    with pytest.raises(ParameterError, match="monotone"):
        RidgeRanker().fit(data(), monotone=monotone)


def test_distilled_copies_keep_constraints() -> None:
    queries = data()
    for start in ("none", "linear"):
        model = LambdaMART(trees=20, start=start).fit(queries, monotone=SIGNS).as_model(feature_names=NAMED)
        for into, trees in (("trees", None), ("trees", 10), ("linear", None)):
            copy = distil(model, queries, into, trees=trees)
            assert copy.monotone == SIGNS
            assert swept_the_wrong_way(copy, queries.select(range(5)), SIGNS) <= 1e-9


def test_catboost_refuses_the_loss_that_breaks_constraints() -> None:
    with pytest.raises(ParameterError, match=r"CatBoostRanker\(loss='YetiRank'\) cannot keep monotone constraints"):
        CatBoostRanker(loss="YetiRank").fit(data(), monotone=SIGNS)


class Plain:
    """A linear estimator of the user's that does not know of constraints."""

    def fit(self, X: Any, y: Any) -> "Plain":
        """Keep the least squares."""
        self.weights = np.linalg.lstsq(np.c_[X, np.ones(len(X))], y, rcond=None)[0][:-1]
        return self

    def predict(self, X: Any) -> Any:
        """Return the weighted sums."""
        return np.asarray(X @ self.weights)

    def save(self, path: Any) -> None:
        """Write the weights."""
        with open(path, "wb") as file:
            np.save(file, self.weights)

    @classmethod
    def load(cls, path: Any) -> "Plain":
        """Read the weights."""
        result = cls()
        result.weights = np.load(path)
        return result


class Claiming(Plain):
    """One that claims to keep constraints, and does not."""

    takes_monotone = True

    def fit(self, X: Any, y: Any, monotone: Any = None) -> "Claiming":
        """Ignore the constraints."""
        super().fit(X, y)
        return self


class Keeping(Claiming):
    """One that keeps constraints."""

    def fit(self, X: Any, y: Any, monotone: Any = None) -> "Keeping":
        """Set weights of the wrong sign to 0."""
        super().fit(X, y)
        self.weights = np.where(self.weights * monotone < 0.0, 0.0, self.weights)
        return self


def test_solvers_of_the_users_declare_that_they_keep_constraints_and_are_verified(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for kind in (Plain, Claiming, Keeping):
        monkeypatch.setitem(REGISTERED, f"Own{kind.__name__}", Registration(f"Own{kind.__name__}", kind))
    with pytest.raises(ParameterError, match="cannot keep monotone constraints"):
        make("OwnPlain", {}, 0).fit(data(), monotone=SIGNS)
    with pytest.raises(DataError, match="against the monotone constraint -1 of the feature 'title'"):
        make("OwnClaiming", {}, 0).fit(data(), monotone=SIGNS).as_model(feature_names=NAMED)
    assert make("OwnKeeping", {}, 0).fit(data(), monotone=SIGNS).as_model(feature_names=NAMED).monotone == SIGNS
