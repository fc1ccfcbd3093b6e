"""Peak memory of fitting each linear solver on case a, each in a process of its own.

The process loads the features without mapping them, makes Queries and fits. Its peak contains interpreter, libraries,
compiled code, features and the solver's arrays; the bound is 1.3 times the features and 150 MB.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from ranktune.solvers.base.linear import LinearRanker
from ranktune.solvers.core.arrays import stored_arrays
from ranktune.solvers.data.disk.stored import write_queries
from ranktune.solvers.registry import SOLVERS
from ranktune.studies.benchmarks.cases import CASES, case
from ranktune.studies.benchmarks.tables import Row, Table
from ranktune.tuner.workers.worker_process import ONE_THREAD

FACTOR, EXTRA = 1.3, 150e6
"""Bound of a fit: this multiple of the features, plus so many bytes."""

FIT = """
import resource, sys, warnings
from pathlib import Path
import numpy as np
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.registry import make
from ranktune.solvers.core.space import defaults
folder, name, seen = Path(sys.argv[1]), sys.argv[2], None
load = lambda part: np.load(folder / f"{part}.npy")
warnings.simplefilter("ignore")
if (folder / "features.npy").exists():
    queries = Queries(load("features"), load("grades"), load("starts"), np.arange(len(load("starts")) - 1))
else:
    from scipy import sparse
    import json
    shape = json.loads((folder / "queries.json").read_text())["shape"]
    features = sparse.csr_array((load("data"), load("indices"), load("indptr")), shape=shape)
    queries = Queries(features, load("grades"), load("starts"), np.arange(len(load("starts")) - 1))
ranker = make(name, {}, seed=0)
ranker = make(name, defaults(ranker.space), seed=0)
ranker.fit(queries)
status = Path("/proc/self/status")
if status.exists():  # ru_maxrss would hold what the parent had when it started this process
    print(next(line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM")))
else:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def peak_bytes(name: str, folder: Path) -> float:
    """Return the peak resident memory of a process that fits the solver, with the defaults of its space."""
    import os

    command = [sys.executable, "-c", FIT, str(folder), name]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | ONE_THREAD)
    if done.returncode != 0:
        raise RuntimeError(f"{name} failed: {done.stderr.strip().splitlines()[-1]}")
    return 1024.0 * float(done.stdout)


def linear_solvers() -> list[str]:
    """Return the names of all linear solvers."""
    return [name for name, solver in SOLVERS.items() if issubclass(solver, LinearRanker)]


def main(
    solver: Annotated[list[str] | None, typer.Option(help="A solver. Repeatable. (default: all linear ones)")] = None,
    name: Annotated[str, typer.Option("--case", help=f"One of {', '.join(CASES)}.")] = "a",
) -> list[Table]:
    """Print the peak memory of fitting each linear solver, beside its bound."""
    queries = case(name)
    features = queries.features
    held = sum(array.nbytes for array in stored_arrays(features))
    allowed = FACTOR * held + EXTRA
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        write_queries(queries, Path(folder))
        del queries, features
        for one in solver or linear_solvers():
            peak = peak_bytes(one, Path(folder))
            rows.append({"solver": one, "peak MB": round(peak / 1e6), "within": peak <= allowed})
    title = f"case {name}: features {held / 1e6:.0f} MB, allowed {allowed / 1e6:.0f} MB"
    return [Table(title, rows)]
