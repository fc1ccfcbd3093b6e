"""Thompson sampling by its name: every decision maximises one draw from the posterior, and can be replayed. Branches:
where categories decide which parameters there are, a single draw chooses them."""

from typing import Any

import numpy as np
import optuna
import pytest

from ranktune.solvers.core.arrays import Floats
from ranktune.tuner import ThompsonSampler
from ranktune.tuner.gp import proposal
from ranktune.tuner.gp.encoding import Axis, AxisRule, AxisRules, SpaceEncoding, covered
from ranktune.tuner.gp.paths import PathwiseImprovement
from ranktune.tuner.gp.proposal import THOMPSON, ObservedTrials, decide, propose
from ranktune.tuner.gp.search import maximise
from ranktune.tuner.samplers.history import TrialHistory, read, seen_distributions
from ranktune.tuner.samplers.registry import make_sampler

SEED = 7


def objective(trial: optuna.Trial) -> float:
    x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 1e-3, 1, log=True)
    bonus = {"a": 0.0, "b": 0.4, "c": 0.2}[str(trial.suggest_categorical("c", "abc"))]
    return float((x - 0.3) ** 2 + (np.log10(y) + 1) ** 2 / 4 - bonus)


def study_with(trials: int, running: int, seconds: bool) -> optuna.Study:
    """A study with finished and running trials; finished ones may have a cost."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for _ in range(trials):
        trial = study.ask()
        value = objective(trial)
        if seconds:
            trial.set_user_attr("seconds", float(np.exp(4 * trial.params["x"])))
        study.tell(trial, value)
    for _ in range(running):
        objective(study.ask())
    return study


def replayed(study: optuna.Study, number: int) -> tuple[TrialHistory, PathwiseImprovement]:
    """What the decision for a trial maximised: drawn again from the record, the seed and the number alone."""
    trials = study.get_trials(deepcopy=False)
    history = read(study, trials[number], seen_distributions(trials[:number]))
    decision = decide(history.encoding, history.trials, np.random.default_rng([SEED, number]), THOMPSON)
    assert isinstance(decision.function, PathwiseImprovement)
    return history, decision.function


def places_of(history: TrialHistory, params: dict[str, Any]) -> Floats:
    place = [axis.encode(np.array([history.distributions[axis.name].to_internal_repr(params[axis.name])]))[0]
           for axis in history.encoding.axes]  # fmt: skip
    return np.array([place])


@pytest.mark.parametrize("running", [0, 4])
@pytest.mark.parametrize("costs", [False, True])
def test_a_decision_maximises_the_draw_that_its_seed_makes(costs: bool, running: int) -> None:
    study = study_with(14, running, seconds=True)
    for _ in range(4):
        number = len(study.trials)
        study.sampler = make_sampler("thompson", seed=SEED, number=number, costs=costs, acquisition="thompson")
        trial = study.ask()
        objective(trial)
        history, draw = replayed(study, trial.number)
        assert draw.objectives[0].draws == 1 and len(history.trials.pending) == trial.number - 14
        encoding = history.encoding
        others = encoding.from_unit(np.random.default_rng(1).random((20_000, 3)))
        others = others[~covered(others, history.tried)]
        value, rest = (
            draw.objectives[0].values(encoding.embed(rows)) for rows in (places_of(history, trial.params), others)
        )
        assert value[0, 0] > rest.max() - 1e-3  # the draw has a variance of about one


def test_costs_and_running_trials_do_not_change_what_is_drawn() -> None:
    suggested = []
    for seconds, costs in ((False, False), (True, True)):
        for running in (0, 3):
            study = study_with(14, running, seconds)
            study.sampler = ThompsonSampler(seed=SEED, acquisition="thompson", costs=costs, number=40)
            suggested.append(study.ask(seen_distributions(study.trials)).params)
    assert all(params == suggested[0] for params in suggested)


def test_a_draw_of_a_constraint_must_hold() -> None:
    def limited(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        trial.set_constraint("x", x - 0.5)
        return x + trial.suggest_float("y", 0, 1)

    sampler = ThompsonSampler(seed=SEED, acquisition="thompson")
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(limited, n_trials=30)
    allowed = [trial for trial in study.trials if trial.params["x"] <= 0.5]
    assert len(allowed) > 12 and max(trial.value or 0.0 for trial in allowed) > 1.4


RULES = AxisRules((AxisRule(1, 0, (0.0,)), AxisRule(2, 0, (1.0,)), AxisRule(3, 2, (1.0,))))
BOTH = SpaceEncoding((Axis("kind", choices=3), Axis("x"), Axis("c", choices=2), Axis("y"), Axis("d", choices=2)), RULES)
ROWS = BOTH.masked(BOTH.from_unit(np.random.default_rng(0).random((10, 5))))
TRIALS = ObservedTrials(ROWS, np.random.default_rng(1).normal(size=10), np.ones(10), ROWS[:0])


@pytest.mark.parametrize("near", [0.0, 1.0])
def test_the_mean_of_draws_is_maximised_in_the_branch_that_a_single_draw_chose(
    near: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Any] = []

    def noted(*given: Any, **how: Any) -> Any:
        found.append(maximise(*given, **how))
        return found[-1]

    monkeypatch.setattr(proposal, "maximise", noted)
    monkeypatch.setattr(proposal, "share_after", lambda *_: near)
    for share, times in ((0.0, 2), (1.0, 1)):
        monkeypatch.setattr(proposal, "CLOSED_FORM_PROBABILITY", share)
        for seed in range(12):
            last = propose(BOTH, TRIALS, None, np.random.default_rng(seed))
            drawn, full = BOTH.masked(np.array(found[-times:]))[[0, -1]]
            np.testing.assert_array_equal(drawn[[0, 2]], full[[0, 2]])
            assert last.full.tolist() == found[-1].tolist() and (times == 1 or not last.widely)
    assert len(found) == 36 and len({row[0] for row in found[:24]}) > 1  # the mean of draws alone stays in one


@pytest.mark.parametrize("seed", [1, 4, 5])
def test_the_best_of_sixteen_branches_is_found(seed: int) -> None:
    generator = np.random.default_rng(seed)
    floors, best = generator.normal(size=(4, 4)), generator.random((2, 4))

    def loss(trial: optuna.Trial) -> float:
        a, b = (int(trial.suggest_categorical(name, list("0123"))) for name in "ab")
        x, y = trial.suggest_float(f"x{a}", 0, 1), trial.suggest_float(f"y{b}", 0, 1)
        return float(0.2 * (floors[a, b] - floors.min()) + (x - best[0, a]) ** 2 + (y - best[1, b]) ** 2)

    study = optuna.create_study(sampler=ThompsonSampler(seed=seed))
    study.optimize(loss, n_trials=40)
    assert study.best_value < 0.01
