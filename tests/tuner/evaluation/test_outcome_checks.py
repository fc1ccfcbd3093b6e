"""Objectives that misbehave: each costs its own trial, with the reason in the record, and nothing else."""

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from optuna.trial import FrozenTrial, TrialState

from ranktune.tuner.evaluation.outcome_checks import checked_outcome, comparable_outcome
from ranktune.tuner.evaluation.task import Task, TaskOutcome
from ranktune.tuner.storage.attributes import ERROR, RESTARTS
from ranktune.tuner.storage.record import Record, number_of
from tests.tuner.search.test_loop import STUDY, loop, smooth, task_of

SPACE = STUDY.union_space()
VICTIM = next(place for place, defaults in enumerate(SPACE.defaults()) if defaults["solver"] == "RidgeRanker")
BAD = SPACE.split(SPACE.defaults()[VICTIM])
"""The configuration that misbehaves: the defaults of a solver, of which there is one trial."""


class Awkward:
    """An objective that returns, or does, something else for one configuration, and counts how often it was asked."""

    def __init__(self, result: Any, folder: Path | None = None) -> None:
        self.result, self.folder = result, folder

    def __call__(self, task: Task) -> TaskOutcome:
        if (task.solver, dict(task.parameters)) != BAD:
            return smooth(task)
        if self.folder is not None:
            with open(self.folder / "asked", "a") as file:
                file.write("x")
        return cast(TaskOutcome, self.result() if callable(self.result) else self.result)


def the_failure(trials: list[FrozenTrial], restarts: int = 0) -> str:
    """Return the reason of the one trial that failed; all others are what they always are."""
    assert [number_of(trial) for trial in trials] == list(range(12))
    (failed,) = (trial for trial in trials if trial.state != TrialState.COMPLETE)
    assert failed.state == TrialState.FAIL
    assert failed.value is None
    assert failed.user_attrs.get(RESTARTS, 0) == restarts
    assert SPACE.split(failed.params) == BAD
    for trial in trials:
        if trial is not failed:
            values = smooth(task_of(*SPACE.split(trial.params))).per_query["ndcg@10"]
            assert trial.value == values.mean()
    return str(failed.user_attrs[ERROR])


def of(*values: Any) -> TaskOutcome:
    return TaskOutcome({"ndcg@10": cast(Any, values[0] if len(values) == 1 else list(values))})


RESULTS = {
    "nothing": (None, "returned nothing, not a TaskOutcome"),
    "text": ("good", "returned a str, 'good', not a TaskOutcome"),
    "a number": (0.5, "returned a float, 0.5, not a TaskOutcome"),
    "another metric": (TaskOutcome({"map": np.ones(2)}), "ndcg@10 is not among what the objective returned: map"),
    "no metric": (TaskOutcome(), "ndcg@10 is not among what the objective returned: nothing"),
    "nan": (of(np.nan, np.nan), "ndcg@10 is not a finite number"),
    "inf": (of(0.5, np.inf), "ndcg@10 is infinite on 1 of 2"),
    "-inf": (of(-np.inf, -np.inf), "ndcg@10 is infinite on 2 of 2"),
    "another metric infinite": (
        TaskOutcome({"ndcg@10": np.ones(2), "map": np.array([0.5, -np.inf])}),
        "map is infinite on 1 of 2",
    ),
    "above the metric": (of(0.5, 1.0087), "ndcg@10 is 1.0087 on a query, and 1 of 2 are outside of its range, 0 to 1"),
    "below another metric": (
        TaskOutcome({"ndcg@10": np.ones(2), "kendall": np.array([-1.5, 0.0])}),
        "kendall is -1.5 on",
    ),
    "a negative gain": (TaskOutcome({"ndcg@10": np.ones(2), "dcg": np.array([9.0, -1.0])}), "dcg is -1 on a query"),
    "complex": (of(0.5, 0.5j), "is complex numbers"),
    "words": (of("0.5", "0.5"), "is text"),
    "objects": (of(0.5, None), "is objects"),
    "ragged": (of([0.5], [0.5, 0.5]), "cannot be read"),
    "too long": (of(0.5, 0.5, 0.5), "3 values, where other metrics or trials have 2"),
    "too short": (of([0.5]), "1 values, where other metrics or trials have 2"),
    "a table": (of([0.5, 0.5], [0.5, 0.5]), "has the shape"),
    "one number": (of(0.5), "has the shape"),
    "unequal metrics": (TaskOutcome({"ndcg@10": np.ones(2), "map": np.ones(3)}), "2 values, where other metrics"),
    "other queries": (of(np.nan, 0.5), "no number on 1 queries that it judges in other trials"),
    "a mapping of nothing": (TaskOutcome(cast(Any, None)), "cannot be read"),
}


@pytest.mark.parametrize(("result", "reason"), RESULTS.values(), ids=RESULTS)
def test_a_result_that_is_none_fails_its_trial_alone(tmp_path: Path, result: object, reason: str) -> None:
    assert VICTIM > 0, "what comes first has nothing to be compared to"
    assert reason in the_failure(loop(tmp_path, objective=Awkward(result, tmp_path)))
    assert (tmp_path / "asked").read_text() == "x", "it was tried again"


def test_what_an_objective_raises_in_this_process_is_the_failure(tmp_path: Path) -> None:
    def fails() -> None:
        raise LookupError("no such thing")

    assert the_failure(loop(tmp_path, objective=Awkward(fails))) == "LookupError: no such thing"


def test_the_length_that_counts_is_remembered_by_a_resumed_run(tmp_path: Path) -> None:
    """The queries of the first trials are two; a resumed run, which saw none of them, refuses three."""
    record = Record(tmp_path, "s", STUDY.metric)
    first = SPACE.defaults()[0]
    record.append(0, first, SPACE.distributions, smooth(task_of(*SPACE.split(first))))
    record.close()
    trials = loop(tmp_path, objective=lambda task: of(0.5, 0.5, 0.5))
    assert [trial.state for trial in trials] == [TrialState.COMPLETE] + [TrialState.FAIL] * 11


def test_odd_particulars_do_not_cost_the_trial() -> None:
    odd = TaskOutcome(
        {"ndcg@10": cast(Any, [1, 0])},
        seconds=float("nan"),
        nonzeros=cast(Any, "many"),
        begun=float("inf"),
        ended=-1.0,
        worker=cast(Any, 7),
        warnings=cast(Any, [ValueError("x")]),
    )
    result = checked_outcome(odd)
    assert result.error is None
    assert result.per_query["ndcg@10"].dtype == np.float64
    assert (result.seconds, result.begun, result.ended, result.worker, result.warnings) == (0.0, 0.0, 0.0, "7", ("x",))
    assert np.isnan(result.nonzeros)


def test_a_sound_outcome_stays_what_it_is() -> None:
    outcome = smooth(task_of(*BAD))
    result = comparable_outcome(checked_outcome(outcome), "ndcg@10", np.array([True, True]))
    np.testing.assert_array_equal(result.per_query["ndcg@10"], outcome.per_query["ndcg@10"])
    assert result.error is None


def test_an_error_as_long_as_a_book_is_cut() -> None:
    assert len(checked_outcome(TaskOutcome(error="x" * 10**7)).error or "") <= 10_000
