"""Clusters for the tests of a session: their start takes seconds."""

from collections.abc import Iterator

import pytest

from tests.support.clusters import RAY_ENVIRONMENT, DaskCluster, RayCluster


@pytest.fixture(scope="session")
def dask_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    """A scheduler with two workers, or a skip where Dask is not here."""
    pytest.importorskip("distributed", reason="distributed is not here: pip install 'ranktune[dask]'")
    cluster = DaskCluster(tmp_path_factory.mktemp("dask"))
    try:
        assert cluster.address, "the scheduler does not start"
        for _ in range(2):
            cluster.worker("--no-nanny")
        yield cluster
    finally:
        cluster.end()


@pytest.fixture(scope="session")
def ray_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayCluster]:
    """A head node of two processors, or a skip where Ray is not here. This process gets its token."""
    with pytest.MonkeyPatch.context() as patched:
        for name, value in RAY_ENVIRONMENT.items():
            patched.setenv(name, value)
        ray = pytest.importorskip("ray", reason="ray is not here: pip install 'ranktune[ray]'")
        cluster = RayCluster(tmp_path_factory.mktemp("ray"), cpus=2)
        try:
            assert cluster.address, "Ray does not start"
            yield cluster
        finally:
            ray.shutdown()
            cluster.end()
