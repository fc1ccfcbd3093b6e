"""What a running study reports to a display."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from ranktune.tuner.selection.results import Result


@dataclass(frozen=True)
class TrialReport:
    """One finished trial, and how far its split is.

    Attributes
    ----------
    split : str
        Name of the split.
    number, solver
        The trial.
    done : int
        Finished trials of the split.
    total : int or None
        Those wanted; None where the study ends at a time, or when little gain is expected.
    value : float or None
        The metric, an estimate if the trial was stopped; None if it failed.
    error : str or None
        Why it failed.
    best, best_solver : float or None, str or None
        The best complete trial of the split so far.
    seconds_left : float or None
        Until the split has ended, its last stage included, as far as its trials and its time limit say.
    stopped : str
        The part of the plan after which the trial was significantly worse than the best; empty if it was complete.
    """

    split: str
    number: int
    done: int
    total: int | None
    solver: str
    value: float | None
    error: str | None
    best: float | None
    best_solver: str | None
    seconds_left: float | None = None
    stopped: str = ""


class Silent:
    """A display of a study that shows nothing, and that others extend. The coordinating process calls its methods."""

    def stage(self, text: str) -> None:
        """Show what happens outside of trials, as reading and refitting."""

    def split(self, name: str, total: int | None, done: int) -> None:
        """Show that the trials of a split begin, of which an earlier run has done some."""

    def trial(self, report: TrialReport) -> None:
        """Show a finished trial, which is in the record by now."""

    def answer(self, result: Result) -> None:
        """Show the answer: the chosen model, which is saved, what is expected of it and what it scored on test."""

    def fit(self, text: str) -> None:
        """Show how far the fit of a running trial is, every few seconds."""

    def event(self, text: str) -> None:
        """Show an event of the log as a line of text."""

    def close(self) -> None:
        """Close the display once the study has ended or failed."""


Progress: TypeAlias = Silent
