"""The first look: who may still win, what a trial costs, and what a study does with it."""

import json
import math
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

import ranktune
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import StudyError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.split import Split
from ranktune.tuner.policy.policy import POLICY
from ranktune.tuner.policy.standings import Look, Standing
from ranktune.tuner.samplers.space import SOLVER
from ranktune.tuner.search.look import look, worth_a_look
from ranktune.tuner.selection.typed import typed
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.events import read_events
from ranktune.tuner.study.problem import Problem, assemble, write_split
from ranktune.tuner.study.tasks import Tasks
from ranktune.tuner.workers.executor import InProcess
from tests.support.finished import Heard
from tests.support.policies import run_by

SOLVERS = ("BestFeature", "RidgeRanker", "GBDTRanker")
LARGE = replace(POLICY, look=replace(POLICY.look, too_long=0.1))
"""Looks first as on forty times as many documents."""


def crossed(count: int, seed: int, *, linear: bool = False, features: int = 12) -> Queries:
    """Grades by a product of two features, which no weighted sum follows, or by their sum."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(count * 20, features))
    truth: Floats = X[:, 0] + X[:, 1] if linear else X[:, 0] * X[:, 1]
    utility = truth + 0.2 * generator.normal(size=len(X))
    y = np.searchsorted(np.quantile(utility, [0.6, 0.85]), utility)
    return Queries.from_arrays(X, y, qid=np.repeat(np.arange(count), 20))


def looked(folder: Path, seconds: float, *, linear: bool) -> Look:
    study = Study(name="x", solvers=SOLVERS, trials=3, timeout=60.0, test="none")
    split = Split("", crossed(300, 0, linear=linear), crossed(300, 1, linear=linear))
    write_split(assemble(split, study), study, folder)
    (own,) = folder.iterdir()
    with InProcess() as executor:
        return look(Problem.open(own, ""), study.union_space(), Tasks(study, own), executor, seconds)


def test_who_cannot_win_is_found_on_samples(tmp_path: Path) -> None:
    result = looked(tmp_path / "x", 400.0, linear=False)
    assert result.standings[0].solver == "GBDTRanker"
    assert {"RidgeRanker", "BestFeature"} == result.hopeless
    assert [params[SOLVER] for params in result.first()] == ["GBDTRanker"]
    result = looked(tmp_path / "y", 400.0, linear=True)
    assert result.standings[0].solver == "RidgeRanker"
    assert "RidgeRanker" not in result.hopeless
    assert "BestFeature" in result.hopeless


def opposed(seed: int) -> Queries:
    """Queries of which the second half, where the truth is negated, count 50 times as much."""
    first, second = crossed(100, seed, linear=True), crossed(100, seed + 1, linear=True)
    features = np.concatenate([np.asarray(part.features) for part in (first, second)])
    y = np.concatenate([first.grades, second.grades.max() - second.grades])
    return Queries.from_arrays(features, y, group=np.full(200, 20), query_weights=np.repeat([1.0, 50.0], 100))


def test_a_look_compares_by_the_weights_of_queries(tmp_path: Path) -> None:
    study = Study(name="x", solvers=SOLVERS[:2], trials=2, timeout=60.0, test="none", refit=False)
    write_split(assemble(Split("", opposed(0), opposed(2)), study), study, tmp_path)
    (folder,) = tmp_path.iterdir()
    with InProcess() as executor:
        result = look(Problem.open(folder, ""), study.union_space(), Tasks(study, folder), executor, 40.0)
    # Half of the queries are ranked the wrong way round: their plain mean would be near 0.6.
    assert min(standing.values[-1] for standing in result.standings) > 0.75


def test_samples_grow_by_doubling_and_end_with_their_time(tmp_path: Path) -> None:
    result = looked(tmp_path, 40.0, linear=False)
    for own in result.standings:
        assert len(own.sizes) == len(own.values) == len(own.seconds)
        assert all(large in (2 * small, result.queries) for small, large in zip(own.sizes, own.sizes[1:], strict=False))
        assert own.sizes[-1] <= result.queries == 300
    assert sum(sum(own.seconds) for own in result.standings) < 2.0 * POLICY.look.share * 40.0
    short = looked(tmp_path / "short", 0.5, linear=False)
    assert max(own.sizes[-1] for own in short.standings) < max(own.sizes[-1] for own in result.standings)


def test_a_look_survives_being_written(tmp_path: Path) -> None:
    result = looked(tmp_path, 2.0, linear=False)
    again = typed(Look, json.loads(json.dumps(asdict(result))))
    assert json.dumps(asdict(again)) == json.dumps(asdict(result))
    assert again.first() == result.first()
    assert again.hopeless == result.hopeless


def standing(solver: str, seconds: float, growth: float = math.nan, *, hopeless: bool = False) -> Standing:
    return Standing({SOLVER: solver}, (100,), (0.5,), (seconds,), growth, hopeless)


LOOK = Look(
    (standing("A", 10.0, 0.02), standing("B", 0.1, 0.005), standing("C", 3.0), standing("D", 1.0, hopeless=True)),
    800,
    1,
)


def test_cheap_solvers_come_first_then_the_leader_then_other_expensive_ones() -> None:
    assert [params[SOLVER] for params in LOOK.first()] == ["B", "A"]
    assert [params[SOLVER] for params in LOOK.then()] == ["C"]
    assert LOOK.hopeless == {"D"}


def test_a_trial_costs_in_proportion_to_its_queries() -> None:
    assert LOOK.cost("A") == pytest.approx(80.0)
    assert Look(LOOK.standings, 800, 5).cost("A") == pytest.approx(400.0)
    assert LOOK.cost("unknown") == 0.0


def test_small_data_and_studies_without_a_time_limit_are_not_sampled(tmp_path: Path) -> None:
    study = Study(name="x", solvers=SOLVERS, trials=3, test="none")
    write_split(assemble(Split("", crossed(40, 0)), study), study, tmp_path)
    (folder,) = tmp_path.iterdir()
    problem = Problem.open(folder, "")
    assert not worth_a_look(problem, SOLVERS, 60.0)
    assert not worth_a_look(problem, SOLVERS, math.inf)
    assert not worth_a_look(problem, SOLVERS[:1], 0.1)
    assert worth_a_look(problem, SOLVERS, 0.005)


@pytest.mark.thorough
def test_a_study_of_large_data_looks_first_and_ends_in_time(tmp_path: Path) -> None:
    train, vali, test = (crossed(count, seed, features=120) for seed, count in enumerate((900, 310, 100)))
    result = run_by(LARGE, tmp_path / "x", Split("", train, vali, test), solvers=SOLVERS, timeout=8.0)
    kept = json.loads((tmp_path / "x" / "look.json").read_text())
    assert kept["parts"] == 1
    assert (tmp_path / "x" / "scored.json").read_text() == "once"
    stages = [event["name"] for event in read_events(tmp_path / "x") if event["event"] == "stage"]
    assert stages[:2] == ["look", "search"]
    assert result.best.test is not None
    assert result.best.test.mean > 0.5
    assert result.best.solver != "BestFeature"


@pytest.mark.thorough
def test_a_study_whose_first_look_is_damaged_is_not_resumed(tmp_path: Path) -> None:
    split = Split("", crossed(900, 0, features=120))
    with pytest.raises(KeyboardInterrupt):
        run_by(LARGE, tmp_path / "x", split, Heard(until=1), solvers=SOLVERS, timeout=4.0, test="none")
    (tmp_path / "x" / "look.json").write_text('{"standings": [')
    with pytest.raises(StudyError, match=r"look.json, by which trials were chosen and scored, cannot be read"):
        ranktune.resume("x", home=tmp_path, jobs=1)
