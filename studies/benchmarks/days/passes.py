"""What a pass a day costs: configurations that learn from a million documents of each day, and go on the next day.

A day is a Parquet file. Its truth turns slowly, so that fresh configurations have something to win. Every day is what
`ranktune one-pass DAY --after BEFORE` does; generating, reading and learning are told apart.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
import typer

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import ParameterError, nearest
from ranktune.solvers.data.sources import catalogue
from ranktune.streaming import STATE, one_pass
from ranktune.studies.benchmarks.days.generated import MOVES, turn_of
from ranktune.studies.benchmarks.tables import Row, Table
from ranktune.studies.papers.days import truth

METRIC, NOISE, EVERY = "ndcg@10", 0.8, 2
SHARES = (0.52, 0.84, 0.97, 0.99)
"""Shares of the documents below each grade."""
GROWTH = 1.05
"""Memory counts as constant where no day has more than that multiple of the second one."""


def write_day(path: Path, weights: Floats, queries: int, length: int, generator: np.random.Generator) -> None:
    """Write queries of a day as a Parquet file: normal features, and grades by their score and noise."""
    X = generator.standard_normal((queries * length, len(weights)), dtype=np.float32)
    utility = X @ weights.astype(np.float32) + NOISE * generator.standard_normal(len(X), dtype=np.float32)
    grades = np.searchsorted(np.quantile(utility, SHARES), utility)
    frame = pl.DataFrame(X, schema=[f"f{k}" for k in range(len(weights))])
    frame.with_columns(grade=pl.Series(grades), qid=np.arange(len(X)) // length).write_parquet(path)


def begin_peak() -> None:
    """Let the peak of resident memory begin again; Linux only."""
    Path("/proc/self/clear_refs").write_text("5")


def peak_bytes() -> int:
    """Return the peak of resident memory of this process since it began again."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def main(
    days: Annotated[int, typer.Option(help="Days.", min=2)] = 30,
    documents: Annotated[int, typer.Option(help="Documents of a day.", min=1000)] = 1_000_000,
    features: Annotated[int, typer.Option(help="Features.", min=4)] = 46,
    length: Annotated[int, typer.Option(help="Documents of a query.", min=2)] = 100,
    configurations: Annotated[int, typer.Option(help="Configurations that learn together.", min=1)] = 30,
    survivors: Annotated[int, typer.Option(help="Places that a race leaves; 30 is all, all day.", min=1)] = 30,
    solver: Annotated[list[str] | None, typer.Option(help="Repeatable. (default: ElasticRank)")] = None,
    move: Annotated[str, typer.Option(help=f"How the truth moves: {', '.join(MOVES)}.")] = "slow",
    seed: Annotated[int, typer.Option(help="Seed.", min=0)] = 0,
) -> list[Table]:
    """Measure the processor seconds and the memory of one pass a day, each going on from the day before."""
    if move not in MOVES:
        raise ParameterError(f"unknown movement '{move}'. {nearest(move, MOVES)}")
    generator, rows = np.random.default_rng(seed), list[Row]()
    with tempfile.TemporaryDirectory() as folder:
        file, before, state = Path(folder, "day.parquet"), None, 0
        for day in range(1, days + 1):
            home, begun = Path(folder, str(day)), time.process_time()
            write_day(
                file, truth(turn_of(move, day - 1, days), features, EVERY), documents // length, length, generator
            )
            begin_peak()
            written = time.process_time()
            data = catalogue.read(file, grade="grade", qid="qid")
            read = time.process_time()
            result = one_pass(
                data, metric=METRIC, solvers=solver or ("ElasticRank",), configurations=configurations,
                survivors=survivors, held_out=0.0, after=before, folder=home, seed=seed,
            )  # fmt: skip
            learned = time.process_time()
            del data
            best, state = result.best, (home / STATE).stat().st_size
            rows.append(
                {
                    "day": day, "generate": round(written - begun, 2), "read": round(read - written, 2),
                    "learn": round(learned - read, 2),
                    "MB": round(peak_bytes() / 1e6), METRIC: f"{best.mean:.4f}", "trials": len(result.entries),
                    "chosen": f"{best.number}, {best.parameters.get('loss', best.solver)}",
                }
            )  # fmt: skip
            if before is not None:
                shutil.rmtree(before)
            before = home
    return [_summary(rows, state), Table("By day", rows, NOTE)]


NOTE = (
    "generate, read, learn: processor seconds. MB: the peak of resident memory of reading and learning, with the "
    "interpreter and libraries. trials: configurations that learned on that day. chosen: number of the best one and "
    "its loss. The metric is its mean over the day, each query before it is learned from."
)


def _summary(rows: list[Row], state: int) -> Table:
    """Return the means of the days, and whether memory was constant."""
    means = {name: float(np.mean([float(str(row[name])) for row in rows])) for name in ("generate", "read", "learn")}
    peaks = [int(str(row["MB"])) for row in rows]
    constant = max(peaks[1:]) <= GROWTH * peaks[1]
    row: Row = {
        **means, "MB day 2": peaks[1], "MB last": peaks[-1], "MB most": max(peaks), "state KB": state // 1000,
        "constant": constant,
    }  # fmt: skip
    note = f"Means of the days. constant: no day after the second one has more than {GROWTH:g} times its memory."
    return Table(f"A pass a day, {len(rows)} days", [row], note, failed=not constant)
