from typing import Any

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.core.space import Choice, Float, Int, When
from ranktune.tuner.samplers.space import UnionSpace
from tests.support.spaces import active

SOLVERS = {
    "Linear": (
        Float("C", 1e-4, 1e4, 1.0, log=True),
        Choice("penalty", ("l1", "l2", None), "l2"),
        Float("ratio", 0.0, 1.0, 0.5, when=When("penalty", ("l1", None))),
    ),
    "Boost": (Int("rounds", 1, 500, 100, log=True), Choice("exact", (True, False), True)),
    "Best": (),
}


def space() -> UnionSpace:
    return UnionSpace(SOLVERS)


def test_distributions_by_flat_name_in_order() -> None:
    assert space().distributions == {
        "solver": CategoricalDistribution(("Linear", "Boost", "Best")),
        "Linear.C": FloatDistribution(1e-4, 1e4, log=True),
        "Linear.penalty": CategoricalDistribution(("l1", "l2", None)),
        "Linear.ratio": FloatDistribution(0.0, 1.0),
        "Boost.rounds": IntDistribution(1, 500, log=True),
        "Boost.exact": CategoricalDistribution((True, False)),
    }
    assert next(iter(space().distributions)) == "solver"


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, ["solver"]),
        ({"solver": "Best"}, ["solver"]),
        ({"solver": "Boost", "Linear.penalty": "l1"}, ["solver", "Boost.rounds", "Boost.exact"]),
        ({"solver": "Linear"}, ["solver", "Linear.C", "Linear.penalty"]),
        ({"solver": "Linear", "Linear.penalty": "l2"}, ["solver", "Linear.C", "Linear.penalty"]),
        ({"solver": "Linear", "Linear.penalty": None}, ["solver", "Linear.C", "Linear.penalty", "Linear.ratio"]),
    ],
)
def test_active(params: dict[str, Any], expected: list[str]) -> None:
    assert active(space(), params) == expected


def test_suggest_asks_for_active_parameters_only() -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    union, solvers = space(), set()
    for _ in range(40):
        trial = study.ask()
        params = union.suggest(trial)
        assert params == trial.params and list(params) == active(union, params)
        solvers.add(params["solver"])
    assert solvers == set(SOLVERS)


def test_split_gives_the_solver_the_names_it_declares() -> None:
    assert space().split({"solver": "Linear", "Linear.C": 2.0, "Linear.penalty": "l2"}) == (
        "Linear",
        {"C": 2.0, "penalty": "l2"},
    )
    assert space().split({"solver": "Best"}) == ("Best", {})


def test_defaults_are_one_configuration_a_solver() -> None:
    assert space().defaults() == [
        {"solver": "Linear", "Linear.C": 1.0, "Linear.penalty": "l2"},
        {"solver": "Boost", "Boost.rounds": 100, "Boost.exact": True},
        {"solver": "Best"},
    ]


def test_one_solver_is_still_a_choice() -> None:
    alone = UnionSpace({"Best": ()})
    assert alone.distributions == {"solver": CategoricalDistribution(("Best",))}
    assert alone.suggest(optuna.create_study().ask()) == {"solver": "Best"}


def test_no_solver() -> None:
    with pytest.raises(ParameterError, match="at least one"):
        UnionSpace({})


class TestRestricted:
    @pytest.mark.parametrize(
        ("name", "override", "expected"),
        [
            ("Linear.C", {"low": 0.1}, FloatDistribution(0.1, 1e4, log=True)),
            ("Linear.C", {"low": 1, "high": 10, "log": False}, FloatDistribution(1.0, 10.0)),
            ("Linear.C", [1, 10.0], CategoricalDistribution((1.0, 10.0))),
            ("Linear.C", 3, FloatDistribution(3.0, 3.0, log=True)),
            ("Linear.penalty", ["l1", None], CategoricalDistribution(("l1", None))),
            ("Linear.penalty", None, CategoricalDistribution((None,))),
            ("Boost.rounds", {"high": 50}, IntDistribution(1, 50, log=True)),
            ("Boost.rounds", 7, IntDistribution(7, 7, log=True)),
            ("Boost.rounds", [5, 50], CategoricalDistribution((5, 50))),
            ("Boost.exact", False, CategoricalDistribution((False,))),
            ("solver", ["Boost", "Best"], CategoricalDistribution(("Boost", "Best"))),
            ("solver", "Best", CategoricalDistribution(("Best",))),
        ],
    )
    def test_distribution(self, name: str, override: Any, expected: Any) -> None:
        assert space().restricted({name: override}).distributions[name] == expected

    def test_the_rest_stays_and_so_does_the_original(self) -> None:
        union = space()
        restricted = union.restricted({"Linear.C": {"high": 5}})
        assert union.distributions == space().distributions
        assert {k: v for k, v in restricted.distributions.items() if k != "Linear.C"} == {
            k: v for k, v in union.distributions.items() if k != "Linear.C"
        }

    def test_defaults_move_inside(self) -> None:
        restricted = space().restricted({"Linear.C": {"low": 10}, "Linear.penalty": ["l1"], "Boost.rounds": [5, 50]})
        linear, boost, _ = restricted.defaults()
        assert linear == {"solver": "Linear", "Linear.C": 10.0, "Linear.penalty": "l1", "Linear.ratio": 0.5}
        assert boost["Boost.rounds"] == 5

    def test_only_the_kept_solvers_remain(self) -> None:
        assert list(space().restricted({"solver": ["Boost"]}).distributions) == [
            "solver",
            "Boost.rounds",
            "Boost.exact",
        ]

    @pytest.mark.parametrize(
        ("override", "message"),
        [
            ({"Linear.c": 1}, r"no parameter 'Linear.c'. Did you mean 'Linear.C'\?"),
            ({"solver": "Bost"}, r"no solver 'Bost'. Did you mean 'Boost'\?"),
            ({"solver": []}, "at least one"),
            ({"Linear.C": {"lo": 1}}, "Did you mean 'low'"),
            ({"Linear.C": {"low": 9, "high": 1}}, "low must not exceed high"),
            ({"Linear.C": {"low": 0}}, "logarithmic scale needs low > 0"),
            ({"Linear.C": "big"}, "must be a number"),
            ({"Linear.C": float("nan")}, "must be a number"),
            ({"Linear.C": True}, "must be a number"),
            ({"Linear.C": []}, "at least one choice"),
            ({"Linear.penalty": "l3"}, r"cannot be 'l3'\. Did you mean '.*Known: None, l1, l2"),
            ({"Linear.penalty": {"low": 1}}, "give a list"),
            ({"Boost.rounds": 2.5}, "must be a whole number"),
            ({"Boost.rounds": {"low": 1.5}}, "must be a whole number"),
        ],
    )
    def test_what_cannot_be(self, override: dict[str, Any], message: str) -> None:
        with pytest.raises(ParameterError, match=message):
            space().restricted(override)


def test_the_size_counts_configurations() -> None:
    assert UnionSpace({"Best": ()}).size == 1
    assert UnionSpace({"Boost": SOLVERS["Boost"]}).size == 1000
    assert space().size == float("inf")
    assert space().restricted({"solver": "Boost", "Boost.rounds": [1, 5]}).size == 4
    assert space().restricted({"solver": "Linear", "Linear.C": 1.0, "Linear.ratio": 0.5}).size == 3


class TestDeclaredAgain:
    """Parameters whose choices depend on another parameter."""

    DECLARED = (
        Choice("how", ("all", "one", "none"), "all"),
        Choice("loss", ("a", "b"), "a", When("how", ("all",))),
        Choice("loss", ("b", "c"), "b", When("how", ("one", "none"))),
        Float("width", 0.0, 1.0, 0.5, when=When("loss", ("c",))),
        Float("height", 0.0, 1.0, 0.5, when=(When("how", ("one",)), When("loss", ("b",)))),
    )
    UNION = UnionSpace({"R": DECLARED})

    def test_further_names_hold_their_condition(self) -> None:
        assert {name: condition for name, condition in self.UNION.conditions.items() if name.startswith("R.")} == {
            "R.how": (When("solver", ("R",)),),
            "R.loss": (When("solver", ("R",)), When("R.how", ("all",))),
            "R.loss[one|none]": (When("solver", ("R",)), When("R.how", ("one", "none"))),
            "R.width": (When("solver", ("R",)), When("R.loss[one|none]", ("c",))),
            "R.height": (When("solver", ("R",)), When("R.how", ("one",)), When("R.loss[one|none]", ("b",))),
        }

    def test_the_solver_sees_one_name(self) -> None:
        params = {"solver": "R", "R.how": "one", "R.loss[one|none]": "b"}
        assert self.UNION.split(params) == ("R", {"how": "one", "loss": "b"})
        assert active(self.UNION, params) == ["solver", "R.how", "R.loss[one|none]", "R.height"]
        assert self.UNION.configuration("R", {"loss": "b"}) == {"solver": "R", "R.how": "all", "R.loss": "b"}
        assert self.UNION.configuration("R", {"loss": "c"}) is None

    def test_suggestions_are_active_and_complete(self) -> None:
        study, seen = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0)), set()
        for _ in range(60):
            params = self.UNION.suggest(study.ask())
            assert list(params) == active(self.UNION, params)
            seen.add((params["R.how"], self.UNION.split(params)[1]["loss"]))
        assert seen == {("all", "a"), ("all", "b"), ("one", "b"), ("one", "c"), ("none", "b"), ("none", "c")}

    @pytest.mark.parametrize(
        ("overrides", "possible"),
        [
            ({"R.loss": "b"}, {("all", "b"), ("one", "b"), ("none", "b")}),
            ({"R.loss": "c"}, {("one", "c"), ("none", "c")}),
            ({"R.loss": ["a"]}, {("all", "a")}),
            ({"R.loss": ["a", "c"], "R.how": ["all", "one"]}, {("all", "a"), ("one", "c")}),
        ],
    )
    def test_an_override_confines_all_declarations(self, overrides: Any, possible: Any) -> None:
        union, seen = self.UNION.restricted(overrides), set()
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
        for _ in range(60):
            params = union.suggest(study.ask())
            seen.add((params["R.how"], union.split(params)[1]["loss"]))
        assert seen == possible
        (first,) = union.defaults()
        assert (first["R.how"], union.split(first)[1]["loss"]) in possible

    def test_an_override_that_leaves_nothing(self) -> None:
        with pytest.raises(ParameterError, match=r"'R.loss' is left without a choice where 'R.how' is all"):
            self.UNION.restricted({"R.loss": "c", "R.how": "all"})
        with pytest.raises(ParameterError, match=r"'R.loss' cannot be 'd'.*Known: a, b, c"):
            self.UNION.restricted({"R.loss": "d"})

    def test_declarations_that_are_ambiguous(self) -> None:
        twice = Choice("loss", ("a",), "a", When("how", ("all",)))
        with pytest.raises(TypeError, match="twice under the same condition"):
            UnionSpace({"R": (Choice("how", ("all",), "all"), twice, twice, twice)})
        both = Float("width", 0.0, 1.0, 0.5, when=When("loss", ("b",)))
        with pytest.raises(TypeError, match="'width' depends on 'loss', which 2 declarations can be"):
            UnionSpace({"R": (*self.DECLARED[:3], both)})
