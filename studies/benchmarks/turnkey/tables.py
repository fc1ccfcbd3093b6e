"""The report of one budget as tables of at most 80 columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table

from ranktune.solvers.core.arrays import Json, JsonView
from ranktune.studies.benchmarks.turnkey.cells import METRICS
from ranktune.studies.benchmarks.turnkey.peers import METRIC, OURS
from ranktune.studies.benchmarks.turnkey.results import Comparison, Report, Verdict

WIDTH = 80


def tables(report: Report, how: str) -> Iterator[Table]:
    """Yield the tables of a report; how is said in the titles: the budget, the seeds and the partition."""
    for data in dict.fromkeys(row["data"] for row in report.rows):
        rows = [row for row in report.rows if row["data"] == data]
        yield _quality(f"{data}: test queries, means over folds and seeds ({how})", rows)
        yield _effort(f"{data}: what the tools did in {report.seconds:g} s", rows)
    for times in report.times:
        yield from _times(times)
    if report.comparisons:
        yield _comparisons(report.comparisons)
    if report.verdicts:
        yield _verdicts(f"wanted of {OURS} ({report.seconds:g} s)", report.verdicts)


def _quality(title: str, rows: Sequence[Json]) -> Table:
    table = _table(title, "rival", *METRICS, "estimate - test", "in interval")
    for row in rows:
        inside = "-" if row["inside_interval"] is None else f"{row['inside_interval']} of {row['runs']}"
        table.add_row(row["rival"], *(f"{row[metric]:.4f}" for metric in METRICS), f"{row['optimism']:+.4f}", inside)
    return table


def _effort(title: str, rows: Sequence[Json]) -> Table:
    table = _table(title, "rival", "runs", "configurations", "trees", "seconds", "longest")
    for row in rows:
        counts = ["-" if count is None else f"{count:.0f}" for count in (row["tried"], row["trees"])]
        table.add_row(row["rival"], str(row["runs"]), *counts, f"{row['seconds']:.1f}", f"{row['longest']:.1f}")
    return table


def _times(times: Json) -> Iterator[Table]:
    """Yield where our time went: by stage, and by solver."""
    if times["stages"]:
        table = _table(f"{times['data']}: where the time of {OURS} went", "stage", "seconds", "share")
        for row in times["stages"]:
            table.add_row(row["stage"], f"{row['seconds']:.2f}", f"{row['share']:.1%}")
        used = sum(row["seconds"] for row in times["stages"])
        table.add_row("all", f"{used:.2f}", f"{used / times['budget']:.1%}")
        yield table
    if times["solvers"]:
        table = _table(f"{times['data']}: trials by solver, means over runs", "solver", *_COUNTS, *_FIGURES)
        for row in times["solvers"]:
            best = "-" if row["best"] is None else f"{row['best']:.4f}"
            table.add_row(row["solver"], *_of_trials(row), best, str(row["in_model"]))
        table.add_row("all", *_of_trials({name: sum(row[name] for row in times["solvers"]) for name in _COUNTS}))
        counts = Counter[str](times["models"])
        chosen = ", ".join(f"{name} ({count} of {times['runs']})" for name, count in counts.items())
        shares = ", ".join(f"{name} {share:.2f}" for name, share in times["shares"].items())
        table.caption, table.caption_justify = f"model: {chosen}; mean shares: {shares}", "left"
        yield table


_COUNTS, _FIGURES = ("trials", "pruned", "failed", "seconds", "share"), ("best", "in model")


def _of_trials(row: JsonView) -> list[str]:
    counts = [f"{row[name]:.3g}" for name in _COUNTS[:3]]
    return [*counts, f"{row['seconds']:.1f}", f"{row['share']:.1%}"]


def _comparisons(comparisons: Sequence[Comparison]) -> Table:
    names = ("data", "queries", "difference", "p", "won", "lost")
    table = _table(f"{OURS} less a rival, {METRIC}, paired by query; folds won and lost", "rival", *names)
    for one in comparisons:
        figures = [f"{one.difference:+.4f}", f"{one.p_value:.4f}", str(one.wins), str(one.losses)]
        table.add_row(one.rival, one.data, str(one.queries), *figures)
    return table


def _verdicts(title: str, verdicts: Sequence[Verdict]) -> Table:
    table = _table(title, "what", "wanted", "found", "met")
    for verdict in verdicts:
        table.add_row(verdict.what, verdict.wanted, verdict.found, "yes" if verdict.met else "NO")
    return table


def _table(title: str, first: str, *others: str) -> Table:
    width = min(len(title) + 2, WIDTH)  # a title is not broken before that
    table = Table(box=SIMPLE_HEAD, title=title, title_justify="left", padding=(0, 1, 0, 0), min_width=width)
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right")
    return table
