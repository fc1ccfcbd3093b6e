"""A node of a Ray cluster that dies as a whole changes nothing of a fit but its time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers import Queries, RankSVM, fit_blocks
from ranktune.solvers.data.disk.stored import write_queries
from tests.support.block_functions import KillingNode
from tests.support.clusters import RayCluster
from tests.support.process_samples import alive, soon

pytestmark = pytest.mark.thorough

N_BLOCKS = 6


def test_a_node_that_is_killed_changes_nothing(tmp_path: Path, ray_cluster: RayCluster) -> None:
    import ray

    from ranktune.tuner.workers.clusters.ray_blocks import RayBlocks

    generator = np.random.default_rng(0)
    X = generator.normal(size=(6_000, 10)).astype(np.float32)
    y = np.clip(np.round(X[:, 0] + generator.normal(size=len(X))), 0, 4)
    queries = Queries.from_arrays(X, y, group=[20] * 300)
    folders = [tmp_path / str(number) for number in range(N_BLOCKS)]
    for folder, part in zip(folders, np.split(np.arange(300), N_BLOCKS), strict=True):
        write_queries(queries.select(part), folder)
    here = fit_blocks(RankSVM(tol=1e-9), folders)
    node = ray_cluster.node(cpus=2)
    with RayBlocks(ray_cluster.address) as workers:
        assert soon(lambda: ray.cluster_resources().get("CPU") == N_BLOCKS)
        killing = KillingNode(workers, node, 5)  # its two actors find no other place
        found = fit_blocks(RankSVM(tol=1e-9), folders, killing)
        assert killing.killed and not any(alive(number) for number in killing.killed)
    np.testing.assert_array_equal(found.coef_, here.coef_)
