"""Every benchmark as a subcommand: python -m ranktune.studies.benchmarks --help.

A benchmark compares in one run, on one thread unless it is about threads: processor seconds, medians, ratios of rounds
in which the alternatives take turns. Absolute times depend on the machine.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ranktune.studies.benchmarks import (
    joined,
    memory,
    objective,
    serving,
    solvers,
    waiting,
)
from ranktune.studies.benchmarks.results import Benchmark, add_commands, goals_table
from ranktune.studies.benchmarks.search import samplers
from ranktune.studies.benchmarks.tables import drawn
from ranktune.studies.benchmarks.turnkey import default_study, truth
from ranktune.studies.benchmarks.turnkey.command import main as turnkey

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
        console.print(drawn(goals_table(results, COMMANDS), console.width))


COMMANDS: Mapping[str, Benchmark] = {
    "default-study": default_study.main,
    "joined": joined.main,
    "objective": objective.main,
    "sampler": samplers.main,
    "serving": serving.main,
    "solvers": solvers.main,
    "study-cost": waiting.study_cost,
    "truth": truth.main,
    "tune-memory": memory.of_studies,
    "turnkey": turnkey,
}
add_commands(app, "ranktune.studies.benchmarks", COMMANDS)

if __name__ == "__main__":
    app(sys.argv[1:], obj=sys.argv[1:])
