"""A study declares the user's solvers and metrics so that it can be read anywhere, and run where they exist."""

import json

import pytest
from sklearn.linear_model import Ridge

from ranktune import Study, register_metric, register_solver
from ranktune.solvers.core.errors import ParameterError, StudyError
from ranktune.solvers.core.registrations import REGISTERED
from ranktune.solvers.core.space import Choice, Float, Int, When
from ranktune.solvers.metrics.presets import CUSTOM
from ranktune.tuner.study.custom import restore_custom
from tests.support.custom_solvers import PowerRidge, precision
from tests.support.spaces import active


def forget() -> None:
    REGISTERED.clear()
    CUSTOM.clear()


def declared() -> Study:
    register_solver("Mine", PowerRidge)
    register_metric("mine", precision, cutoff="optional")
    return Study(solvers=["mine", "RankSVM"], metric="MINE@3", also=["map", "mine:ties=input"])


def test_names_get_their_one_spelling() -> None:
    study = declared()
    assert study.solvers == ("Mine", "RankSVM")
    assert study.metrics == ("mine@3", "map", "mine:ties=input")
    assert set(study.custom["solvers"]) == {"Mine"} and set(study.custom["metrics"]) == {"mine"}
    assert Study().custom == {}


def test_it_is_read_where_nothing_is_registered() -> None:
    study = declared()
    text = json.dumps(study.as_dict())
    space = study.union_space()
    forget()
    read = Study.from_dict(json.loads(text))
    assert read.as_dict() == study.as_dict()
    assert read.union_space().distributions == space.distributions and not REGISTERED and not CUSTOM
    restore_custom("s", read.custom)
    assert REGISTERED["Mine"].make is PowerRidge and CUSTOM["mine"].function is precision


def test_conditions_and_choices_are_declared_too() -> None:
    space = (
        Choice("fit_intercept", (True, False), False),
        Float("alpha", 0.1, 10.0, 1.0, log=True, when=When("fit_intercept", (False,))),
        Int("max_iter", 10, 100, when=(When("fit_intercept", (False,)), When("fit_intercept", (True, False)))),
    )
    register_solver("Mine", Ridge, space)
    study = Study(solvers=["Mine"], space={"Mine.alpha": {"low": 0.5}})
    read = Study.from_dict(json.loads(json.dumps(study.as_dict())))
    for version in (study, read):
        union = version.union_space()
        assert active(union, {"solver": "Mine", "Mine.fit_intercept": True}) == ["solver", "Mine.fit_intercept"]
        assert union.distributions["Mine.alpha"].low == 0.5  # type: ignore[attr-defined]


def test_what_is_missing_is_said() -> None:
    register_solver("Mine", Ridge(), [Float("alpha", 0.1, 10.0)])
    study = Study(solvers=["Mine"])
    forget()
    with pytest.raises(StudyError, match=r"study 's' cannot continue here: the solver 'Mine' is not registered here"):
        restore_custom("s", study.custom)
    with pytest.raises(StudyError, match=r"the metric 'mine' is not registered here.*Call register_metric in Python"):
        restore_custom("s", {"metrics": {"mine": {"function": "", "cutoff": "none"}}})
    with pytest.raises(ParameterError, match="cannot be read"):
        Study(solvers=["Mine"], custom={"solvers": {"Mine": {"space": [{"name": "alpha"}]}}})


def test_all_holds_the_users_and_standard_does_not() -> None:
    register_solver("Mine", PowerRidge)
    assert "Mine" in Study(solvers=["all"]).solvers
    assert Study(solvers=["standard", "Mine"]).solvers == (*Study().solvers, "Mine")
    with pytest.raises(ParameterError, match="Mine does not learn from query to query"):
        Study(solvers=["Mine"], plan="progressive")
