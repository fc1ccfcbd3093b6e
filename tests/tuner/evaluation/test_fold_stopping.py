"""Boosting on folds: each fold stops the growth, and the rounds are those that are best over all folds."""

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.registry import make
from ranktune.tuner.evaluation.evaluate import attempt
from ranktune.tuner.evaluation.task import Task
from ranktune.tuner.policy.policy import POLICY
from ranktune.tuner.splits.plans import PLAN, query_folds
from ranktune.tuner.splits.store import read_development, write_problem
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.tasks import Tasks, rounds_between
from tests.support.engine_samples import graded

METRIC = "ndcg@10"
PARAMETERS = {"learning_rate": 0.3, "leaves": 4, "min_documents": 5, "feature_share": 0.5}
PATIENCE = 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("problem")
    queries = graded(60, 0)
    write_problem(queries, {PLAN: query_folds(queries, 3, 0)}, where)
    return where


def growing(folder: Path) -> Task:
    parameters = {**PARAMETERS, "trees": 100, "patience": PATIENCE}
    path = rounds_between(5, 2000)
    return Task(str(folder), (METRIC,), "LambdaMART", parameters, 0, bound=2000, path_parameter="trees", path=path)


def test_the_rounds_are_the_best_of_those_that_every_fold_has_reached(folder: Path) -> None:
    """A fold is scored by the rounds that are the best on the others, so its score is not that of a choice by it."""
    outcome = attempt(replace(growing(folder), keep_scores=True))
    assert outcome.error is None and outcome.chosen is not None
    rounds = [int(value) for value, _ in outcome.path]
    assert rounds[-1] < 200  # of 2,000
    queries, metric = read_development(str(folder)), parse_metric(METRIC)
    folds, values = query_folds(queries, 3, 0), np.empty((len(rounds), queries.n_queries))
    for row, count in zip(values, rounds, strict=True):
        for fold in folds:
            ranker = make("LambdaMART", {**PARAMETERS, "trees": count}, 0).fit(queries.select(fold.train))
            vali = queries.select(fold.vali)
            row[fold.vali] = metric.per_query(ranker.predict(vali), vali)
    by_rounds = np.nanmean(values, axis=1)
    np.testing.assert_allclose([value for _, value in outcome.path], by_rounds, atol=1e-9)
    assert int(outcome.chosen) == rounds[int(np.argmax(by_rounds))]
    elsewhere = [int(np.nanmean(values[:, fold.train], axis=1).argmax()) for fold in folds]
    assert len(set(elsewhere)) > 1
    expected = np.empty(queries.n_queries)
    for fold, place in zip(folds, elsewhere, strict=True):
        expected[fold.vali] = values[place, fold.vali]
    np.testing.assert_allclose(outcome.per_query[METRIC], expected, atol=1e-9)
    assert outcome.scores is not None
    np.testing.assert_allclose(metric.per_query(outcome.scores, queries), values[by_rounds.argmax()], atol=1e-6)
    assert np.nanmean(expected) < by_rounds.max()


def test_a_fold_goes_on_while_it_improves(folder: Path) -> None:
    short = attempt(growing(folder))
    task = growing(folder)
    long = attempt(replace(task, parameters={**task.parameters, "patience": 200}))
    assert long.path[-1][0] > short.path[-1][0]
    assert max(value for _, value in long.path) >= max(value for _, value in short.path) - 1e-12


def test_defaults_are_not_bound_by_their_trees(folder: Path) -> None:
    tasks = Tasks(Study(solvers=("LambdaMART", "RankSVM"), trials=4), folder)
    task = tasks("LambdaMART", {"trees": 100, "learning_rate": 0.1})
    assert task.bound == task.path[-1] == POLICY.scoring.max_rounds and task.path[0] < 30
    assert all(isinstance(value, int) for value in task.path)
    assert tasks("RankSVM", {"C": 1.0}).bound == 0


@pytest.mark.parametrize("bounds", [(30, 30), (10, 40), (1, 5000)])
def test_rounds_rise_by_a_factor_from_the_fewest_to_the_most(bounds: tuple[int, int]) -> None:
    rounds = rounds_between(*bounds)
    assert (rounds[0], rounds[-1]) == bounds
    assert list(rounds) == sorted(set(rounds))
    assert max(np.divide(rounds[1:], rounds[:-1]), default=1.0) <= 2.0


@pytest.mark.parametrize("step", [8 * 3600.0, -8 * 3600.0])
def test_a_clock_that_is_set_meanwhile_is_no_part_of_a_trial(
    folder: Path, step: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", itertools.count(1e9, step).__next__)
    outcome = attempt(Task(str(folder), (METRIC,), "RidgeRanker", {}, 0))
    assert outcome.error is None and 0.0 < outcome.ended - outcome.begun < 60.0
