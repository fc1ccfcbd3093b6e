"""Configurations of SOLAR1 that learn from the same pairs at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ranktune.solvers.core.arrays import Array, Floats, Ints, as_ints
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.rows import rows_of
from ranktune.solvers.data.scaling import SCALINGS, factors
from ranktune.solvers.joint import pair_kernels as kernels
from ranktune.solvers.joint.base import Learners
from ranktune.solvers.joint.pair_kernels import Pairs
from ranktune.solvers.online.base import LARGEST_FACTOR
from ranktune.solvers.online.pairs import listed_pairs, lists_of
from ranktune.solvers.online.solar import SOLAR1


class PairLearners(Learners[SOLAR1]):
    """SOLAR1 of one scaling, number of pairs and order; C differs."""

    @staticmethod
    def takes(ranker: object) -> bool:
        """Return whether ranker can be one of them."""
        return type(ranker) is SOLAR1

    @staticmethod
    def shared(ranker: SOLAR1) -> tuple[object, ...]:
        """Return what all rankers of a group have in common: what decides the pairs and the Gram matrix."""
        return ranker.scaling, ranker.pairs_per_query, ranker.pair_order

    def _begin(self, rankers: Sequence[SOLAR1], queries: Queries) -> None:
        self._generator, self._drawn = np.random.default_rng(0), 0
        self._weights = np.zeros((queries.n_features, len(rankers)))

    def _arranged(self) -> None:
        self._extra = np.array([0.5 / ranker.C for ranker in self.rankers])
        self._stretch = self.scales[self.rankers[0].scaling] ** 2

    def learn(self, queries: Queries) -> Floats:
        """Learn from queries; return the scores before each list was learned from, (n_documents, m)."""
        before = np.empty((queries.n_documents, len(self.rankers)))
        given = (as_ints(queries.starts), self._pairs(queries), self._extra, self._stretch, self._weights, before)
        kernels.learn(rows_of(queries.features), *given)
        return before

    def _pairs(self, queries: Queries) -> Pairs:
        """Return the pairs of queries, in the order in which a ranker alone visits them."""
        ranker = self.rankers[0]
        lists = lists_of(queries, ranker.pair_order, ranker.pairs_per_query)
        drawn = (0 < lists.limit) & (lists.pairs > lists.limit)
        self._drawn += lists.limit * int(np.count_nonzero(drawn))
        listed = list(listed_pairs(lists, np.arange(queries.n_queries), self._generator))
        better, worse = (np.concatenate(part) for part in zip(*listed, strict=True))
        counts = np.where(drawn, lists.limit, lists.pairs)
        return Pairs(better, worse, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))

    @staticmethod
    def scales_of(sample: Queries) -> dict[str, Floats]:
        """Return the factor of each feature, by the name of the scaling, as a ranker alone takes it from sample."""
        found = {scaling: factors(sample, scaling) for scaling in SCALINGS}
        return {scaling: np.where(own < LARGEST_FACTOR, own, 0.0) for scaling, own in found.items()}

    def weights(self) -> Floats:
        """Return the weights of the raw features as they are now, (n_features, m)."""
        return self._weights.copy()

    def _choose(self, columns: Ints) -> None:
        self._weights = np.take(self._weights, columns, axis=1)

    def _append(self, count: int) -> None:
        self._weights = np.hstack([self._weights, np.zeros((len(self._weights), count))])

    def arrays(self) -> dict[str, Array]:
        """Return the state as arrays by name."""
        return {"weights": self._weights, "drawn": np.array([self._drawn])}

    def _restore(self, arrays: Mapping[str, Array]) -> None:
        self._weights, self._drawn = arrays["weights"], int(arrays["drawn"][0])
        self._generator = np.random.Generator(np.random.PCG64(0).advance(self._drawn))  # a number takes one step
