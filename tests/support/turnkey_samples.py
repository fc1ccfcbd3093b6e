"""Small queries, their files, and finished cells for the comparison of whole tools."""

from pathlib import Path
from typing import Any

import numpy as np

from ranktune.solvers.data.queries import Queries
from ranktune.studies.benchmarks.turnkey.cells import METRICS, Cell, Finished, Results


def queries(n_queries: int, seed: int, length: int = 12) -> Queries:
    """Return queries whose first feature tells the grade, with noise."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n_queries * length, 5))
    y = np.clip(np.round(X[:, 0] + 0.4 * generator.normal(size=len(X))), 0, 2)
    return Queries.from_arrays(X, y, qid=1000 * seed + np.repeat(np.arange(n_queries), length))


def write(path: Path, part: Queries) -> Path:
    """Write queries as LETOR text."""
    lines = zip(part.query_of_document, part.grades, part.features, strict=True)
    text = (
        f"{y:g} qid:{part.query_ids[q]} " + " ".join(f"{j + 1}:{v:.6g}" for j, v in enumerate(x)) for q, y, x in lines
    )
    path.write_text("\n".join(text) + "\n")
    return path


def finished(rival: str, fold: str, values: Any, *, data: str = "d", estimate: float = 0.5) -> Finished:
    """Return a cell of one second and the seed 0 with these values of the test queries."""
    cell = Cell(data, fold, rival, 1.0, 1, 0, "1", "")
    array = np.array(values, dtype=np.float64)
    return Finished(cell, {name: array for name in METRICS}, 1.0, estimate)


def by_key(*all_finished: Finished) -> Results:
    """Return the results by data, fold, rival and seed."""
    return {(cell.cell.data, cell.cell.fold, cell.cell.rival, cell.cell.seed): cell for cell in all_finished}
