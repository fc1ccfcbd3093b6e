"""Whole studies on a disk that is full or broken, and on data in which there is little or nothing to learn."""

from __future__ import annotations

import errno
import shutil
import sqlite3
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ranktune
from ranktune.notebook import StudyResult
from ranktune.solvers.core.errors import RankTuneError, RankTuneWarning
from ranktune.solvers.data.queries import Queries
from ranktune.tuner.evaluation import plans
from ranktune.tuner.storage.record import Record, number_of
from ranktune.tuner.study.home import StudyFolder
from tests.support.engine_samples import graded
from tests.support.faults import Faults

TRIALS = 3
PARTS = 8  # of the long loop


def tune(home: Path) -> StudyResult:
    """Run a small study in this process, or continue it."""
    return ranktune.tune(
        graded(30, 0), test=graded(10, 1), solvers=("RankSVM", "RidgeRanker"), trials=TRIALS, sampler="random", jobs=1,
        home=home, name="s",
    )  # fmt: skip


def found_by(result: StudyResult) -> dict[str, Any]:
    """Return all that does not depend on how long things took."""
    errors = result.as_dict()
    rows = [
        {key: value for key, value in row.items() if key not in ("seconds", "microseconds")}
        for row in errors["leaderboard"]
    ]
    same = (
        "study",
        "metric",
        "estimate",
        "estimate_interval",
        "expected_on_test",
        "test_metrics",
        "trials",
        "failures",
    )
    return {name: errors[name] for name in same} | {"rows": rows}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], int]:
    """What the study finds, and how many operations on files and databases that takes."""
    home = tmp_path_factory.mktemp("undisturbed")
    with Faults(10**9, home) as faults:
        result = found_by(tune(home))
    return result, faults.count


def check_record(home: Path) -> None:
    """Check that the record, if there is one by now, opens, and that no trial is in it twice."""
    file = home / "s" / "record.db"
    if file.exists():
        with sqlite3.connect(file) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        record = Record(home / "s", "s", "ndcg@10")
        try:
            numbers = [number_of(trial) for trial in record.trials()]
        finally:
            record.close()
        assert len(set(numbers)) == len(numbers) <= TRIALS


def check_fault_at(at: int, home: Path, error: int, lasts: bool, expected: dict[str, Any]) -> str | None:
    """Run with a fault at that operation, then go on without; return which operation it was."""
    shutil.rmtree(home, ignore_errors=True)
    failed: RankTuneError | None = None
    with Faults(at, home, error, lasts=lasts) as faults, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the log events.jsonl of study", RankTuneWarning)
        try:
            assert found_by(tune(home)) == expected
        except RankTuneError as raised:
            failed = raised
    if failed is not None:
        line = str(failed)
        assert "\n" not in line and len(line) < 400, line
        cause = "No space left|disk is full" if error == errno.ENOSPC else "Input/output error|disk I/O error"
        assert any(word in line for word in cause.split("|")), line
        assert any(word in line for word in ("Free space" if error == errno.ENOSPC else "Check the disk", "Choose")), (
            line
        )
    check_record(home)
    study = StudyFolder(home / "s")
    if study.data.is_dir() and (study.path / "study.json").exists():
        assert found_by(ranktune.resume("s", home=home, jobs=1)) == expected
    else:
        assert found_by(tune(home)) == expected
    check_record(home)
    return faults.what


def test_a_full_disk_at_some_operations_in_turn(undisturbed: tuple[dict[str, Any], int], tmp_path: Path) -> None:
    """Few of the many that write the data, more of those after."""
    expected, count = undisturbed
    operations = (5, 200, *range(count - 221, count, 17))
    met = [check_fault_at(at, tmp_path / "h", errno.ENOSPC, True, expected) for at in operations]
    assert len(set(met)) > 5 and None not in met


def test_scores_that_found_no_room_are_computed_again_to_the_bit(
    undisturbed: tuple[dict[str, Any], int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not missed until models are blended: fits along a path of values depend on those before."""
    monkeypatch.setattr(plans, "keep_scores", lambda task, scores: None)
    assert found_by(tune(tmp_path)) == undisturbed[0]


@pytest.mark.slow
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO], ids=["full", "broken"])
@pytest.mark.parametrize("lasts", [True, False], ids=["lasting", "once"])
@pytest.mark.parametrize("first", range(1, PARTS + 1))
def test_a_fault_at_each_operation_in_turn(
    undisturbed: tuple[dict[str, Any], int], tmp_path: Path, lasts: bool, error: int, first: int
) -> None:
    expected, count = undisturbed
    for at in range(first, count + 1, PARTS):
        check_fault_at(at, tmp_path / "h", error, lasts, expected)


def data(
    n_queries: int = 20, documents: int = 6, *, same: str = "", grades: Callable[[int], float] | None = None
) -> Queries:
    """Random queries; the features the same for all documents, or within each query, where same says so."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(n_queries * documents, 3))
    if same == "all":
        X[:] = 0.5
    elif same == "query":
        X = np.repeat(X[::documents], documents, axis=0)
    elif same == "rows":  # each document twice
        X[1::2] = X[::2]
    y = generator.integers(0, 3, len(X)).astype(float)
    if grades is not None:
        y = np.array([grades(row) for row in range(len(X))])
    return Queries.from_arrays(X, y, qid=np.repeat(np.arange(n_queries), documents))


LITTLE: dict[str, tuple[Queries, dict[str, Any]]] = {
    "constant features": (data(same="all"), {}),
    "constant features, thompson": (data(same="all"), {"sampler": "thompson", "trials": 6}),
    "constant features, gp": (data(same="all"), {"sampler": "gp", "trials": 6}),
    "constant features, tpe": (data(same="all"), {"sampler": "tpe", "trials": 6}),
    "the same documents in a query": (data(same="query"), {}),
    "duplicate rows": (data(same="rows"), {}),
    "one trial": (data(), {"trials": 1}),
    "one trial, thompson": (data(), {"trials": 1, "sampler": "thompson"}),
    "one trial, gp": (data(), {"trials": 1, "sampler": "gp"}),
    "a cut-off beyond": (data(), {"metric": "ndcg@1000", "also": ("precision@500", "map")}),
    "one query with grades": (data(grades=lambda row: float(row == 3)), {}),
    "documents alone": (data(documents=1), {}),
    "two queries": (data(2), {}),
    "two queries, two folds": (data(2), {"folds": 2, "test": "none"}),
    "two queries to learn, one to test": (data(2), {"folds": 2, "test": data(1)}),
    "one query": (data(1), {}),
    "all grades equal": (data(grades=lambda row: 1.0), {}),
    "all grades zero": (data(grades=lambda row: 0.0), {}),
    "huge features": (data().with_features(data().features * 1e300), {}),
}
IMPOSSIBLE = {
    "two queries": "cannot be dealt into 5 folds",
    "one query": "cannot be dealt into 5 folds",
    "documents alone": "nothing to learn",
    "one query with grades": "there is nothing to learn",  # where it is not among those that are learnt from
    "all grades equal": "all grades are 1",
    "all grades zero": "all grades are 0",
}


@pytest.mark.filterwarnings("ignore::ranktune.solvers.core.errors.RankTuneWarning")
@pytest.mark.parametrize("case", LITTLE)
def test_data_with_little_to_learn(case: str, tmp_path: Path) -> None:
    """It ends with a sane result, or says in a line why it cannot; NumPy's warnings would be errors here."""
    queries, options = LITTLE[case]
    if options.get("sampler") == "gp":
        pytest.importorskip("torch")
    settings: dict[str, Any] = {"solvers": ("RankSVM", "RidgeRanker", "BestFeature"), "trials": 4, "sampler": "random"}
    settings |= {"jobs": 1, "home": tmp_path, "name": "s"} | options
    if case in IMPOSSIBLE:
        with pytest.raises(RankTuneError, match=IMPOSSIBLE[case]) as raised:
            ranktune.tune(queries, **settings)
        assert "\n" not in str(raised.value)
        assert case == "one query with grades" or list(tmp_path.iterdir()) == []
        return
    result = ranktune.tune(queries, **settings)
    assert result.trials == settings["trials"]
    assert len(result.failures) < settings["trials"] and all(failure.error for failure in result.failures)
    assert result.failures == () or case == "huge features"
    for row in result.leaderboard:
        for interval in filter(None, (row.vali, row.again, row.test)):
            assert 0.0 <= interval.low <= interval.mean <= interval.high <= 1.0
    assert np.isfinite(result.best_model.predict(queries)).all()
