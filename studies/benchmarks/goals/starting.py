"""What a user waits for at first: a command that only lists, the first data, the first study and the second.

Each is a new process of the command line. The first ones begin without anything compiled or kept.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Annotated

import typer

from ranktune.studies.benchmarks.cases import many_queries
from ranktune.studies.benchmarks.goals.lines import Goal
from ranktune.studies.benchmarks.tables import Table

FIRST, SECOND = "first study, embedded data", "second study"
COMPILING = "first study less second: compiling"
GOALS = (
    Goal("ranktune show", "cpu s", 0.4, {"what": "list"}, "s"),
    Goal("first read of 200 lines", "cpu s", 1.0, {"what": "first data of 200 lines"}, "s"),
    Goal("first study, wall", "wall s", 30.0, {"what": FIRST}, "s"),
    Goal("compiling in the first study", "cpu s", 3.0, {"what": COMPILING}, "s"),
)
LINES = 200


def taken(command: list[str], folder: Path) -> tuple[float, float]:
    """Return the processor and the wall seconds of a command of ranktune that keeps its files in a folder."""
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment |= {"RANKTUNE_CACHE": str(folder), "RANKTUNE_HOME": str(folder / "home")}
    begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "ranktune", *command], check=True, capture_output=True, env=environment, cwd=folder
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, time.perf_counter() - begun


def main(
    rounds: Annotated[int, typer.Option(help="Rounds, of which the medians count.", min=1)] = 3,
    studies: Annotated[bool, typer.Option(help="Also run two studies on the embedded data in each round.")] = True,
) -> list[Table]:
    """Measure what a new process takes: a list, the first data, the first study and the second."""
    times: dict[str, list[tuple[float, float]]] = {}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as name:
            data, here, empty = Path(name) / "data.txt", Path(name) / "here", Path(name) / "empty"
            _write(data)
            works = [("list", ["show"], here), (f"first data of {LINES} lines", ["data", str(data)], empty)]
            if studies:
                works += [(FIRST, ["tune", "--name", "first"], here), (SECOND, ["tune", "--name", "second"], here)]
            for what, command, folder in works:
                folder.mkdir(exist_ok=True)
                times.setdefault(what, []).append(taken(command, folder))
    middle = {what: tuple(map(median, zip(*pairs, strict=True))) for what, pairs in times.items()}
    if studies:
        middle[COMPILING] = tuple(one - other for one, other in zip(middle[FIRST], middle[SECOND], strict=True))
    rows = [{"what": what, "cpu s": cpu, "wall s": wall} for what, (cpu, wall) in middle.items()]
    return [Table(f"New processes: medians of {rounds}", rows)]


def _write(path: Path) -> None:
    """Write ranking text of LINES lines."""
    queries = many_queries(LINES // 20, 3, 20, 20)
    with path.open("w", encoding="ascii") as file:
        for k in range(LINES):
            at = k % queries.n_documents
            pairs = " ".join(f"{j}:{value:g}" for j, value in enumerate(queries.features[at].tolist(), 1))
            file.write(f"{queries.grades[at]:g} qid:{k // 20} {pairs}\n")
