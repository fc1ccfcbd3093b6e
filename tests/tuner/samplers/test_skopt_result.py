"""Trials as scikit-optimize has them: each is a point of the whole space, with a value to minimise."""

from __future__ import annotations

from optuna.trial import FrozenTrial, TrialState, create_trial

from ranktune.solvers.core.space import Choice, Float, Int, Value, When
from ranktune.tuner.samplers.skopt_result import skopt_result
from ranktune.tuner.samplers.space import UnionSpace

SPACE = UnionSpace(
    {
        "A": (
            Choice("penalty", ("none", None, True), "none"),
            Float("l2", 0.01, 100.0, 0.5, log=True, when=When("penalty", (None,))),
            Int("rounds", 10, 20, 12),
        ),
        "B": (Float("fixed", 2.0, 2.0, 2.0),),
    }
)


def trial(value: float | None, state: TrialState = TrialState.COMPLETE, **params: Value) -> FrozenTrial:
    named = {"solver": params["solver"]} | {f"{params['solver']}.{k}": v for k, v in params.items() if k != "solver"}
    distributions = {name: SPACE.distributions[name] for name in named}
    return create_trial(state=state, value=value, params=named, distributions=distributions)


def test_inactive_parameters_stopped_trials_and_failures() -> None:
    grown = trial(0.4, solver="A", penalty=None, l2=0.1, rounds=15)
    grown.params["A.rounds"] = 30  # boosting went on beyond what is searched
    found = skopt_result(
        SPACE,
        [
            trial(0.25, solver="A", penalty="none", rounds=11),
            trial(None, TrialState.FAIL, solver="B", fixed=2.0),
            trial(0.75, TrialState.PRUNED, solver="B", fixed=2.0),
            grown,
        ],
        {"metric": "map"},
    )
    assert [dimension.name for dimension in found.space] == list(SPACE.distributions)
    assert found.x_iters == [
        ["A", "none", 1.0, 11, 2.0],
        ["B", "none", 1.0, 15, 2.0],
        ["A", None, 0.1, 20, 2.0],
    ]
    assert found.func_vals.tolist() == [-0.25, -0.4, -0.4]  # an estimate is never the best
    assert found.fun == -0.4 and found.specs == {"function": "ranktune.tune", "args": {"metric": "map"}}
    assert found.models[0].predict(found.space.transform(found.x_iters)).shape == (3,)
