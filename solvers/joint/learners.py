"""Configurations of several solvers that learn from each query together: columns that can be dropped and joined.

Those of ElasticRank learn from the same lists, those of SOLAR1 from the same pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar, cast

import numpy as np

from ranktune.solvers.base.passes import PassRanker
from ranktune.solvers.core.arrays import Array, Floats, Matrix, as_ints
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.data.grades import number_grades
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.rows import rows_of
from ranktune.solvers.data.scaling import SCALINGS, factors, query_factors
from ranktune.solvers.joint import list_kernels, pair_kernels
from ranktune.solvers.joint.list_kernels import Grades, JointRates, JointState, losses_of
from ranktune.solvers.joint.pair_kernels import Pairs
from ranktune.solvers.linear.presets import ElasticRank
from ranktune.solvers.losses.pairwise import PairwiseLoss
from ranktune.solvers.online.base import LARGEST_FACTOR
from ranktune.solvers.online.pairs import listed_pairs, lists_of
from ranktune.solvers.online.solar import SOLAR1
from ranktune.solvers.optimizers.one_pass import OnePassOptimizer

R = TypeVar("R", bound=Any)


class Learners(Generic[R]):
    """Configurations that share work, a column of weights each; a subclass defines the family.

    numbers  the number that each has in the whole pass, in the order of the columns
    rankers  the configurations in the same order
    scales   (n_features,) the factor of each feature, by the name of a scaling
    state    arrays by name: those of two dimensions have a column per configuration, the others are of all of them
    dtype    of scores, steps and gradients; the state is double
    """

    def __init__(
        self,
        numbers: Sequence[int],
        rankers: Sequence[R],
        queries: Queries,
        scales: Mapping[str, Floats],
        dtype: type[np.floating],
    ) -> None:
        self.scales, self.dtype = scales, dtype
        self.numbers, self.rankers = list[int](), list[R]()
        self.state: dict[str, Array] = self._zeros(queries.n_features)
        self.join(numbers, rankers)

    @staticmethod
    def takes(ranker: object) -> bool:
        """Return whether a ranker can be one of them."""
        raise NotImplementedError

    @staticmethod
    def scales_of(sample: Queries) -> dict[str, Floats]:
        """Return the factor of each feature that a ranker learns from sample, by the name of its scaling."""
        raise NotImplementedError

    @staticmethod
    def shared(ranker: R) -> tuple[object, ...]:
        """Return what all rankers of a group must have in common."""
        return ()

    @staticmethod
    def _zeros(n_features: int) -> dict[str, Array]:
        """Return the state before the first query, without columns."""
        raise NotImplementedError

    def _arranged(self) -> None:
        """Prepare what depends on the configurations; there is at least one."""
        raise NotImplementedError

    def learn(self, queries: Queries) -> Matrix:
        """Learn from queries; return the scores of each document before its query was learned from, (n_documents, m).

        Those of a query are up to a number. Columns are in the order of numbers.
        """
        raise NotImplementedError

    def weights(self) -> Floats:
        """Return the weights of the raw features as they are now, (n_features, m)."""
        raise NotImplementedError

    def restore(self, state: Mapping[str, Array]) -> None:
        """Take up a state of the same configurations in the same order."""
        self.state = {name: state[name] for name in self.state}

    def keep(self, numbers: Sequence[int]) -> None:
        """Drop all configurations but those of these numbers."""
        self._pick([column for column, number in enumerate(self.numbers) if number in numbers])

    def join(self, numbers: Sequence[int], rankers: Sequence[R]) -> None:
        """Let further configurations learn from the next queries on, from zero weights."""
        self.numbers += numbers
        self.rankers += rankers
        for name, array in self.state.items():
            if array.ndim == 2:
                self.state[name] = np.hstack([array, np.zeros((len(array), len(numbers)))])
        self._arranged()

    def _pick(self, columns: Sequence[int]) -> None:
        """Keep these columns, in this order."""
        self.numbers = [self.numbers[column] for column in columns]
        self.rankers = [self.rankers[column] for column in columns]
        for name, array in self.state.items():
            if array.ndim == 2:
                self.state[name] = np.take(array, columns, axis=1)
        if columns:
            self._arranged()


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
        arguments = (as_ints(queries.starts), self._pairs(queries), self._extra, self._stretch, self.state["weights"])
        pair_kernels.learn(rows_of(queries.features), *arguments, before)
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


class JointLearners:
    """Rankers that learn from the same queries, a block after the other, and share what they can.

    Each ends with the weights that it has after progressive, or partial_fit, on the same blocks alone, to the rounding
    of dtype, in which scores and gradients are computed: the features have the scale of the sample, which a ranker
    alone takes from its first block. One that joins later begins with the next block; of pairs that are sampled, it
    gets those that the others of its group get.

    numbers names the rankers that take part, ascending; rankers holds them by number.
    """

    def __init__(
        self, sample: Queries, scales: Mapping[str, Floats] | None = None, dtype: type[np.floating] = np.float32
    ) -> None:
        """Take the scales of features from sample, or as arrays returned them."""
        self.rankers: dict[int, PassRanker] = {}
        self._groups: dict[tuple[object, ...], Learners[Any]] = {}
        self._scales = scales or {
            f"{family.__name__}-{scaling}": scale
            for family in FAMILIES
            for scaling, scale in family.scales_of(sample).items()
        }
        self._sample, self._dtype = sample, dtype

    @property
    def numbers(self) -> list[int]:
        """The numbers of the rankers that take part, ascending."""
        return sorted(self.rankers)

    @property
    def n_without_scale(self) -> int:
        """The number of features that have one value in the sample, so that scaled ones are left out."""
        counts = [np.count_nonzero(scale == 0.0) for name, scale in self._scales.items() if name.endswith("-minmax")]
        return int(max(counts))

    def join(self, rankers: Mapping[int, PassRanker]) -> None:
        """Let rankers learn from the next block on. Raises ParameterError for one of no family."""
        groups: dict[tuple[Any, ...], list[int]] = {}
        for number, ranker in rankers.items():
            family = family_of(ranker)
            groups.setdefault((family, *family.shared(ranker)), []).append(number)
        for key, numbers in groups.items():
            joining = [rankers[number] for number in numbers]
            if key in self._groups:
                self._groups[key].join(numbers, joining)
            else:
                scales = _beginning_with(f"{key[0].__name__}-", self._scales)
                self._groups[key] = key[0](numbers, joining, self._sample, scales, self._dtype)
        self.rankers.update(rankers)

    def keep(self, numbers: Sequence[int]) -> None:
        """Drop all rankers but these."""
        for key, group in list(self._groups.items()):
            group.keep(numbers)
            if not group.numbers:
                del self._groups[key]
        self.rankers = {number: self.rankers[number] for number in numbers}

    def learn(self, queries: Queries) -> Floats:
        """Learn from queries; return the scores of each document before its query was learned from, up to a number.

        They are (n_rankers, n_documents), rows in the order of numbers; the number is one of each ranker and query.
        """
        return self._by_number([group.learn(queries) for group in self._groups.values()])

    def weights(self) -> Floats:
        """Return the weights of the raw features as they are now, (n_rankers, n_features), rows as numbers."""
        return self._by_number([group.weights() for group in self._groups.values()])

    def _by_number(self, parts: Sequence[Matrix]) -> Floats:
        """Return the columns of the groups as rows in the order of numbers."""
        place = {number: row for row, number in enumerate(self.numbers)}
        rows = np.empty((len(place), len(parts[0])))
        for group, part in zip(self._groups.values(), parts, strict=True):
            rows[[place[number] for number in group.numbers]] = part.T
        return rows

    def arrays(self) -> dict[str, Array]:
        """Return the state as arrays by name."""
        arrays: dict[str, Array] = {f"scales-{name}": scale for name, scale in self._scales.items()}
        for index, group in enumerate(self._groups.values()):
            arrays[f"{index}-numbers"] = np.array(group.numbers, dtype=np.int64)
            arrays |= {f"{index}-{name}": array for name, array in group.state.items()}
        return arrays

    @classmethod
    def restored(
        cls,
        sample: Queries,
        rankers: Mapping[int, PassRanker],
        arrays: Mapping[str, Array],
        dtype: type[np.floating] = np.float32,
    ) -> JointLearners:
        """Return the learners whose state arrays are; sample says how many features there are."""
        learners = cls(sample, _beginning_with("scales-", arrays), dtype)
        while state := _beginning_with(f"{len(learners._groups)}-", arrays):
            learners.join({number: rankers[number] for number in state["numbers"].tolist()})
            list(learners._groups.values())[-1].restore(state)
        return learners


def _beginning_with(prefix: str, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return the arrays whose names begin with prefix, by the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def family_of(ranker: object) -> type[Learners[Any]]:
    """Return the family that ranker belongs to. Raises ParameterError if it belongs to none."""
    for family in FAMILIES:
        if family.takes(ranker):
            return family
    raise ParameterError(
        f"{ranker} cannot learn together with others. Those that can: SOLAR1, and ElasticRank with optimizer='fobos', "
        "schedule='adagrad' and any scaling but 'list'."
    )
