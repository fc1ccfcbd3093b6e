"""Fitting a ranker to data in blocks, which lie on disk, or on the workers of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ranktune.solvers.abilities import MONOTONE, VERBS
from ranktune.solvers.base.ranker import BaseRanker
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.blocked import (
    BlockedQueries,
    BlockWorkers,
    Extent,
    LocalBlocks,
    OpenBlock,
    Source,
    extent_of,
    total_extent,
)
from ranktune.solvers.data.columns.table import COLUMNS
from ranktune.solvers.data.queries import Queries

R = TypeVar("R", bound=BaseRanker)


def fit_blocks(ranker: R, data: Source | Sequence[Source], workers: BlockWorkers | None = None) -> R:
    """Fit a ranker to data in blocks of whole queries, which need not fit in memory, nor on one machine.

    RankSVM and the other linear rankers that minimise one function of all queries (ridge, logistic and support vector
    regression, ListNet, LambdaRank, Ranker with such an optimizer) find what `fit` finds on all documents, to their
    tolerance: losses, gradients and products with the Hessian are added up over the blocks at each step, and of ridge
    regression the normal equations, once. Rankers that learn query by query learn from each block by itself, and their
    weights are averaged, by the number of queries (parameter mixing). LambdaMART, GBDTRanker and RandomForestRanker
    put one block after the other into bins, a byte a value, and grow what `fit` grows from such bins.

    Parameters
    ----------
    ranker : BaseRanker
        A ranker of these kinds. It is fitted in place.
    data : Queries, path, or sequence of them
        The blocks: Queries, or folders of stored ones, or their places in a bucket, s3://BUCKET/PREFIX, which each
        worker downloads once into its cache. In this process a large block is divided further.
    workers : BlockWorkers or None, default=None
        Who computes: None for this process, one block after the other, with memory that does not grow with the data;
        or an object with the methods of `ranktune.solvers.data.blocked.BlockWorkers`. Trees grow in this process
        alone.

    Returns
    -------
    BaseRanker
        The ranker.

    Raises
    ------
    ParameterError
        If the ranker needs all documents at once, or a parameter is not valid.
    DataError
        If blocks differ in their features, values are missing, or no query has two different grades.

    References
    ----------
    McDonald, Hall & Mann 2010, "Distributed training strategies for the structured perceptron", NAACL (mixing).

    Examples
    --------
    >>> import numpy as np
    >>> from ranktune.solvers import Queries, RankSVM, fit_blocks
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> blocks = [Queries.from_arrays(part, part[:, 0] > 0, group=[10, 10]) for part in np.split(X, 3)]
    >>> ranker = fit_blocks(RankSVM(tol=1e-8), blocks)
    >>> whole = RankSVM(tol=1e-8).fit(X, X[:, 0] > 0, group=[10] * 6)
    >>> bool(np.allclose(ranker.coef_, whole.coef_))
    True
    """
    ranker.check_parameters()
    workers = LocalBlocks() if workers is None else workers
    workers.open([data] if isinstance(data, Queries | str | Path) else list(data))
    extent = _checked(ranker, workers.map(_overview))
    ranker.n_features_in_, ranker.imputation_, ranker.monotone_ = extent.n_features, None, None
    ranker._one_query = None
    ranker._fit_blocks(BlockedQueries(workers, extent))
    return ranker


@dataclass(frozen=True)
class _Overview:
    """What is checked of a block; special are the names of the weights and constraints that it has."""

    extent: Extent
    has_pairs: bool
    has_missing: bool
    special: frozenset[str]


def _overview(block: OpenBlock) -> _Overview:
    queries = block.queries
    special = frozenset(COLUMNS[name].needs for name in queries.columns) & VERBS.keys()
    return _Overview(extent_of(queries), queries.has_pairs, queries.has_missing, special)


def _checked(ranker: BaseRanker, blocks: Sequence[_Overview]) -> Extent:
    """Return the size of all blocks. Raises DataError or ParameterError where the ranker cannot learn from them."""
    if not blocks:
        raise DataError("there are no blocks: give at least one.")
    widths = [block.extent.n_features for block in blocks]
    if len(set(widths)) > 1:
        raise DataError(
            f"the blocks have {', '.join(map(str, sorted(set(widths))))} features: they must describe documents by the "
            "same features."
        )
    if any(block.has_missing for block in blocks) and not ranker.takes_missing:
        raise DataError(
            "features are missing (NaN), and medians of data in blocks are not known: fill them in before the data are "
            "stored, or fit to all documents at once."
        )
    if not any(block.has_pairs for block in blocks):
        raise DataError("there is nothing to learn: no query has two documents of different grades.")
    special = ranker.supports(ranker.get_params()) - {MONOTONE}
    for name in sorted(frozenset().union(*(block.special for block in blocks)) - special):
        raise ParameterError(f"{ranker!r} cannot {VERBS[name]} of data in blocks: leave {name} out.")
    return total_extent([block.extent for block in blocks])
