"""What a running study tells whoever watches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Told:
    """One finished trial: done of total in this split; value is None where it failed, error then says why.

    stopped is after which part of the plan it was for sure behind the best; its value is then an estimate. "" where it
    was judged in full.
    """

    split: str
    number: int
    done: int
    total: int
    solver: str
    value: float | None
    error: str | None
    best: float | None
    best_solver: str | None
    stopped: str = ""


class Progress(Protocol):
    """Watches a study; called from the coordinating process only."""

    def stage(self, text: str) -> None:
        """Hear what is being done outside trials: reading, learning the chosen model again."""
        ...

    def split(self, name: str, total: int, done: int) -> None:
        """Hear that the trials of a split begin, done of them from an earlier run."""
        ...

    def trial(self, told: Told) -> None:
        """Hear of a finished trial, once it is safely in the record."""
        ...

    def event(self, text: str) -> None:
        """Hear of anything that happens, as a line of the log: to be shown to those who want to know it all."""
        ...

    def close(self) -> None:
        """Hear that the study ended, well or not."""
        ...


class Silent:
    """Tells nobody."""

    def stage(self, text: str) -> None:
        """Say nothing."""

    def split(self, name: str, total: int, done: int) -> None:
        """Say nothing."""

    def trial(self, told: Told) -> None:
        """Say nothing."""

    def event(self, text: str) -> None:
        """Say nothing."""

    def close(self) -> None:
        """Say nothing."""
