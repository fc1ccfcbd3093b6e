"""The rules that all Queries keep, through each way to build them."""

from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.checks import MOST_FEATURES
from ranktune.solvers.data.queries import Queries

X = np.arange(12.0).reshape(4, 3)
Y = [1, 0, 2, 0]


def built(**changed: Any) -> Queries:
    """Build two queries of two documents by the constructor, with some of its arguments changed."""
    arrays = {
        "features": X.copy(),
        "grades": np.array(Y, dtype=float),
        "starts": np.array([0, 2, 4]),
        "query_ids": np.array([7, 8]),
    }
    return Queries(**(arrays | changed))


def _with(values: np.ndarray, at: tuple[int, ...], value: float) -> np.ndarray:
    values = np.array(values, dtype=float)
    values[at] = value
    return values


def _damaged_csr(part: str, value: int) -> sparse.csr_array:
    matrix = sparse.csr_array(X)
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    getattr(matrix, part)[1] = value
    return matrix


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"features": np.zeros(4)}, "shape"),
        ({"features": np.zeros((4, 3), dtype=np.float16)}, "float32 or float64"),
        ({"features": np.zeros((4, 3), dtype=object)}, "float32 or float64"),
        ({"features": np.zeros((4, 0))}, "no features"),
        ({"features": np.zeros((0, 3)), "grades": np.zeros(0)}, "no documents"),
        ({"features": sparse.csr_array((4, MOST_FEATURES + 1))}, "more than"),
        ({"features": _damaged_csr("indices", 10**6)}, "valid CSR"),
        ({"features": _damaged_csr("indices", -1)}, "valid CSR"),
        ({"features": _damaged_csr("indptr", 10**6)}, "valid CSR"),
        ({"features": _with(X, (2, 1), np.inf)}, "row 2, column 1 is inf"),
        ({"features": _with(X, (2, 1), np.nan)}, "has_missing"),
        ({"features": _with(X, (2, 1), -np.inf), "has_missing": True}, "row 2, column 1 is -inf"),
        ({"features": sparse.csr_array(_with(X, (2, 1), np.inf))}, "row 2, column 1 is inf"),
        ({"features": _with(X, (0, 1), np.inf), "rows": np.array([3, 2, 1, 0])}, "row 3, column 1"),
        ({"grades": np.array([1.0, np.nan, 0.0, 0.0])}, "row 1 is nan"),
        ({"grades": np.array([1.0, np.inf, 0.0, 0.0])}, "row 1 is inf"),
        ({"grades": np.zeros((4, 1))}, "one grade per row"),
        ({"starts": np.array([0, 2**62, -(2**62), 4]), "query_ids": np.arange(3)}, "rise"),
        ({"starts": np.array([0, 2**63 - 1, -2, 4]), "query_ids": np.arange(3)}, "rise"),
        ({"starts": np.array([0, 0, 4])}, "rise"),
        ({"starts": np.array([0.0, 2.0, 4.0])}, "rise"),
        ({"starts": np.array([0, 2])}, "rise"),
        ({"starts": np.array([1, 2, 4])}, "rise"),
        ({"starts": np.zeros(0, dtype=int)}, "rise"),
        ({"rows": np.array([0, 1, 2, 4])}, "rows must"),
        ({"rows": np.array([0, 1, 2, 2])}, "rows must"),
        ({"rows": np.array([-1, 0, 1, 2])}, "rows must"),
        ({"query_ids": np.array([7])}, "1 query ids for 2"),
        ({"query_ids": np.array([[7, 8]])}, "flat"),
        ({"query_ids": np.array([7, np.nan])}, r"qid\[2\] is nan"),
        ({"document_ids": np.zeros((4, 2))}, "flat"),
        ({"document_ids": np.zeros(3)}, "3 document ids"),
        ({"feature_names": ("a", "b")}, "2 feature names"),
        ({"feature_names": ("a", "b", "a")}, "several features are called 'a'"),
        ({"columns": {"query_weights": np.array([1.0, 0.0])}}, "positive"),
        ({"columns": {"query_weights": np.ones(3)}}, "one weight per query"),
    ],
)
def test_the_constructor_refuses_what_breaks_a_rule(changed: dict[str, Any], message: str) -> None:
    built()
    with pytest.raises(DataError, match=message):
        built(**changed)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"qid": [1, None, 1, 1]}, "None"),
        ({"qid": [1.0, float("nan"), 1.0, 1.0]}, r"qid\[1\] is nan"),
        ({"qid": np.array([2.0, 1.0, 2.0, np.nan])}, r"qid\[3\] is nan"),
        ({"qid": ["a", pd.NA, "a", "a"]}, "NA"),
        ({"qid": [pd.NaT] * 4}, "NaT"),
        ({"qid": np.array(["2026-01-01", "NaT"] * 2, dtype="M8[D]")}, "NaT"),
        ({"qid": [b"", b"a", b"a", b"a"]}, "not empty"),
        ({"qid": ["a", "a", "", "a"]}, r"qid\[2\]"),
        ({"qid": [(1, float("nan"))] * 4}, "nan"),
        ({"X": X.astype("M8[s]")}, "not dates"),
        ({"X": X.astype("m8[s]")}, "not durations"),
        ({"X": X.astype(str)}, "not text"),
        ({"X": X.astype(bytes)}, "not bytes"),
        ({"X": X.astype(str).astype(object)}, "holds text"),
        ({"X": np.full((4, 3), date(2026, 1, 1), dtype=object)}, "not numeric"),
        ({"X": np.zeros((4, 3), dtype="V0")}, "not records"),
        ({"X": X + 0j}, "Complex"),
        ({"X": _damaged_csr("indices", 2**32)}, "valid CSR"),
        ({"X": sparse.csr_array(X * 1j)}, "Complex data not supported: X"),
        ({"X": sparse.coo_array(X[:, 0])}, "two-dimensional"),
        ({"X": X[:, 0]}, "two-dimensional"),
        ({"X": [["a", "b"]] * 4}, "X is not numeric"),
        ({"X": [[1, 2]] * 3 + [[1]]}, "X is not numeric"),
        ({"X": _with(_with(X, (2, 1), np.inf), (0, 1), np.nan)}, "row 2, column 1 is inf"),
        ({"y": Y[:3]}, "one grade per row"),
        ({"y": [[grade] for grade in Y]}, "shape"),
        ({"y": [0, 1, 2, np.nan]}, "grade in row 3"),
        ({"y": ["a"] * 4}, "y is not numeric"),
        ({"y": [None] * 3 + [{}]}, "y is not numeric"),
        ({"y": np.array(Y) * 1j}, "Complex data not supported: y"),
        ({"y": ["1", "0", "2", "0"]}, "not text"),
        ({"y": [10**400, 0, 2, 0]}, "not numeric"),
        ({"document_ids": 3}, "flat"),
        ({"feature_names": ["1", 1, "b"]}, "several features are called '1'"),
    ],
)
def test_arrays_are_refused_that_break_a_rule(changed: dict[str, Any], message: str) -> None:
    given = {"X": X, "y": Y, **changed}
    with pytest.raises(DataError, match=message):
        Queries.from_arrays(given.pop("X"), given.pop("y"), **given)


def test_ids_that_differ_stay_different() -> None:
    for ids in (["01", "1", "001", "1.0"], [b"01", b"1", b"001", b"1.0"], [2**64, 2**64 + 1, 2**53, 2**53 + 1]):
        assert Queries.from_arrays(X, Y, qid=ids).query_ids.tolist() == ids


def test_sizes_of_narrow_types_are_summed_exactly() -> None:
    queries = Queries.from_arrays(np.ones((300, 1)), np.zeros(300), group=np.array([200, 100], dtype=np.uint8))
    assert queries.starts.tolist() == [0, 200, 300]
