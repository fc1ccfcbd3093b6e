"""Time of reading ranking text, against scikit-learn's reader.

Both read the same file, back to back in one process, and their arrays are compared. CPU seconds, medians of rounds.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

import numpy as np
import typer
from rich.console import Console
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.data.queries import Queries
from ranktune.studies.readers.text import read_text

T = TypeVar("T")


@dataclass(frozen=True)
class Comparison:
    """CPU seconds of each round, ours to float32 and float64 and scikit-learn's, and whether the arrays are equal."""

    singles: list[float]
    doubles: list[float]
    theirs: list[float]
    agree: bool
    queries: Queries

    def ratios(self, ours: list[float]) -> list[float]:
        """Return how many times faster ours were, round by round, sorted."""
        return sorted(their / our for our, their in zip(ours, self.theirs, strict=True))


def compare(file: Path, rounds: int = 3) -> Comparison:
    """Compare both readers on file, text with qid: whose queries are adjacent."""
    read_text(file)  # compiles
    singles, doubles, theirs = [], [], []
    agree = True
    for _ in range(rounds):
        seconds, single = _timed(lambda: read_text(file, dtype=np.float32))
        singles.append(seconds)
        seconds, double = _timed(lambda: read_text(file, dtype=np.float64))
        doubles.append(seconds)
        seconds, other = _timed(lambda: load_svmlight_file(str(file), query_id=True, zero_based=False))
        theirs.append(seconds)
        agree = agree and _same(double, *other) and _same(single, other[0].astype(np.float32), *other[1:])
    return Comparison(singles, doubles, theirs, agree, single)


def main(
    file: Annotated[Path, typer.Argument(help="LETOR or SVMlight text with qid:")],
    rounds: Annotated[int, typer.Option(help="times that each reader runs")] = 3,
) -> None:
    """Print the time of each reader, and whether their arrays are equal."""
    found = compare(file, rounds)
    show = Console().print
    show(f"{file.name}: {file.stat().st_size / 1e6:.1f} MB, {found.queries.n_documents} x {found.queries.n_features}")
    show(f"scikit-learn load_svmlight_file {statistics.median(found.theirs):8.3f} s")
    for name, times in (("float32", found.singles), ("float64", found.doubles)):
        ratios = found.ratios(times)
        middle = statistics.median(ratios)
        span = f"{ratios[0]:.1f} to {ratios[-1]:.1f}"
        show(f"ranktune read_text {name}      {statistics.median(times):8.3f} s  {middle:.1f} times faster ({span})")
    show("the arrays are equal" if found.agree else "THE ARRAYS DIFFER")
    if not found.agree:
        raise typer.Exit(1)


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def _same(queries: Queries, X: sparse.csr_matrix, y: Floats, qid: Ints) -> bool:
    differences = sparse.csr_array(queries.features) - sparse.csr_array(X)
    same_ids = (np.repeat(queries.query_ids, queries.lengths) == qid).all()
    return bool(abs(differences).max() == 0.0 and (queries.grades == y).all() and same_ids)
