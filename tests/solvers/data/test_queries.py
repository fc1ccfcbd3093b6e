from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from ranktune.solvers.core.arrays import dense as to_dense
from ranktune.solvers.core.arrays import stored_values
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.queries import Queries, concatenate

X = np.arange(12, dtype=np.float32).reshape(6, 2)
Y, QID = [0, 1, 2, 0, 1, 0], ["a", "a", "b", "b", "b", "c"]


def dense(queries: Queries) -> Any:
    return to_dense(queries.features)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=30), st.booleans())
def test_rows_are_gathered_and_lead_back(qid: list[int], is_sparse: bool) -> None:
    matrix = np.arange(2.0 * len(qid)).reshape(-1, 2)
    given_form = sparse.csr_array(matrix) if is_sparse else matrix
    grades = np.arange(float(len(qid)))
    queries = Queries.from_arrays(given_form, grades, qid=qid, document_ids=[f"d{row}" for row in range(len(qid))])
    assert queries.n_queries == len(set(qid)) and queries.n_documents == len(qid)
    assert [qid[int(grade)] for grade in queries.grades] == queries.query_ids[queries.query_of_document].tolist()
    assert (dense(queries)[:, 0] == 2.0 * queries.grades).all()
    assert queries.document_ids is not None
    assert queries.document_ids.tolist() == [f"d{int(grade)}" for grade in queries.grades]
    assert queries.in_caller_order(queries.grades).tolist() == grades.tolist()


def test_adjacent_dense_floats_are_not_copied() -> None:
    assert Queries.from_arrays(X, Y, qid=QID).features is X
    assert Queries.from_arrays(X.astype(int), Y, qid=QID).features.dtype == np.float64
    assert Queries.from_arrays(np.asfortranarray(X), Y, qid=QID).features.flags.c_contiguous


def test_sparse_duplicates_are_summed_and_the_callers_matrix_stays() -> None:
    parts = (np.array([1.0, 2.0, 3.0]), np.array([1, 1, 0]), np.array([0, 3]))
    matrix = sparse.csr_array(parts, shape=(1, 2))
    queries = Queries.from_arrays(matrix, [1])
    assert to_dense(queries.features).tolist() == [[3.0, 3.0]] and stored_values(queries.features).size == 2
    assert matrix.nnz == 3


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_missing_values_are_noted_and_kept(make: Any) -> None:
    queries = Queries.from_arrays(make(np.where(X == 5, np.nan, X)), Y, qid=QID)
    assert queries.has_missing and queries.select([0]).has_missing
    assert np.isnan(dense(queries)).sum() == 1
    whole = Queries.from_arrays(make(X), Y, qid=QID)
    assert not whole.has_missing
    assert concatenate([whole, queries]).has_missing


def test_finite_numbers_whose_sum_overflows_are_accepted() -> None:
    assert Queries.from_arrays(np.full((3, 2), 1.7e308), [0, 1, 2]).n_documents == 3
    assert Queries.from_arrays(np.full((3, 2), 3.4e38, dtype=np.float32), [0, 1, 2]).n_documents == 3


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("chosen", [[0, 1], [2], [2, 0], [1, 1], [0, 1, 2]])
def test_selected_queries_keep_their_rows(kind: Any, chosen: list[int]) -> None:
    queries = Queries.from_arrays(kind(X), Y, qid=QID, document_ids=list("uvwxyz"), feature_names=["f", "g"])
    part = queries.select(np.array(chosen, dtype=np.int64))
    rows = [row for q in chosen for row in range(queries.starts[q], queries.starts[q + 1])]
    assert part.query_ids.tolist() == [("a", "b", "c")[q] for q in chosen]
    assert dense(part).tolist() == X[rows].tolist()
    assert part.grades.tolist() == [Y[row] for row in rows]
    assert part.document_ids is not None and part.document_ids.tolist() == ["uvwxyz"[row] for row in rows]
    assert part.feature_names == ("f", "g")


def test_no_queries_cannot_be_selected() -> None:
    with pytest.raises(DataError, match="no documents"):
        Queries.from_arrays(X, Y, qid=QID).select([])


def test_a_run_of_dense_queries_is_a_view() -> None:
    queries = Queries.from_arrays(X, Y, qid=QID)
    assert np.shares_memory(queries.select(np.array([1, 2])).features, X)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_selected_halves_concatenate_to_the_whole(kind: Any) -> None:
    queries = Queries.from_arrays(kind(X), Y, qid=QID, document_ids=list("uvwxyz"))
    whole = concatenate([queries.select(np.array([0])), queries.select(np.array([1, 2]))])
    assert whole.fingerprint == queries.fingerprint
    assert whole.query_ids.tolist() == ["a", "b", "c"]
    assert whole.document_ids is not None and whole.document_ids.tolist() == list("uvwxyz")
    with pytest.raises(DataError, match="2, 3 features"):
        concatenate([queries, Queries.from_arrays(np.ones((1, 3)), [1])])


def test_sparse_and_dense_parts_concatenate() -> None:
    parts = [Queries.from_arrays(kind(X), Y, qid=QID) for kind in (np.asarray, sparse.csr_array)]
    assert to_dense(concatenate(parts).features).tolist() == np.vstack([X, X]).tolist()


def test_fingerprints_tell_data_apart_and_nothing_else() -> None:
    def printed(features: Any = X, grades: Any = Y, qid: Any = QID) -> str:
        return Queries.from_arrays(features, grades, qid=qid).fingerprint

    same = {printed(), printed(X.copy()), printed(np.asfortranarray(X)), printed(qid=[5, 5, 3, 3, 3, 1])}
    assert len(same) == 1
    other_grades, other_queries = printed(grades=[1, *Y[1:]]), printed(qid=list("aabbcc"))
    assert len({*same, printed(X + 1), other_grades, other_queries, printed(X.reshape(6, 2)[:, :1])}) == 5
    csr = sparse.csr_array(X)
    wide = sparse.csr_array((csr.data, csr.indices.astype(np.int64), csr.indptr.astype(np.int64)), shape=csr.shape)
    assert printed(csr) == printed(wide)
    assert printed(csr) != printed(sparse.csr_array((csr.data, csr.indices, csr.indptr), shape=(6, 9)))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=12))
def test_there_are_pairs_where_grades_differ(rows: list[tuple[int, int]]) -> None:
    qid, grades = [row[0] for row in rows], [row[1] for row in rows]
    expected = any(a[0] == b[0] and a[1] != b[1] for a in rows for b in rows)
    assert Queries.from_arrays(np.ones((len(rows), 1)), grades, qid=qid).has_pairs == expected


def test_other_features_drop_names_that_no_longer_fit() -> None:
    queries = Queries.from_arrays(X, Y, qid=QID, feature_names=["f", "g"])
    assert queries.with_features(X * 2).feature_names == ("f", "g")
    assert queries.with_features(np.ones((6, 3))).feature_names is None


def test_query_weights_follow_their_queries() -> None:
    queries = Queries.from_arrays(X, Y, qid=["b", "a", "b", "c", "a", "c"], query_weights={"c": 3.0, "b": 0.5})
    assert dict(zip(queries.query_ids, queries.weight_of_query, strict=True)) == {"b": 0.5, "a": 1.0, "c": 3.0}
    assert queries.select(np.array([2, 0])).weight_of_query.tolist() == [3.0, 0.5]
    plain = Queries.from_arrays(X, Y, qid=QID)
    assert concatenate([queries, plain]).weight_of_query.tolist() == [0.5, 1.0, 3.0, 1.0, 1.0, 1.0]
    assert concatenate([plain, plain]).query_weights is None
    assert plain.weighted_by([1.0, 2.0, 1.0]).fingerprint != plain.fingerprint
    assert plain.weight_of_query.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 2.0], "3 queries"),
        ([1.0, 0.0, 1.0], "number 1 is 0.0: weights must be positive"),
        ([1.0, 1.0, np.inf], "number 2 is inf"),
        ({"z": 1.0}, "'z', which the data do not hold"),
    ],
)
def test_weights_that_cannot_be_are_refused(weights: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Queries.from_arrays(X, Y, qid=QID, query_weights=weights)
