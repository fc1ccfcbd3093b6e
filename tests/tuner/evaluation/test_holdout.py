"""Evaluation on a given split: boosting grows until validation stops it, samples come first, and results are kept."""

import itertools
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers.boosting.lightgbm.lambda_mart import LambdaMART
from ranktune.solvers.data.queries import Queries, concatenate
from ranktune.solvers.data.scaling import without_level
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.registry import make
from ranktune.tuner.evaluation.evaluate import attempt
from ranktune.tuner.evaluation.fitting import sample
from ranktune.tuner.evaluation.models import kept_model, kept_scores
from ranktune.tuner.evaluation.task import Task
from ranktune.tuner.splits.plans import PLAN, Fold
from ranktune.tuner.splits.store import read_development, write_problem
from tests.support.engine_samples import graded

TRAIN, VALI = graded(60, 0), graded(25, 1)
FOLD = Fold(np.arange(60), np.arange(60, 85))
METRIC = "ndcg@10"
TREES = {"trees": 30, "learning_rate": 0.3, "leaves": 4, "min_documents": 5}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("problem")
    write_problem(concatenate([TRAIN, VALI]), {PLAN: (FOLD,)}, where)
    return where


def train_of(folder: Path) -> Queries:
    """The training queries as trials see them: their bins are those of all development queries."""
    return read_development(str(folder)).select(np.arange(60))


def boosting(folder: Path) -> Task:
    return Task(str(folder), (METRIC,), "LambdaMART", TREES, 0, bound=200, path_parameter="trees", path=(10, 30))


def test_a_smaller_sample_is_a_part_of_a_larger_one() -> None:
    numbers = np.arange(3, 200, 2)
    samples = [sample(numbers, size, 5) for size in (1, 10, 40, len(numbers), 0)]
    assert [len(drawn) for drawn in samples] == [1, 10, 40, len(numbers), len(numbers)]
    for small, large in itertools.pairwise(samples):
        assert set(small) <= set(large) <= set(numbers)
        assert (np.diff(large) > 0).all()


def test_boosting_grows_until_the_validation_queries_stop_it(folder: Path) -> None:
    outcome = attempt(boosting(folder))
    ranker = make("LambdaMART", {**TREES, "trees": 200}, 0).set_params(metric=METRIC).fit(train_of(folder), vali=VALI)
    assert isinstance(ranker, LambdaMART)
    assert outcome.error is None
    assert (outcome.path_parameter, outcome.chosen) == ("trees", ranker.rounds_[0])
    np.testing.assert_array_equal(outcome.per_query[METRIC], parse_metric(METRIC).per_query(ranker.predict(VALI), VALI))
    assert 1 <= ranker.rounds_[0] < 200


def test_what_was_grown_at_the_limit_counts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = attempt(boosting(folder))
    monkeypatch.setattr(time, "monotonic", itertools.count(1.0).__next__)
    cut = attempt(replace(boosting(folder), limit=3.0))
    assert cut.error is None
    assert cut.chosen is not None
    assert whole.chosen is not None
    assert 1 <= cut.chosen < whole.chosen
    bounded = attempt(replace(boosting(folder), bound=int(cut.chosen)))
    np.testing.assert_array_equal(cut.per_query[METRIC], bounded.per_query[METRIC])


@pytest.mark.parametrize("solver", ["LambdaMART", "RankSVM", "RidgeRanker"])
def test_the_model_and_the_scores_are_kept_under_the_chosen_parameters(folder: Path, solver: str) -> None:
    parameters = {"LambdaMART": TREES, "RankSVM": {"C": 1.0}, "RidgeRanker": {"alpha": 1.0}}[solver]
    task = Task(str(folder), (METRIC,), solver, parameters, 0, keep=True)
    paths = {"LambdaMART": ("trees", ()), "RankSVM": ("C", (0.1, 1.0)), "RidgeRanker": ("alpha", (50.0, 1.0))}
    name, path = paths[solver]
    outcome = attempt(replace(task, path_parameter=name, path=path, bound=200 if solver == "LambdaMART" else 0))
    assert outcome.chosen is not None
    chosen = replace(task, parameters={**parameters, name: type(parameters[name])(outcome.chosen)})
    model, scores = kept_model(chosen), kept_scores(chosen, VALI.n_documents)
    assert model is not None
    assert scores is not None
    np.testing.assert_allclose(without_level(model.predict(VALI), VALI), scores, rtol=1e-6, atol=1e-6)
    again = make(solver, chosen.parameters, 0).fit(train_of(folder)).predict(VALI)
    np.testing.assert_allclose(without_level(again, VALI), scores, rtol=1e-4, atol=1e-4)


def test_only_the_finished_parts_of_a_fit_that_cannot_be_cut_are_given_up(folder: Path) -> None:
    late = attempt(Task(str(folder), (METRIC,), "RankSVM", {"C": 1.0}, 0, limit=0.0))
    assert late.given_up
