"""Properties of every solver that has a path: one fit yields the models for many values of one parameter."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.base.ranker import BaseRanker
from ranktune.solvers.core.errors import DataError, ParameterError, RankTuneWarning
from ranktune.solvers.core.space import Choice, Float, Int, defaults
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.optimizers.batch import ScaledObjective
from ranktune.solvers.registry import SOLVERS, make
from tests.contracts.test_contracts import VARIANTS, graded, relative_gap, trained

WITH_PATH = [name for name in SOLVERS if SOLVERS[name].path_parameter is not None]

CASES = [(name, more) for name in WITH_PATH for more in VARIANTS.get(name, ({},))]

CLOSE: Mapping[str, tuple[Mapping[str, Any], float]] = {
    "DominationRank": ({"tol": 1e-9}, 1e-6),
    "ListNet": ({"tol": 1e-8}, 1e-5),
    "LogisticRanker": ({"tol": 1e-8}, 1e-5),
    "RankSVM": ({"tol": 3e-9}, 1e-5),
    "SVRRanker": ({"tol": 1e-8}, 1e-5),
}
"""Solvers that agree with a fit to their tolerance alone: how precise they are asked to be here, and how close scores
then are, as a part of their spread. All others give the same bits."""


def parameters(name: str, more: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults of the space, drawing as usual, and more."""
    return defaults(SOLVERS[name].space) | dict(CLOSE.get(name, ({}, 0.0))[0]) | dict(more)


def values(ranker: BaseRanker) -> tuple[float | int, ...]:
    """A few values of its parameter, in the order of their cost; counts are small."""
    parameter = next(each for each in type(ranker).space if each.name == ranker.path_parameter)
    assert not isinstance(parameter, Choice)
    if isinstance(parameter, Int):
        return (2, 3, 9, 20) if parameter.high > 20 else (1, 2, 4)
    return type(ranker).path_values(parameter, parameter.default, 4)


def fitted_path(ranker: BaseRanker, queries: Queries, wanted: Sequence[float]) -> list[tuple[Any, Any, Any, Any]]:
    """For each value its scores, parameters and model, taken before the ranker goes on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankTuneWarning)
        return [
            (value, each.predict(queries), each.get_params(), each.as_model())
            for value, each in ranker.fit_path(queries, wanted)
        ]


@pytest.mark.parametrize(("name", "more"), CASES)
@pytest.mark.parametrize("thin", [False, True], ids=["dense", "sparse"])
def test_each_value_gives_the_model_of_a_fit_with_it(name: str, more: Mapping[str, Any], thin: bool) -> None:
    queries = graded()
    if thin:
        queries = queries.with_features(sparse.csr_array(queries.features))
    given = parameters(name, more)
    ranker = make(name, given, seed=3)
    name_on_path = ranker.path_parameter
    assert name_on_path is not None
    wanted = sorted(values(ranker), reverse=not SOLVERS[name].path_increasing)
    assert len(wanted) > 2
    result = fitted_path(ranker, queries, wanted)
    assert [value for value, *_ in result] == wanted
    for value, scores, kept, model in result:
        fresh = make(name, given | {name_on_path: value}, seed=3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RankTuneWarning)
            alone = fresh.fit(queries).predict(queries)
        assert kept == fresh.get_params()
        assert model.parameters[name_on_path] == value and model.solver == name
        assert model.predict(queries).tobytes() == scores.tobytes()
        if name in CLOSE:
            assert relative_gap(alone, scores) < CLOSE[name][1], value
        else:
            assert scores.tobytes() == alone.tobytes(), value
    assert any(result[0][1].tobytes() != scores.tobytes() for _, scores, *_ in result[1:])


@pytest.mark.parametrize("name", WITH_PATH)
def test_the_parameter_is_in_the_space(name: str) -> None:
    parameter = next(each for each in SOLVERS[name].space if each.name == SOLVERS[name].path_parameter)
    assert isinstance(parameter, Int | Float)
    assert make(name, defaults(SOLVERS[name].space)).path_parameter == parameter.name


@pytest.mark.parametrize("name", WITH_PATH)
def test_any_order_and_repetitions_will_do_and_the_ranker_stays_as_it_is(name: str) -> None:
    queries, ranker = graded(), make(name, parameters(name, {}), seed=0)
    before = ranker.get_params()
    wanted = values(ranker)
    plain = fitted_path(ranker, queries, wanted)
    mixed = fitted_path(ranker, queries, np.array([*wanted[::-1], wanted[1], wanted[0]]))  # type: ignore[arg-type]
    assert [value for value, *_ in plain] == [value for value, *_ in mixed]
    assert [scores.tobytes() for _, scores, *_ in plain] == [scores.tobytes() for _, scores, *_ in mixed]
    assert {type(value) for value, *_ in mixed} == {type(value) for value in wanted}
    assert ranker.get_params() == before
    assert not hasattr(ranker, "n_features_in_")


@pytest.mark.parametrize("name", WITH_PATH)
def test_the_caller_may_stop_at_any_value(name: str) -> None:
    queries, ranker = graded(), make(name, parameters(name, {}), seed=0)
    path: Any = ranker.fit_path(queries, values(ranker))
    value, kept = next(path)
    path.close()
    fresh = trained(name, queries, parameters(name, {}) | {str(ranker.path_parameter): value})
    assert relative_gap(fresh.predict(queries), kept.predict(queries)) <= CLOSE.get(name, ({}, 0.0))[1]
    assert kept.get_params()[str(ranker.path_parameter)] == value


@pytest.mark.parametrize("name", WITH_PATH)
def test_what_fit_refuses_is_refused(name: str) -> None:
    queries, ranker = graded(), make(name, parameters(name, {}), seed=0)
    good, parameter = values(ranker)[0], str(ranker.path_parameter)
    for wrong in ([good, -1], [good, float("nan")], [good, "many"], [good, True], [None]):
        with pytest.raises(ParameterError, match=parameter):
            next(ranker.fit_path(queries, wrong))  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="at least one"):
        next(ranker.fit_path(queries, []))
    with pytest.raises(DataError, match="nothing to learn"):
        next(ranker.fit_path(Queries.from_arrays(queries.features, np.ones(queries.n_documents)), [good]))


def test_a_solver_without_such_a_parameter_says_so() -> None:
    assert SOLVERS["BestFeature"].path_parameter is None
    with pytest.raises(ParameterError, match=r"BestFeature.* has no parameter along which"):
        next(make("BestFeature", {}).fit_path(graded(), [1.0]))


@pytest.mark.parametrize("name", [name for name in ("GBDTRanker", "LambdaMART", "XGBoostRanker") if name in SOLVERS])
def test_rounds_selected_on_held_out_queries_make_no_path(name: str) -> None:
    assert SOLVERS[name].path_parameter == "trees"
    ranker = make(name, {"validation": 0.2})
    assert ranker.path_parameter is None
    with pytest.raises(ParameterError, match="no parameter along which"):
        next(ranker.fit_path(graded(), [10]))


@pytest.mark.parametrize(("penalty", "strength"), [("l1", "l1"), ("elastic_net", "l1"), ("l2", "l2")])
def test_the_strength_that_the_penalty_has(penalty: str, strength: str) -> None:
    assert make("DominationRank", {"penalty": penalty}).path_parameter == strength


@pytest.mark.parametrize("name", WITH_PATH)
def test_a_path_for_a_trial_ends_at_its_value(name: str) -> None:
    solver = SOLVERS[name]
    parameter = next(each for each in solver.space if each.name == solver.path_parameter)
    assert not isinstance(parameter, Choice)
    cheap, dear = (parameter.low, parameter.high) if solver.path_increasing else (parameter.high, parameter.low)
    assert solver.path_values(parameter, cheap) == (cheap,)
    whole = solver.path_values(parameter, dear)
    assert len(whole) == 8 and whole[0] == cheap and whole[-1] == dear
    assert list(whole) == sorted(set(whole), reverse=not solver.path_increasing)
    assert solver.path_values(parameter, dear, most=1) == (dear,)


def test_a_choice_has_no_path() -> None:
    with pytest.raises(ParameterError, match="'loss' is a choice"):
        SOLVERS["RankSVM"].path_values(Choice("loss", ("l1", "l2"), default="l1"), 1.0)


@pytest.mark.parametrize(("name", "share"), [("ListNet", 0.75), ("LogisticRanker", 0.6), ("SVRRanker", 0.6)])
def test_curvature_that_is_kept_saves_evaluations(name: str, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []
    evaluate = ScaledObjective.value_and_gradient

    def counting(self: ScaledObjective, weights: Any) -> Any:
        counted.append(1)
        return evaluate(self, weights)

    monkeypatch.setattr(ScaledObjective, "value_and_gradient", counting)
    queries, given = graded(), defaults(SOLVERS[name].space)
    wanted = SOLVERS[name].path_values(
        next(p for p in SOLVERS[name].space if p.name == SOLVERS[name].path_parameter), 1e-2
    )
    fitted_path(make(name, given), queries, wanted)
    together = len(counted)
    for value in wanted:
        trained(name, queries, given | {str(SOLVERS[name].path_parameter): value})
    assert 0 < together < share * (len(counted) - together)
