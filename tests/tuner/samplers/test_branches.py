"""Branches: where categories decide which parameters there are, a single draw chooses them."""

from typing import Any

import numpy as np
import optuna
import pytest

from ranktune.tuner import ThompsonSampler
from ranktune.tuner.gp import proposal
from ranktune.tuner.gp.encoding import Axis, AxisRule, AxisRules, SpaceEncoding
from ranktune.tuner.gp.proposal import ObservedTrials, propose
from ranktune.tuner.gp.search import maximise

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
