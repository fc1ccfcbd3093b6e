"""The command warm: compile before the first study, as in the image of a container, what studies use."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import as_completed
from pathlib import Path

from rich.console import RenderableType
from rich.markup import escape

from ranktune.dashboards.terminal.tables import table, titled
from ranktune.solvers.core.arrays import Json
from ranktune.solvers.core.compiled import code_folder, compiling
from ranktune.solvers.data.readers.text import read_text
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.registry import ALL, NAMES, loadable, solver_class, standard
from ranktune.tuner.evaluation.warming import (
    METRICS,
    compile_explanations,
    compile_solver,
    small_queries,
    sparse_queries,
)
from ranktune.tuner.one_pass.configurations import RANKERS
from ranktune.tuner.one_pass.tuning import OnePassTuning
from ranktune.tuner.workers.workforce import Workforce

READING, EXPLAINING, STREAMING = "reading text", "explanations", "one-pass"


def warm(solvers: Sequence[str], jobs: int | None = None) -> Json:
    """Compile what reading and the solvers use, and return the seconds of compiling of each, and where it is kept.

    Without names it is the solvers that compete by default. jobs is the number of processes, by default one a core.
    """
    begun = time.monotonic()
    every = NAMES if ALL in solvers else [solver_class(name).__name__ for name in solvers] or standard()
    names = loadable(dict.fromkeys(every))
    with Workforce(jobs).assembled(apart=True) as executor:
        futures = {executor.submit(compile_reading): READING, executor.submit(compile_explanations): EXPLAINING}
        if not set(names).isdisjoint(RANKERS):
            futures[executor.submit(compile_one_pass)] = STREAMING
        futures |= {executor.submit(compile_solver, name): name for name in names}
        seconds = {futures[done]: round(done.result(), 3) for done in as_completed(futures)}
    return {
        "compiled": {name: seconds[name] for name in (READING, EXPLAINING, STREAMING, *names) if name in seconds},
        "seconds": round(time.monotonic() - begun, 3),
        "cache": code_folder(),
    }


def compile_reading() -> float:
    """Read a small text file, dense and sparse, and return the seconds spent on compiling."""
    queries = small_queries()
    lines = [
        f"{int(grade)} qid:{query} " + " ".join(f"{j}:{value}" for j, value in enumerate(row.tolist(), start=1))
        for grade, query, row in zip(queries.grades, queries.query_of_document, queries.features, strict=True)
    ]
    with tempfile.TemporaryDirectory() as folder, compiling() as spent:
        file = Path(folder, "small.txt")
        file.write_text("\n".join(lines))
        for layout in ("dense", "sparse"):
            read_text(file, layout=layout)
    return sum(spent)


def compile_one_pass() -> float:
    """Tune in one pass over small data, dense and sparse, and return the seconds spent on compiling."""
    queries, metric = small_queries(), parse_metric(METRICS[0])
    with compiling() as spent:
        for one in (queries, sparse_queries(queries)):
            OnePassTuning(one, metric, (), configurations=64, survivors=16, seed=0).run()
    return sum(spent)


def warm_table(found: Json) -> RenderableType:
    """Return what was compiled as a table."""
    rows = table(("",), ("seconds of compiling",))
    for name, seconds in found["compiled"].items():
        rows.add_row(escape(name), f"{seconds:.1f}" if seconds else "none was needed")
    kept = "not kept: no folder can be written (RANKTUNE_CACHE)" if found["cache"] is None else found["cache"]
    rows.caption = f"{found['seconds']:.1f} s in all, {'' if found['cache'] is None else 'kept in '}{escape(kept)}"
    return titled("Compiled", rows)
