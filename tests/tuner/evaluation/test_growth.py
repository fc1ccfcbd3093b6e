"""Boosting that its limit ended goes on from the stored model, whatever process fits it."""

import time
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers.core.space import Value
from ranktune.solvers.data.queries import concatenate
from ranktune.solvers.data.scaling import without_level
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.tuner.evaluation import evaluate, fitting
from ranktune.tuner.evaluation.evaluate import attempt
from ranktune.tuner.evaluation.models import growing_model, kept_model, rounds_of
from ranktune.tuner.evaluation.serialization import pack, unpack
from ranktune.tuner.evaluation.task import Rounds, Task, listening
from ranktune.tuner.splits.plans import PLAN, Fold
from ranktune.tuner.splits.store import write_problem
from tests.support.engine_samples import graded

TRAIN, VALI = graded(60, 0), graded(25, 1)
METRIC = "ndcg@10"
SLOW = {"trees": 30, "learning_rate": 0.05}
SOLVERS: Mapping[str, tuple[str, Mapping[str, Value]]] = {
    "lambdarank": ("LambdaMART", {"leaves": 4, "min_documents": 5}),
    "noisy rankings": ("LambdaMART", {"leaves": 4, "min_documents": 5, "loss": "smoothed"}),
    "squared errors": ("GBDTRanker", {"leaves": 4, "min_documents": 5}),
    "from a linear model": ("GBDTRanker", {"leaves": 4, "min_documents": 5, "start": "linear"}),
    "ranks within queries": ("GBDTRanker", {"leaves": 4, "min_documents": 5, "within_query": "ranks"}),
    "symmetric trees": ("SymmetricGBDT", {"depth": 3}),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_problem(concatenate([TRAIN, VALI]), {PLAN: (Fold(np.arange(60), np.arange(60, 85)),)}, tmp_path)
    return tmp_path


def task_of(folder: Path, name: str) -> Task:
    solver, parameters = SOLVERS[name]
    parameters = {**SLOW, **parameters}
    return Task(str(folder), (METRIC,), solver, parameters, 0, keep=True, bound=200, path_parameter="trees")


def cut(task: Task, monkeypatch: pytest.MonkeyPatch) -> Task:
    """Evaluate a task that its limit ends after a few rounds; return that of the parameters chosen."""
    with monkeypatch.context() as patch:
        patch.setattr(time, "monotonic", count(0.0).__next__)
        outcome = attempt(replace(task, limit=5.0))
    assert outcome.error is None
    assert outcome.unfinished
    assert unpack(pack(outcome)).unfinished
    assert outcome.chosen is not None
    return replace(task, parameters={**task.parameters, "trees": int(outcome.chosen)})


@pytest.mark.parametrize("name", SOLVERS)
def test_an_unfinished_model_is_continued(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    unfinished = cut(task_of(folder, name), monkeypatch)
    earlier = kept_model(unfinished)
    outcome = attempt(unfinished)
    assert outcome.error is None
    assert not outcome.unfinished
    assert outcome.chosen is not None
    assert outcome.chosen > int(str(unfinished.parameters["trees"]))
    further = replace(unfinished, parameters={**unfinished.parameters, "trees": int(outcome.chosen)})
    model = kept_model(further)
    assert earlier is not None
    assert model is not None
    assert type(model) is type(earlier)
    added = model.predict(VALI) - earlier.predict(VALI)
    assert np.abs(added).max() > 0.0
    assert outcome.scores is not None
    centred = without_level(model.predict(VALI), VALI)
    np.testing.assert_allclose(centred, outcome.scores[-VALI.n_documents :], rtol=1e-5, atol=1e-5)
    alone = attempt(replace(further, keep=False, bound=int(outcome.chosen)))
    assert abs(np.nanmean(alone.per_query[METRIC]) - np.nanmean(outcome.per_query[METRIC])) < 0.05


def test_a_model_that_grows_is_kept_and_reported_until_its_fit_ends(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, heard = replace(task_of(folder, "squared errors"), limit=1e6), list[Rounds]()

    def killed(rounds: Rounds) -> None:
        heard.append(rounds)
        if rounds.done == 8:
            raise KeyboardInterrupt

    monkeypatch.setattr(evaluate, "EVERY", 0.0)
    monkeypatch.setattr(fitting, "KEEP_EVERY", 0.0)
    with pytest.raises(KeyboardInterrupt), listening(killed):
        attempt(task)
    assert [(rounds.done, rounds.most) for rounds in heard] == [(number, 200) for number in range(1, 9)]
    model = growing_model(task)
    assert model is not None
    assert 1 <= rounds_of(task, model) <= 7
    taken = attempt(replace(task, limit=0.0, keep_scores=True))
    assert (taken.error, taken.unfinished, taken.chosen) == (None, True, rounds_of(task, model))
    mean = parse_metric(METRIC).mean(model.predict(VALI), VALI)
    assert [list(point) for point in taken.path] == [[taken.chosen, pytest.approx(mean)]]
    assert mean in [pytest.approx(rounds.value) for rounds in heard]
    assert growing_model(task) is None
    assert len(list((folder / "kept").iterdir())) == 3  # the model, that to continue and its scores


def test_a_model_that_counts_with_all_rounds_is_finished(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", count(0.0).__next__)
    outcome = attempt(replace(task_of(folder, "squared errors"), limit=5.0, bound=10, least=10))
    assert (outcome.error, outcome.chosen, outcome.unfinished) == (None, 10.0, False)


def test_where_the_stored_model_is_damaged_the_fit_begins_anew(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = task_of(folder, "symmetric trees")
    unfinished = cut(task, monkeypatch)
    for path in (folder / "kept").glob("*.json"):
        path.write_text("{")
    again, whole = attempt(unfinished), attempt(replace(task, keep=False))
    np.testing.assert_array_equal(again.per_query[METRIC], whole.per_query[METRIC])
