"""The command one-pass.

As in ranktune.command_line.app, modules that load libraries are imported inside the functions.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ranktune.arguments import DataArguments
from ranktune.command_line.options import (
    Given,
    Json,
    console,
    metric_names,
    print_json,
    reading,
    takes_options,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ranktune.tuner.one_pass.result import OnePassResult

SHOWN = 12
"""Configurations that the table has."""

commands = typer.Typer()

HELP = """Tune linear rankers in one pass over DATA.

Many configurations are trained on each block of queries at the same time. All of them score each query before they are
trained on it. When the number of queries has doubled, configurations that are significantly worse than the best are
dropped. At most half of them stay, and new configurations take the other places. The best one at the end is the model.

FOLDER gets model.json, result.json with all configurations and comparisons, state.npz for --after, and a checkpoint
until the pass has ended. After an interruption, the same command continues from the checkpoint.

\b
Examples:
  ranktune one-pass log.txt -o pass
  ranktune one-pass log.txt --test next.txt -o pass --metric mrr
  ranktune one-pass tuesday.txt --after monday -o tuesday --held-out 0
"""


@commands.command("one-pass", help=HELP)
@takes_options(DataArguments)
def one_pass(
    shared: Given,
    *,
    data: Annotated[str, typer.Argument(help="Documents with grades, queries in the order of time.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write.", metavar="FOLDER")],
    test: Annotated[str | None, typer.Option(help="Test data. (default: the last queries of DATA)")] = None,
    metric: Annotated[str, typer.Option(help="The metric.", autocompletion=metric_names)] = "ndcg@10",
    solver: Annotated[list[str] | None, typer.Option(help="ElasticRank or SOLAR1. Repeatable. (default: both)")] = None,
    configurations: Annotated[int, typer.Option(help="Configurations that begin.", min=1)] = 64,
    held_out: Annotated[float, typer.Option(help="Share of the queries, the last ones, that judge.")] = 0.1,
    after: Annotated[
        Path | None,
        typer.Option(help="Folder of an earlier pass, whose configurations learn on.", metavar="FOLDER"),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the configurations that are drawn.")] = 0,
    as_json: Json = False,
) -> None:
    """Run the pass; print the table, or everything as JSON."""
    from ranktune.streaming import one_pass

    result = one_pass(
        data,
        test=test,
        metric=metric,
        solvers=solver or (),
        configurations=configurations,
        held_out=held_out,
        after=after,
        folder=output,
        seed=seed,
        progress=lambda text: print(text, file=sys.stderr),
        **reading(shared),
    )
    print_json({**result.as_dict(), "folder": str(output)}) if as_json else console().print(summary(result, output))


def summary(result: OnePassResult, folder: Path) -> RenderableType:
    """Return the best configurations as a table, and below it the estimate."""
    from rich.console import Group
    from rich.text import Text

    from ranktune.dashboards.terminal.tables import table, titled

    rows = table(("", "configuration"), ("queries", "mean", "to best"))
    for entry in result.entries[:SHOWN]:
        gap = "" if entry is result.best else f"{entry.difference:+.4f}"
        values = (_short(name, value) for name, value in entry.parameters.items() if name not in UNVARIED)
        mean = f"{entry.mean:.4f} \u00b1{entry.high - entry.mean:.4f}"
        rows.add_row(str(entry.number), ", ".join((entry.solver, *values)), str(entry.queries), mean, gap)
    rows.caption = "to best: paired, on the queries of the last look"
    title = f"{result.metric} before learning, the best of {len(result.entries)} configurations"
    learned = f"{result.best.queries} queries" + (f" after {result.best.earlier}" if result.best.earlier else "")
    lines = [f"model: {folder / 'model.json'} (configuration {result.best.number}, {learned})"]
    if result.test is not None:
        lines.append(
            f"test: {result.test['mean']:.4f} ({result.test['low']:.4f} to {result.test['high']:.4f}) on "
            f"{result.test['queries']} other queries"
        )
    return Group(titled(title, rows), Text("\n".join(lines)))


UNVARIED = ("passes", "optimizer", "schedule")
"""Parameters that all configurations share."""


def _short(name: str, value: object) -> str:
    return f"{name} {value:.2g}" if isinstance(value, float) else str(value)
