"""Whole studies on data in which there is little or nothing to learn."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ranktune
from ranktune.notebook import StudyResult
from ranktune.solvers.core.errors import RankTuneError
from ranktune.solvers.data.queries import Queries


def found_by(result: StudyResult) -> dict[str, Any]:
    """Return all that does not depend on how long things took."""
    found = result.as_dict()
    rows = [{key: row[key] for key in row if key not in ("seconds", "microseconds")} for row in found["leaderboard"]]
    same = "study metric estimate estimate_interval expected_on_test test_metrics trials failures".split()
    return {name: found[name] for name in same} | {"rows": rows}


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
    "constant features, tpe": (data(same="all"), {"sampler": "tpe", "trials": 6}),
    "the same documents in a query": (data(same="query"), {}),
    "duplicate rows": (data(same="rows"), {}),
    "one trial": (data(), {"trials": 1}),
    "one trial, thompson": (data(), {"trials": 1, "sampler": "thompson"}),
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
