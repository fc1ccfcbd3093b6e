"""LightGBM's own distributed learner on the workers of a Dask cluster, for data in blocks.

Every worker bins the blocks that it reads, and sends histograms to the others. What is fitted becomes a model of trees
like any other.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ranktune.solvers.blocks.workers import Source, opened
from ranktune.solvers.boosting.lightgbm_growth import trees_of
from ranktune.solvers.core.arrays import Array
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.tuner.workers.clusters.block_host import folders_of
from ranktune.tuner.workers.clusters.dask_executor import connect

QUIET = {"verbosity": -1, "n_jobs": 1}


def fit_lightgbm(address: str, sources: Sequence[Source], parameters: Mapping[str, Any] | None = None) -> TreeModel:
    """Fit LightGBM's LambdaMART to blocks on the workers of a Dask cluster.

    Parameters
    ----------
    address : str
        Address of the scheduler: "tcp://HOST:8786".
    sources : sequence of path
        Folders of stored queries that all workers see, or s3://BUCKET/PREFIX of their files; at least one a worker
        that is to take part.
    parameters : mapping or None, default=None
        Parameters of `lightgbm.DaskLGBMRanker`, such as n_estimators and num_leaves.

    Returns
    -------
    TreeModel

    Raises
    ------
    StudyError
        If no scheduler answers there.
    """
    import dask.array
    from dask import delayed
    from lightgbm import DaskLGBMRanker

    folders, given = folders_of(sources), {**QUIET, **(parameters or {})}
    client = connect(address)
    try:
        sizes = client.gather(client.map(_sizes, folders, pure=False))
        read = [[delayed(_part)(folder, name) for folder in folders] for name in ("features", "grades", "lengths")]
        dtype, n_features = sizes[0][0], sizes[0][2]

        def joined(parts: list[Any], lengths: list[int], kind: Any, width: tuple[int, ...] = ()) -> Any:
            arrays = [
                dask.array.from_delayed(part, (length, *width), dtype=kind)
                for part, length in zip(parts, lengths, strict=True)
            ]
            return dask.array.concatenate(arrays)

        rows, queries = [size[1] for size in sizes], [size[3] for size in sizes]
        X = joined(read[0], rows, dtype, (n_features,))
        with client.as_current(), warnings.catch_warnings():  # about parameters that it takes from Dask
            warnings.simplefilter("ignore", UserWarning)
            ranker = DaskLGBMRanker(client=client, **given).fit(
                X, joined(read[1], rows, np.float64), group=joined(read[2], queries, np.int64)
            )
        text = ranker.booster_.model_to_string()
    finally:
        client.close()
    trees = trees_of(text, has_missing=any(size[4] for size in sizes))
    return TreeModel(trees, n_features, solver="LightGBM", parameters=dict(parameters or {}))


def _sizes(folder: str) -> tuple[str, int, int, int, bool]:
    """Return of a block the type of its features, documents, features, queries, and whether values are missing."""
    queries = opened(folder)
    return str(queries.features.dtype), queries.n_documents, queries.n_features, queries.n_queries, queries.has_missing


def _part(folder: str, name: str) -> Array:
    """Return an array of a block, in memory."""
    return np.array(getattr(opened(folder), name))
