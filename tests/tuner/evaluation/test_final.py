"""The final fit: of all queries or of a split, within a limit, or a model as it is; it is scored on test queries."""

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.queries import Queries, concatenate
from ranktune.solvers.linear.rank_svm import RankSVM
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.models.linear import LinearModel
from ranktune.tuner.evaluation.evaluate import LimitReached, evaluate
from ranktune.tuner.evaluation.models import keep_model, microseconds_a_document
from ranktune.tuner.evaluation.plans import Final
from ranktune.tuner.evaluation.task import Task
from ranktune.tuner.splits.plans import PLAN, Fold
from ranktune.tuner.splits.store import write_problem
from tests.support.engine_samples import graded

TRAIN, VALI, TEST = graded(40, 0), graded(15, 1), graded(20, 2)
METRIC = "ndcg@10"


@pytest.fixture
def task(tmp_path: Path) -> Task:
    write_problem(concatenate([TRAIN, VALI]), {PLAN: (Fold(np.arange(40), np.arange(40, 55)),)}, tmp_path)
    return Task(str(tmp_path), (METRIC,), "RankSVM", {"C": 0.1}, 0)


@pytest.mark.parametrize("on_everything", [True, False])
def test_its_model_is_that_of_all_it_learns_from_and_scored_on_the_test_queries(
    task: Task, on_everything: bool
) -> None:
    expected = RankSVM(C=0.1).fit(concatenate([TRAIN, VALI]) if on_everything else TRAIN)
    outcome = evaluate(Final(on_everything, test=TEST), task)
    np.testing.assert_array_equal(outcome.model.predict(TEST), expected.predict(TEST))
    values = parse_metric(METRIC).per_query(expected.predict(TEST), TEST)
    np.testing.assert_array_equal(outcome.per_query[METRIC], values)
    assert outcome.on_everything is on_everything
    delivered = evaluate(Final(model=outcome.model, test=TEST), replace(task, solver="no solver"))
    np.testing.assert_array_equal(delivered.per_query[METRIC], values)
    assert evaluate(Final(model=outcome.model), task).per_query == {}


def test_after_the_time_limit_the_model_of_the_trial_is_used(task: Task) -> None:
    late, other = replace(task, limit=0.0), replace(task, parameters={"C": 7.0})
    with pytest.raises(LimitReached):
        evaluate(Final(), late)
    full = evaluate(Final(instead=other), late)
    assert full.on_everything and full.model.parameters == task.parameters
    keep_model(other, full.model.replaced(parameters={"C": 7.0}))
    left = evaluate(Final(instead=other), replace(late, seed=1))  # of the first seed the final model is kept
    assert not left.on_everything and left.model.parameters == other.parameters


@pytest.mark.parametrize(("solver", "seeds"), [("GBDTRanker", 1), ("LambdaMART", 3), ("SymmetricGBDT", 1)])
def test_boosting_is_delivered_with_the_rounds_that_it_has_when_the_time_is_over(
    task: Task, solver: str, seeds: int
) -> None:
    """Unless its trial left a model. Other fits go on, since they have nothing to deliver before their end."""
    boosted = replace(task, solver=solver, parameters={"trees": 90, "seeds": seeds}, limit=0.0)
    cut = evaluate(Final(instead=boosted), boosted)
    assert cut.unfinished and cut.on_everything and 0 < cut.model.bytes
    one = evaluate(Final(), replace(boosted, parameters={"trees": 1}, limit=float("inf")))
    np.testing.assert_array_equal(cut.model.predict(TEST), one.model.predict(TEST))
    whole = evaluate(Final(), replace(boosted, limit=float("inf")))
    assert not whole.unfinished and whole.model.bytes > 20 * cut.model.bytes
    keep_model(boosted, whole.model)
    assert not evaluate(Final(instead=boosted), replace(boosted, seed=1)).on_everything


class Timed(LinearModel):
    """Takes as many seconds of a clock of ours to score as it has in turn."""

    def predict(self, queries: Queries) -> Floats:  # type: ignore[override]
        CLOCK[0] += TAKES[min(len(CALLS), len(TAKES) - 1)]
        CALLS.append(queries)
        return np.zeros(queries.n_documents)


CLOCK, CALLS, TAKES = [0.0], [], [0.0]  # type: ignore[var-annotated]


@pytest.mark.parametrize(
    ("takes", "calls", "seconds"),
    [([0.001, 0.003, 0.002, 0.001, 0.009], 5, 0.002), ([0.5], 1, 0.5), ([0.02, 0.02, 0.03], 3, 0.02)],
)
def test_a_slow_model_is_timed_once_a_fast_one_by_the_median(
    monkeypatch: pytest.MonkeyPatch, takes: list[float], calls: int, seconds: float
) -> None:
    monkeypatch.setattr(time, "process_time", lambda: CLOCK[0])
    CALLS.clear()
    TAKES[:] = takes
    queries = graded(10, 0)
    model = Timed(np.ones(5), solver="x")
    assert microseconds_a_document(model, queries) == pytest.approx(seconds / queries.n_documents * 1e6)
    assert len(CALLS) == calls
