"""The configurations that learn together: those of ElasticRank from the same lists, of SOLAR1 from the same pairs."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from ranktune.solvers.core.arrays import Array, Floats, Matrix, as_ints
from ranktune.solvers.data.grades import number_grades
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.rows import rows_of
from ranktune.solvers.data.scaling import SCALINGS, factors, query_factors
from ranktune.solvers.joint import list_kernels, pair_kernels
from ranktune.solvers.joint.base import Learners
from ranktune.solvers.joint.list_kernels import Grades, JointRates, JointState, losses_of
from ranktune.solvers.joint.pair_kernels import Pairs
from ranktune.solvers.linear.presets import ElasticRank
from ranktune.solvers.losses.pairwise import PairwiseLoss
from ranktune.solvers.online.base import LARGEST_FACTOR
from ranktune.solvers.online.pairs import listed_pairs, lists_of
from ranktune.solvers.online.solar import SOLAR1
from ranktune.solvers.optimizers.one_pass import OnePassOptimizer


class ListLearners(Learners[ElasticRank]):
    """ElasticRank with the optimizer fobos, the schedule adagrad and any loss, weight and penalty."""

    @staticmethod
    def takes(ranker: object) -> bool:
        """Return whether ranker can be one of them."""
        return (
            type(ranker) is ElasticRank
            and (ranker.optimizer, ranker.schedule) == ("fobos", "adagrad")
            and ranker.scaling != "list"
        )

    @staticmethod
    def scales_of(sample: Queries) -> dict[str, Floats]:
        """Return the factor of each feature, by the name of the scaling, as a ranker alone takes it from sample."""
        return {scaling: query_factors(sample, scaling) for scaling in SCALINGS}

    @staticmethod
    def _zeros(n_features: int) -> dict[str, Array]:
        vector, squares = np.zeros((2, n_features, 0))
        seen, lists = np.zeros(n_features, dtype=np.int64), np.zeros(1, dtype=np.int64)
        return {"vector": vector, "squares": squares, "seen": seen, "lists": lists}

    def _arranged(self) -> None:
        parts = [ranker._parts() for ranker in self.rankers]
        rates = [float(cast(OnePassOptimizer, part.optimizer).schedule.eta0) for part in parts]
        l1, l2 = np.array([part.penalty.strengths for part in parts]).T.copy()
        self._rules = JointRates(np.array(rates), l1, l2)
        self._multiplier = np.column_stack([self.scales[ranker.scaling] for ranker in self.rankers])
        self._losses = [cast(PairwiseLoss, part.loss) for part in parts]

    def learn(self, queries: Queries) -> Matrix:
        """Learn from queries; return the scores before each list was learned from, (n_documents, m)."""
        before = np.empty((queries.n_documents, len(self.rankers)), self.dtype)
        codes, n_grades = number_grades(queries.grades, queries.starts)
        grades = Grades(as_ints(queries.starts), codes, as_ints(n_grades))
        losses, state = losses_of(self._losses, queries), JointState(**self.state)
        list_kernels.learn(rows_of(queries.features), grades, losses, self._rules, self._multiplier, state, before)
        return before

    def weights(self) -> Floats:
        """Return the weights of the raw features as they are now, (n_features, m)."""
        list_kernels.catch_all_up(self._rules, JointState(**self.state))
        return np.asarray(self._multiplier * self.state["vector"])


class PairLearners(Learners[SOLAR1]):
    """SOLAR1 of one scaling, number of pairs and order; C differs."""

    @staticmethod
    def takes(ranker: object) -> bool:
        """Return whether ranker can be one of them."""
        return type(ranker) is SOLAR1

    @staticmethod
    def scales_of(sample: Queries) -> dict[str, Floats]:
        """Return the factor of each feature, by the name of the scaling, as a ranker alone takes it from sample."""
        by_scaling = {scaling: factors(sample, scaling) for scaling in SCALINGS}
        return {scaling: np.where(scale < LARGEST_FACTOR, scale, 0.0) for scaling, scale in by_scaling.items()}

    @staticmethod
    def shared(ranker: SOLAR1) -> tuple[object, ...]:
        """Return what all rankers of a group have in common: what decides the pairs and the Gram matrix."""
        return ranker.scaling, ranker.pairs_per_query, ranker.pair_order

    @staticmethod
    def _zeros(n_features: int) -> dict[str, Array]:
        return {"weights": np.zeros((n_features, 0)), "drawn": np.zeros(1, dtype=np.int64)}

    def _arranged(self) -> None:
        self._extra = np.array([0.5 / ranker.C for ranker in self.rankers])
        self._stretch = self.scales[self.rankers[0].scaling] ** 2

    def learn(self, queries: Queries) -> Matrix:
        """Learn from queries; return the scores before each list was learned from, (n_documents, m)."""
        before = np.empty((queries.n_documents, len(self.rankers)), self.dtype)
        given = (as_ints(queries.starts), self._pairs(queries), self._extra, self._stretch, self.state["weights"])
        pair_kernels.learn(rows_of(queries.features), *given, before)
        return before

    def _pairs(self, queries: Queries) -> Pairs:
        """Return the pairs of queries, in the order in which a ranker alone visits them."""
        ranker = self.rankers[0]
        lists = lists_of(queries, ranker.pair_order, ranker.pairs_per_query)
        # A number takes one step of the generator, so that how many were drawn says where it stands.
        generator = np.random.Generator(np.random.PCG64(0).advance(int(self.state["drawn"][0])))
        drawn = (0 < lists.limit) & (lists.pairs > lists.limit)
        self.state["drawn"] += lists.limit * int(np.count_nonzero(drawn))
        listed = list(listed_pairs(lists, np.arange(queries.n_queries), generator))
        better, worse, weights = (np.concatenate(part) for part in zip(*listed, strict=True))
        counts = np.where(drawn, lists.limit, lists.pairs)
        return Pairs(better, worse, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), weights)

    def weights(self) -> Floats:
        """Return the weights of the raw features as they are now, (n_features, m)."""
        return self.state["weights"].copy()


FAMILIES: tuple[type[Learners[Any]], ...] = (ListLearners, PairLearners)
