"""A path parameter that depends on the other parameters of a solver."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ranktune.solvers.base.ranker import BaseRanker


class PathParameter:
    """A path_parameter that depends on other parameters: a class has the usual name, a ranker its name, or None."""

    def __init__(self, usual: str, of: Callable[[Any], str | None]) -> None:
        self._usual, self._of = usual, of

    def __get__(self, ranker: BaseRanker | None, owner: type | None = None) -> str | None:
        """Return the name for the class, or for a ranker with its parameters."""
        return self._usual if ranker is None else self._of(ranker)
