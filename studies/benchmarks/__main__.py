"""Every benchmark as a subcommand: python -m ranktune.studies.benchmarks --help.

A benchmark compares in one run, on one thread unless it is about threads: processor seconds, medians, ratios of rounds
in which the alternatives take turns. Absolute times depend on the machine.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from rich.console import Console

from ranktune.solvers.core.errors import RankTuneError
from ranktune.studies.benchmarks import (
    coordinator,
    drift,
    memory,
    objective,
    one_pass,
    parser,
    serving,
    solvers,
    waiting,
)
from ranktune.studies.benchmarks.results import Measurement, goals_table
from ranktune.studies.benchmarks.search import samplers
from ranktune.studies.benchmarks.tables import Table, drawn
from ranktune.studies.benchmarks.turnkey import boosting, truth
from ranktune.studies.benchmarks.turnkey.command import main as turnkey

Benchmark: TypeAlias = Callable[..., list[Table]]

app = typer.Typer(
    add_completion=False, help=f"{__doc__}\n\nWithout a command: every goal beside the newest stored result."
)


@app.callback(invoke_without_command=True)
def goals(
    context: typer.Context,
    results: Annotated[Path, typer.Option(help="Folder of the stored results.")] = Path("docs/benchmarks/results"),
) -> None:
    """Without a command: every goal beside the newest stored result, met, not met, or missing."""
    if context.invoked_subcommand is None:
        console = Console()
        names = sorted(command.name or "" for command in app.registered_commands)
        console.print(drawn(goals_table(results, names), console.width))


def command_of(name: str, benchmark: Benchmark) -> Callable[..., None]:
    """Return the command of a benchmark: it prints the tables, and has the option --store."""

    @wraps(benchmark)
    def run(*, context: typer.Context, store: Path | None, **options: object) -> None:
        measurement = Measurement()
        try:
            tables = benchmark(**options)
        except RankTuneError as error:
            print(f"error: {error}", file=sys.stderr)
            raise typer.Exit(2) from None
        console = Console()
        for table in tables:
            console.print(drawn(table, console.width))
        if store is not None:
            given = list(context.obj or [name, "--store", ""])
            where = given.index("--store")
            measurement.result(name, given[:where] + given[where + 2 :], tables).write(store)
        if any(table.failed for table in tables):
            raise typer.Exit(1)

    signature = inspect.signature(benchmark, eval_str=True)
    added = inspect.Signature.from_callable(_added, eval_str=True)
    parameters = [*signature.parameters.values(), *added.parameters.values()]
    run.__signature__ = signature.replace(parameters=parameters, return_annotation=None)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _added(
    *,
    context: typer.Context,
    store: Annotated[
        Path | None,
        typer.Option(help="Also write the tables to this file as JSON, with machine, versions, date and command."),
    ] = None,
) -> None:
    """Have the parameters that every command has."""


for name, main in (
    ("boosting", boosting.main),
    ("drift", drift.main),
    ("memory", memory.of_fits),
    ("objective", objective.main),
    ("one-pass", one_pass.main),
    ("parser", parser.main),
    ("sampler", samplers.main),
    ("scale", coordinator.scale),
    ("serving", serving.main),
    ("solvers", solvers.main),
    ("starting", waiting.starting),
    ("study-cost", waiting.study_cost),
    ("truth", truth.main),
    ("tune-memory", memory.of_studies),
    ("turnkey", turnkey),
):
    app.command(name)(command_of(name, main))

if __name__ == "__main__":
    app(sys.argv[1:], obj=sys.argv[1:])
