"""Configurations of several solvers that learn from each query together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ranktune.solvers.base.passes import PassRanker
from ranktune.solvers.core.arrays import Array, Floats, Matrix
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.joint.base import Learners
from ranktune.solvers.joint.families import FAMILIES


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
