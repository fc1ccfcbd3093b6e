"""Trials that are evaluated part by part: what is stopped, what a path finds, and what both leave in a study."""

import sqlite3
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktune import api
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.libraries import this_version
from ranktune.solvers.core.space import Value
from ranktune.tuner.evaluation.evaluate import attempt
from ranktune.tuner.evaluation.task import Task, TaskOutcome
from ranktune.tuner.policy.policy import POLICY, Race
from ranktune.tuner.runner.joining import JoinedSplit
from ranktune.tuner.runner.worker import JoinedWorker
from ranktune.tuner.search.loop import TrialLoop
from ranktune.tuner.search.progress import Silent
from ranktune.tuner.search.search_scheduler import observations
from ranktune.tuner.splits.plans import PLAN, StoredPlan, query_folds, random_orders
from ranktune.tuner.splits.store import write_problem
from ranktune.tuner.storage.attributes import PATH, STOPPED
from ranktune.tuner.storage.leases import Leases
from ranktune.tuner.storage.record import Record, number_of
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.tasks import Tasks
from ranktune.tuner.workers.executor import InProcess
from tests.support.engine_samples import graded

METRIC = "ndcg@10"
DATA = graded(80, 0, noise=1.0)
PASSES = (1, 2, 4)


def task(folder: Path, plan: StoredPlan, solver: str, **parameters: object) -> Task:
    write_problem(DATA, {PLAN: plan}, folder)
    return Task(str(folder), (METRIC, "map"), solver, parameters, 0)  # type: ignore[arg-type]


def values(outcome: TaskOutcome) -> Floats:
    assert outcome.error is None
    return outcome.per_query[METRIC]


@pytest.fixture
def plain(tmp_path: Path) -> Task:
    return task(tmp_path, query_folds(DATA, 5, 0), "RankBoost", rounds=4)


def test_a_path_shows_what_its_values_show_one_by_one(plain: Task) -> None:
    apart = [attempt(replace(plain, parameters={"rounds": rounds})) for rounds in PASSES]
    result = attempt(replace(plain, path_parameter="rounds", path=PASSES, parameters={"rounds": PASSES[-1]}))
    means = [float(np.nanmean(values(single))) for single in apart]
    best = int(np.argmax(means))
    assert result.chosen == PASSES[best]
    for metric in (METRIC, "map"):
        np.testing.assert_array_equal(result.per_query[metric], apart[best].per_query[metric])
    assert result.nonzeros == apart[best].nonzeros
    assert [value for value, _ in result.path] == list(PASSES)
    whole = [place for place, (_, scored) in enumerate(result.path) if scored == pytest.approx(means[place], abs=1e-12)]
    assert best in whole


def test_who_is_far_behind_is_stopped_and_the_rest_is_not_learnt(plain: Task) -> None:
    full = attempt(plain)
    result = attempt(replace(plain, incumbent=np.ones(DATA.n_queries)))
    assert result.stopped == "fold 1 of 5"
    known = ~np.isnan(values(result))
    assert known.sum() == 16
    np.testing.assert_array_equal(values(result)[known], values(full)[known])
    assert len(result.steps) == 1
    assert result.seconds < full.seconds


def test_a_trial_as_good_as_its_rival_is_evaluated_in_full(plain: Task) -> None:
    full = attempt(plain)
    result = attempt(replace(plain, incumbent=values(full)))
    assert result.stopped == ""
    np.testing.assert_array_equal(values(result), values(full))


def test_reassigned_folds_are_raced_while_queries_are_missing(tmp_path: Path) -> None:
    twice = task(tmp_path, query_folds(DATA, 4, 0, repeats=2), "RidgeRanker")
    full = attempt(twice)
    assert attempt(replace(twice, incumbent=values(full))).stopped == ""
    assert attempt(replace(twice, incumbent=np.ones(DATA.n_queries))).stopped == "fold 1 of 8"


def test_orders_are_raced_by_their_means(tmp_path: Path) -> None:
    online = task(tmp_path, random_orders(DATA, 6, 0), "PairwisePerceptron")
    full = attempt(online)
    parts = np.array([scored for _, _, scored in full.steps])
    assert len(parts) == 6
    assert attempt(replace(online, incumbent=parts)).stopped == ""
    result = attempt(replace(online, incumbent=parts + 0.3))
    assert result.stopped in {"order 3 of 6", "order 4 of 6", "order 5 of 6"}
    assert not np.isnan(values(result)).any()


def test_a_task_follows_the_path_of_its_space_alone(tmp_path: Path) -> None:
    study = Study(solvers=("AdaRank", "RidgeRanker"), space={"AdaRank.rounds": {"low": 10, "high": 50}})
    defaults: dict[str, Value] = {
        "directions": "both",
        "repeats": "pause",
        "reweigh": "feature",
        "stop": "train",
        "patience": 20,
    }
    params: dict[str, Value] = {"rounds": 40, "scaling": "minmax"}
    params.update(defaults)
    result = Tasks(study, tmp_path)("AdaRank", params)
    assert result.path_parameter == "rounds"
    assert result.path[0] == 10
    assert result.path[-1] == 40
    assert Tasks(replace(study, full=True), tmp_path)("AdaRank", params).path == ()
    fixed = replace(study, space={"AdaRank.rounds": [10, 40]})
    assert Tasks(fixed, tmp_path)("AdaRank", params).path == ()


def trials_of(home: Path, name: str) -> list[tuple[str, int]]:
    with sqlite3.connect(home / name / "record.db") as record:
        return record.execute("SELECT state, count(*) FROM trials GROUP BY state").fetchall()


def test_a_study_stops_some_chooses_among_the_rest_and_goes_on_where_it_was(tmp_path: Path) -> None:
    options = {"solvers": ("RankSVM", "RankBoost"), "test": "none", "jobs": 1, "home": tmp_path, "progress": Silent()}
    result = api.tune(graded(200, 1), name="raced", trials=25, seed=2, **options)  # type: ignore[arg-type]
    counts = dict(trials_of(tmp_path, "raced"))
    assert counts["PRUNED"] > 0
    assert counts["COMPLETE"] + counts["PRUNED"] == 25 == result.trials
    assert result.failures == ()
    record = Record(tmp_path / "raced", "raced", METRIC)
    before = record.trials()
    complete = {number_of(trial): trial.value or 0.0 for trial in before if STOPPED not in trial.user_attrs}
    for trial in before:
        if STOPPED in trial.user_attrs:
            assert trial.value is not None
            assert trial.value < max(complete.values())
            assert trial.user_attrs["partial_variance"] > 0.0
            assert np.isnan(record.per_query(trial)[METRIC]).any()
    record.close()
    api.tune(graded(200, 1), name="raced", trials=30, seed=2, **options)  # type: ignore[arg-type]
    record = Record(tmp_path / "raced", "raced", METRIC)
    after = record.trials()
    record.close()
    assert len(after) == 30
    assert [(trial.params, trial.value) for trial in after[:25]] == [(trial.params, trial.value) for trial in before]


def boosted(home: Path, name: str, **options: Any) -> None:
    api.tune(
        graded(60, 1), name=name, solvers="RankBoost", test="none", jobs=1, home=home, progress=Silent(), **options
    )


def test_a_full_study_stops_none_and_follows_no_path(tmp_path: Path) -> None:
    boosted(tmp_path, "full", trials=8, full=True)
    assert trials_of(tmp_path, "full") == [("COMPLETE", 8)]
    record = Record(tmp_path / "full", "full", METRIC)
    assert all(PATH not in trial.user_attrs for trial in record.trials())
    record.close()


def test_a_path_is_several_observations_of_one_trial(tmp_path: Path) -> None:
    boosted(tmp_path, "paths", trials=4)
    record = Record(tmp_path / "paths", "paths", METRIC)
    trials = record.trials()
    record.close()
    assert len(trials) == 4
    for trial in trials:
        points = dict(trial.user_attrs[PATH]["rounds"])
        first, *others = observations(trial)
        assert (first.params, first.value) == (trial.params, trial.value)
        assert 0 < len(others) <= 3
        for other in others:
            assert other.params["RankBoost.rounds"] in points
            assert {**other.params, "RankBoost.rounds": 0} == {**trial.params, "RankBoost.rounds": 0}
            shift = (other.value or 0.0) - (first.value or 0.0)
            assert shift == pytest.approx(
                points[other.params["RankBoost.rounds"]] - points[trial.params["RankBoost.rounds"]]
            )
        asked = max(points)
        costly = [known.params["RankBoost.rounds"] for known in (first, *others) if "seconds" in known.user_attrs]
        assert costly == [asked]


class NoLanes(InProcess):
    """An owner that runs no trial itself."""

    jobs = 0


class Joined:
    """A study of one split, for a worker in a thread, until the test ends it."""

    def __init__(self, split: JoinedSplit) -> None:
        self.split, self.over = split, threading.Event()

    def splits(self) -> list[JoinedSplit]:
        return [self.split]

    def is_concluded(self) -> bool:
        return self.over.is_set()


@pytest.mark.parametrize("race", [POLICY.race, Race(min_queries=1000)], ids=["default", "never"])
def test_a_worker_that_joined_races_what_it_takes_as_the_study_does(tmp_path: Path, race: Race) -> None:
    study = Study(solvers=("RankSVM", "RankBoost"), trials=25, seed=2)
    data = tmp_path / "data"
    data.mkdir()
    write_problem(graded(200, 1), {PLAN: query_folds(graded(200, 1), 5, 0)}, data)
    record = Record(tmp_path, "joined", METRIC)
    theirs = Leases(record.storage, record.study.study_name)
    joined = Joined(JoinedSplit("", this_version(), theirs, Tasks(study, data).of))
    messages, races = list[str](), set[Race]()

    def noted(task: Task) -> TaskOutcome:
        races.add(task.race)
        return attempt(task)

    worker = JoinedWorker(joined, InProcess(), messages.append, objective=noted)
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        policy = replace(POLICY, race=race)
        TrialLoop(study, "", record, Tasks(study, data), NoLanes(), Silent(), policy=policy).run()
    finally:
        joined.over.set()
        thread.join(30)
    trials = record.trials()
    record.close()
    assert worker.done == len(trials) == 25 and races == {race}
    stopped = [trial for trial in trials if STOPPED in trial.user_attrs]
    assert len(stopped) == sum("significantly worse" in line for line in messages)
    assert bool(stopped) == (race == POLICY.race)  # the other needs more queries than there are
    best = max(trial.value or 0.0 for trial in trials if STOPPED not in trial.user_attrs)
    assert all((halted.value or 0.0) < best and halted.user_attrs["partial_variance"] > 0.0 for halted in stopped)
