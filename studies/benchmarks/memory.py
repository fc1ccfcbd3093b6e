"""Peak memory of fitting each linear solver, and of a whole study, in separate processes; Linux only.

A process that fits loads the features without mapping them, makes Queries and fits: its peak contains interpreter,
libraries, compiled code, features and the solver's arrays. Of a study the anonymous memory of the coordinator and its
workers is added up, a sample every few milliseconds. The features are mapped from a file by all of them, in
memory that the system can reclaim at any time: they count once, as far as a process has them in memory.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil

from ranktune.solvers.base.linear import LinearRanker
from ranktune.solvers.core.arrays import stored_arrays
from ranktune.solvers.core.memory import format_size
from ranktune.solvers.data.disk.stored import write_queries
from ranktune.solvers.registry import SOLVERS
from ranktune.studies.benchmarks.cases import case
from ranktune.studies.benchmarks.tables import BenchmarkTable, Row
from ranktune.tuner.workers.fork_server import ONE_THREAD

FIT_FACTOR, FIT_EXTRA = 1.3, 150e6
"""Bound of a fit: this multiple of the features, plus so many bytes."""
FACTOR, EXTRA = 1.5, 400e6
"""Bound of a study of one job."""
FEATURES, LENGTH = 136, 120
"""Features, and documents of a query, of the data of a study."""
SIZES = (239_000, 1_000_000, 4_000_000)
"""Documents of the data sets that studies are measured on by default."""

FIT = """
import json, sys, warnings
from pathlib import Path
import numpy as np
from ranktune.solvers.core.space import defaults
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.registry import SOLVERS, make
folder, name = Path(sys.argv[1]), sys.argv[2]
arrays = {file.stem: np.load(file) for file in folder.glob("*.npy")}
features = arrays.get("features")
if features is None:
    from scipy import sparse
    shape = json.loads((folder / "queries.json").read_text())["shape"]
    features = sparse.csr_array((arrays.pop("data"), arrays.pop("indices"), arrays.pop("indptr")), shape=shape)
starts = arrays["starts"]
warnings.simplefilter("ignore")
make(name, defaults(SOLVERS[name].space), seed=0).fit(
    Queries(features, arrays["grades"], starts, np.arange(len(starts) - 1))
)
print(next(line.split()[1] for line in Path("/proc/self/status").open() if line.startswith("VmHWM")))
"""


def peak_bytes(name: str, folder: Path) -> float:
    """Return the peak resident memory of a process that fits the solver, with the defaults of its space."""
    command = [sys.executable, "-c", FIT, str(folder), name]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | ONE_THREAD)
    if done.returncode != 0:
        raise RuntimeError(f"{name} failed: {done.stderr.strip().splitlines()[-1]}")
    return 1024.0 * float(done.stdout)


def of_fits(
    solver: list[str] | None = None,
    name: str = "a",
) -> list[BenchmarkTable]:
    """Print the peak memory of fitting each linear solver, beside its bound.

    Parameters
    ----------
    solver : list of str
        A solver. Repeatable. (default: all linear ones)
    name : str, --case
        One of those of the module cases: a, as, c, d.
    """
    queries = case(name)
    stored = sum(array.nbytes for array in stored_arrays(queries.features))
    allowed = FIT_FACTOR * stored + FIT_EXTRA
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        write_queries(queries, Path(folder))
        del queries
        for each in solver or [name for name, kind in SOLVERS.items() if issubclass(kind, LinearRanker)]:
            peak = peak_bytes(each, Path(folder))
            rows.append({"solver": each, "peak MB": round(peak / 1e6), "within": peak <= allowed})
    return [BenchmarkTable(f"case {name}: features {stored / 1e6:.0f} MB, allowed {allowed / 1e6:.0f} MB", rows)]


@dataclass(frozen=True)
class Peak:
    """The most bytes of all processes of a command: anonymous, and with mapped features, counted once."""

    anonymous: int
    with_features: int


def peak_of(command: Sequence[str], features: int, interval: float = 0.05) -> Peak:
    """Run a command and return its peak. Raises RuntimeError where it fails."""
    with tempfile.TemporaryFile() as output:
        started = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        anonymous = with_features = 0
        while started.poll() is None:
            processes = [_sizes(pid) for pid in _family(started.pid)]
            total = sum(sizes["Pss_Anon"] for sizes in processes)
            mapped = sum(sizes["Pss_File"] for sizes in processes)
            anonymous = max(anonymous, total)
            with_features = max(with_features, total + min(mapped, features))
            time.sleep(interval)
        if started.returncode != 0:
            output.seek(0)
            raise RuntimeError(f"{' '.join(command)} failed:\n{output.read().decode(errors='replace')[-2000:]}")
    return Peak(anonymous, with_features)


def _family(pid: int) -> list[int]:
    try:
        first = psutil.Process(pid)
        return [pid, *(child.pid for child in first.children(recursive=True))]
    except psutil.Error:
        return []


def _sizes(pid: int) -> dict[str, int]:
    """Return the bytes of a process by kind; 0 once it has ended."""
    sizes = {"Pss_Anon": 0, "Pss_File": 0}  # of pages that processes share, each has its part
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return sizes
    fields = (line.partition(":") for line in lines)
    return sizes | {name: 1024 * int(value.split()[0]) for name, _, value in fields if name in sizes}


def write_data(path: Path, n_documents: int, n_features: int = FEATURES) -> int:
    """Write queries with random features as an .npz file; return the bytes of the features."""
    generator = np.random.default_rng(0)
    X = generator.random((n_documents // LENGTH * LENGTH, n_features), dtype=np.float32)
    score = X[:, :10] @ generator.standard_normal(10) + generator.standard_normal(len(X))
    y = np.searchsorted(np.quantile(score, [0.5, 0.8, 0.95, 0.99]), score)
    np.savez(path, X=X, y=y, qid=np.arange(len(X)) // LENGTH)
    return X.nbytes


def tune_command(data: Path, home: Path, jobs: int, *options: str) -> list[str]:
    """Return the command that tunes on a file."""
    command = [sys.executable, "-m", "ranktune", "tune", str(data), "--home", str(home), "--jobs", str(jobs)]
    return [*command, *options]


def of_studies(
    documents: list[int] | None = None,
    seconds: float = 180.0,
    jobs: int = 1,
    memory: str | None = None,
) -> list[BenchmarkTable]:
    """Print the peak memory of studies on data of several sizes, beside its bound.

    Parameters
    ----------
    documents : list of int, at least 1200
        Documents. Repeatable. (default: 239000, 1000000, 4000000)
    seconds : float, at least 1
        Time of each study.
    jobs : int
        Processes that run trials; each loads the libraries.
    memory : str
        Limit of each study, such as 4GB.
    """
    rows: list[Row] = []
    for count in documents or SIZES:
        with tempfile.TemporaryDirectory() as name:
            data = Path(name) / "data.npz"
            features = write_data(data, count)
            options = ["--timeout", str(seconds), *(["--memory", memory] if memory else [])]
            peak = peak_of(tune_command(data, Path(name) / "home", jobs, *options), features)
        allowed = FACTOR * features + EXTRA
        rows.append(
            {
                "documents": count, "features": format_size(features), "anonymous": format_size(peak.anonymous),
                "with features": format_size(peak.with_features), "allowed": format_size(allowed),
                "within": peak.with_features <= allowed,
            }
        )  # fmt: skip
    limit = f", --memory {memory}" if memory else ""
    return [BenchmarkTable(f"Peak memory of tune: {seconds:g} s, {jobs} job{'s' * (jobs > 1)}{limit}", rows)]
