"""How far a fit is, for whoever listens while it goes on: the display and the log of the study."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

EVERY = 8.0
"""Seconds between two reports of a fit, and before the first."""


@dataclass(frozen=True)
class Rounds:
    """How far a fit is: the part of the plan that is fitted, the iterations done, and the seconds since the plan began.

    Of boosting they are rounds, with the most that there may be, else 0, and value is the metric on validation queries,
    else NaN.
    """

    part: str
    done: int
    most: int
    value: float
    seconds: float

    def __str__(self) -> str:
        """Return the rounds, the value and the seconds, in words."""
        value = f", {self.value:.4f}" if self.value == self.value else ""
        return f"{self.part}: {self.done} {'rounds' if self.most else 'iterations'}{value}, {self.seconds:.0f} s"


_listeners: list[Callable[[Rounds], None]] = []


@contextmanager
def listening(listener: Callable[[Rounds], None]) -> Iterator[None]:
    """Call listener with the reports of the fits in the block."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.pop()


def report(rounds: Rounds) -> None:
    """Let the innermost listener know, if there is one."""
    if _listeners:
        _listeners[-1](rounds)
