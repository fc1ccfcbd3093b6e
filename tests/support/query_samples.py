"""Queries with everything that queries may have, and their comparison."""

from dataclasses import fields

import numpy as np
from scipy import sparse

from ranktune.solvers.core.arrays import Features, stored_arrays
from ranktune.solvers.data.queries import Queries


def some(seed: int, n_queries: int = 40, *, layout: str = "dense", dtype: str = "float32") -> Queries:
    """Return queries of 1 to 20 documents with ids, names, weights, constraints and missing values."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(1, 20, n_queries)
    X: Features = generator.normal(size=(lengths.sum(), 6)).astype(dtype)
    X[generator.random(X.shape) < 0.6] = 0.0
    X[3, 2] = np.nan
    return Queries.from_arrays(
        X if layout == "dense" else sparse.csr_array(X),
        generator.integers(0, 4, len(X)),
        group=lengths,
        document_ids=[f"{seed}-{k}" for k in range(len(X))],
        feature_names=list("abcdef"),
        query_weights=generator.uniform(0.5, 2.0, n_queries) if seed % 2 else None,
        document_weights=generator.uniform(0.5, 2.0, len(X)) if seed % 3 else None,
        positions=generator.integers(0, 9, len(X)) if seed % 3 else None,
        monotone=[0, 1, -1, 0, 0, 0],
    )


def assert_same(queries: Queries, other: Queries) -> None:
    """Assert that two Queries are equal in every field, to the bit."""
    for field in fields(Queries):
        a, b = getattr(queries, field.name), getattr(other, field.name)
        if field.name == "features":
            assert isinstance(a, np.ndarray) == isinstance(b, np.ndarray)
            for x, y in zip(stored_arrays(a), stored_arrays(b), strict=True):
                assert x.dtype == y.dtype and x.tobytes() == y.tobytes()
        elif isinstance(a, np.ndarray | dict):
            np.testing.assert_equal(a, b)
        else:
            assert a == b, field.name
    assert queries.fingerprint == other.fingerprint
