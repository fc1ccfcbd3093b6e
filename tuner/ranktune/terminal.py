"""What a person at a terminal sees while a study runs: a live bar, or plain lines where there is no terminal.

Everything goes to standard error; standard output belongs to results.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from ranktune.tuner.runner.progress import Progress, TrialReport

if TYPE_CHECKING:
    from rich.progress import TaskID

SECONDS_BETWEEN_LINES = 2.0


def watcher() -> Progress:
    """Return a live display on a terminal, plain lines elsewhere."""
    return Live() if sys.stderr.isatty() else Lines()


class Lines:
    """A line when something was improved or failed, else at most one every two seconds."""

    def __init__(self) -> None:
        self._last_line = 0.0
        self._begun = time.monotonic()
        self._done_before = 0
        self._best: float | None = None

    def stage(self, text: str) -> None:
        """Say what is being done outside trials."""
        self._say(text)

    def split(self, name: str, total: int, done: int) -> None:
        """Say that the trials of a split begin."""
        self._begun, self._done_before, self._best = time.monotonic(), done, None
        before = f", {done} done before" if done else ""
        self._say(f"{_label(name)}{total} trials{before}")

    def trial(self, report: TrialReport) -> None:
        """Say how a trial ended, where it is news or time for a line."""
        news = report.error is not None or report.best != self._best or report.done == report.total
        if not news and time.monotonic() - self._last_line < SECONDS_BETWEEN_LINES:
            return
        self._best = report.best
        ended = f"failed: {report.error}" if report.value is None else f"{report.value:.4f}"
        if report.stopped:
            ended = f"stopped after {report.stopped}, for sure behind"
        best = "" if report.best is None else f"  best {report.best:.4f} ({report.best_solver})"
        trial = f"{_label(report.split)}trial {report.done} of {report.total}"
        self._say(f"{trial}  {report.solver}  {ended}{best}  {self._left(report)}")

    def event(self, text: str) -> None:
        """Say nothing: lines are for news."""

    def close(self) -> None:
        """Say nothing more."""

    def _left(self, report: TrialReport) -> str:
        done_now = max(report.done - self._done_before, 1)
        seconds = (time.monotonic() - self._begun) / done_now * (report.total - report.done)
        return f"{int(seconds) // 60}:{int(seconds) % 60:02d} left"

    def _say(self, text: str) -> None:
        self._last_line = time.monotonic()
        print(_printable(text), file=sys.stderr, flush=True)


class Verbose(Lines):
    """A line for every event, and for how far the study is."""

    def event(self, text: str) -> None:
        """Print it."""
        self._say(text)


class Live:
    """A bar with the trial, the best so far and the time left; the bar of a finished split stays on the screen."""

    def __init__(self) -> None:
        from rich import progress  # only a terminal needs it
        from rich.console import Console

        self._bar = progress.Progress(
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(bar_width=24),
            progress.MofNCompleteColumn(),
            progress.TextColumn("{task.fields[best]}", markup=False),
            progress.TimeElapsedColumn(),
            progress.TextColumn("elapsed,"),
            progress.TimeRemainingColumn(),
            progress.TextColumn("left"),
            console=Console(stderr=True),
        )
        self._task: TaskID | None = None
        self._stopped = 0

    def stage(self, text: str) -> None:
        """Print a line above the bar."""
        self._bar.start()
        self._bar.console.print(_printable(text), markup=False, highlight=False, style="dim")

    def split(self, name: str, total: int, done: int) -> None:
        """Begin a bar."""
        self._bar.start()
        self._stopped = 0
        self._task = self._bar.add_task(f"{_label(name)}trials", total=total, completed=done, best="")

    def trial(self, report: TrialReport) -> None:
        """Advance the bar."""
        assert self._task is not None, "split comes before trial"
        self._stopped += bool(report.stopped)
        best = "" if report.best is None else f"best {report.best:.4f} ({report.best_solver})"
        best += f", {self._stopped} stopped early" if self._stopped else ""
        self._bar.update(self._task, completed=report.done, best=best)
        if report.error is not None:
            self.stage(f"trial {report.number} ({report.solver}) failed: {report.error}")

    def event(self, text: str) -> None:
        """Say nothing: the bar is for news."""

    def close(self) -> None:
        """Leave the bar as it is and give the cursor back."""
        self._bar.stop()


def _label(split: str) -> str:
    return f"{split}: " if split else ""


def _printable(text: str) -> str:
    """Return text without control characters: names and messages may come from a file."""
    return "".join(c if c.isprintable() else "?" for c in text)
