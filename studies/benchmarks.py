"""Every benchmark behind one command: python -m ranktune.studies.benchmarks --help.

A benchmark compares in one run, on one thread unless it is about threads: processor seconds, medians, ratios of rounds
in which the rivals take turns. Times by themselves say more about the machine.
"""

from __future__ import annotations

import typer

from ranktune.studies import (
    bench_counting,
    bench_jobs,
    bench_memory,
    bench_overhead,
    bench_parser,
    bench_race,
    bench_samplers,
    bench_scale,
    bench_solvers,
    bench_turnkey,
)

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
