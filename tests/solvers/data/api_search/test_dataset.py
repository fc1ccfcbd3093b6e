"""api-search: the shipped file is whole and has the promised split, and its derived features are what they say."""

from __future__ import annotations

from importlib import resources

import numpy as np
import pytest
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from ranktune.solvers.core.arrays import Matrix
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.api_search import dataset
from ranktune.solvers.data.api_search.dataset import CONTINUOUS, FEATURE_NAMES, PARTS, Table, load_split, load_table
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.split import Split


@pytest.fixture(scope="module")
def table() -> Table:
    return load_table()


@pytest.fixture(scope="module")
def split() -> Split:
    return load_split()


def ndcg_at_10(scores: Matrix, queries: Queries) -> float:
    """The mean over queries; documents of equal score share the mean of their discounts."""
    values = []
    for low, high in zip(queries.starts[:-1], queries.starts[1:], strict=True):
        gain = 2.0 ** queries.grades[low:high] - 1
        discount = np.where(np.arange(high - low) < 10, 1 / np.log2(np.arange(high - low) + 2.0), 0.0)
        _, group = np.unique(-scores[low:high], return_inverse=True)
        order = np.argsort(group, kind="stable")
        shared = np.bincount(group[order], weights=discount) / np.bincount(group)
        values.append(gain @ shared[group] / (np.sort(gain)[::-1] @ discount))
    return float(np.mean(values))


def test_the_table_is_sound(table: Table) -> None:
    n, m = table.candidates.shape
    assert m == 50 and len(table.names) == n and list(table.names) == sorted(set(table.names))
    assert {name.partition(".")[0] for name in table.names} == {"joblib", "numpy", "optuna", "scipy", "sklearn"}
    assert 0 <= table.candidates.min() and table.candidates.max() < n
    assert (table.candidates != np.arange(n)[:, None]).all()
    assert all(len(set(row)) == m for row in table.candidates.tolist())
    assert np.isfinite(table.pairs).all() and np.isfinite(table.log_length).all()


def test_the_parts_are_sixty_twenty_and_twenty_percent_of_the_queries_with_a_graded_candidate(table: Table) -> None:
    graded = table.grades.max(axis=1) > 0
    np.testing.assert_array_equal(table.part > 0, graded)
    shares = np.bincount(table.part)[1:] / graded.sum()
    np.testing.assert_allclose(shares, [0.6, 0.2, 0.2], atol=1e-3)


def test_grades_say_who_lists_whom(table: Table) -> None:
    """Where two are candidates of each other, both rows say the same: 2 and 2, or at most one of them is 1."""
    grade = {
        (q, c): g
        for q, (row, grades) in enumerate(zip(table.candidates.tolist(), table.grades.tolist(), strict=True))
        for c, g in zip(row, grades, strict=True)
    }
    both = [(g, grade[c, q]) for (q, c), g in grade.items() if (c, q) in grade]
    assert set(both) == {(0, 0), (0, 1), (1, 0), (2, 2)}
    argsort, lexsort = (table.names.index(f"numpy.{name}") for name in ("argsort", "lexsort"))
    assert grade[argsort, lexsort] == 2


def test_the_split(table: Table, split: Split) -> None:
    assert split.name == "api-search"
    for place, part in enumerate(PARTS, start=1):
        queries = getattr(split, part)
        assert queries.query_ids.tolist() == [table.names[q] for q in np.flatnonzero(table.part == place)]
        assert queries.feature_names == FEATURE_NAMES and (queries.lengths == 50).all()
        assert queries.features.dtype == np.float32 and queries.features.flags.c_contiguous
        assert set(queries.document_ids) <= set(table.names)


def test_views_of_continuous_features_are_computed_within_each_query(split: Split) -> None:
    test = split.test
    assert test is not None
    by_query = np.asarray(test.features, dtype=np.float64).reshape(test.n_queries, 50, -1)
    column = {name: by_query[:, :, place] for place, name in enumerate(FEATURE_NAMES)}
    for name in CONTINUOUS:
        values, best = column[name], column[name].max(axis=1, keepdims=True)
        np.testing.assert_allclose(column[f"{name}_of_best"], values / np.where(best > 0, best, 1), rtol=1e-6)
        position = 1 - np.log2(rankdata(-values, axis=1)) / np.log2(50)
        np.testing.assert_allclose(column[f"{name}_rank"], position, atol=1e-6)
    assert (np.diff(column["bm25"], axis=1) <= 0).all()  # candidates are ordered by it


def test_features_of_names_and_lengths_agree_with_the_names(split: Split) -> None:
    test = split.test
    assert test is not None and test.document_ids is not None
    column = {name: test.features[:, place] for place, name in enumerate(FEATURE_NAMES)}
    for row in range(0, test.n_documents, 97):
        query, document = str(test.query_ids[row // 50]), str(test.document_ids[row])
        assert column["same_module"][row] == (query.rpartition(".")[0] == document.rpartition(".")[0])
        assert column["same_package"][row] == (query.partition(".")[0] == document.partition(".")[0])
        a, b = (name.rpartition(".")[2].lower() for name in (query, document))
        shared = next((at for at in range(min(len(a), len(b))) if a[at] != b[at]), min(len(a), len(b)))
        assert column["name_prefix"][row] == pytest.approx(shared / max(len(a), len(b)), abs=3e-4)


def test_the_lengths_of_a_pair_give_their_ratio(table: Table) -> None:
    (number,) = (at for at, name in enumerate(table.names) if name == "numpy.argsort")
    features = table.queries(np.array([number])).features
    lengths = np.exp(table.log_length[[number, *table.candidates[number]]].astype(np.float64))
    ratio = np.minimum(lengths[0], lengths[1:]) / np.maximum(lengths[0], lengths[1:])
    np.testing.assert_allclose(features[:, FEATURE_NAMES.index("length_ratio")], ratio, rtol=1e-5)


def test_a_model_learns_more_than_bm25_and_every_feature(split: Split) -> None:
    train, test = split.train, split.test
    assert test is not None
    best = {name: ndcg_at_10(test.features[:, place], test) for place, name in enumerate(FEATURE_NAMES)}
    scale = StandardScaler().fit(train.features)
    model = LogisticRegression(C=0.03, max_iter=1000).fit(scale.transform(train.features), train.grades > 0)
    learned = ndcg_at_10(model.decision_function(scale.transform(test.features)), test)
    assert 0.5 < best["bm25"] < 0.7 and learned > 0.80 and learned > max(best.values()) + 0.04


def test_a_damaged_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "_SHA256", "0" * 64)
    with pytest.raises(DataError, match="not as it was shipped"):
        load_table()


def test_the_file_is_small_and_comes_with_its_licences() -> None:
    folder = resources.files("ranktune.solvers.data.api_search")
    assert len(folder.joinpath("api-search.npz").read_bytes()) < 3_000_000
    notice = folder.joinpath("NOTICE.txt").read_text(encoding="utf-8")
    for package in ("joblib 1.", "numpy 2.", "optuna 5.", "scipy 1.", "scikit-learn 1."):
        assert package in notice
