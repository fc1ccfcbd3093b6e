"""Configurations of ElasticRank that learn from the same lists at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np

from ranktune.solvers.core.arrays import Array, Floats, Ints, as_ints
from ranktune.solvers.data.grades import number_grades
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.rows import rows_of
from ranktune.solvers.data.scaling import SCALINGS, query_factors
from ranktune.solvers.joint import list_kernels as kernels
from ranktune.solvers.joint.base import Learners
from ranktune.solvers.joint.list_kernels import Grades, Rules, State
from ranktune.solvers.joint.list_slopes import group_of, losses_of
from ranktune.solvers.linear.elastic_rank import ElasticRank
from ranktune.solvers.losses.pairwise import PairwiseLoss
from ranktune.solvers.optimizers.one_pass import FOBOS
from ranktune.solvers.optimizers.schedules import AdaGrad


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
    def _order(ranker: ElasticRank) -> object:
        return group_of(cast(PairwiseLoss, ranker._parts().loss))

    def _begin(self, rankers: Sequence[ElasticRank], queries: Queries) -> None:
        d, m = queries.n_features, len(rankers)
        self._seen, self._lists = np.zeros(d, dtype=np.int64), np.zeros(1, dtype=np.int64)
        self._vector, self._squares = np.zeros((2, d, m))

    def _arranged(self) -> None:
        parts = [ranker._parts() for ranker in self.rankers]
        schedules = [cast(AdaGrad, cast(FOBOS, part.optimizer).schedule) for part in parts]
        self._rules = Rules(
            np.array([float(own.eta0) for own in schedules]),
            np.array([part.penalty.strengths[0] for part in parts]),
            np.array([part.penalty.strengths[1] for part in parts]),
        )
        self._multiplier = np.column_stack([self.scales[ranker.scaling] for ranker in self.rankers])
        self._losses = [cast(PairwiseLoss, part.loss) for part in parts]

    def learn(self, queries: Queries) -> Floats:
        """Learn from queries; return the scores before each list was learned from, (n_documents, m)."""
        before = np.empty((queries.n_documents, len(self.rankers)))
        grades = Grades(as_ints(queries.starts), *number_grades(queries.grades, queries.starts))
        given = (grades, losses_of(self._losses, queries), self._rules, self._multiplier)
        state = State(self._vector, self._squares, self._seen, self._lists)
        kernels.learn(rows_of(queries.features), *given, state, before)
        return before

    @staticmethod
    def scales_of(sample: Queries) -> dict[str, Floats]:
        """Return the factor of each feature, by the name of the scaling, as a ranker alone takes it from sample."""
        return {scaling: query_factors(sample, scaling) for scaling in SCALINGS}

    def weights(self) -> Floats:
        """Return the weights of the raw features as they are now, (n_features, m)."""
        state = State(self._vector, self._squares, self._seen, self._lists)
        kernels.catch_all_up(self._rules, state)
        return np.asarray(self._multiplier * self._vector)

    def _choose(self, columns: Ints) -> None:
        self._vector, self._squares = (np.take(own, columns, axis=1) for own in (self._vector, self._squares))

    def _append(self, count: int) -> None:
        room = np.zeros((len(self._vector), count))
        self._vector, self._squares = np.hstack([self._vector, room]), np.hstack([self._squares, room])

    def arrays(self) -> dict[str, Array]:
        """Return the state as arrays by name."""
        return {"vector": self._vector, "squares": self._squares, "seen": self._seen, "lists": self._lists}

    def _restore(self, arrays: Mapping[str, Array]) -> None:
        self._vector, self._squares = arrays["vector"], arrays["squares"]
        self._seen, self._lists = arrays["seen"], arrays["lists"]
