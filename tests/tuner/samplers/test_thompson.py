import pickle
from collections.abc import Callable

import numpy as np
import optuna
import pytest
from optuna.samplers import BaseSampler
from optuna.testing.pytest_samplers import BasicSamplerTestCase, MultiObjectiveSamplerTestCase, RelativeSamplerTestCase

from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.core.space import Choice, Float, Int, When
from ranktune.tuner import ThompsonSampler
from ranktune.tuner.samplers.space import UnionSpace
from tests.support.commands import output_of
from tests.support.optuna_studies import optimised
from tests.support.spaces import active

SPACE = UnionSpace(
    {
        "A": (
            Float("x", 1e-3, 10, 1.0, log=True),
            Choice("p", ("l1", "l2"), "l2"),
            Float("r", 0, 1, 0.5, when=When("p", ("l1",))),
        ),
        "B": (Int("k", 1, 50, 5), Float("x", -1, 1, 0.0)),
    }
)


class TestInOptunaWithAModel(BasicSamplerTestCase, RelativeSamplerTestCase, MultiObjectiveSamplerTestCase):
    """The suites that Optuna has for samplers."""

    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: ThompsonSampler(seed=0, startup=1)


def union_objective(trial: optuna.Trial) -> float:
    params = SPACE.suggest(trial)
    solver, values = SPACE.split(params)
    assert set(params) == set(active(SPACE, params))
    if solver == "A":
        return float(-abs(np.log10(float(values["x"] or 0)) - 0.5) - 0.5 * (values["p"] == "l2"))
    return -1.0 - abs(float(values["k"] or 0) - 30) / 50 - abs(float(values["x"] or 0))


def mixed_objective(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", 1e-4, 1.0, log=True)
    c = trial.suggest_categorical("c", ["a", "b", None])
    k = trial.suggest_int("k", 0, 20, step=2)
    return float((np.log10(x) + 2) ** 2 + (0.5 if c != "b" else 0.0) + 0.01 * (k - 12) ** 2)


def params_of(study: optuna.Study) -> list[dict[str, object]]:
    return [trial.params for trial in study.trials]


@pytest.mark.parametrize(("acquisition", "enough"), [("mixed", 0.02), ("ei", 0.02), ("thompson", 0.1)])
def test_better_than_random_on_a_mixed_space(acquisition: str, enough: float) -> None:
    best = {}
    for name, sampler in (
        ("random", optuna.samplers.RandomSampler(seed=1)),
        ("ours", ThompsonSampler(seed=1, acquisition=acquisition)),
    ):
        study = optimised(mixed_objective, 32, sampler=sampler)
        best[name] = study.best_value
    assert best["ours"] < enough and best["ours"] < best["random"]


@pytest.mark.parametrize("conditions", [SPACE, None], ids=["declared", "learnt"])
def test_finds_the_right_branch_of_a_conditional_space(conditions: UnionSpace | None) -> None:
    study = optuna.create_study(direction="maximize", sampler=ThompsonSampler(seed=0, conditions=conditions))
    study.optimize(union_objective, n_trials=28)
    assert study.best_params["solver"] == "A" and study.best_params["A.p"] == "l1" and study.best_value > -0.1


def test_the_first_trials_are_evenly_spread_and_respect_conditions() -> None:
    study = optimised(union_objective, 64, sampler=ThompsonSampler(seed=0, startup=64, conditions=SPACE))
    solvers = [trial.params["solver"] for trial in study.trials]
    assert solvers.count("A") == 32
    places = sorted(np.log10(t.params["A.x"]) for t in study.trials if t.params["solver"] == "A")
    assert np.diff(places).max() < 1.0  # of a range of 4; 32 random ones leave such a gap in one of 60 tries


def test_a_suggestion_depends_on_seed_number_and_history_only() -> None:
    whole = optimised(mixed_objective, 16, sampler=ThompsonSampler(seed=3))
    resumed = optuna.create_study()
    resumed.add_trials(whole.trials[:13])
    for _ in range(3):
        resumed.sampler = ThompsonSampler(seed=3)  # what another process would make
        resumed.optimize(mixed_objective, n_trials=1)
    assert params_of(resumed) == params_of(whole)


def test_reseeding_for_threads_changes_nothing() -> None:
    sampler = ThompsonSampler(seed=3)
    study = optimised(mixed_objective, 12, sampler=sampler)
    repeated = optuna.create_study(sampler=sampler)
    sampler.reseed_rng()
    repeated.optimize(mixed_objective, n_trials=12)
    assert params_of(study) == params_of(repeated)


def test_another_seed_and_no_seed_give_other_trials() -> None:
    drawn = []
    for seed in (0, 1, None, None):
        study = optimised(mixed_objective, 12, sampler=ThompsonSampler(seed=seed))
        drawn.append(str(params_of(study)))
    assert len(set(drawn)) == 4


def test_it_needs_numpy_scipy_and_optuna_only() -> None:
    others = (
        "numba",
        "joblib",
        "sklearn",
        "skopt",
        "pandas",
        "plotly",
        "lightgbm",
        "xgboost",
        "typer",
        "rich",
        "torch",
    )
    code = (
        "import importlib.abc, sys\n"
        "class Absent(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        f"        if name.split('.')[0] in {others}: raise ImportError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "import optuna; from ranktune.tuner import ThompsonSampler\n"
        "study = optuna.create_study(sampler=ThompsonSampler(seed=0, startup=2))\n"
        "study.optimize(lambda t: t.suggest_float('x', 0, 1), n_trials=4); print(len(study.trials))"
    )
    assert output_of(code).strip() == "4"


def test_threads() -> None:
    study = optuna.create_study(sampler=ThompsonSampler(seed=0, startup=4))
    study.optimize(mixed_objective, n_trials=24, n_jobs=4)
    assert len({str(sorted(t.params.items(), key=str)) for t in study.trials}) == 24


def test_a_pickled_copy_suggests_the_same() -> None:
    study = optimised(union_objective, 6, sampler=ThompsonSampler(seed=5, startup=3, conditions=SPACE))
    copy = pickle.loads(pickle.dumps(study.sampler))
    other = optuna.create_study(sampler=copy)
    other.add_trials(study.trials)
    assert SPACE.suggest(other.ask()) == SPACE.suggest(study.ask())


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e308, -1e308])
def test_absurd_values_never_stop_it(value: float) -> None:
    study = optuna.create_study(sampler=ThompsonSampler(seed=0, startup=2))
    study.optimize(lambda t: value if t.number % 3 == 0 else t.suggest_float("x", 0, 1), n_trials=12)
    assert [t.number for t in study.trials if t.params] == [k for k in range(12) if k % 3]
    assert all(0 <= t.params["x"] <= 1 for t in study.trials if t.params)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"acquisition": "thomson"}, "Did you mean 'thompson'"),
        ({"startup": -1}, "startup=-1"),
        ({"seed": -1}, "seed=-1"),
    ],
)
def test_options_that_cannot_be(options: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        ThompsonSampler(**options)  # type: ignore[arg-type]
