"""The command `ranktune reproduce`: published tables and figures beside ours, and verdicts on what papers say."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from joblib import cpu_count
from rich.console import Group, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress
from rich.table import Table as RichTable
from rich.text import Text

from ranktune.dashboards.terminal.tables import Screen, table, titled
from ranktune.solvers.core.arrays import Json
from ranktune.solvers.core.errors import ParameterError
from ranktune.studies.papers.claims import ClaimVerdict, counted
from ranktune.studies.papers.published import load_paper
from ranktune.studies.papers.reproduce import FigureRow, OnPart, Reproduced, load_datasets, reproduce
from ranktune.terminal import SECONDS_BETWEEN_LINES


@dataclass(frozen=True)
class PaperOutcome:
    """The tables of a paper with our figures, the verdicts on what it says, and the page of its figures, if written."""

    tables: list[Reproduced]
    verdicts: tuple[ClaimVerdict, ...]
    page: Path | None = None


def reproduce_paper(
    name: str, folders: Sequence[str], dataset: str | None, jobs: int | None, figures: str | None = None
) -> PaperOutcome:
    """Return the tables of the paper called name with ours on the folders of folds; progress on stderr.

    With figures, a folder, its printed figures are drawn too, and written there.
    """
    paper = load_paper(name)
    if not folders:
        raise ParameterError(
            f"reproduce {paper.name}: no data were given. Add --data FOLDER, which holds Fold1 ... Fold5 with "
            "train.txt, vali.txt and test.txt, such as LETOR's MQ2008."
        )
    if figures is not None:
        try:
            from ranktune.studies.papers.figures.pictures import check_installed
        except ModuleNotFoundError:
            raise ParameterError(
                "RankTune was installed from a wheel, which does not hold what draws the figures of papers. Install a "
                "clone of the repository by `pip install --editable .`, or leave out --figures."
            ) from None
        check_installed()
    datasets = load_datasets(folders, dataset)
    jobs = jobs or int(cpu_count())
    with _watched() as on_part:
        done = reproduce(paper, datasets, jobs=jobs, on_part=on_part)
    if figures is None:
        return PaperOutcome(done, tuple(verdict for table in done for verdict in table.verdicts))
    from ranktune.studies.papers.figures.drawing import draw, write_figures

    drawn = draw(paper, datasets, done, jobs=jobs, on_figure=lambda source: print(f"{source} drawn", file=sys.stderr))
    page = write_figures(figures, paper.name, paper.title, drawn)
    return PaperOutcome(done, drawn.verdicts, page)


def as_list(reproduced: Sequence[Reproduced]) -> list[Json]:
    """Return every figure as {dataset, algorithm, metric, published, ours, ...}, in the order of the tables."""
    return [row.as_dict() for table in reproduced for row in table.rows]


def tables(reproduced: Sequence[Reproduced]) -> RenderableType:
    """Return the tables one under another, each with what has to be said about it."""
    return Group(*(part for table in reproduced if table.rows for part in (_shown(table), *_remarks(table))))


def summary(outcome: PaperOutcome) -> RenderableType:
    """Return the tables, all verdicts with their counts, and where the figures are."""
    parts: list[RenderableType] = [tables(outcome.tables)]
    if outcome.verdicts:
        parts += [titled("What the paper says, and what was measured here", _verdicts(outcome.verdicts))]
        parts += [Text(counted(outcome.verdicts))]
    if outcome.page is not None:
        parts += [Text(f"Figures: {outcome.page}")]
    return Group(*parts)


def _verdicts(verdicts: Sequence[ClaimVerdict]) -> RichTable:
    shown = table(("source", "claim", "verdict", "measured here"), ())
    for verdict in verdicts:
        shown.add_row(verdict.source, verdict.claim, verdict.finding, verdict.reason)
    return shown


def _shown(reproduced: Reproduced) -> RenderableType:
    if reproduced.table.protocol == "every-point":
        return titled(reproduced.table.title, _points(reproduced))
    return titled(reproduced.table.title, _side_by_side(reproduced))


def _side_by_side(reproduced: Reproduced) -> RichTable:
    tolerance = reproduced.table.tolerance
    last = () if tolerance is None else (f"within {tolerance:g}",)
    shown = table(("data", "system", "measure"), ("published", "ours", "difference", *last))
    before = None
    for row in reproduced.rows:
        if before is not None and before != (row.dataset, row.algorithm):
            shown.add_section()
        before = (row.dataset, row.algorithm)
        difference = "-" if row.difference is None else f"{row.difference:+.4f}"
        within = () if tolerance is None else ({None: "-", True: "yes", False: "NO"}[row.within],)
        words = (row.dataset, row.algorithm, row.metric)
        shown.add_row(*words, _figure(row.published), _figure(row.ours), difference, *within)
    return shown


def _points(reproduced: Reproduced) -> RichTable:
    """Return a row a point and a column a measure: nothing was published as numbers."""
    by_point: dict[tuple[str, str], list[FigureRow]] = {}
    for row in reproduced.rows:
        by_point.setdefault((row.dataset, row.algorithm), []).append(row)
    metrics = tuple(dict.fromkeys(row.metric for row in reproduced.rows))
    shown = table(("data", "system"), metrics)
    for (dataset, algorithm), rows in by_point.items():
        ours = {row.metric: row.ours for row in rows}
        figures = (_figure(ours.get(metric), 1 if metric == "weights" else 4) for metric in metrics)
        shown.add_row(dataset, algorithm, *figures)
    return shown


def _figure(value: float | None, digits: int = 4) -> str:
    return "-" if value is None else f"{value:.{digits if abs(value) < 10 else min(digits, 2)}f}"


def _remarks(reproduced: Reproduced) -> Iterator[RenderableType]:
    compared = [row for row in reproduced.rows if row.within is not None]
    if compared:
        within = sum(bool(row.within) for row in compared)
        yield Text(f"{within} of {len(compared)} figures within {reproduced.table.tolerance:g} of those published.")
    for remark in filter(None, (reproduced.table.note, *reproduced.remarks)):
        yield Text(remark, style="dim")
    yield Text("")


@contextmanager
def _watched() -> Iterator[OnPart]:
    """Yield a callback that shows finished parts: a bar on a terminal, elsewhere a line every two seconds at most."""
    if not sys.stderr.isatty():
        yield _lines()
        return
    bar = RichProgress(
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
        console=Screen(stderr=True),
    )
    with bar:
        task = bar.add_task("", total=None)
        yield lambda done, total, text: bar.update(task, completed=done, total=total, description=text)


def _lines() -> OnPart:
    last = time.monotonic()

    def say(done: int, total: int, text: str) -> None:
        nonlocal last
        if done == total or time.monotonic() - last >= SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            print(f"{done} of {total}  {text}", file=sys.stderr, flush=True)

    return say
