"""Progress while a study runs: a live bar on a terminal, one in a notebook, and plain lines elsewhere.

Everything goes to standard error; standard output is for results.
"""

from __future__ import annotations

import sys
import time
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ranktune.solvers.core.errors import printable
from ranktune.tuner.search.progress import Progress, Silent, TrialReport

if TYPE_CHECKING:
    from rich.progress import TaskID

    from ranktune.tuner.selection.results import Result

SECONDS_BETWEEN_LINES = 2.0


def watcher() -> Progress:
    """Return a live display on a terminal or in a notebook, plain lines elsewhere."""
    if in_notebook():
        return Notebook()
    return Live() if sys.stderr.isatty() else LineProgress()


def in_notebook() -> bool:
    """Return whether the code runs in a cell of a notebook."""
    shell: Any = sys.modules.get("IPython")
    return shell is not None and getattr(shell.get_ipython(), "kernel", None) is not None


class LineProgress(Silent):
    """A line for each improvement and failure, and at most one every two seconds for other trials."""

    def __init__(self) -> None:
        self._last_line = 0.0
        self._best: float | None = None

    def stage(self, text: str) -> None:
        """Print what is done outside trials."""
        self._print(text)

    def split(self, name: str, total: int | None, done: int) -> None:
        """Print that the trials of a split begin."""
        self._best = None
        before = f", {done} done before" if done else ""
        self._print(f"{_label(name)}{'trials' if total is None else f'{total} trial' + 's' * (total != 1)}{before}")

    def trial(self, report: TrialReport) -> None:
        """Print how a trial report."""
        is_news = report.error is not None or report.best != self._best or report.done == report.total
        if not is_news and time.monotonic() - self._last_line < SECONDS_BETWEEN_LINES:
            return
        self._best = report.best
        outcome = f"failed: {report.error}" if report.value is None else f"{report.value:.4f}"
        if report.stopped:
            outcome = f"stopped after {report.stopped}, significantly worse"
        of = "" if report.total is None else f" of {report.total}"
        head = f"{_label(report.split)}trial {report.done}{of}"
        self._print(f"{head}  {report.solver}  {outcome}  {_best(report)}  {_time_left(report)}".rstrip())

    def fit(self, text: str) -> None:
        """Print how far a fit is."""
        self._print(text)

    def answer(self, result: Result) -> None:
        """Print the answer."""
        for line in answer(result):
            self._print(line)

    def _print(self, text: str) -> None:
        self._last_line = time.monotonic()
        print(printable(text), file=sys.stderr, flush=True)


class Verbose(LineProgress):
    """A line for every event besides those of LineProgress."""

    def event(self, text: str) -> None:
        """Print the event."""
        self._print(text)

    def fit(self, text: str) -> None:
        """Print nothing: it is an event too."""


class Live(Silent):
    """A bar for the trials of each split, with the best value and the time left, and a bar for each later stage.

    Where the trials are not counted, the bar shows the time that has passed of the time there is. That of a stage,
    whose duration is not known, moves to and fro.
    """

    def __init__(self) -> None:
        from rich import progress  # only a terminal needs it
        from rich.table import Column

        from ranktune.dashboards.terminal.tables import Screen

        self._bar = progress.Progress(
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(bar_width=8),
            progress.TextColumn("{task.fields[count]}", markup=False),
            progress.TimeElapsedColumn(),
            progress.TextColumn("{task.fields[left]}", markup=False),
            progress.TextColumn("{task.fields[best]}", markup=False, table_column=Column(no_wrap=False)),
            console=Screen(stderr=True),
        )
        self._task: TaskID | None = None
        self._stage: TaskID | None = None
        self._begun = 0.0
        self._stopped = 0
        self._best = ""

    def stage(self, text: str) -> None:
        """Print a line above the bar, or begin the bar of a stage after the trials."""
        self._start()
        self._end_stage()
        if self._task is None:
            self._bar.console.print(text, style="dim")
            return
        self._bar.update(self._task, left="")
        self._bar.stop_task(self._task)
        self._stage = self._bar.add_task("then", total=None, count="", best=text, left="")

    def split(self, name: str, total: int | None, done: int) -> None:
        """Begin a bar."""
        self._start()
        self._end_stage()
        self._stopped, self._begun, self._best = 0, time.monotonic(), ""
        count = _count(done, total)
        self._task = self._bar.add_task(
            f"{_label(name)}trials", total=total, completed=done, count=count, best="", left=""
        )

    def trial(self, report: TrialReport) -> None:
        """Advance the bar."""
        assert self._task is not None, "split comes before trial"
        self._stopped += bool(report.stopped)
        self._best = _best(report) + (f", {self._stopped} stopped early" if self._stopped else "")
        completed, total = float(report.done), report.total
        if total is None and report.seconds_left is not None:
            completed = time.monotonic() - self._begun
        whole = completed + (report.seconds_left or 0.0) if total is None else float(total)
        count, left = _count(report.done, total), _time_left(report)
        self._bar.update(self._task, completed=completed, total=whole, count=count, best=self._best, left=left)
        if report.error is not None:
            self._bar.console.print(f"trial {report.number + 1} ({report.solver}) failed: {report.error}", style="dim")

    def answer(self, result: Result) -> None:
        """Print the answer in place of the bars; one for what follows is below it."""
        for task in self._bar.task_ids:
            self._bar.update(task, visible=False)
        self._bar.console.print("", *answer(result), "", sep="\n", markup=False)

    def fit(self, text: str) -> None:
        """Show after the best value how far a fit is."""
        assert self._task is not None, "split comes before fit"
        self._bar.update(self._task, best="; ".join(filter(None, (self._best, text))), left="")

    def close(self) -> None:
        """Stop the bar and show the cursor."""
        self._end_stage()
        self._bar.stop()

    def _start(self) -> None:
        from ranktune.command_line.messages import shield

        self._bar.start()
        shield()  # the bar reads colours in what is printed above it

    def _end_stage(self) -> None:
        if self._stage is not None:
            self._bar.update(self._stage, total=1, completed=1)
            self._stage = None


class Notebook(Silent):
    """One output of the cell, which shows the stage, the trials of the split, the best value and the time left."""

    def __init__(self) -> None:
        shell: Any = import_module("IPython.display")
        self._lines: dict[str, str] = {}
        self._left = ""
        self._shown = float("-inf")
        self._handle = shell.display(self, display_id=True)

    def stage(self, text: str) -> None:
        """Show what is done outside trials."""
        self._lines["stage"], self._left = text, ""
        self._show()

    def split(self, name: str, total: int | None, done: int) -> None:
        """Show that the trials of a split begin."""
        self._lines.pop("stage", None)
        self._lines[name] = f"{_label(name)}trials {_count(done, total)}"
        self._show()

    def trial(self, report: TrialReport) -> None:
        """Show how far the trials are, at most twice a second."""
        self._lines.pop("stage", None)
        count = f"{_label(report.split)}trials {_count(report.done, report.total)}"
        self._lines[report.split] = ", ".join(filter(None, (count, _best(report))))
        self._left = _time_left(report)
        if report.done == report.total or time.monotonic() - self._shown > 0.5:
            self._show()

    def answer(self, result: Result) -> None:
        """Show the answer below the trials."""
        self._lines.pop("stage", None)
        self._lines |= {line: line for line in answer(result)}
        self._left = ""
        self._show()

    def fit(self, text: str) -> None:
        """Show how far a fit is, until the next trial or stage."""
        self._lines["stage"], self._left = text, ""
        self._show()

    def close(self) -> None:
        """Leave the trials, without the stage and the time left."""
        self._lines.pop("stage", None)
        self._left = ""
        self._show()

    def __repr__(self) -> str:
        return "\n".join(map(printable, filter(None, (*self._lines.values(), self._left))))

    def _repr_html_(self) -> str:
        return escape(repr(self)).replace("\n", "<br>")

    def _show(self) -> None:
        self._shown = time.monotonic()
        self._handle.update(self)


def answer(result: Result) -> list[str]:
    """Return the answer of a study in lines."""
    from ranktune.dashboards.terminal import leaderboard  # it loads the library of tables

    return leaderboard.answer(result)


def _count(done: int, total: int | None) -> str:
    return str(done) if total is None else f"{done}/{total}"


def _best(report: TrialReport) -> str:
    return "" if report.best is None else f"best {report.best:.4f} ({report.best_solver})"


def _time_left(report: TrialReport) -> str:
    if report.seconds_left is None:
        return ""
    seconds = max(0, round(report.seconds_left))
    return f"{seconds // 60}:{seconds % 60:02d} left"


def _label(split: str) -> str:
    return f"{split}: " if split else ""
