"""Spaces of scikit-optimize and Optuna are those of RankTune."""

import json

import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial
from sklearn.linear_model import SGDRegressor
from skopt.space import Categorical, Dimension, Integer, Real, Space

from ranktune import Study, register_solver
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.core.registrations import REGISTERED
from ranktune.solvers.core.space import Choice, Float, Int, Value, When
from ranktune.tuner.samplers.foreign_spaces import distribution_of
from ranktune.tuner.samplers.skopt import skopt_result
from ranktune.tuner.samplers.space import UnionSpace

DIMENSIONS = {
    "alpha": Real(1e-6, 1e-2, "log-uniform", name="other"),
    "l1_ratio": Real(0, 1),
    "max_iter": Integer(10, 1000, prior="log-uniform"),
    "power_t": Categorical(np.array([0.25, 0.5])),
}
PARAMETERS = (
    Float("alpha", 1e-6, 1e-2, 1e-4, log=True),
    Float("l1_ratio", 0.0, 1.0, 0.15),
    Int("max_iter", 10, 1000, 1000, log=True),
    Choice("power_t", (0.25, 0.5), 0.25),
)

with np.errstate(invalid="ignore"):  # scikit-optimize takes its logarithm
    NEGATIVE = Real(-2, -1, "log-uniform")


@pytest.mark.parametrize(
    ("dimension", "distribution"),
    [
        (Real(0, 2), FloatDistribution(0.0, 2.0)),
        (Real(0.1, 2, "log-uniform"), FloatDistribution(0.1, 2.0, log=True)),
        (Integer(1, 9), IntDistribution(1, 9)),
        (Integer(1, 9, prior="log-uniform"), IntDistribution(1, 9, log=True)),
        (Categorical(("a", None, True, 3)), CategoricalDistribution(("a", None, True, 3))),
    ],
)
def test_a_dimension_is_a_distribution(dimension: Dimension, distribution: object) -> None:
    assert distribution_of("p", dimension) == distribution


@pytest.mark.parametrize("form", ["mapping", "sequence", "space"])
def test_the_space_of_a_solver_may_be_dimensions(form: str) -> None:
    for name, dimension in DIMENSIONS.items():
        dimension.name = "other" if form == "mapping" else name
    forms = {"mapping": DIMENSIONS, "sequence": [*DIMENSIONS.values()], "space": Space([*DIMENSIONS.values()])}
    register_solver("Mine", SGDRegressor, forms[form])
    assert REGISTERED["Mine"].space == PARAMETERS
    study = Study(solvers=["Mine"])
    read = Study.from_dict(json.loads(json.dumps(study.as_dict())))
    assert read.union_space().distributions == study.union_space().distributions


def test_parameters_and_dimensions_with_names_may_be_mixed() -> None:
    register_solver("Mine", SGDRegressor, [PARAMETERS[0], Real(0, 1, name="l1_ratio")])
    assert REGISTERED["Mine"].space == PARAMETERS[:2]


@pytest.mark.parametrize("kind", ["scikit-optimize", "Optuna"])
def test_the_space_of_a_study_may_have_dimensions_and_distributions(kind: str) -> None:
    space = {
        "RankSVM.C": Real(0.1, 1.0, "log-uniform"),
        "RankSVM.loss": Categorical(["l2"]),
        "LambdaMART.leaves": Integer(4, 9, name="other"),
    }
    if kind == "Optuna":
        space = {name: distribution_of(name, dimension) for name, dimension in space.items()}
    study = Study(solvers=["RankSVM", "LambdaMART"], space=space)
    assert study.space == {
        "RankSVM.C": {"low": 0.1, "high": 1.0, "log": True},
        "RankSVM.loss": ["l2"],
        "LambdaMART.leaves": {"low": 4, "high": 9, "log": False},
    }
    assert study.union_space().distributions["RankSVM.C"] == FloatDistribution(0.1, 1.0, log=True)
    assert Study.from_dict(json.loads(json.dumps(study.as_dict()))) == study


@pytest.mark.parametrize(
    ("space", "said"),
    [
        ([Real(0, 1)], r"Real\(low=0.*has no name. Give it name=, or give a mapping of names"),
        ({"alpha": NEGATIVE}, "'alpha' is log-uniform from -2: a logarithmic scale needs low > 0"),
        ({"alpha": Categorical([1, 2], prior=[0.1, 0.9])}, r"'alpha' has prior=\[0.1, 0.9\].*Leave prior out"),
        ({"alpha": Dimension()}, "'alpha' is .*Dimension.*: give Real, Integer or Categorical of skopt.space"),
        ({"alpha": (0.1, 1.0)}, r"'alpha' is \(0.1, 1.0\): give a FloatDistribution.*Categorical of scikit-optimize"),
        ({"alpha": FloatDistribution(0.0, 1.0, step=0.5)}, "'alpha' has steps of 0.5. Leave step out, or list choices"),
    ],
)
def test_what_cannot_be_searched_is_refused_with_a_remedy(space: object, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        register_solver("Mine", SGDRegressor, space)  # type: ignore[arg-type]


def test_the_error_of_a_study_names_the_parameter() -> None:
    with pytest.raises(ParameterError, match=r"'RankSVM\.C' cannot be -1\.0"):
        Study(solvers=["RankSVM"], space={"RankSVM.C": FloatDistribution(-1.0, 1.0), "RankSVM.loss": ["l2"]})


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
