"""Trees grown on blocks of stored queries are those grown on all of them, in memory that holds bins alone."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers import GBDTRanker, LambdaMART, Queries, RandomForestRanker, XGBoostRanker, fit_blocks
from ranktune.solvers.boosting.lightgbm import library as lightgbm_bins
from ranktune.solvers.boosting.lightgbm import ranker as lightgbm_ranker
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data import blocked
from ranktune.solvers.data.blocked import LocalBlocks
from ranktune.solvers.data.blocks import block_of
from ranktune.solvers.data.disk.stored import read_queries, write_queries
from tests.support.anonymous_memory import peak_memory, write_large
from tests.support.blocks import Keeping


def drawn(seed: int = 0, *, weighted: bool = False, missing: bool = False) -> Queries:
    """Queries, some of them without two different grades, the first 20 among them."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(1, 30, 150)
    n = int(lengths.sum())
    X = generator.normal(size=(n, 6)).astype(np.float32)
    y = np.clip(np.round(X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * generator.normal(size=n)), 0, 3)
    y[: lengths[:20].sum()] = 1.0
    if missing:
        X[generator.random(X.shape) < 0.2] = np.nan
    weights = generator.random(150) + 0.5 if weighted else None
    of_documents = generator.random(n) + 0.5 if weighted else None
    return Queries.from_arrays(X, y, group=lengths, query_weights=weights, document_weights=of_documents)


def check_same(ranker: Any, other: Any, queries: Queries) -> None:
    """Compare two fitted rankers to the bit."""
    for name in ("feature", "threshold", "children", "value"):
        np.testing.assert_array_equal(getattr(ranker.trees_, name), getattr(other.trees_, name))
    assert ranker.rounds_ == other.rounds_ and ranker.n_features_in_ == other.n_features_in_
    np.testing.assert_array_equal(ranker.predict(queries), other.predict(queries))


RANKERS: list[Any] = [
    LambdaMART(trees=6),
    LambdaMART(trees=6, loss="xendcg", seeds=2),
    LambdaMART(trees=30, validation=0.2, patience=3, start="linear"),
    GBDTRanker(trees=6, start="linear"),
    GBDTRanker(trees=6, centre="rounds"),
    RandomForestRanker(trees=6),
    LambdaMART(trees=20, validation=0.2, start="linear", within_query="all"),
]


@pytest.mark.parametrize("kind", ["plain", "weighted", "missing"])
@pytest.mark.parametrize("ranker", RANKERS, ids=repr)
def test_trees_are_those_of_all_documents(ranker: Any, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lightgbm_bins, "MAX_KEPT_BYTES", 0)  # bins of the queries that count, not of all
    queries = drawn(weighted=kind == "weighted", missing=kind == "missing")
    whole = type(ranker)(**ranker.get_params()).fit(queries)
    parts = [block_of(queries, a, b) for a, b in ((0, 10), (10, 60), (60, 150))]  # the first block has no pairs
    result = fit_blocks(type(ranker)(**ranker.get_params()), parts, LocalBlocks(max_rows=200))
    check_same(result, whole, queries)
    assert result.as_model().n_features == 6


@pytest.mark.parametrize("ranker", [LambdaMART(trees=5), GBDTRanker(trees=5, start="linear")])
def test_bins_are_computed_from_the_sample_that_lightgbm_draws(ranker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lightgbm_bins, "MAX_KEPT_BYTES", 0)
    monkeypatch.setattr(lightgbm_ranker, "DENSE_SAMPLE", 300)
    queries = drawn(1)
    whole = type(ranker)(**ranker.get_params()).fit(queries)
    result = fit_blocks(type(ranker)(**ranker.get_params()), queries, LocalBlocks(max_rows=100))
    check_same(result, whole, queries)
    assert len(np.unique(queries.features[:, 0])) > 1000


def test_many_stored_documents_are_binned_block_by_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    queries, called = drawn(2), []
    write_queries(queries, tmp_path / "q")
    stored, vali = read_queries(tmp_path / "q"), drawn(3)
    monkeypatch.setattr(lightgbm_bins, "MAX_KEPT_BYTES", 0)
    ranker = LambdaMART(trees=20, patience=5)
    whole = LambdaMART(trees=20, patience=5).fit(stored, vali=vali)
    monkeypatch.setattr(lightgbm_ranker, "MAX_KEPT_BYTES", 0)
    monkeypatch.setattr(blocked, "MAX_WHOLE_ROWS", 100)
    monkeypatch.setattr(
        "ranktune.solvers.data.blocked.LocalBlocks",
        lambda: called.append(1) or LocalBlocks(100),  # type: ignore[func-returns-value]
    )
    check_same(ranker.fit(stored, vali=vali), whole, queries)
    assert called
    for count, path in ranker.fit_path(stored, [3, 7]):
        check_same(path, LambdaMART(trees=int(count)).fit(queries), queries)


@pytest.mark.parametrize("within", ["none", "ranks"])
def test_monotone_constraints_hold_on_blocks(within: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lightgbm_bins, "MAX_KEPT_BYTES", 0)
    write_queries(drawn(6), tmp_path / "q")
    queries = read_queries(tmp_path / "q").constrained({0: 1, 1: -1, 2: 1})
    ranker = LambdaMART(trees=6, start="none", within_query=within)
    whole = type(ranker)(**ranker.get_params()).fit(queries)
    monkeypatch.setattr(lightgbm_ranker, "MAX_KEPT_BYTES", 0)
    monkeypatch.setattr(blocked, "MAX_WHOLE_ROWS", 100)
    monkeypatch.setattr("ranktune.solvers.data.blocked.LocalBlocks", lambda: LocalBlocks(100))
    check_same(ranker.fit(queries), whole, queries)


def test_a_model_is_continued_on_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lightgbm_bins, "MAX_KEPT_BYTES", 0)
    queries = drawn(4)
    model = GBDTRanker(trees=3).fit(queries).as_model()
    whole = LambdaMART(trees=4).continue_from(model).fit(queries)
    result = fit_blocks(LambdaMART(trees=4).continue_from(model), queries, LocalBlocks(50))
    check_same(result, whole, queries)


def test_what_cannot_be_binned_by_blocks_is_refused() -> None:
    queries = drawn(5)
    with pytest.raises(ParameterError, match="leave workers out"):
        fit_blocks(LambdaMART(), [queries], Keeping())
    thin = replace(queries, features=sparse.csr_array(queries.features))
    with pytest.raises(DataError, match="sparse"):
        fit_blocks(LambdaMART(), thin)
    with pytest.raises(ParameterError, match="XGBoostRanker"):
        fit_blocks(XGBoostRanker(), queries)


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="/proc says what memory is anonymous")
def test_memory_grows_by_bins_and_not_by_features(tmp_path: Path) -> None:
    """Of 136 features: 136 bytes of bins a document, and what boosting needs of it; the features would take 544."""
    folder = write_large(tmp_path / "q")
    peaks = [peak_memory(folder, "LambdaMART(trees=2)", times)[1] for times in (1, 3)]
    assert (peaks[1] - peaks[0]) / 200_000 < 300.0
    assert peaks[1] < 300_000 * 300.0 + 250e6
