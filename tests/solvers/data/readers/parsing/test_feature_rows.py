from typing import Any

import numpy as np
import pytest

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.readers.parsing.feature_rows import RowCollector
from ranktune.solvers.data.readers.parsing.options import Layout


def entries(matrix: Any) -> tuple[Any, Any, Any]:
    rows, columns = np.nonzero(matrix)
    return matrix[rows, columns], columns.astype(np.int32), np.cumsum(np.bincount(rows, minlength=len(matrix)))


@pytest.mark.parametrize("layout", ["auto", "dense", "sparse"])
@pytest.mark.parametrize("density", [0.02, 0.24, 0.26, 0.9])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_are_joined_whatever_they_were_held_as(layout: Layout, density: float, dtype: type) -> None:
    generator = np.random.default_rng(0)
    matrix = np.where(generator.random((120, 30)) < density, generator.normal(size=(120, 30)), 0.0)
    matrix[:40] *= generator.random((40, 30)) < 0.3  # the blocks differ in density
    matrix[50:60, 10:] = 0.0  # and in width
    rows = RowCollector(layout, dtype)
    for first in range(0, 120, 10):
        block = matrix[first : first + 10]
        values, columns, ends = entries(block)
        rows.add(values, columns, ends, int(columns.max(initial=-1)) + 1)
    features = rows.joined(33)
    assert features.dtype == dtype and features.shape == (120, 33)
    dense = features.toarray() if hasattr(features, "toarray") else features
    assert (dense[:, :30] == matrix.astype(dtype)).all() and not dense[:, 30:].any()
    expected_dense = layout == "dense" or (layout == "auto" and np.count_nonzero(matrix) >= 0.25 * 120 * 33)
    assert isinstance(features, np.ndarray) == expected_dense


def test_rows_without_entries_count() -> None:
    rows = RowCollector("sparse", np.float32)
    nothing = np.zeros(0)
    rows.add(nothing, nothing.astype(np.int32), np.zeros(4, dtype=np.int64), 0)
    assert rows.joined(0).shape == (4, 0)


def test_what_does_not_fit_in_memory_is_an_error() -> None:
    rows = RowCollector("dense", np.float64)
    rows.add(np.ones(1), np.zeros(1, dtype=np.int32), np.ones(1, dtype=np.int64), 1)
    with pytest.raises(DataError, match='layout="sparse"'):
        rows.joined(1 << 58)


@pytest.mark.parametrize("expected", [0, 5, 30, 1000])
@pytest.mark.parametrize("widths", [[3, 3, 3], [3, 5, 4], [5, 1, 5], [0, 3, 3]])
def test_expecting_too_few_or_too_many_rows_changes_nothing(expected: int, widths: list[int]) -> None:
    generator = np.random.default_rng(1)
    blocks = [generator.random((10, width)) + 0.5 for width in widths]
    rows = RowCollector("dense", np.float64)
    for block in blocks:
        rows.add(*entries(block), block.shape[1], expected)
    features = rows.joined(5)
    assert features.shape == (30, 5) and features.flags.c_contiguous
    for number, block in enumerate(blocks):
        held = features[10 * number : 10 * number + 10]
        assert (held[:, : block.shape[1]] == block).all() and not held[:, block.shape[1] :].any()


def test_expected_rows_are_not_copied() -> None:
    rows = RowCollector("dense", np.float64)
    rows.add(*entries(np.ones((10, 3))), 3, 40)
    rows.add(*entries(np.ones((10, 3))), 3, 40)
    features = rows.joined(3)
    assert features.base is not None and features.base.shape == (40, 3) and features.sum() == 60
