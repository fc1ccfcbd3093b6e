"""Learning from blocks finds what learning from all documents finds, whatever is kept or lost between calls."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktune.solvers import (
    PAMIR,
    SOLAR1,
    BestFeature,
    DominationRank,
    Queries,
    Ranker,
    RankSVM,
    fit_blocks,
)
from ranktune.solvers.core.errors import DataError, IncompatibleParts, ParameterError
from ranktune.solvers.data import blocked
from ranktune.solvers.data.blocked import LocalBlocks, factors_of_blocks
from ranktune.solvers.data.disk.stored import read_queries, write_queries
from ranktune.solvers.data.scaling import factors, query_factors
from ranktune.solvers.linear.presets import ElasticRank
from ranktune.solvers.optimizers.rank_svm import sampling
from tests.support.anonymous_memory import peak_memory, write_large
from tests.support.blocks import Keeping, parts_of

OPTIONS: list[dict[str, Any]] = [
    {},
    {"scaling": "minmax", "average": "queries", "C": 1.0},
    {"scaling": "none", "pairs": "adjacent", "average": "none", "C": 1e-4},
]


@pytest.mark.parametrize("kind", ["dense", "sparse", "weighted"])
@pytest.mark.parametrize("options", OPTIONS)
def test_rank_svm_of_blocks_is_that_of_all_documents(kind: str, options: dict[str, Any]) -> None:
    parts, queries = parts_of(0, kind=kind)
    whole = RankSVM(tol=1e-10, **options).fit(queries)
    for computing in (LocalBlocks(max_rows=200), Keeping(), Keeping(0.3)):
        ranker = RankSVM(tol=1e-10, **options)
        assert fit_blocks(ranker, parts, computing) is ranker
        assert ranker.objective_ == pytest.approx(whole.objective_, rel=1e-10)
        np.testing.assert_allclose(ranker.coef_, whole.coef_, rtol=1e-6, atol=1e-6 * np.abs(whole.coef_).max())
    assert ranker.n_features_in_ == 6


@pytest.mark.parametrize("options", OPTIONS)
def test_the_hinge_is_smoothed_less_and_less(options: dict[str, Any]) -> None:
    parts, queries = parts_of(9, kind="weighted")
    whole = RankSVM(loss="l1", tol=1e-6, **options).fit(queries)
    for computing in (LocalBlocks(), Keeping(0.3)):
        ranker = fit_blocks(RankSVM(loss="l1", tol=1e-6, **options), parts, computing)
        assert ranker.objective_ == pytest.approx(whole.objective_, rel=2e-6)


def test_a_sample_of_the_blocks_is_solved_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "MIN_SAMPLE", 100)
    parts, queries = parts_of(1, lengths=30)
    whole = RankSVM(tol=1e-10).fit(queries)
    workers = Keeping(0.2)
    ranker = fit_blocks(RankSVM(tol=1e-10), parts, workers)
    assert "sample" in workers.names and "hessian" not in workers.names and workers.lost
    np.testing.assert_allclose(ranker.coef_, whole.coef_, rtol=1e-6, atol=1e-6 * np.abs(whole.coef_).max())
    assert ranker.objective_ == pytest.approx(whole.objective_, rel=1e-8)


def test_many_features_are_solved_by_the_diagonal() -> None:
    parts, queries = parts_of(2, n_features=1200, kind="sparse")
    workers = Keeping()
    ranker = fit_blocks(RankSVM(tol=1e-9), parts, workers)
    assert "diagonal" in workers.names and "sample" not in workers.names
    whole = RankSVM(tol=1e-9).fit(queries)
    np.testing.assert_allclose(ranker.coef_, whole.coef_, rtol=1e-4, atol=1e-6 * np.abs(whole.coef_).max())


def test_results_do_not_depend_on_what_is_kept() -> None:
    parts, _ = parts_of(3)
    result = [
        fit_blocks(RankSVM(tol=1e-6), parts, workers).coef_ for workers in (Keeping(), Keeping(0.5), Keeping(1.0))
    ]
    np.testing.assert_array_equal(result[0], result[1])
    np.testing.assert_array_equal(result[0], result[2])


def test_folders_are_mapped_and_large_ones_divided(tmp_path: Path) -> None:
    parts, _ = parts_of(4)
    for number, part in enumerate(parts):
        write_queries(part, tmp_path / str(number))
    folders = [tmp_path / str(number) for number in range(len(parts))]
    stored = fit_blocks(RankSVM(tol=1e-6), folders)
    np.testing.assert_array_equal(stored.coef_, fit_blocks(RankSVM(tol=1e-6), parts).coef_)
    single = fit_blocks(RankSVM(tol=1e-6), str(folders[0]), LocalBlocks(max_rows=1))
    np.testing.assert_allclose(single.coef_, RankSVM(tol=1e-6).fit(parts[0]).coef_, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("kind", ["dense", "sparse", "weighted"])
@pytest.mark.parametrize("scaling", ["none", "minmax", "standard"])
def test_features_are_scaled_as_of_all_documents(kind: str, scaling: str) -> None:
    parts, queries = parts_of(5, kind=kind)
    workers = LocalBlocks(max_rows=50)
    workers.open(parts)
    np.testing.assert_allclose(factors_of_blocks(workers, scaling, 6), factors(queries, scaling), rtol=1e-9)
    within = factors_of_blocks(workers, scaling, 6, within_queries=True)
    np.testing.assert_allclose(within, query_factors(queries, scaling), rtol=1e-9)


@pytest.mark.parametrize(
    "ranker",
    [ElasticRank(), ElasticRank(scaling="standard"), PAMIR(scaling="none"), SOLAR1(scaling="none", passes=2)],
)
def test_rankers_that_learn_query_by_query_are_averaged(ranker: Any) -> None:
    """On one block it is fit; on several, the mean of fits to features scaled alike."""
    parts, queries = parts_of(6)
    alone = type(ranker)(**ranker.get_params()).fit(queries)
    np.testing.assert_allclose(fit_blocks(ranker, queries).coef_, alone.coef_, rtol=1e-9)
    fit_blocks(ranker, parts)
    of = query_factors if ranker.scaled_within_queries else factors
    multiplier = of(queries, "none" if ranker.scaling == "list" else ranker.scaling)
    total, count = np.zeros(6), 0
    for part in parts[:-1]:  # the last has no pairs
        plain = type(ranker)(**ranker.get_params() | ({} if ranker.scaling == "list" else {"scaling": "none"}))
        scaled = part.with_features(part.features.astype(np.float64) * multiplier)
        total += part.n_queries * plain.fit(scaled).coef_ * multiplier
        count += part.n_queries
    np.testing.assert_allclose(ranker.coef_, total / count, rtol=1e-6)
    with pytest.raises(ParameterError, match="means over blocks"):
        ranker.partial_fit(queries)
    np.testing.assert_array_equal(ranker.fit(queries).coef_, alone.coef_)
    ranker.partial_fit(queries)


def test_what_blocks_cannot_be_used_for_is_refused() -> None:
    parts, queries = parts_of(7)
    with pytest.raises(ParameterError, match=r"BestFeature\(\) needs all documents at once"):
        fit_blocks(BestFeature(), parts)
    with pytest.raises(ParameterError, match="CoordinateDescent looks at one feature of all documents"):
        fit_blocks(DominationRank(), parts)
    with pytest.raises(IncompatibleParts, match="one feature of all documents"):
        fit_blocks(Ranker("domination", None, "l2", "coordinate_descent"), parts)
    with pytest.raises(IncompatibleParts, match="DominationLoss looks at all documents"):
        fit_blocks(Ranker("domination", None, "l2", "lbfgs"), parts)
    with pytest.raises(ParameterError, match="C=-1"):
        fit_blocks(RankSVM(C=-1), parts)
    with pytest.raises(ParameterError, match="monotone"):
        fit_blocks(RankSVM(), [queries.constrained([1, 0, 0, 0, 0, 0])])
    with pytest.raises(DataError, match="6, 7 features"):
        fit_blocks(RankSVM(), [queries, parts_of(0, n_features=7)[1]])
    with pytest.raises(DataError, match="NaN"):
        fit_blocks(RankSVM(), Queries.from_arrays([[np.nan], [1.0]], [0, 1]))
    with pytest.raises(DataError, match="no query has two documents"):
        fit_blocks(RankSVM(), parts[-1])
    with pytest.raises(DataError, match="at least one"):
        fit_blocks(RankSVM(), [])


def test_many_stored_documents_are_divided_by_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, queries = parts_of(10)
    write_queries(queries, tmp_path / "q")
    stored = read_queries(tmp_path / "q")
    whole = RankSVM(tol=1e-9).fit(stored)
    monkeypatch.setattr(blocked, "MAX_WHOLE_ROWS", 100)
    monkeypatch.setattr("ranktune.solvers.data.blocked.LocalBlocks", lambda: LocalBlocks(100))
    assert blocked.is_better_divided(stored) and not blocked.is_better_divided(queries)
    assert blocked.is_better_divided(stored.select(np.arange(100)))
    divided = RankSVM(tol=1e-9).fit(stored)
    assert not np.array_equal(divided.coef_, whole.coef_)  # sums of other parts
    np.testing.assert_allclose(divided.coef_, whole.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="/proc says what memory is anonymous")
def test_memory_does_not_grow_with_the_data(tmp_path: Path) -> None:
    """A twentieth of 12 million documents: the features take 330 MB, of which few are in memory besides the file."""
    folder = write_large(tmp_path / "q")
    setup = "from ranktune.solvers.optimizers.rank_svm import sampling\nsampling.MAX_SAMPLE_BYTES = 2**21"
    taken = [peak - before for before, peak in (peak_memory(folder, "RankSVM()", times, setup) for times in (2, 6))]
    assert max(taken) < 60 << 20
    assert taken[1] < taken[0] + (10 << 20)
