"""Progress on a terminal while a study runs: a live bar, or plain lines if there is no terminal.

Everything goes to standard error; standard output is for results.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from ranktune.solvers.core.errors import printable
from ranktune.tuner.runner.progress import Progress, TrialReport

if TYPE_CHECKING:
    from rich.progress import TaskID

SECONDS_BETWEEN_LINES = 2.0


def watcher() -> Progress:
    """Return a live display on a terminal, plain lines elsewhere."""
    return Live() if sys.stderr.isatty() else Lines()


class Lines:
    """A line for each improvement and failure, and at most one every two seconds for other trials."""

    def __init__(self) -> None:
        self._last_line = 0.0
        self._best: float | None = None

    def stage(self, text: str) -> None:
        """Print what is done outside trials."""
        self._print(text)

    def split(self, name: str, total: int, done: int) -> None:
        """Print that the trials of a split begin."""
        self._best = None
        before = f", {done} done before" if done else ""
        self._print(f"{_label(name)}{total} trials{before}")

    def trial(self, report: TrialReport) -> None:
        """Print how a trial report."""
        is_news = report.error is not None or report.best != self._best or report.done == report.total
        if not is_news and time.monotonic() - self._last_line < SECONDS_BETWEEN_LINES:
            return
        self._best = report.best
        outcome = f"failed: {report.error}" if report.value is None else f"{report.value:.4f}"
        if report.stopped:
            outcome = f"stopped after {report.stopped}, significantly worse"
        best = "" if report.best is None else f"  best {report.best:.4f} ({report.best_solver})"
        head = f"{_label(report.split)}trial {report.done} of {report.total}"
        self._print(f"{head}  {report.solver}  {outcome}{best}  {_time_left(report)}".rstrip())

    def event(self, text: str) -> None:
        """Print nothing."""

    def close(self) -> None:
        """Do nothing."""

    def _print(self, text: str) -> None:
        self._last_line = time.monotonic()
        print(printable(text), file=sys.stderr, flush=True)


class Verbose(Lines):
    """A line for every event besides those of Lines."""

    def event(self, text: str) -> None:
        """Print the event."""
        self._print(text)


class Live:
    """A bar with the trials done, the best value and the time left; the bar of a finished split stays visible."""

    def __init__(self) -> None:
        from rich import progress  # only a terminal needs it
        from rich.console import Console

        self._bar = progress.Progress(
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(bar_width=24),
            progress.MofNCompleteColumn(),
            progress.TextColumn("{task.fields[best]}", markup=False),
            progress.TimeElapsedColumn(),
            progress.TextColumn("elapsed{task.fields[left]}", markup=False),
            console=Console(stderr=True),
        )
        self._task: TaskID | None = None
        self._stopped = 0

    def stage(self, text: str) -> None:
        """Print a line above the bar."""
        self._bar.start()
        self._bar.console.print(printable(text), markup=False, highlight=False, style="dim")

    def split(self, name: str, total: int, done: int) -> None:
        """Begin a bar."""
        self._bar.start()
        self._stopped = 0
        self._task = self._bar.add_task(f"{_label(name)}trials", total=total, completed=done, best="", left="")

    def trial(self, report: TrialReport) -> None:
        """Advance the bar."""
        assert self._task is not None, "split comes before trial"
        self._stopped += bool(report.stopped)
        best = "" if report.best is None else f"best {report.best:.4f} ({report.best_solver})"
        best += f", {self._stopped} stopped early" if self._stopped else ""
        left = _time_left(report)
        self._bar.update(self._task, completed=report.done, best=best, left=left and f", {left}")
        if report.error is not None:
            self.stage(f"trial {report.number} ({report.solver}) failed: {report.error}")

    def event(self, text: str) -> None:
        """Print nothing."""

    def close(self) -> None:
        """Stop the bar and show the cursor."""
        self._bar.stop()


def _time_left(report: TrialReport) -> str:
    if report.seconds_left is None:
        return ""
    seconds = max(0, round(report.seconds_left))
    return f"{seconds // 60}:{seconds % 60:02d} left"


def _label(split: str) -> str:
    return f"{split}: " if split else ""
