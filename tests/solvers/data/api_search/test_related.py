"""What is related: the model's order beside BM25's, with the grades marked."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.api_search.dataset import FEATURE_NAMES, Table, load_table
from ranktune.solvers.data.api_search.related import find, related


class Column:
    """A model that is one feature."""

    def __init__(self, name: str, sign: float = 1.0) -> None:
        self.column, self.sign = FEATURE_NAMES.index(name), sign
        self.feature_names: tuple[str, ...] | None = FEATURE_NAMES

    def predict(self, X: Any) -> Floats:
        return np.asarray(self.sign * X.features[:, self.column], dtype=np.float64)


@pytest.fixture(scope="module")
def table() -> Table:
    return load_table()


def test_the_model_orders_ours_and_bm25_stays(table: Table) -> None:
    result = related("np.argsort", Column("bm25", -1.0), count=50)
    summary = table.summaries[table.names.index("numpy.argsort")]
    assert (result.query, result.summary) == ("numpy.argsort", summary)
    assert result.ours != result.bm25 and sorted(result.ours) == sorted(result.bm25)
    same = related("numpy.argsort", Column("bm25"), count=50, table=table)
    assert same.ours == same.bm25 == result.bm25
    assert related("numpy.argsort", Column("log_length"), table=table).ours != same.ours


def test_grades_and_summaries(table: Table) -> None:
    result = related("numpy.argsort", Column("bm25"), count=50, table=table)
    grades = {entry.name: entry.grade for entry in result.ours}
    assert grades["numpy.lexsort"] == 2 and grades["numpy.sort"] >= 1
    assert result.judged == sum(grade > 0 for grade in grades.values()) and result.part in ("train", "vali", "test")
    assert all(entry.summary == table.summaries[table.names.index(entry.name)] for entry in result.ours)


def test_as_dict_survives_json(table: Table) -> None:
    result = related("numpy.argsort", Column("bm25"), count=2, table=table)
    fields = json.loads(json.dumps(result.as_dict()))
    assert [tuple(entry.values()) for entry in fields["ours"]] == [tuple(entry) for entry in result.ours]
    assert fields["ours"][0].keys() == {"name", "summary", "grade"}
    assert (fields["query"], fields["judged"], fields["part"]) == ("numpy.argsort", result.judged, result.part)


def test_a_query_without_graded_candidates_is_answered_too(table: Table) -> None:
    ungraded = table.names[int(np.flatnonzero(table.part == 0)[0])]
    result = related(ungraded, Column("tfidf"), table=table)
    assert len(result.ours) == 10 and result.judged == 0 and result.part is None


def test_equal_scores_keep_the_order_of_bm25(table: Table) -> None:
    result = related("numpy.zeros", Column("bm25", 0.0), count=50, table=table)
    assert result.ours == result.bm25


def test_count(table: Table) -> None:
    result = related("numpy.zeros", Column("bm25"), count=2, table=table)
    assert len(result.ours) == len(result.bm25) == 2
    assert len(related("numpy.zeros", Column("bm25"), count=99, table=table).ours) == 50
    with pytest.raises(ParameterError, match="count is 0"):
        related("numpy.zeros", Column("bm25"), count=0, table=table)


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("numpy.argsort", "numpy.argsort"),
        (" np.argsort() ", "numpy.argsort"),
        ("RidgeCV", "sklearn.linear_model.RidgeCV"),
        ("linear_model.RidgeCV", "sklearn.linear_model.RidgeCV"),
        ("ridgecv", "sklearn.linear_model.RidgeCV"),  # letter case is ignored if there is no other
        ("skl.linear_model.RidgeCV", "sklearn.linear_model.RidgeCV"),
    ],
)
def test_names_in_full_by_nickname_or_by_their_end(table: Table, name: str, full: str) -> None:
    assert table.names[find(name, table)] == full


def test_aliases_are_names_too(table: Table) -> None:
    alias, number = next(iter(table.aliases.items()))
    assert find(alias, table) == number


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("norm", r"'norm' is the end of several names: .*numpy\.linalg\.norm.* Write one in full"),
        ("numpy.zeroes", r"nothing documented is called 'numpy\.zeroes'\. Nearest: numpy\.zeros"),
        ("qqqqqqqq", "Known are the public functions and classes of joblib, numpy, optuna, scipy, sklearn"),
        ("", "nothing documented is called ''"),
        ("rgsort", "nothing documented is called 'rgsort'"),  # an end is whole parts
    ],
)
def test_names_that_cannot_be(table: Table, name: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        find(name, table)


def test_a_model_of_other_data_is_refused(table: Table) -> None:
    other = Column("bm25")
    other.feature_names = ("a", "b")
    with pytest.raises(DataError, match="the model has 2 features"):
        related("numpy.zeros", other, table=table)
    other.feature_names = None  # not known: it is up to the model
    assert related("numpy.zeros", other, table=table).ours
