"""Rankers that go through all queries several times, and are those of fewer passes on the way."""

from __future__ import annotations

from collections.abc import Iterator

from ranktune.solvers.base.ranker import LinearRanker, Step
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
