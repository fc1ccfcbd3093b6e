"""The record: what was written is there, whole, whoever opens it."""

import shutil
import sqlite3
from contextlib import closing
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.trial import TrialState

from ranktune.dashboards.records.reader import RecordReader
from ranktune.solvers.core.errors import Damaged
from ranktune.solvers.core.space import Value
from ranktune.tuner.evaluation.task import TaskOutcome
from ranktune.tuner.storage.record import DamagedArrays, Record, number_of
from tests.support.faults import Faults

DISTRIBUTIONS: dict[str, BaseDistribution] = {
    "solver": CategoricalDistribution(["A", "B"]),
    "A.x": FloatDistribution(1e-3, 1.0, log=True),
}
PARAMS: dict[str, Value] = {"solver": "A", "A.x": 0.1}
VALUES = np.array([0.25, np.nan, 0.75, 0.5])


def test_a_trial_comes_back_as_it_was(tmp_path: Path, storage_url: str | None) -> None:
    record = Record(tmp_path, "s", "map", storage_url)
    record.append(3, PARAMS, DISTRIBUTIONS, TaskOutcome({"map": VALUES, "ndcg@10:letor": VALUES / 2}, 7.0, 1.5))
    record.close()
    reopened = Record(tmp_path, "s", "map", storage_url)
    (trial,) = reopened.trials()
    arrays = reopened.per_query(trial)
    reopened.close()
    assert (trial.params, trial.value, number_of(trial)) == (PARAMS, 0.5, 3)
    assert trial.user_attrs["variance"] == pytest.approx(np.var([0.25, 0.75, 0.5], ddof=1) / 3)
    assert trial.user_attrs["means"] == {"map": 0.5, "ndcg@10:letor": 0.25}
    np.testing.assert_array_equal(arrays["map"], VALUES)
    np.testing.assert_array_equal(arrays["ndcg@10:letor"], VALUES / 2)


@pytest.mark.filterwarnings("ignore:the record .* (does not answer|answers again)")
def test_a_record_opens_whichever_answer_of_its_database_is_lost(tmp_path: Path) -> None:
    Record(tmp_path, "s", "map").close()
    for at in count(1):
        lost = Faults(at, tmp_path, kinds=("do_commit",), lasts=False, answer_lost=True, says="database is locked")
        with lost:
            Record(tmp_path, "s", "map").close()
        if lost.what is None:
            break
    assert at > 3


@pytest.mark.parametrize("values", [np.full(3, np.nan), np.array([np.inf, 1.0]), np.zeros(0)])
def test_a_metric_that_is_no_number_is_a_failure(tmp_path: Path, values: np.ndarray) -> None:
    record = Record(tmp_path, "s", "map")
    trial = record.append(0, PARAMS, DISTRIBUTIONS, TaskOutcome({"map": values}))
    record.close()
    assert trial.state == TrialState.FAIL
    assert "map is not a finite number" in trial.user_attrs["error"]


def test_a_failure_says_why(tmp_path: Path, storage_url: str | None) -> None:
    record = Record(tmp_path, "s", "map", storage_url)
    record.append(0, PARAMS, DISTRIBUTIONS, TaskOutcome(error="ValueError: no"))
    assert [t.user_attrs["error"] for t in record.trials()] == ["ValueError: no"]
    record.close()


def test_trials_come_by_number_whatever_the_order_of_finishing(tmp_path: Path, storage_url: str | None) -> None:
    record = Record(tmp_path, "s", "map", storage_url)
    for number in (2, 0, 1):
        record.append(number, PARAMS, DISTRIBUTIONS, TaskOutcome({"map": VALUES}))
    assert [number_of(t) for t in record.trials()] == [0, 1, 2]
    record.close()


def test_commits_are_durable(tmp_path: Path) -> None:
    record = Record(tmp_path, "s", "map")
    with record.storage.engine.connect() as connection:
        raw = connection.connection.cursor()
        assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert raw.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
    record.close()


def test_a_renamed_folder_keeps_its_trials(tmp_path: Path) -> None:
    record = Record(tmp_path / "old", "old", "map")
    record.append(0, PARAMS, DISTRIBUTIONS, TaskOutcome({"map": VALUES}))
    record.close()
    (tmp_path / "old").rename(tmp_path / "new")
    reopened = Record(tmp_path / "new", "new", "map")
    assert [number_of(t) for t in reopened.trials()] == [0]
    reopened.close()


def test_a_trial_of_weighted_queries_has_the_weighted_mean(tmp_path: Path) -> None:
    weights = np.array([1.0, 50.0, 2.0, 5.0])
    record = Record(tmp_path, "s", "map", weights=weights)
    trial = record.append(0, PARAMS, DISTRIBUTIONS, TaskOutcome({"map": VALUES, "ndcg@10": VALUES / 2}))
    record.close()
    mean = (0.25 + 2 * 0.75 + 5 * 0.5) / 8
    squares = np.array([1.0, 2.0, 5.0]) ** 2 * (np.array([0.25, 0.75, 0.5]) - mean) ** 2
    assert trial.value == pytest.approx(mean, abs=1e-15)
    assert trial.user_attrs["means"] == pytest.approx({"map": mean, "ndcg@10": mean / 2})
    assert trial.user_attrs["variance"] == pytest.approx(3 / 2 * squares.sum() / 64)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE trial_values SET value = 0.75",
        "UPDATE trial_params SET param_value = 0.2 WHERE param_name = 'A.x'",
        "UPDATE trial_user_attributes SET value_json = '4' WHERE key = 'number'",
        "UPDATE trials SET state = 'PRUNED'",
    ],
)
def test_a_trial_that_is_not_what_was_written_is_damaged(change: str, tmp_path: Path) -> None:
    record = Record(tmp_path, "s", "map")
    record.append(0, PARAMS, DISTRIBUTIONS, TaskOutcome({"map": VALUES}))
    record.close()
    assert len(RecordReader(tmp_path / "record.db").trials()) == 1
    with closing(sqlite3.connect(tmp_path / "record.db")) as connection, connection:
        connection.execute(change)
    reopened = Record(tmp_path, "s", "map")
    with pytest.raises(Damaged, match="of the record is damaged"):
        reopened.trials()
    reopened.close()
    with pytest.raises(Damaged, match="of the record is damaged"):
        RecordReader(tmp_path / "record.db").trials()


def test_arrays_of_another_trial_are_damaged(tmp_path: Path) -> None:
    record = Record(tmp_path, "s", "map")
    for number in range(2):
        record.append(number, PARAMS, DISTRIBUTIONS, TaskOutcome({"map": VALUES / (number + 1)}))
    first, second = record.trials()
    names = [record._array_name(trial) for trial in (first, second)]
    shutil.copy(tmp_path / "artifacts" / names[0], tmp_path / "artifacts" / names[1])
    record.per_query(first)
    with pytest.raises(DamagedArrays, match="evaluates that trial again"):
        record.per_query(second)
    record.rewrite(second, {"map": VALUES})
    np.testing.assert_array_equal(record.per_query(second)["map"], VALUES)
    record.close()
