"""Every benchmark behind one command: python -m ranktune.studies.benchmarks --help.

A benchmark compares in one run, on one thread unless it is about threads: processor seconds, medians, ratios of rounds
in which the rivals take turns. Times by themselves say more about the machine.
"""

from __future__ import annotations

import typer

from ranktune.studies.benchmarks import bench_jobs, bench_overhead
from ranktune.studies.benchmarks import coordinator as bench_scale
from ranktune.studies.benchmarks import counting as bench_counting
from ranktune.studies.benchmarks import memory as bench_memory
from ranktune.studies.benchmarks import parser as bench_parser
from ranktune.studies.benchmarks import race as bench_race
from ranktune.studies.benchmarks import samplers as bench_samplers
from ranktune.studies.benchmarks import solvers as bench_solvers
from ranktune.studies.benchmarks import turnkey as bench_turnkey

app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__)
app.command("counting")(bench_counting.main)
app.command("jobs")(bench_jobs.main)
app.command("memory")(bench_memory.main)
app.command("overhead")(bench_overhead.main)
app.command("parser")(bench_parser.main)
app.command("race")(bench_race.main)
app.command("sampler")(bench_samplers.main)
app.command("scale")(bench_scale.main)
app.command("solvers")(bench_solvers.main)
app.command("turnkey")(bench_turnkey.main)

if __name__ == "__main__":
    app()
