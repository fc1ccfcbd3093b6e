"""The LLVM code of the row product against the plain loop that states its order of summation."""

from typing import Any

import numpy as np
import pytest

from ranktune.solvers.core.compiled import as_written
from ranktune.solvers.data.products import dense_times, row_product


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [1, 7, 8, 31, 32, 33, 64, 75, 136])
def test_machine_code_and_plain_loop_leave_the_same_bits(columns: int, dtype: Any) -> None:
    generator = np.random.default_rng(columns)
    X, w = generator.normal(size=(5, columns)).astype(dtype), generator.normal(size=columns)
    result = np.empty(5)
    dense_times(X, w, result)
    assert result.tolist() == [as_written(row_product)(X, i, w) for i in range(5)]
    assert result.tolist() == np.broadcast_to(as_written(row_product)(X, slice(None), w), 5).tolist()
    if columns > 32:
        assert not np.array_equal(result, [sum(float(x) * v for x, v in zip(row, w, strict=True)) for row in X])
