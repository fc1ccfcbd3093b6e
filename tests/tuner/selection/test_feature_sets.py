"""Studies within limits of cost or number of features: trials, blends and the delivered model keep them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ranktune
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.core.space import Int
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.registry import STANDARD
from ranktune.tuner.evaluation.feature_costs import FEATURE_SET, LEVELS, FeatureBudget, FeatureLimits
from ranktune.tuner.evaluation.feature_order import selected_columns
from ranktune.tuner.splits.plans import PLAN, Fold
from ranktune.tuner.splits.store import read_development, write_problem
from ranktune.tuner.study.declaration import Study
from tests.support.custom_solvers import PowerRidge

NAMES = ("text", "text_copy", "age", "vector_1", "vector_2", "noise")
COSTS: dict[str, Any] = {"text_copy": 5, "vectors": {"features": ["vector_*"], "cost": 4}, "noise": 0.5}


def sample(seed: int, count: int = 20) -> Queries:
    """Queries whose grades follow a cheap feature, which has a dear copy, a group, and a little of age."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(count * 10, 6))
    X[:, 1] = X[:, 0]
    utility = X[:, 0] + 0.8 * X[:, 3] + 0.4 * X[:, 4] + 0.2 * X[:, 2] + 0.3 * generator.normal(size=len(X))
    return Queries.from_arrays(X, np.digitize(utility, [0.0, 1.5]), group=[10] * count, feature_names=NAMES)


def tuned(home: Path, solvers: tuple[Any, ...], **given: Any) -> Any:
    options: dict[str, Any] = {"trials": 4, "sampler": "random", "jobs": 1, "home": home, "costs": COSTS}
    return ranktune.tune(sample(0), test=sample(1), solvers=solvers, **(options | given))


def test_the_cheap_copy_is_chosen_and_groups_are_paid_once(tmp_path: Path) -> None:
    ranktune.register_solver("Power", PowerRidge)
    result = tuned(tmp_path, ("RidgeRanker", "AdaRank", "Power"), within="cost<=5")
    assert len(result.leaderboard) > 3  # each solver, and blends
    for row in result.leaderboard:
        assert row.cost <= 5.0
        model = ranktune.load_model(Path(result.folder) / "models" / f"{row.solver}.json")
        assert not np.isin(1, model.used_features)
    full = [row for row in result.leaderboard if (row.params or {}).get(FEATURE_SET) == LEVELS]
    assert all(row.nonzeros == 3 and row.cost == 5.0 for row in full)  # text and the vectors
    assert result.best_model.n_features == 6
    assert FEATURE_SET not in result.best_model.parameters


def test_without_limits_of_features_the_space_is_as_it_was() -> None:
    plain = Study(solvers=STANDARD).union_space()
    for own in (Study(solvers=STANDARD, costs=COSTS), Study(solvers=STANDARD, within="bytes<=10k")):
        assert own.union_space().distributions == plain.distributions
    limited = Study(solvers=STANDARD, within="features<=10").union_space().distributions
    assert set(limited) - set(plain.distributions) == {f"{name}.{FEATURE_SET}" for name in STANDARD}
    online = Study(solvers=["SOLAR1"], plan="progressive", within="features<=10")
    assert online.union_space().distributions == Study(solvers=["SOLAR1"]).union_space().distributions


def test_without_costs_the_cost_is_the_number_of_features() -> None:
    assert Study(within="cost<=7, features<=9").limits == {"nonzeros": 7.0}
    assert Study(within="cost<=7", costs={"f1": 2}).limits == {"cost": 7.0}


def test_features_are_chosen_by_the_training_queries_of_the_part_alone(tmp_path: Path) -> None:
    queries = sample(2)
    half = np.arange(10), np.arange(10, 20)
    budget = FeatureBudget(Study(costs=COSTS).budget.costs, FeatureLimits(features=2.0))  # type: ignore[union-attr]
    shuffled = np.array(queries.features)
    shuffled[100:] = shuffled[100:, ::-1]  # in the validation queries other features matter
    results = []
    for name, features in (("one", np.asarray(queries.features)), ("two", shuffled)):
        folder = tmp_path / name
        write_problem(queries.with_features(features), {PLAN: (Fold(*half), Fold(*half[::-1]))}, folder)
        read_development.cache_clear()
        parts = [selected_columns(str(folder), part, budget, {FEATURE_SET: LEVELS}) for part in half]
        results.append([None if part is None else part.tolist() for part in parts])
    assert results[0][0] == results[1][0] == [0, 3]
    assert results[1][1] == [2, 4]
    assert selected_columns(str(tmp_path / "one"), half[0], budget, {}) is None


def test_a_given_split_keeps_the_limits_too(tmp_path: Path) -> None:
    result = tuned(tmp_path, ("RidgeRanker", "AdaRank"), vali=sample(3), plan="split", refit=False, within="cost<=2")
    assert all(row.cost <= 2.0 for row in result.leaderboard)


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({"within": "cost<=0.1"}, DataError, "no feature keeps the limits.*the cheapest costs 0.5"),
        ({"within": "features<=0"}, DataError, "no feature keeps the limits"),
        ({"costs": {"text_cpoy": 1}}, DataError, "no feature 'text_cpoy'. Did you mean 'text_copy'"),
        ({"costs": {"text": "much"}}, ParameterError, "'text' cannot cost 'much'"),
        ({"costs": "text=much"}, ParameterError, "costs"),
        ({"costs": 1.0}, ParameterError, "costs=1.0: it must be a table of costs"),
        ({"within": "features<=2", "space": {"RidgeRanker.feature_set": [9]}}, ParameterError, "feature_set"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, given: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        tuned(tmp_path, ("RidgeRanker",), **given)


def test_a_solver_with_a_parameter_of_that_name_is_refused() -> None:
    class Taken(PowerRidge):
        space = (Int(FEATURE_SET, 1, 3),)  # type: ignore[assignment]

        def __init__(self, feature_set: int = 1) -> None:
            super().__init__()

    ranktune.register_solver("Taken", Taken)
    with pytest.raises(ParameterError, match="Taken has a parameter 'feature_set'"):
        Study(solvers=["Taken"], within="features<=2")
