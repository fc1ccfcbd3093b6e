"""Features that look like an id, a position or a leak; how columns are taken."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import sparse

from ranktune.solvers.data.columns.decisions import answered, questions
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.frames import FrameTable
from ranktune.solvers.data.readers.parsing.options import ReadOptions
from ranktune.solvers.data.sources.catalogue import read
from ranktune.solvers.data.sources.inspection import (
    ID,
    LEAK,
    MOST_DOCUMENTS,
    POSITION,
    _column,
    _pairs,
    _power,
    _sparse_powers,
    column_report,
    suspects,
)

RNG = np.random.default_rng(3)
N_QUERIES, LENGTH = 100, 8
N = N_QUERIES * LENGTH
QID = np.repeat(np.arange(N_QUERIES), LENGTH)
Y = RNG.integers(0, 4, N).astype(float)
PLACES = np.concatenate([RNG.permutation(LENGTH) for _ in range(N_QUERIES)])
COLUMNS = {
    "useful": Y + 2.0 * RNG.normal(size=N),
    "noise": RNG.normal(size=N),
    "count": RNG.poisson(40.0, N),
    "flag": RNG.integers(0, 2, N),
    "length_of_query": np.repeat(RNG.integers(1, 9, N_QUERIES), LENGTH),
    "constant": np.ones(N),
    "row_id": RNG.permutation(N) + 10**6,
    "session_id": np.repeat(RNG.permutation(N_QUERIES) + 5000, LENGTH),
    "place": PLACES + 1,
    "place_from_0": PLACES,
    "copy": 2.0 * Y + 1.0,
    "after": -np.exp(Y) + 0.001 * RNG.normal(size=N),
    "code": np.array([3.0, 0.0, 7.0, 1.0])[Y.astype(int)],
}
KINDS = {
    "row_id": ID, "session_id": ID, "place": POSITION, "place_from_0": POSITION, "copy": LEAK, "after": LEAK,
    "code": LEAK,
}  # fmt: skip


def queries() -> Queries:
    names = list(COLUMNS)
    X = np.column_stack([COLUMNS[name] for name in names]).astype(float)
    return Queries.from_arrays(X, Y, qid=QID, feature_names=names)


def test_each_kind_is_reported_and_nothing_else() -> None:
    result = suspects(queries())
    assert {suspect.name: suspect.kind for suspect in result} == KINDS
    (copy,) = (suspect.decision for suspect in result if suspect.name == "copy")
    assert copy.question.startswith("feature copy is the grade, or a function") and copy.is_needed


def test_a_leak_among_very_many_sparse_features_is_found_soon() -> None:
    X = sparse.hstack([sparse.random_array((N, 500_000), density=1e-6, rng=RNG), sparse.csr_array(Y[:, None] + 1.0)])
    (leak,) = suspects(Queries.from_arrays(sparse.csr_array(X), Y, qid=QID))
    assert (leak.name, leak.kind, leak.is_copy) == ("500001", LEAK, True)


def test_all_are_asked_at_once_and_one_option_leaves_them_out() -> None:
    decisions = [suspect.decision for suspect in suspects(queries())]
    assert answered({"drop": "noise"}, decisions) == {"drop": ["noise", *KINDS]}
    lines = questions(decisions).splitlines()
    assert lines[0] == f"{len(KINDS)} decisions about columns:" and lines[1:] == [
        f"{number}. {decision.question}" for number, decision in enumerate(decisions, 1)
    ]


def test_features_of_a_category_or_a_date_stand_for_their_column() -> None:
    generator = np.random.default_rng(1)
    days = pl.datetime_range(pl.date(2026, 1, 1), pl.date(2030, 1, 1), "1d", eager=True)[:N].shuffle(1)
    frame = pl.DataFrame(
        {
            "qid": QID,
            "grade": Y,
            "sold": [f"to {y:.0f}" for y in Y],
            "day": days,
            "brand": generator.choice(list("abc"), N),
        }
    )
    result = suspects(read(frame))
    assert [(suspect.name, suspect.kind) for suspect in result] == [("sold", LEAK)]


def test_sparse_features_are_inspected_alike() -> None:
    plain = queries()
    scattered = plain.with_features(sparse.csr_array(plain.features))
    assert suspects(scattered) == suspects(plain)


def test_missing_values_count_as_the_lowest() -> None:
    data = queries()
    X = data.features.copy()
    X[0, :] = np.nan
    X[:, list(COLUMNS).index("noise")] = np.where(Y > 0, Y, np.nan)
    result = {suspect.name: suspect.kind for suspect in suspects(replace(data, features=X, has_missing=True))}
    assert result == {name: kind for name, kind in KINDS.items() if name != "session_id"} | {"noise": LEAK}


def test_features_without_names_are_numbered() -> None:
    unnamed = Queries.from_arrays(queries().features, Y, qid=QID)
    assert [suspect.name for suspect in suspects(unnamed)] == [str(list(COLUMNS).index(name) + 1) for name in KINDS]
    assert all("remove it from the data" in suspect.decision.question for suspect in suspects(unnamed))


def test_few_queries_prove_nothing() -> None:
    assert suspects(queries().select(range(9))) == []


def test_large_data_are_inspected_by_a_sample() -> None:
    times = 3 * MOST_DOCUMENTS // N
    X = np.tile(queries().features, (times, 1))
    X[:, list(COLUMNS).index("row_id")] = np.arange(len(X))
    repeated = Queries.from_arrays(X, np.tile(Y, times), qid=np.repeat(np.arange(times * N_QUERIES), LENGTH))
    kinds = {list(COLUMNS)[int(suspect.name) - 1]: suspect.kind for suspect in suspects(repeated)}
    assert kinds == {name: kind for name, kind in KINDS.items() if name != "session_id"}


@pytest.mark.parametrize("name", ["MQ2008", "OHSUMED"])
def test_features_of_published_data_are_not_suspected(letor_folds: dict[str, Path], name: str) -> None:
    assert suspects(read(letor_folds[name] / "Fold1" / "train.txt")) == []


def test_columns_are_reported_as_they_are_taken() -> None:
    frame = pl.DataFrame(
        {"qid": QID, "label": Y, "docid": np.arange(N), "weight": 1.0, "when": QID, "note": "x", **COLUMNS}
    )
    options: ReadOptions = {"drop": "note", "group_by_time": "when"}
    report = {row["column"]: row for row in column_report(FrameTable(frame), options, suspects(queries()))}
    assert list(report) == frame.columns
    taken = {name: row["taken_as"] for name, row in report.items()}
    assert taken == {
        "qid": "query id", "label": "grade", "docid": "document id", "weight": "feature", "when": "time",
        "note": "not used (drop)", **dict.fromkeys(COLUMNS, "feature"),
    }  # fmt: skip
    assert {name for name, row in report.items() if row["note"]} == {*KINDS, "weight"}
    assert 'weight="weight"' in report["weight"]["note"] and report["place"]["note"].endswith('drop="place"')


def test_where_a_table_cannot_be_read_the_columns_that_are_no_numbers_are_named() -> None:
    frame = pl.DataFrame({"qid": [1], "label": [1], "f": [0.5], "brand": ["a"]})
    report = {row["column"]: row["note"] for row in column_report(FrameTable(frame), {}, [])}
    assert report == {"qid": "", "label": "", "f": "", "brand": 'Cannot be a feature: drop="brand"'}


def test_sparse_columns_are_measured_together_as_they_are_one_by_one() -> None:
    generator = np.random.default_rng(0)
    X = sparse.random(N, 60, 0.1, random_state=1).toarray()
    X[X > 0.0] -= 0.4
    X[generator.integers(0, N, 90), generator.integers(0, 60, 90)] = np.nan
    X[:, 3], X[:, 4] = Y == 3.0, np.where(Y > 1.0, Y, 0.0) * (generator.random(N) < 0.9)
    pairs = _pairs(Queries.from_arrays(X, Y, qid=QID))
    found = dict(_sparse_powers(sparse.csc_matrix(X), np.zeros(60, dtype=bool), Y, pairs))
    assert len(found) == 60 and found[3].is_function
    for column, power in found.items():
        assert power == pytest.approx(_power(_column(X, column), Y, pairs))
