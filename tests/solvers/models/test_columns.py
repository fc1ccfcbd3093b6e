from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.core.arrays import dense
from ranktune.solvers.core.errors import DataError, RankTuneWarning
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.columns import aligned


def made(columns: int, names: list[str] | None = None, kind: Any = np.array) -> Queries:
    X = np.arange(3 * columns, dtype=float).reshape(3, columns) + 1
    return Queries.from_arrays(kind(X), [0, 1, 2], qid=["a", "b", "a"], feature_names=names)


def aligned_with(queries: Queries, train: Queries, what: str) -> Queries:
    return aligned(queries, train.n_features, train.feature_names, what)


@pytest.mark.parametrize("kind", [np.array, sparse.csr_array])
def test_fewer_features_are_padded(kind: Any) -> None:
    queries = aligned_with(made(2, kind=kind), made(4), "test")
    features = dense(queries.features)
    assert features.tolist() == [[1, 2, 0, 0], [5, 6, 0, 0], [3, 4, 0, 0]]
    assert queries.rows is not None and queries.rows.tolist() == [0, 2, 1]


def test_more_features_are_named() -> None:
    with pytest.raises(DataError, match=r"test: .* does not have: 3 and 4 .*It has 2"):
        aligned_with(made(4), made(2), "test")


@pytest.mark.parametrize("kind", [np.array, sparse.csr_array])
def test_named_features_are_put_in_the_order_of_training(kind: Any) -> None:
    queries = aligned_with(made(3, ["p", "q", "r"], kind), made(3, ["r", "p", "q"]), "test")
    features = dense(queries.features)
    assert features.tolist() == [[3, 1, 2], [9, 7, 8], [6, 4, 5]]
    assert queries.feature_names == ("r", "p", "q")


def test_named_features_must_be_the_same() -> None:
    with pytest.raises(DataError, match="does not have: s"):
        aligned_with(made(3, ["p", "q", "s"]), made(3, ["p", "q", "r"]), "test")
    with pytest.raises(DataError, match="lacks the features r"):
        aligned_with(made(2, ["p", "q"]), made(3, ["p", "q", "r"]), "test")


@pytest.mark.parametrize(("given", "trained"), [(["p", "q", "r"], None), (None, ["p", "q", "r"])])
def test_names_on_one_side_only_are_matched_by_position_with_a_warning(
    given: list[str] | None, trained: list[str] | None
) -> None:
    with pytest.warns(RankTuneWarning, match=r"\(p, q and r\).*matched by position"):
        queries = aligned_with(made(3, given), made(3, trained), "test")
    assert queries.features.tolist() == made(3).features.tolist()
    with pytest.raises(DataError, match="2 columns for 3 features"):
        aligned_with(made(2, None if given is None else given[:2]), made(3, trained), "test")
