"""Gathered queries equal selected and joined ones; what is in memory meanwhile is a block."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Ints
from ranktune.solvers.data import gathering
from ranktune.solvers.data.gathering import Gathering, gathered
from ranktune.solvers.data.origins import origin_of
from ranktune.solvers.data.queries import Queries, concatenate
from tests.support.query_samples import assert_same, some


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Gather small features by small blocks too."""
    monkeypatch.setattr(gathering, "MIN_BYTES", 1)
    monkeypatch.setattr(gathering, "BLOCK_BYTES", 500)
    yield


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
