"""Gathered queries equal selected and joined ones; what is in memory meanwhile is a block."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.core.arrays import Features, Ints, stored_arrays
from ranktune.solvers.data import gathering
from ranktune.solvers.data.gathering import Gathering, gathered
from ranktune.solvers.data.origins import origin_of
from ranktune.solvers.data.queries import Queries, concatenate


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Gather small features by small blocks too."""
    monkeypatch.setattr(gathering, "MIN_BYTES", 1)
    monkeypatch.setattr(gathering, "BLOCK_BYTES", 500)
    yield


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
            assert type(a) is type(b) or isinstance(a, np.ndarray) == isinstance(b, np.ndarray)
            for x, y in zip(stored_arrays(a), stored_arrays(b), strict=True):
                assert x.dtype == y.dtype and x.tobytes() == y.tobytes()
        elif isinstance(a, np.ndarray):
            np.testing.assert_array_equal(a, b)
        else:
            assert a == b
    assert queries.fingerprint == other.fingerprint


NUMBERS: dict[str, Sequence[int]] = {
    "run": range(5, 30),
    "rising": range(0, 40, 3),
    "any order": [7, 3, 39, 0, 3],
    "all": range(40),
}


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("name", NUMBERS)
def test_gathered_queries_are_the_selected_ones(name: str, layout: str, tmp_path: Path) -> None:
    """Whatever the numbers and the layout, and the origin is known, so that bins are shared."""
    queries, numbers = some(1, layout=layout), np.array(NUMBERS[name])
    assert_same(gathered([(queries, numbers)], tmp_path), queries.select(numbers))
    result = Gathering(tmp_path / "other").select(queries, numbers)
    assert_same(result, queries.select(numbers))
    origin, of_origin = origin_of(result)
    if result is not queries:
        assert origin is queries
        np.testing.assert_array_equal(of_origin, numbers)


@pytest.mark.parametrize("layouts", [("dense", "dense"), ("sparse", "sparse"), ("dense", "sparse")])
def test_joined_queries_are_the_concatenated_ones(layouts: tuple[str, str], tmp_path: Path) -> None:
    """Parts of different precision and layout too, with weights in one of them."""
    parts = [some(1, layout=layouts[0]), some(2, 25, layout=layouts[1], dtype="float64")]
    assert_same(Gathering(tmp_path).concatenate(parts), concatenate(parts))
    assert_same(Gathering().concatenate(parts), concatenate(parts))


def test_only_blocks_are_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No selection of features is larger than a block or one query."""
    queries, numbers = some(5), np.arange(0, 40, 2)
    seen: list[int] = []
    original = Queries.documents_of

    def watched(self: Queries, chosen: Ints) -> Ints | slice:
        seen.append(int(self.lengths[chosen].sum()) if self.n_features > 1 else 0)
        return original(self, chosen)

    monkeypatch.setattr(Queries, "documents_of", watched)
    gathered([(queries, numbers)], tmp_path)
    assert sum(seen) == queries.lengths[numbers].sum()
    assert max(seen) <= 20  # 500 bytes are 20 rows of 6 values of 4 bytes
