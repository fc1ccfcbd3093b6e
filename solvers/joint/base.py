"""What groups of learners have in common: columns of configurations that can be dropped and joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from ranktune.solvers.core.arrays import Array, Floats, Ints
from ranktune.solvers.data.queries import Queries

R = TypeVar("R", bound=Any)


class Learners(Generic[R]):
    """Configurations that share work, a column of weights each; a subclass defines the family.

    numbers  the number that each has in the whole pass, in the order of the columns
    rankers  the configurations in the same order
    scales   (n_features,) the factor of each feature, by the name of a scaling
    """

    def __init__(
        self, numbers: Sequence[int], rankers: Sequence[R], queries: Queries, scales: Mapping[str, Floats]
    ) -> None:
        self.scales = scales
        self.numbers, self.rankers = list(numbers), list(rankers)
        self._begin(rankers, queries)
        self._arrange()

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
    def _order(ranker: R) -> Any:
        """Return the key by which columns are ordered."""
        return 0

    def learn(self, queries: Queries) -> Floats:
        """Learn from queries; return the scores of each document before its query was learned from, (n_documents, m).

        Columns are in the order of numbers.
        """
        raise NotImplementedError

    def weights(self) -> Floats:
        """Return the weights of the raw features as they are now, (n_features, m)."""
        raise NotImplementedError

    def arrays(self) -> dict[str, Array]:
        """Return the state as arrays by name."""
        raise NotImplementedError

    def keep(self, numbers: Sequence[int]) -> None:
        """Drop all configurations but those of these numbers."""
        known = set(numbers)
        self._pick([column for column, number in enumerate(self.numbers) if number in known])

    def join(self, numbers: Sequence[int], rankers: Sequence[R]) -> None:
        """Let further configurations learn from the next queries on, from zero weights."""
        self._append(len(rankers))
        self.numbers += numbers
        self.rankers += rankers
        self._arrange()

    def restore(self, arrays: Mapping[str, Array]) -> None:
        """Take up a state that arrays returned for the same configurations in the same order."""
        self._restore(arrays)

    def _arrange(self) -> None:
        """Put the columns into their order."""
        keys = [self._order(ranker) for ranker in self.rankers]
        self._pick(sorted(range(len(keys)), key=keys.__getitem__))

    def _pick(self, columns: Sequence[int]) -> None:
        self.numbers = [self.numbers[column] for column in columns]
        self.rankers = [self.rankers[column] for column in columns]
        self._choose(np.array(columns, dtype=np.int64))
        if columns:
            self._arranged()

    def _begin(self, rankers: Sequence[R], queries: Queries) -> None:
        raise NotImplementedError

    def _arranged(self) -> None:
        """Prepare what depends on the configurations; there is at least one."""
        raise NotImplementedError

    def _choose(self, columns: Ints) -> None:
        raise NotImplementedError

    def _append(self, count: int) -> None:
        raise NotImplementedError

    def _restore(self, arrays: Mapping[str, Array]) -> None:
        raise NotImplementedError
