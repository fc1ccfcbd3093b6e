"""api-search: the shipped file is whole and has the promised split, and its derived features are what they say."""

from importlib import resources

import numpy as np
import pytest
from scipy.stats import rankdata

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.api_search import dataset
from ranktune.solvers.data.api_search.dataset import (
    CONTINUOUS,
    FEATURE_NAMES,
    PARTS,
    CandidateTable,
    load_split,
    load_table,
)
from ranktune.solvers.data.blocks import QuerySplit


@pytest.fixture(scope="module")
def table() -> CandidateTable:
    return load_table()


@pytest.fixture(scope="module")
def split() -> QuerySplit:
    return load_split()


def test_the_parts_are_sixty_twenty_and_twenty_percent_of_the_queries_with_a_graded_candidate(
    table: CandidateTable,
) -> None:
    graded = table.grades.max(axis=1) > 0
    np.testing.assert_array_equal(table.part > 0, graded)
    shares = np.bincount(table.part)[1:] / graded.sum()
    np.testing.assert_allclose(shares, [0.6, 0.2, 0.2], atol=1e-3)


def test_the_split(table: CandidateTable, split: QuerySplit) -> None:
    assert split.name == "api-search"
    for place, part in enumerate(PARTS, start=1):
        queries = getattr(split, part)
        assert queries.query_ids.tolist() == [table.names[q] for q in np.flatnonzero(table.part == place)]
        assert queries.feature_names == FEATURE_NAMES and (queries.lengths == 50).all()
        assert queries.features.dtype == np.float32 and queries.features.flags.c_contiguous
        assert set(queries.document_ids) <= set(table.names)


def test_views_of_continuous_features_are_computed_within_each_query(split: QuerySplit) -> None:
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


def test_features_of_names_and_lengths_agree_with_the_names(split: QuerySplit) -> None:
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


def test_the_lengths_of_a_pair_give_their_ratio(table: CandidateTable) -> None:
    (number,) = (at for at, name in enumerate(table.names) if name == "numpy.argsort")
    features = table.queries(np.array([number])).features
    lengths = np.exp(table.log_length[[number, *table.candidates[number]]].astype(np.float64))
    ratio = np.minimum(lengths[0], lengths[1:]) / np.maximum(lengths[0], lengths[1:])
    np.testing.assert_allclose(features[:, FEATURE_NAMES.index("length_ratio")], ratio, rtol=1e-5)


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
