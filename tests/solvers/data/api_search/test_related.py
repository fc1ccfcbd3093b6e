"""What is related: the model's order beside BM25's, with the judgments marked."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.api_search import related as related_module
from ranktune.solvers.data.api_search.dataset import Table, build
from ranktune.solvers.data.api_search.documentation import Documented
from ranktune.solvers.data.api_search.features import FEATURE_NAMES
from ranktune.solvers.data.api_search.related import related, related_in

DOCUMENTS = [
    Documented(
        "numpy.argsort", (), False, "numpy", "Order of an array.\n\nSort, by index.\n\nSee Also\n--------\nsort"
    ),
    Documented("numpy.ma.sort", (), False, "numpy.ma", "Order of a masked array.\n\nSort."),
    Documented("numpy.sort", (), False, "numpy", "Sort an array.\n\nSee Also\n--------\nargsort, absent"),
    Documented("numpy.zeros", (), False, "numpy", "Array of zeros,\nall of them.\n\nOrder: 'C'."),
]


class Column:
    """A model that is one feature."""

    def __init__(self, name: str, sign: float = 1.0) -> None:
        self.column, self.sign = FEATURE_NAMES.index(name), sign
        self.feature_names: tuple[str, ...] | None = FEATURE_NAMES

    def predict(self, X: Any) -> Floats:
        return np.asarray(self.sign * X.features[:, self.column], dtype=np.float64)


@pytest.fixture(scope="module")
def table() -> Table:
    return build(DOCUMENTS)


def test_the_model_orders_ours_and_bm25_stays(table: Table) -> None:
    found = related_in(table, "np.argsort", Column("same_module", -1.0))
    assert (found.query, found.summary) == ("numpy.argsort", "Order of an array.")
    assert found.ours[0].name == "numpy.ma.sort"
    bm25 = related_in(table, "argsort", Column("bm25"))
    assert bm25.ours == bm25.bm25 == found.bm25 and len(found.ours) == 3
    assert sorted(found.ours) == sorted(found.bm25)


def test_judgments_and_summaries(table: Table) -> None:
    found = related_in(table, "numpy.argsort", Column("bm25"))
    assert {entry.name: entry.grade for entry in found.ours} == {"numpy.sort": 2, "numpy.ma.sort": 0, "numpy.zeros": 0}
    assert found.judged == 1 and found.part in ("train", "vali", "test")
    assert ("numpy.zeros", "Array of zeros, all of them.", 0) in found.ours  # entries are plain triples


def test_as_dict_survives_json(table: Table) -> None:
    found = related_in(table, "numpy.argsort", Column("bm25"), count=2)
    fields = json.loads(json.dumps(found.as_dict()))
    assert [tuple(entry.values()) for entry in fields["ours"]] == [tuple(entry) for entry in found.ours]
    assert fields["ours"][0].keys() == {"name", "summary", "grade"}
    assert (fields["query"], fields["judged"], fields["part"]) == ("numpy.argsort", 1, found.part)


def test_a_query_without_judgments_is_answered_too(table: Table) -> None:
    found = related_in(table, "zeros", Column("tfidf"))
    assert len(found.ours) == 3 and found.judged == 0 and found.part is None


def test_equal_scores_keep_the_order_of_bm25(table: Table) -> None:
    assert (found := related_in(table, "zeros", Column("same_kind"))).ours == found.bm25


def test_count(table: Table) -> None:
    found = related_in(table, "zeros", Column("bm25"), count=2)
    assert len(found.ours) == len(found.bm25) == 2
    assert len(related_in(table, "zeros", Column("bm25"), count=99).ours) == 3
    with pytest.raises(ParameterError, match="count is 0"):
        related_in(table, "zeros", Column("bm25"), count=0)


def test_names_that_cannot_be(table: Table) -> None:
    with pytest.raises(DataError, match=r"several names: numpy\.sort and numpy\.ma\.sort"):
        related_in(table, "sort", Column("bm25"))
    with pytest.raises(DataError, match=r"Nearest: numpy\.zeros"):
        related_in(table, "zeroes", Column("bm25"))


def test_a_model_of_other_data_is_refused(table: Table) -> None:
    other = Column("bm25")
    other.feature_names = ("a", "b")
    with pytest.raises(DataError, match="the model has 2 features"):
        related_in(table, "zeros", other)
    other.feature_names = None  # not known: it is up to the model
    assert related_in(table, "zeros", other).ours


def test_related_loads_the_table(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(related_module, "load_table", lambda cache, progress: table)
    assert related("numpy.zeros", Column("bm25"), count=1).query == "numpy.zeros"
