"""Several objectives, constraints, and studies whose space changed."""

from collections.abc import Collection, Mapping

import numpy as np
import optuna
import pytest
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial

from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.core.space import When
from ranktune.tuner import ThompsonSampler
from tests.support.optuna_studies import optimised


def two(trial: optuna.Trial) -> tuple[float, float]:
    """The front is x in [0.2, 0.8] with c = "b": (x - 0.2)^2 against (x - 0.8)^2."""
    x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
    away = (y - 0.6) ** 2 + 0.3 * (trial.suggest_categorical("c", ["a", "b", "d"]) != "b")
    return (x - 0.2) ** 2 + away, (x - 0.8) ** 2 + away


def area(study: optuna.Study, corner: float = 0.5) -> float:
    """The area that the front of two minimised objectives dominates below a corner."""
    points = sorted(tuple(t.values) for t in study.best_trials)
    total, high = 0.0, corner
    for first, second in points:
        if first < corner and second < high:
            total += (corner - first) * (high - second)
            high = second
    return total


@pytest.mark.parametrize(("acquisition", "enough"), [("thompson", 0.21), ("mixed", 0.22)])
def test_two_objectives_are_traded_off(acquisition: str, enough: float) -> None:
    areas = []
    for sampler in (ThompsonSampler(seed=0, acquisition=acquisition), optuna.samplers.RandomSampler(seed=0)):
        study = optimised(two, 32, directions=["minimize", "minimize"], sampler=sampler)
        areas.append(area(study))
    x = np.linspace(0, 1, 2001)
    whole = np.trapezoid(0.5 - np.minimum.accumulate((x - 0.2) ** 2)[::-1], (x[::-1] - 0.8) ** 2)
    assert max(enough, areas[1]) < areas[0] < whole


def concave(trial: optuna.Trial) -> tuple[float, float]:
    """The front is that of g = 1: between (0, 1), which is easily found, and (1, 0), a concave curve."""
    first, rest = trial.suggest_float("x", 0, 1), [trial.suggest_float(f"y{j}", 0, 1) for j in range(3)]
    g = 1.0 + 3.0 * sum(rest)
    return first, g * (1.0 - (first / g) ** 2)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in (1, 2))])
def test_both_ends_and_the_middle_of_a_concave_front_are_reached(seed: int) -> None:
    study = optimised(concave, 40, directions=["minimize"] * 2, sampler=ThompsonSampler(seed=seed))
    near = [t.values[0] for t in study.best_trials if t.values[1] < 1.05 - t.values[0] ** 2]
    for low, high in ((-0.01, 0.1), (0.1, 0.5), (0.5, 0.9), (0.9, 1.01)):
        assert any(low < first < high for first in near)


def test_directions_are_heeded_one_by_one() -> None:
    mixed = optuna.create_study(directions=["maximize", "minimize"], sampler=ThompsonSampler(seed=0))
    plain = optimised(two, 14, directions=["minimize", "minimize"], sampler=ThompsonSampler(seed=0))
    mixed.optimize(lambda t: (-two(t)[0], two(t)[1]), n_trials=14)
    assert [t.params for t in mixed.trials] == [t.params for t in plain.trials]


def test_three_objectives_one_of_them_constant_or_infinite() -> None:
    study = optuna.create_study(directions=["minimize"] * 3, sampler=ThompsonSampler(seed=0, startup=4))
    study.optimize(lambda t: (*two(t), float("inf") if t.number % 3 else 1.0), n_trials=10)
    assert len({str(t.params) for t in study.trials}) == 10


def narrow(trial: optuna.Trial) -> float:
    """The best allowed value is 0.75, at x = 0.5, y = 0.25; without the constraint it would be 2."""
    x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
    trial.set_constraint("x", x - 0.5)
    trial.set_constraint("y", y - 0.25)
    return x + y


def over(trial: FrozenTrial) -> Collection[float]:
    return trial.constraints.values()


def test_constraints_are_learnt() -> None:
    sampler = ThompsonSampler(seed=0)
    study = optimised(narrow, 30, direction="maximize", sampler=sampler)
    allowed = [t.value for t in study.trials if max(over(t)) <= 0 and t.value is not None]
    assert 0.72 < max(allowed) <= 0.75 and len(allowed) > 5
    assert sampler.posterior_best(study).value == pytest.approx(max(allowed), abs=0.02)
    assert max(over(sampler.posterior_best(study))) <= 0


@pytest.mark.parametrize("limit", [-1.0, 0.0, 1.0, 1e300, float("inf")])
def test_constraints_that_always_or_never_hold(limit: float) -> None:
    def objective(trial: optuna.Trial) -> float:
        trial.set_constraint("limit", limit)
        return trial.suggest_float("x", 0, 1) + trial.suggest_int("k", 0, 50)

    sampler = ThompsonSampler(seed=0, startup=4)
    study = optimised(objective, 12, sampler=sampler)
    assert len({str(t.params) for t in study.trials}) == 12
    assert sampler.posterior_best(study).state == TrialState.COMPLETE


def test_of_trials_that_all_break_a_constraint_the_least_is_best() -> None:
    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        trial.set_constraint("limit", 1.0 + abs(x - 0.3))
        return x

    sampler = ThompsonSampler(seed=0)
    study = optimised(objective, 20, sampler=sampler)
    assert sampler.posterior_best(study).params["x"] == pytest.approx(0.3, abs=0.05)


def test_the_improvement_in_closed_form_knows_one_objective() -> None:
    study = optuna.create_study(
        directions=["minimize"] * 2, sampler=ThompsonSampler(seed=0, startup=1, acquisition="ei")
    )
    with pytest.raises(ParameterError, match="one objective and no constraints"):
        study.optimize(two, n_trials=3)
    with pytest.raises(ParameterError, match="2 objectives"):
        ThompsonSampler().posterior_best(study)
    with pytest.raises(ParameterError, match="no trial of the study is complete"):
        ThompsonSampler().posterior_best(optuna.create_study())


def test_the_believed_best_is_not_the_luckiest() -> None:
    """A single lucky value among many good ones of its neighbours' opposite is not believed."""
    study = optuna.create_study(direction="maximize")
    distributions: dict[str, BaseDistribution] = {"x": FloatDistribution(0, 1)}
    noise = np.random.default_rng(0).normal(0, 0.15, 60)
    for k, x in enumerate(np.linspace(0, 1, 60)):
        value = 1 - 4 * (x - 0.7) ** 2 + noise[k]
        value = 1.4 if k == 12 else value
        study.add_trial(create_trial(params={"x": float(x)}, distributions=distributions, value=float(value)))
    assert study.best_trial.number == 12
    believed, again = (ThompsonSampler(seed=seed).posterior_best(study) for seed in (0, 1))
    assert abs(believed.params["x"] - 0.7) < 0.15 and believed.number == again.number


def test_the_predicted_best_of_many_trials_may_be_an_early_trial() -> None:
    """The model takes the best trials and the latest, and chooses among those that break no constraint."""
    distributions: dict[str, BaseDistribution] = {"x": FloatDistribution(0, 1)}
    for best, limit in ((0, 1.0), (1, -1.0)):
        study = optuna.create_study(direction="maximize")
        for k, x in enumerate([0.7, 0.95, *np.linspace(0, 0.6, 700).tolist()]):
            value, limits = (5.0, {"l": limit}) if k == 1 else (1 - 4 * (x - 0.7) ** 2, {"l": -1.0})
            study.add_trial(create_trial(params={"x": x}, distributions=distributions, value=value, constraints=limits))
        assert ThompsonSampler().posterior_best(study).number == best


class Declared:
    """A space with conditions, of which some cannot be."""

    def __init__(self, high: float, choices: tuple[str, ...], conditions: dict[str, tuple[When, ...]]) -> None:
        self.distributions = {
            "c": CategoricalDistribution(choices), "x": FloatDistribution(0.0, high), "k": IntDistribution(1, 9)
        }  # fmt: skip
        self.conditions = {"c": (), "x": (), "k": ()} | conditions


def study_with(choices: tuple[str, ...], high: float, n: int = 15) -> optuna.Study:
    """A study of trials over some ranges; the best are at the right end, with c = "b"."""
    study = optuna.create_study(direction="maximize")
    generator = np.random.default_rng(0)
    space = Declared(high, choices, {})
    for _ in range(n):
        c, x, k = str(generator.choice(choices)), float(generator.uniform(0, high)), int(generator.integers(1, 10))
        params = {"c": c, "x": x, "k": k}
        study.add_trial(
            create_trial(params=params, distributions=space.distributions, value=x + (c == "b"))
        )  # fmt: skip
    return study


def suggestions(study: optuna.Study, space: Declared, count: int = 8, how: str = "mixed") -> list[Mapping[str, object]]:
    drawn: list[Mapping[str, object]] = []
    for number in range(count):
        sampler = ThompsonSampler(seed=0, startup=5, conditions=space, number=100 + number, acquisition=how)
        coming = create_trial(state=TrialState.RUNNING)
        drawn.append(sampler.sample_relative(study, coming, dict(space.distributions)))
    return drawn


def test_a_category_is_added_and_a_range_widened() -> None:
    """What was learnt within the old ranges holds in the new ones: more at the right, and the new is looked at."""
    study, wider = study_with(("a",), 1.0), Declared(2.0, ("a", "new"), {})
    drawn = suggestions(study, wider, 16, "thompson")
    assert any(float(str(params["x"])) > 1 for params in drawn) and any(params["c"] == "new" for params in drawn)
    assert np.mean([float(str(params["x"])) for params in drawn]) > 0.8


def test_a_category_is_gone_and_a_range_narrowed() -> None:
    study, narrower = study_with(("a", "b", "old"), 1.0), Declared(0.5, ("a", "b"), {})
    drawn = suggestions(study, narrower)
    assert all(0 <= float(str(params["x"])) <= 0.5 and params["c"] in ("a", "b") for params in drawn)
    assert np.mean([params["c"] == "b" for params in drawn]) > 0.7
    assert np.mean([float(str(params["x"])) for params in drawn]) > 0.3


@pytest.mark.parametrize(
    ("conditions", "active"),
    [
        ({"x": (When("absent", (1,)),)}, {"c", "x", "k"}),  # nobody can tell: asked for always
        ({"x": (When("c", ("nowhere",)),)}, {"c", "k"}),  # never
        ({"x": (When("c", ("a",)), When("c", ("b",)))}, {"c", "k"}),  # both at once: never
        ({"x": (When("k", (1, 2, 3, 4, 5, 6, 7, 8, 9)),)}, {"c", "x", "k"}),
    ],
)
def test_conditions_that_cannot_be(conditions: dict[str, tuple[When, ...]], active: set[str]) -> None:
    drawn = suggestions(study_with(("a", "b"), 1.0), Declared(1.0, ("a", "b"), conditions))
    assert all(set(params) <= active for params in drawn) and any(set(params) == active for params in drawn)


def test_all_trials_fail() -> None:
    study = optuna.create_study(sampler=ThompsonSampler(seed=0, startup=2))

    def objective(trial: optuna.Trial) -> float:
        trial.suggest_float("x", 0, 1)
        raise ArithmeticError

    study.optimize(objective, n_trials=12, catch=ArithmeticError)
    places = np.sort([t.params["x"] for t in study.trials])
    assert len(np.unique(places)) == 12 and np.diff(places).max() < 0.4


def test_one_point_only() -> None:
    study = optuna.create_study(sampler=ThompsonSampler(seed=0, startup=2))
    study.optimize(lambda t: t.suggest_float("x", 1, 1) + t.suggest_categorical("c", [3]), n_trials=5)
    assert [t.params for t in study.trials] == [{"x": 1.0, "c": 3}] * 5
