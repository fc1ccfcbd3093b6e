"""Divisions of queries forward in time: what is fitted to lies before what is scored, by more than a gap.

The time of a query is the latest of its documents': it can be ranked only once all of them exist, and its grades are
known no earlier. Queries of one time stay together. The gap stands for the time until grades are known.
"""

from __future__ import annotations

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.grades import with_pairs
from ranktune.solvers.data.queries import Queries
from ranktune.tuner.splits.digests import distinct
from ranktune.tuner.splits.plans import Fold, query_folds


def blocks(queries: Queries, count: int, gap: float = 0.0) -> tuple[Fold, ...]:
    """Return about that many blocks of time to score, the earliest first, each with all queries before it to fit.

    All but the earliest, for which there are none to fit, have n_queries // count queries but for ties, as the folds of
    scikit-learn's TimeSeriesSplit. There are fewer blocks where there are fewer times. Queries that are again in a
    block (same documents and grades) are not fitted.
    """
    times = queries.time_of_query
    size = max(len(times) // count, 1)
    places = len(times) - size * np.arange(min(count, -(-len(times) // size)) - 1, 0, -1)
    first = np.unique(np.append(np.sort(times)[places], times.min()))
    content = distinct(queries)
    ends = np.append(first[1:], np.inf)
    return tuple(_block(times, content, a, b, gap) for a, b in zip(first, ends, strict=True))


def forward_folds(queries: Queries, folds: int, gap: float = 0.0, *, exactly: bool = False) -> tuple[Fold, ...]:
    """Return folds forward in time whose training queries are expanding windows.

    Those that leave nothing to learn from are left out, or with exactly are an error. Raises DataError.
    """
    pairs = with_pairs(queries)
    made = tuple(fold for fold in blocks(queries, folds + 1, gap)[1:] if pairs[fold.train].any())
    if not made or (exactly and len(made) < folds):
        times = len(np.unique(queries.time_of_query))
        raise DataError(
            f"{queries.n_queries} queries of {times} different times give {len(made)} of {folds} folds forward in "
            "time that have queries to learn from before the gap. Give queries of a longer time, fewer folds or a "
            "smaller gap."
        )
    return made


def forward_or_dealt(queries: Queries, folds: int, seed: int, stream: int) -> tuple[Fold, ...]:
    """Return folds without a gap: forward in time, and at random where no times are known, or a single one.

    Forward, no fold scores the earliest queries.
    """
    forward = () if queries.times is None else blocks(queries, folds + 1)[1:]
    return forward or query_folds(queries, folds, seed, stream=stream)


def before(queries: Queries, fold: Fold, gap: float) -> Fold:
    """Return a fold without the training queries that are not before those to score, or are equal to one of them."""
    times, content = queries.time_of_query, distinct(queries)
    earlier = (times < times[fold.vali].min() - gap) & ~np.isin(content, content[fold.vali])
    return Fold(fold.train[earlier[fold.train]], fold.vali)


def latest(times: Floats, share: float, gap: float = 0.0) -> Fold:
    """Return the latest share of queries of these times, (n_queries,), to score, and those before them to fit."""
    place = len(times) - max(int(share * len(times)), 1)
    start = np.sort(times)[place]
    return Fold(np.flatnonzero(times < start - gap), np.flatnonzero(times >= start))


def true_order(queries: Queries) -> Ints:
    """Return the queries in the order of their times, those of one time as they are."""
    return np.argsort(queries.time_of_query, kind="stable")


def _block(times: Floats, content: Ints, start: float, end: float, gap: float) -> Fold:
    vali = np.flatnonzero((times >= start) & (times < end))
    return Fold(np.flatnonzero((times < start - gap) & ~np.isin(content, content[vali])), vali)
