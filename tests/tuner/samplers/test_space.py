"""Configurations of a union space: those of a portfolio, and rounds of boosting beyond what is searched."""

import pytest
from optuna.trial import create_trial

from ranktune.solvers.core.space import Choice, Float, Int, Value, When
from ranktune.tuner.samplers.space import SOLVER, UnionSpace, clipped, widened
from ranktune.tuner.search.search_scheduler import observations
from ranktune.tuner.storage.attributes import PATH

SPACE = UnionSpace(
    {
        "A": (
            Int("trees", 10, 500, default=100, log=True),
            Float("rate", 0.01, 0.3, default=0.1, log=True),
            Choice("start", ("none", "linear"), default="none"),
            Float("share", 0.1, 1.0, default=0.5, when=When("start", ("linear",))),
        ),
        "B": (Float("C", 0.1, 10.0, default=1.0),),
    }
)


def test_a_configuration_is_the_default_with_some_values_changed() -> None:
    result = SPACE.configuration("A", {"rate": 0.2, "start": "linear"})
    assert result == {SOLVER: "A", "A.trees": 100, "A.rate": 0.2, "A.start": "linear", "A.share": 0.5}
    assert SPACE.configuration("A", {"start": "linear", "share": 0.2}) == {
        **SPACE.defaults()[0],
        "A.start": "linear",
        "A.share": 0.2,
    }
    assert SPACE.configuration("A", {}) == {SOLVER: "A", "A.trees": 100, "A.rate": 0.1, "A.start": "none"}
    assert SPACE.configuration("B", {}) == {SOLVER: "B", "B.C": 1.0}


def test_a_configuration_outside_of_the_space_is_none() -> None:
    assert SPACE.configuration("A", {"rate": 0.5}) is None
    assert SPACE.configuration("A", {"start": "else"}) is None
    assert SPACE.configuration("A", {"share": 0.2}) is None
    assert SPACE.configuration("A", {"unknown": 1}) is None
    confined = SPACE.restricted({"A.rate": {"high": 0.15}})
    assert confined.configuration("A", {"rate": 0.2}) is None


def test_rounds_beyond_the_space_are_recorded_as_they_are_and_searched_at_its_end() -> None:
    params: dict[str, Value] = {SOLVER: "A", "A.trees": 1234, "A.rate": 0.1, "A.start": "none"}
    assert widened(SPACE.distributions, params)["A.trees"].high == 1234  # type: ignore[attr-defined]
    assert clipped(SPACE.distributions, params) == {**params, "A.trees": 500}
    inside: dict[str, Value] = {**params, "A.trees": 400}
    assert widened(SPACE.distributions, inside) is SPACE.distributions
    assert clipped(SPACE.distributions, inside) == inside


def test_a_path_beyond_the_space_is_observed_on_both_sides_of_its_best() -> None:
    params: dict[str, Value] = {SOLVER: "A", "A.trees": 1234, "A.rate": 0.1, "A.start": "none"}
    attributes = {PATH: {"trees": [(900, 0.4), (1234, 0.6), (1443, 0.5)]}}
    known = widened(SPACE.distributions, params)
    trial = create_trial(
        value=0.6, params=params, distributions={name: known[name] for name in params}, user_attrs=attributes
    )
    seen = {each.params["A.trees"]: each.value for each in observations(trial)}
    assert seen == {1234: 0.6, 900: pytest.approx(0.4), 1443: pytest.approx(0.5)}
