"""RankSVM on blocks that lie on the workers of a cluster: the optimum of one process, whoever dies meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktune.solvers import (
    ElasticRank,
    ListNet,
    LogisticRanker,
    Queries,
    RankSVM,
    RidgeRanker,
    fit_blocks,
    parse_metric,
)
from ranktune.solvers.blocks.workers import LocalBlocks
from ranktune.solvers.core.errors import DataError, ParameterError, StudyError
from ranktune.solvers.data.disk.stored import write_queries
from tests.support.block_functions import Killing, pid
from tests.support.clusters import DaskCluster, RayCluster
from tests.support.process_samples import alive, soon

pytestmark = pytest.mark.thorough

N_BLOCKS, N_WORKERS = 8, 4


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], Queries]:
    """Folders of eight blocks, and the queries of all."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(24_000, 30)).astype(np.float32) * np.geomspace(0.1, 10.0, 30).astype(np.float32)
    y = np.clip(np.round(X @ generator.normal(size=30) / 20.0 + generator.normal(size=len(X))), 0, 4)
    queries = Queries.from_arrays(X, y, group=[20] * 1200)
    home = tmp_path_factory.mktemp("blocks")
    for number, part in enumerate(np.split(np.arange(1200), N_BLOCKS)):
        write_queries(queries.select(part), home / str(number))
    return [home / str(number) for number in range(N_BLOCKS)], queries


@pytest.fixture(scope="module")
def dask_blocks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Four workers of Dask, each of at most 500 MB, which their nannies start again where they die."""
    pytest.importorskip("distributed", reason="distributed is not here: pip install 'ranktune[dask]'")
    from ranktune.tuner.workers.clusters.dask_blocks import DaskBlocks

    cluster = DaskCluster(tmp_path_factory.mktemp("dask"))
    try:
        cluster.worker("--nworkers", str(N_WORKERS), "--memory-limit", "500MB")
        with DaskBlocks(cluster.address) as workers:
            assert soon(lambda: len(workers._client.nthreads()) == N_WORKERS)
            yield workers
    finally:
        cluster.end()


@pytest.fixture(scope="module")
def ray_blocks(ray_cluster: RayCluster) -> Iterator[Any]:
    from ranktune.tuner.workers.clusters.ray_blocks import RayBlocks

    with RayBlocks(ray_cluster.address, actors=N_WORKERS) as workers:
        yield workers


@pytest.fixture(params=["dask", "ray"])
def workers(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(f"{request.param}_blocks")


@pytest.mark.parametrize("loss", ["l2", "l1"])
def test_the_optimum_is_that_of_one_process(loss: str, workers: Any, data: tuple[list[Path], Queries]) -> None:
    folders, queries = data
    tolerance = 1e-9 if loss == "l2" else 1e-7
    whole = RankSVM(loss=loss, tol=tolerance).fit(queries)
    found = fit_blocks(RankSVM(loss=loss, tol=tolerance), folders, workers)
    assert found.objective_ == pytest.approx(whole.objective_, rel=1e-6)
    near = 1e-6 if loss == "l2" else 1e-3  # a gap of t means weights within its root
    assert np.linalg.norm(found.coef_ - whole.coef_) <= near * np.linalg.norm(whole.coef_)
    here = fit_blocks(RankSVM(loss=loss, tol=tolerance), folders, LocalBlocks())
    np.testing.assert_array_equal(found.coef_, here.coef_)  # to the bit: sums are in the order of the blocks
    assert len(set(workers.map(pid))) == N_WORKERS


@pytest.mark.parametrize("ranker", [RidgeRanker(), LogisticRanker(tol=1e-8), ListNet(tol=1e-8)], ids=repr)
def test_sums_over_blocks_give_the_weights_of_one_process(
    ranker: Any, workers: Any, data: tuple[list[Path], Queries]
) -> None:
    folders, queries = data
    whole = type(ranker)(**ranker.get_params()).fit(queries)
    found = fit_blocks(type(ranker)(**ranker.get_params()), folders, workers)
    assert np.linalg.norm(found.coef_ - whole.coef_) <= 1e-6 * np.linalg.norm(whole.coef_)
    here = fit_blocks(type(ranker)(**ranker.get_params()), folders, LocalBlocks())
    np.testing.assert_array_equal(found.coef_, here.coef_)


@pytest.mark.parametrize("step", [1, 6])
def test_a_worker_that_is_killed_changes_nothing(step: int, workers: Any, data: tuple[list[Path], Queries]) -> None:
    folders, _ = data
    killing = Killing(workers, step)
    found = fit_blocks(RankSVM(tol=1e-9), folders, killing)
    assert len(killing.killed) == 1 and soon(lambda: not any(map(alive, killing.killed)))
    np.testing.assert_array_equal(found.coef_, fit_blocks(RankSVM(tol=1e-9), folders).coef_)


def test_rankers_that_learn_query_by_query_are_averaged(workers: Any, data: tuple[list[Path], Queries]) -> None:
    folders, _ = data
    found = fit_blocks(ElasticRank(), folders, workers)
    np.testing.assert_array_equal(found.coef_, fit_blocks(ElasticRank(), folders).coef_)


def test_workers_read_their_blocks_themselves_and_errors_travel(
    workers: Any, data: tuple[list[Path], Queries], tmp_path: Path
) -> None:
    _, queries = data
    with pytest.raises(ParameterError, match="block 0 is Queries"):
        fit_blocks(RankSVM(), [queries], workers)
    with pytest.raises(DataError, match="cannot be read"):
        fit_blocks(RankSVM(), [tmp_path / "none"], workers)


def test_an_address_without_a_cluster_is_said(monkeypatch: pytest.MonkeyPatch, ray_cluster: RayCluster) -> None:
    from ranktune.tuner.workers.clusters.dask_blocks import DaskBlocks

    monkeypatch.setattr("ranktune.tuner.workers.clusters.dask_executor.CONNECT_SECONDS", 0.5)
    with pytest.raises(StudyError, match="no Dask scheduler answers"):
        DaskBlocks("tcp://127.0.0.1:9")


def test_lightgbm_learns_from_blocks_on_dask(dask_blocks: Any, data: tuple[list[Path], Queries]) -> None:
    """Its model ranks about as well as that of one process, and is one of ours."""
    from lightgbm import LGBMRanker

    from ranktune.tuner.workers.clusters.dask_lightgbm import fit_lightgbm

    folders, queries = data
    parameters: dict[str, Any] = {"n_estimators": 20, "num_leaves": 15, "min_child_samples": 5}
    model = fit_lightgbm(dask_blocks._client.scheduler.address, folders, parameters)
    alone = LGBMRanker(**parameters, verbosity=-1).fit(queries.features, queries.grades, group=queries.lengths)
    metric = parse_metric("ndcg@10")
    expected = metric.mean(np.asarray(alone.predict(queries.features)), queries)
    assert metric.mean(model.predict(queries), queries) == pytest.approx(expected, abs=0.02)
