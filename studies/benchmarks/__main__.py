"""Every benchmark as a subcommand: python -m ranktune.studies.benchmarks --help.

A benchmark compares in one run, on one thread unless it is about threads: processor seconds, medians, ratios of rounds
in which the compared ones take turns. Absolute times depend on the machine.
"""

from __future__ import annotations

import typer

from ranktune.studies.benchmarks import coordinator, counting, memory, parser, race, samplers, solvers
from ranktune.studies.benchmarks.turnkey import command

app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__)
for name, main in (
    ("counting", counting.main),
    ("jobs", coordinator.jobs),
    ("memory", memory.main),
    ("overhead", coordinator.overhead),
    ("parser", parser.main),
    ("race", race.main),
    ("sampler", samplers.main),
    ("scale", coordinator.scale),
    ("solvers", solvers.main),
    ("suggestions", samplers.suggestions),
    ("turnkey", command.main),
):
    app.command(name)(main)

if __name__ == "__main__":
    app()
