from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.grouping import Grouping, group_rows


def plainly(qid: list[Any]) -> tuple[list[Any], list[int]]:
    """Ids in the order of their first row, and the rows gathered in that order."""
    ids = list(dict.fromkeys(qid))
    return ids, [row for name in ids for row, other in enumerate(qid) if other == name]


def check(grouping: Grouping, qid: list[Any]) -> None:
    ids, rows = plainly(qid)
    assert grouping.ids.tolist() == ids
    assert grouping.starts.dtype == np.int64 and grouping.starts[0] == 0 and grouping.starts[-1] == len(qid)
    assert np.diff(grouping.starts).tolist() == [qid.count(name) for name in ids]
    assert (list(range(len(qid))) if grouping.rows is None else grouping.rows.tolist()) == rows
    if rows == list(range(len(qid))):
        assert grouping.rows is None


IDS = st.one_of(
    st.integers(-3, 3),
    st.integers(2**62, 2**70),
    st.sampled_from(["a", "b", "a\0", "", "\0"]),
    st.tuples(st.integers(0, 2)),
    st.booleans(),
    st.floats(allow_nan=False),
)


@given(st.lists(IDS, min_size=1, max_size=30))
def test_ids_of_any_type_in_any_order_are_grouped(qid: list[Hashable]) -> None:
    check(group_rows(len(qid), qid), qid)


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=40))
def test_arrays_and_series_are_grouped_as_lists_are(qid: list[int]) -> None:
    for form in (
        np.array(qid),
        np.array(qid, dtype=np.int8),
        np.array(qid, dtype=float),
        np.array(qid, dtype=object),
        pd.Series(qid, index=range(5, 5 + len(qid))),
        pl.Series(qid),
        tuple(qid),
    ):
        check(group_rows(len(qid), form), qid)  # type: ignore[arg-type]
    check(group_rows(len(qid), np.array([f"q{name}" for name in qid])), [f"q{name}" for name in qid])


def test_sizes_are_an_alternative() -> None:
    grouping = group_rows(6, group=[1, 3, 2])
    assert grouping.starts.tolist() == [0, 1, 4, 6] and grouping.ids.tolist() == [0, 1, 2] and grouping.rows is None


def test_without_either_all_rows_are_one_query() -> None:
    assert group_rows(4).starts.tolist() == [0, 4]


@pytest.mark.parametrize(
    ("n_rows", "options", "word"),
    [
        (2, {"qid": [1, 2], "group": [2]}, "both"),
        (2, {"qid": [[1], [2]]}, "hashable"),
        (2, {"qid": np.ones((2, 2))}, "shape"),
        (2, {"qid": np.ones(2, dtype=complex)}, "complex"),
        (2, {"qid": np.zeros(2, dtype="V0")}, "records"),
        (24, {"group": np.array([2**63 - 1, 2**63 - 1, 26])}, f"sums to {2**64 + 24}"),
        (24, {"group": np.array([2**64 - 1, 25], dtype=np.uint64)}, f"sums to {2**64 + 24}"),
        (24, {"group": [999999999999999999] * 18 + [446744073709551658]}, f"sums to {2**64 + 24}"),
        (3, {"group": [1, 1, 2]}, "did you mean qid="),
        (3, {"group": [3, 0]}, "at least one row"),
        (3, {"group": [4, -1]}, "at least one row"),
        (3, {"group": [1.5, 1.5]}, "whole numbers"),
        (3, {"group": []}, "whole numbers"),
    ],
)
def test_what_cannot_be_grouped_is_named(n_rows: int, options: dict[str, Any], word: str) -> None:
    with pytest.raises(DataError, match=word):
        group_rows(n_rows, **options)
