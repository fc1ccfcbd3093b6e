"""Configurations of several solvers that learn from each query together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ranktune.solvers.base.passes import PassRanker
from ranktune.solvers.core.arrays import Array, Floats
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.joint.base import Learners
from ranktune.solvers.joint.list_learners import ListLearners
from ranktune.solvers.joint.pair_learners import PairLearners

FAMILIES: tuple[type[Learners[Any]], ...] = (ListLearners, PairLearners)


class JointLearners:
    """Rankers that learn from the same queries, a block after the other, and share what they can.

    Each ends with the weights that it has after progressive, or partial_fit, on the same blocks alone, to rounding:
    the features have the scale of the sample, which a ranker alone takes from its first block. One that joins later
    begins with the next block; of pairs that are sampled, it gets those that the others of its group get.

    numbers names the rankers that take part, ascending; rankers holds them by number.
    """

    def __init__(self, sample: Queries, scales: Mapping[str, Floats] | None = None) -> None:
        """Take the scales of features from sample, or as arrays returned them."""
        self.rankers: dict[int, PassRanker] = {}
        self._groups: dict[tuple[object, ...], Learners[Any]] = {}
        self._scales = scales or {
            f"{family.__name__}-{scaling}": scale
            for family in FAMILIES
            for scaling, scale in family.scales_of(sample).items()
        }
        self._sample = sample

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
        found: dict[tuple[object, ...], list[int]] = {}
        for number, ranker in rankers.items():
            family = family_of(ranker)
            found.setdefault((family, *family.shared(ranker)), []).append(number)
        for key, numbers in found.items():
            own = [rankers[number] for number in numbers]
            if key in self._groups:
                self._groups[key].join(numbers, own)
            else:
                family = family_of(own[0])
                prefix = f"{family.__name__}-"
                scales = {name.removeprefix(prefix): s for name, s in self._scales.items() if name.startswith(prefix)}
                self._groups[key] = family(numbers, own, self._sample, scales)
        self.rankers.update(rankers)

    def keep(self, numbers: Sequence[int]) -> None:
        """Drop all rankers but these."""
        for key, group in list(self._groups.items()):
            group.keep(numbers)
            if not group.numbers:
                del self._groups[key]
        self.rankers = {number: self.rankers[number] for number in numbers}

    def learn(self, queries: Queries) -> Floats:
        """Learn from queries; return the scores of each document before its query was learned from.

        They are (n_rankers, n_documents), rows in the order of numbers.
        """
        scores = np.empty((len(self.rankers), queries.n_documents))
        place = {number: row for row, number in enumerate(self.numbers)}
        for group in self._groups.values():
            scores[[place[number] for number in group.numbers]] = group.learn(queries).T
        return scores

    def weights(self) -> Floats:
        """Return the weights of the raw features as they are now, (n_rankers, n_features), rows as numbers."""
        place = {number: row for row, number in enumerate(self.numbers)}
        weights = np.empty((len(self.rankers), self._sample.n_features))
        for group in self._groups.values():
            weights[[place[number] for number in group.numbers]] = group.weights().T
        return weights

    def arrays(self) -> dict[str, Array]:
        """Return the state as arrays by name."""
        found: dict[str, Array] = {f"scales-{name}": scale for name, scale in self._scales.items()}
        for index, group in enumerate(self._groups.values()):
            found[f"{index}-numbers"] = np.array(group.numbers, dtype=np.int64)
            found |= {f"{index}-{name}": array for name, array in group.arrays().items()}
        return found

    @classmethod
    def restored(cls, sample: Queries, rankers: Mapping[int, PassRanker], arrays: Mapping[str, Array]) -> JointLearners:
        """Return the learners whose state arrays are; sample says how many features there are."""
        scales = {name.removeprefix("scales-"): own for name, own in arrays.items() if name.startswith("scales-")}
        learners = cls(sample, scales)
        index = 0
        while f"{index}-numbers" in arrays:
            prefix = f"{index}-"
            own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
            numbers = [int(number) for number in own["numbers"]]
            learners.join({number: rankers[number] for number in numbers})
            list(learners._groups.values())[-1].restore(own)
            index += 1
        return learners


def family_of(ranker: object) -> type[Learners[Any]]:
    """Return the family that ranker belongs to. Raises ParameterError if it belongs to none."""
    for family in FAMILIES:
        if family.takes(ranker):
            return family
    raise ParameterError(
        f"{ranker} cannot learn together with others. Those that can: SOLAR1, and ElasticRank with optimizer='fobos', "
        "schedule='adagrad' and any scaling but 'list'."
    )
