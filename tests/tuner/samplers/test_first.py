"""What a study tries first: sound defaults of every kind, with all features."""

import itertools

import numpy as np
import pytest

from ranktune.solvers.names import ONE_COLUMN, SOLVERS, STANDARD
from ranktune.tuner.samplers.first import alike, first_configurations, grows, is_alike
from ranktune.tuner.samplers.space import SOLVER
from ranktune.tuner.study.declaration import Study

BOOSTED = ("GBDTRanker", "LambdaMART")


def test_every_first_configuration_of_boosting_uses_all_features() -> None:
    configurations = first_configurations(Study(solvers=("all",)).union_space())
    shares = {(solver := str(params[SOLVER])): params.get(f"{solver}.feature_share") for params in configurations}
    # Trees of a forest must differ.
    assert {solver for solver, share in shares.items() if share not in (None, 1.0)} == {"RandomForestRanker"}
    assert shares["LambdaMART"] == shares["GBDTRanker"] == 1.0


def test_both_kinds_of_boosting_come_before_the_second_of_any() -> None:
    results = [params[SOLVER] for params in first_configurations(Study().union_space())]
    first = [results.index(solver) for solver in BOOSTED]
    seconds = [place for place, solver in enumerate(results) if solver in results[:place]]
    assert max(first) < min(seconds)


def test_small_trees_and_those_of_lightgbm_are_among_the_first() -> None:
    result = first_configurations(Study(solvers=BOOSTED).union_space())
    for solver in BOOSTED:
        by_name = {
            name.removeprefix(f"{solver}."): [params[name] for params in result if name in params]
            for name in (f"{solver}.leaves", f"{solver}.learning_rate", f"{solver}.min_documents")
        }
        sizes = set(zip(by_name["leaves"], by_name["min_documents"], strict=True))
        assert {(8, 20), (31, 20)} <= sizes <= {(8, 20), (31, 20), (64, 100)}
        assert set(by_name["learning_rate"]) == {0.1}


def some_solvers(seed: int) -> tuple[str, ...]:
    """Some of all solvers, in any order."""
    generator = np.random.default_rng(seed)
    return tuple(generator.permutation(SOLVERS.names)[: generator.integers(1, len(SOLVERS.names))].tolist())


@pytest.mark.parametrize("solvers", [STANDARD, *map(some_solvers, range(12))])
def test_any_number_of_trials_has_one_quick_solver_and_then_boosting(solvers: tuple[str, ...]) -> None:
    space = Study(solvers=solvers).union_space()
    every = first_configurations(space)
    for trials in range(1, len(every) + 1):
        first = first_configurations(space, trials)
        assert sorted(map(repr, first)) == sorted(map(repr, every))
        names = [str(params[SOLVER]) for params in first[: len(space.defaults())]]
        assert sorted(names) == sorted(str(params[SOLVER]) for params in space.defaults())
        if trials == len(every):
            assert first == every
            return
        quick, boosted, others = (list(kind) for kind in (names[:1], *_kinds(names[1:])))
        assert grows(quick[0]) <= all(map(grows, names)) and not any(map(grows, others))
        assert ONE_COLUMN not in quick or not (set(others) - {ONE_COLUMN})
        assert ONE_COLUMN not in others[:-1]
        by_merit = [name for name in ("SymmetricGBDT", "LambdaMART") if name in boosted]
        assert boosted[: len(by_merit)] == by_merit


def _kinds(names: list[str]) -> tuple[list[str], list[str]]:
    """The boosted solvers at the beginning, and the others."""
    boosted = list(itertools.takewhile(grows, names))
    return boosted, names[len(boosted) :]


def test_what_lies_outside_the_space_is_left_out_and_each_solver_has_one() -> None:
    space = Study(space={"GBDTRanker.start": ["none"], "LambdaMART.leaves": [4]}).union_space()
    result = first_configurations(space)
    assert {params[SOLVER] for params in result} == {params[SOLVER] for params in space.defaults()}
    assert not any(params.get("GBDTRanker.start") == "linear" for params in result)
    assert [params["LambdaMART.leaves"] for params in result if params[SOLVER] == "LambdaMART"] == [4]


def test_a_configuration_is_the_same_whatever_its_rounds() -> None:
    boosted, other = Study(solvers=("LambdaMART", "RankSVM")).union_space().defaults()
    boosted, other = (boosted, other) if boosted[SOLVER] == "LambdaMART" else (other, boosted)
    assert alike(boosted, boosted | {"LambdaMART.trees": 77}) and is_alike(boosted, boosted | {"LambdaMART.trees": 77})
    assert not is_alike(boosted, boosted | {"LambdaMART.leaves": 5})
    assert not is_alike(other, other | {"RankSVM.C": 7.0})
    assert not alike(boosted, other)


def test_what_grows_is_boosted() -> None:
    assert {name for name in SOLVERS.names if grows(name)} >= set(BOOSTED)
    assert not grows("RankSVM") and not grows("RandomForestRanker")
