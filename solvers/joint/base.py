"""What groups of learners have in common: columns of configurations that can be dropped and joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from ranktune.solvers.core.arrays import Array, Floats, Matrix
from ranktune.solvers.data.queries import Queries

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
