"""Peak memory of a whole study; Linux only.

The anonymous memory of the coordinator and its workers is added up, a sample every few milliseconds. The features are
mapped from a file by all of them, in memory that the system can reclaim at any time: they count once, as far as a
process has them in memory.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil

from ranktune.solvers.core.memory import format_size
from ranktune.studies.benchmarks.tables import BenchmarkTable, Row

FACTOR, EXTRA = 1.5, 400e6
"""Bound of a study of one job."""
FEATURES, LENGTH = 136, 120
"""Features, and documents of a query, of the data of a study."""
SIZES = (239_000, 1_000_000, 4_000_000)
"""Documents of the data sets that studies are measured on by default."""


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
