"""Names for the array types that pass between modules."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
"""float64, C-contiguous."""

Ints: TypeAlias = NDArray[np.int64]
"""int64, C-contiguous."""

Features: TypeAlias = Any
"""(n_documents, n_features): a C-ordered float32 or float64 array, or a scipy.sparse.csr_array of them."""


def python_value(value: object) -> object:
    """Return a NumPy scalar as the Python value that it holds, anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value
