"""Rankers that go through all queries several times, and are those of fewer passes on the way."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from ranktune.solvers.base.ranker import LinearRanker, Step
from ranktune.solvers.core.arrays import Ints
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.data.queries import Queries


class PassRanker(LinearRanker):
    """A linear ranker that learns in passes; a subclass says how each goes."""

    passes: int

    def _passes(self, queries: Queries) -> Iterator[Iterator[Step]]:
        """Yield the steps of each pass, to be taken before the next."""
        raise NotImplementedError

    def _steps(self, queries: Queries) -> Iterator[Step]:
        for steps in self._passes(queries):
            yield from steps

    def _counts(self, queries: Queries) -> Iterator[int]:
        for number, steps in enumerate(self._passes(queries), start=1):
            for _ in steps:
                pass
            yield number


def orders(n_queries: int, passes: int, generator: np.random.Generator | None) -> Iterator[Ints]:
    """Yield the order of the lists in each pass: drawn from generator, or as given."""
    for _ in range(passes):
        yield np.arange(n_queries) if generator is None else generator.permutation(n_queries)


def checked_order(queries: Queries, order: Any) -> Ints:
    """Return the numbers of the queries to visit, all of them for None. Raises ParameterError for other numbers."""
    if order is None:
        return np.arange(queries.n_queries)
    numbers = np.asarray(order)
    if numbers.ndim == 1 and (numbers.dtype.kind in "iu" or len(numbers) == 0):
        numbers = numbers.astype(np.int64)
        with contextlib.suppress(ValueError):  # no queries at all
            if 0 <= numbers.min() and numbers.max() < queries.n_queries:
                return numbers
    raise ParameterError(
        f"order={order!r}: it must name at least one query by its number, whole from 0 to {queries.n_queries - 1}."
    )
