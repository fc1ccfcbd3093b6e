"""A solver has one set of defaults: its constructor, its search space and the first trial of a study agree."""

from typing import Any, ClassVar

import pytest

from ranktune.solvers.base.ranker import BaseRanker
from ranktune.solvers.core.space import Choice, Float, Int, Parameter, defaults
from ranktune.solvers.linear.pointwise import RidgeRanker
from ranktune.solvers.registry import SOLVERS, make
from ranktune.tuner.samplers.first import portfolio
from ranktune.tuner.samplers.space import UnionSpace

ALL = list(SOLVERS)


@pytest.mark.parametrize("name", ALL)
def test_a_solver_without_parameters_is_the_first_trial_of_its_study(name: str) -> None:
    solver, given = SOLVERS[name](), defaults(SOLVERS[name].space)
    params = solver.get_params()
    assert {parameter: params[parameter] for parameter in given} == given
    assert make(name, given).get_params() == params
    assert repr(make(name, given)) == f"{name}()"
    space = UnionSpace({name: SOLVERS[name].space})
    assert [space.split(first) for first in space.defaults()] == [(name, given)]


@pytest.mark.parametrize("name", ALL)
def test_defaults_are_of_the_kind_that_the_space_declares(name: str) -> None:
    for parameter in SOLVERS[name].space:
        match parameter:
            case Float():
                assert isinstance(parameter.default, float)
            case Int():
                assert type(parameter.default) is int
            case Choice():
                assert parameter.default in parameter.choices


@pytest.mark.parametrize("name", ALL)
def test_a_portfolio_holds_different_configurations_of_the_search_space(name: str) -> None:
    space, first = {parameter.name: parameter for parameter in SOLVERS[name].space}, defaults(SOLVERS[name].space)
    results: list[dict[str, object]] = []
    for values in portfolio(name):
        make(name, values).check_parameters()
        for parameter, value in values.items():
            match space[parameter]:
                case Float() | Int() as number:
                    assert isinstance(value, int | float) and number.low <= value <= number.high
                case Choice() as choice:
                    assert value in choice.choices
        assert {**first, **values} not in results
        results.append({**first, **values})
    assert first in results


def test_a_subclass_with_other_defaults_has_them_in_its_space() -> None:
    class Strong(RidgeRanker):
        def __init__(self, alpha: float = 5.0, *, centre: str = "none") -> None:
            super().__init__(alpha, centre=centre)

    assert defaults(Strong.space) == {"alpha": 5.0, "centre": "none"}
    assert defaults(RidgeRanker.space) != defaults(Strong.space)


def test_a_space_with_a_parameter_that_has_no_default_is_refused() -> None:
    with pytest.raises(TypeError, match="declares 'C', for which __init__ has no default"):

        class Broken(BaseRanker):
            space: ClassVar[tuple[Parameter, ...]] = (Float("C", 0.1, 1.0),)

            def __init__(self, C: Any) -> None:
                self.C = C
