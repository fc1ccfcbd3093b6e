"""Learning from blocks finds what learning from all documents finds, whatever is kept or lost between calls. Rankers
that minimise one function of all queries: on blocks the same weights as on all documents. Blocks in a bucket:
downloaded once, checked, and as good as folders."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktune.solvers import (
    L2,
    PAMIR,
    SOLAR1,
    BestFeature,
    DominationRank,
    LambdaRank,
    ListNet,
    LogisticRanker,
    Newton,
    PairwiseSquaredHinge,
    Queries,
    Ranker,
    RankSVM,
    RidgeRanker,
    SVRRanker,
    fit_blocks,
)
from ranktune.solvers.core.errors import DataError, IncompatibleParts, ParameterError
from ranktune.solvers.data import blocked
from ranktune.solvers.data import blocked as buckets
from ranktune.solvers.data.blocked import LocalBlocks, factors_of_blocks
from ranktune.solvers.data.disk.stored import read_queries, write_queries
from ranktune.solvers.data.scaling import factors, query_factors
from ranktune.solvers.linear.presets import ElasticRank
from ranktune.solvers.optimizers import least_squares
from ranktune.solvers.optimizers.rank_svm import sampling
from tests.support.anonymous_memory import peak_memory, write_large
from tests.support.blocks import Keeping, parts_of
from tests.support.buckets import put, s3_bucket

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


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="/proc says what memory is anonymous")
def test_memory_does_not_grow_with_the_data(tmp_path: Path) -> None:
    """A twentieth of 12 million documents: the features take 330 MB, of which few are in memory besides the file."""
    folder = write_large(tmp_path / "q")
    setup = "from ranktune.solvers.optimizers.rank_svm import sampling\nsampling.MAX_SAMPLE_BYTES = 2**21"
    taken = [peak - before for before, peak in (peak_memory(folder, "RankSVM()", times, setup) for times in (2, 6))]
    assert max(taken) < 60 << 20
    assert taken[1] < taken[0] + (10 << 20)


POINTWISE: list[Any] = [
    RidgeRanker(10.0),
    RidgeRanker(10.0, centre="none"),
    LogisticRanker(0.1, tol=1e-9),
    LogisticRanker(0.1, centre="none", gain="exponential", tol=1e-9),
    SVRRanker(0.01, tol=1e-9),
    SVRRanker(0.01, loss="l1", epsilon=0.2, centre="none", tol=1e-7),
]
LISTWISE: list[Any] = [
    ListNet(l1=0.0, tol=1e-9),
    ListNet(tol=1e-9, gain="exp2", temperature=2.0, scaling="minmax"),
    LambdaRank(iterations=20),
    LambdaRank(iterations=20, at=None, gain="linear"),
    Ranker("pairwise_logistic", "uniform", "elastic_net", "fista", l1=1e-3),
    Ranker("pairwise_squared_hinge", "uniform", "l2", "lbfgs", scaling="none"),
    Ranker("pairwise_hinge", "recall", "l1", "gradient_steps", iterations=15, l1=1e-3),
    Ranker("pointwise_logistic", None, "elastic_net", "owlqn", l1=1e-3),
    Ranker("pointwise_squared", None, "l2", "newton"),
    Ranker("pairwise_squared_hinge", "uniform", "l2", Newton(tol=1e-10)),
    Ranker(PairwiseSquaredHinge(average="none"), None, L2(10.0), Newton(tol=1e-10)),
    Ranker("pairwise_hinge", "uniform", "l2", Newton(tol=1e-7)),
]


def check_alike(ranker: Any, parts: list[Queries], queries: Queries, *, near: float = 1e-6) -> None:
    """Fit to all documents and to blocks, whatever is kept of these, and compare."""
    whole = type(ranker)(**ranker.get_params()).fit(queries)
    scale = np.abs(whole.coef_).max()
    for workers in (LocalBlocks(max_rows=200), Keeping(), Keeping(0.5)):
        result = fit_blocks(type(ranker)(**ranker.get_params()), parts, workers)
        np.testing.assert_allclose(result.coef_, whole.coef_, rtol=0.0, atol=near * scale)
        if hasattr(whole, "objective_"):
            assert result.objective_ == pytest.approx(whole.objective_, rel=1e-6 if near > 1e-6 else 1e-8)
            assert result.converged_ == whole.converged_


@pytest.mark.parametrize("kind", ["dense", "sparse", "weighted", "documents"])
@pytest.mark.parametrize("ranker", POINTWISE, ids=repr)
def test_pointwise_rankers_find_the_weights_of_all_documents(ranker: Any, kind: str) -> None:
    check_alike(ranker, *parts_of(0, kind=kind))


@pytest.mark.parametrize("kind", ["dense", "sparse", "weighted", "documents"])
@pytest.mark.parametrize("ranker", LISTWISE, ids=repr)
def test_other_rankers_find_the_weights_of_all_documents(ranker: Any, kind: str) -> None:
    if kind == "weighted" and "query_weights" not in ranker.supports(ranker.get_params()):
        pytest.skip("it cannot weigh queries")
    by_gap = ranker.get_params().get("loss") == "pairwise_hinge"
    # A gap of t: the objective within t, weights within some roots of it, by the rounding of the processor too.
    check_alike(ranker, *parts_of(1, kind=kind), near=1e-2 if by_gap else 1e-6)


@pytest.mark.parametrize("ranker", [LogisticRanker(0.1, tol=1e-9), SVRRanker(0.01, tol=1e-9), LambdaRank(iterations=9)])
def test_conventions_follow_the_grades_of_all_blocks(ranker: Any) -> None:
    """One block lacks the highest and the lowest grade, and one alone has grades with a fraction."""
    parts, queries = parts_of(2)
    changed = queries.grades.copy()
    first = parts[0].n_documents
    changed[:first] = np.clip(changed[:first], 1.0, 3.0)
    changed[first:] -= 0.5
    queries = replace(queries, grades=changed)
    parts = [queries.select(np.arange(a, b)) for a, b in ((0, 40), (40, 119), (119, 120))]
    check_alike(ranker, parts, queries)


@pytest.mark.parametrize("centre", ["query", "none"])
def test_ridge_on_many_features_sums_products_of_blocks(centre: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(least_squares, "MAX_DENSE_FEATURES", 3)
    for kind in ("dense", "sparse", "documents"):
        check_alike(RidgeRanker(10.0, centre=centre), *parts_of(3, kind=kind))


@pytest.mark.parametrize("ranker", [RidgeRanker(), LogisticRanker(), SVRRanker(loss="l1")])
def test_many_stored_documents_are_divided_by_fit(ranker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, queries = parts_of(4)
    write_queries(queries, tmp_path / "q")
    whole = ranker.fit(queries).coef_
    monkeypatch.setattr(blocked, "MAX_WHOLE_ROWS", 100)
    monkeypatch.setattr("ranktune.solvers.data.blocked.LocalBlocks", lambda: LocalBlocks(100))
    divided = ranker.fit(read_queries(tmp_path / "q")).coef_
    assert not np.array_equal(divided, whole)  # sums of other parts
    np.testing.assert_allclose(divided, whole, rtol=1e-6, atol=1e-6 * np.abs(whole).max())
    for _value, path in ranker.fit_path(read_queries(tmp_path / "q"), [ranker.get_params()[ranker.path_parameter]]):
        np.testing.assert_allclose(path.coef_, divided, rtol=1e-6, atol=1e-6 * np.abs(whole).max())


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    monkeypatch.setenv("RANKTUNE_CACHE", str(tmp_path / "cache"))
    with s3_bucket(monkeypatch, "data") as url:
        yield url


def upload(folder: Path, prefix: str) -> None:
    for file in folder.iterdir():
        put(f"data/{prefix}/{file.name}", file.read_bytes())


def test_blocks_in_a_bucket_are_those_of_folders(bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts, _ = parts_of(0)
    for number, part in enumerate(parts):
        write_queries(part, tmp_path / str(number))
        upload(tmp_path / str(number), f"train/{number}")
    urls = [f"{bucket}/train/{number}" for number in range(len(parts))]
    here = fit_blocks(RidgeRanker(), [tmp_path / str(number) for number in range(len(parts))])
    np.testing.assert_array_equal(fit_blocks(RidgeRanker(), urls).coef_, here.coef_)
    with monkeypatch.context() as patched:
        patched.setattr(buckets, "_download", lambda *_: pytest.fail("it is in the cache"))
        np.testing.assert_array_equal(fit_blocks(RidgeRanker(), urls).coef_, here.coef_)
    others, _ = parts_of(1)  # in place of the first block
    write_queries(others[0], tmp_path / "0")
    upload(tmp_path / "0", "train/0")
    changed = fit_blocks(RidgeRanker(), [others[0], *parts[1:]]).coef_
    np.testing.assert_array_equal(fit_blocks(RidgeRanker(), urls).coef_, changed)


def test_damage_is_noticed_and_not_kept(bucket: str, tmp_path: Path) -> None:
    parts, _ = parts_of(2)
    write_queries(parts[0], tmp_path / "q")
    content = bytearray((tmp_path / "q" / "features.npy").read_bytes())
    content[-3] ^= 1
    (tmp_path / "q" / "features.npy").write_bytes(content)
    upload(tmp_path / "q", "q")
    for _ in range(2):
        with pytest.raises(DataError, match=r"features\.npy"):
            fit_blocks(RidgeRanker(), f"{bucket}/q")
    assert list((tmp_path / "cache" / "blocks").iterdir()) == []


def test_errors_say_what_is_wrong(bucket: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"s3://data/none: there is nothing"):
        fit_blocks(RidgeRanker(), f"{bucket}/none")
    with pytest.raises(DataError, match=r"s3://elsewhere/q.*Are bucket"):
        fit_blocks(RidgeRanker(), "s3://elsewhere/q")
    with pytest.raises(ParameterError, match="s3://BUCKET/PREFIX"):
        fit_blocks(RidgeRanker(), bucket)
    put("data/deep/more/x")
    with pytest.raises(DataError, match="no file of a stored data set"):
        fit_blocks(RidgeRanker(), f"{bucket}/deep")
