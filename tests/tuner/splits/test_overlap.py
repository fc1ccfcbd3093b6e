"""Queries in two parts of a split are detected by content and left out of training."""

import warnings

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.core.errors import DataError, RankTuneWarning
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.data.queries import Queries, concatenate
from ranktune.tuner.splits.digests import NOTHING, query_digests
from ranktune.tuner.splits.split import without_shared


def graded(count: int, seed: int) -> Queries:
    generator = np.random.default_rng(seed)
    X = np.round(generator.normal(size=(count * 6, 4)), 1) * (generator.random((count * 6, 4)) < 0.7)
    y = np.tile([0.0, 1.0, 2.0, 0.0, 0.0, 1.0], count)
    return Queries.from_arrays(X, y, qid=np.repeat(np.arange(count), 6))


def shuffled(queries: Queries, seed: int) -> Queries:
    """The same queries, in another order, with their documents in another order, under other ids, as CSR."""
    order = np.random.default_rng(seed).permutation(queries.n_documents)
    features = sparse.csr_array(queries.features[order])
    return Queries.from_arrays(features, queries.grades[order], qid=1000 + queries.query_of_document[order])


def test_parts_without_shared_queries_stay_as_they_are() -> None:
    split = QuerySplit("s", graded(30, 0), graded(20, 1), graded(10, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = without_shared(split)
    assert (kept.train, kept.vali, kept.test) == (split.train, split.vali, split.test)


def test_test_queries_leave_the_other_parts_whatever_their_form() -> None:
    queries, common, vali = graded(30, 0), graded(5, 1), graded(8, 2)
    split = QuerySplit("s", concatenate([queries, common]), concatenate([vali, common]), shuffled(common, 3))
    with pytest.warns(RankTuneWarning) as warned:
        kept = without_shared(split)
    assert kept.train.fingerprint == queries.fingerprint
    assert kept.vali is not None and kept.vali.fingerprint == vali.fingerprint
    assert [str(w.message).split(" queries are")[0] for w in warned] == ["5 of 13 validation", "5 of 35 training"]


def test_one_other_grade_makes_another_query() -> None:
    train = graded(10, 0)
    grades = train.grades.copy()
    grades[::6] = 3.0
    other = Queries(train.features, grades, train.starts, train.query_ids)
    assert without_shared(QuerySplit("s", train, test=other)).train is train


def test_training_on_the_validation_queries_alone_is_refused() -> None:
    train = graded(10, 0)
    with pytest.raises(DataError, match=r"10 of 10 training queries .* leave vali out"):
        without_shared(QuerySplit("s", train, vali=train))
    with pytest.raises(DataError, match=r"10 of 10 training queries .* give other test queries"):
        without_shared(QuerySplit("s", train, test=shuffled(train, 1)))


def test_queries_of_one_grade_do_not_matter() -> None:
    flat = Queries.from_arrays(np.zeros((4, 4)), np.zeros(4), qid=[0, 0, 1, 1])
    train = concatenate([graded(10, 0), flat])
    assert without_shared(QuerySplit("s", train, test=concatenate([graded(3, 1), flat]))).train is train


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("share", [1.0, 0.05])
def test_noise_does_not_hide_a_query(share: float, is_sparse: bool) -> None:
    """Features of scales from 1e-6 to 1e6, of which most may be 0, and a huge value of each."""
    generator = np.random.default_rng(4)
    scales = 10.0 ** np.linspace(-6.0, 6.0, 40)
    X = generator.normal(size=(2400, 40)) * scales * (generator.random((2400, 40)) < share)
    X[0] = 1e9 * scales
    grades, qid = np.tile([0.0, 1.0, 2.0, 0.0], 600), np.repeat(np.arange(200), 12)
    noisy = X[:600] * (1.0 + 1e-9 * generator.normal(size=(600, 40)))
    if not is_sparse:
        noisy += 1e-9 * scales * generator.normal(size=noisy.shape)
    other = X[1200:1800].copy()
    other[::12, 20] += 0.01  # one value of each query
    X, tested = (sparse.csr_array(part) if is_sparse else part for part in (X, np.concatenate([noisy, other])))
    test = Queries.from_arrays(tested, grades[:1200], qid=qid[:1200])
    split = QuerySplit("s", Queries.from_arrays(X, grades, qid=qid), test=test)
    with pytest.warns(RankTuneWarning, match="50 of 200 training queries are also among the test .*but for noise"):
        kept = without_shared(split)
    assert kept.train.query_ids.tolist() == list(range(50, 200))


@pytest.mark.parametrize(("n_values", "n_features"), [(2, 3), (3, 8), (40, 1)])
def test_few_distinct_values_raise_no_alarm(n_values: int, n_features: int) -> None:
    generator = np.random.default_rng(5)
    X = generator.integers(0, n_values, size=(9000, n_features)) / 7.0
    queries = Queries.from_arrays(X, generator.integers(0, 3, 9000), qid=np.repeat(np.arange(1500), 6))
    train, test = queries.select(np.arange(1000)), queries.select(np.arange(1000, 1500))
    known = set(query_digests(test)) - {NOTHING}
    exact = [digest in known for digest in query_digests(train)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kept = without_shared(QuerySplit("s", train, test=test))
    assert kept.train.n_queries == 1000 - sum(exact)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize(("offset", "scale"), [(1e8, 1.0), (-1e12, 1e3), (1e8, 1e-3)])
def test_values_far_from_0_are_told_apart_by_their_differences(offset: float, scale: float, is_sparse: bool) -> None:
    """Of the same data without the offset, as many queries are shared."""
    train, fresh, common = graded(60, 0), graded(20, 1), graded(5, 2)

    def moved(*parts: Queries) -> Queries:
        queries = concatenate(parts)
        X = queries.features * scale + offset
        return queries.with_features(sparse.csr_array(X) if is_sparse else X)

    with pytest.warns(RankTuneWarning, match="5 of 65 training queries"):
        kept = without_shared(QuerySplit("s", moved(train, common), test=moved(fresh, common)))
    assert kept.train.n_queries == 60
