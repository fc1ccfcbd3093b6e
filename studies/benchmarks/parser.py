"""Time of reading data: ranking text beside scikit-learn's reader, csv beside polars and pandas.

All read the same file in turns in one process, and their arrays are compared; processor seconds, medians. Ours end in
checked queries; the others in arrays or a frame, without checks of a ranking data set.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from threadpoolctl import threadpool_limits

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.errors import RankTuneWarning
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.text import read_text
from ranktune.solvers.data.sources.catalogue import read
from ranktune.studies.benchmarks.cases import many_queries
from ranktune.studies.benchmarks.solvers import turns
from ranktune.studies.benchmarks.tables import Row, Table

OURS = ("RankTune, float32", "RankTune, float64")
THEIRS = "scikit-learn load_svmlight_file"
CSV_QUERIES = 250
"""Queries of csv at most: of larger files RankTune keeps a binary copy, which would be measured in their place."""


@dataclass(frozen=True)
class Comparison:
    """Processor seconds of each turn of each reader, and whether the arrays are equal."""

    seconds: Mapping[str, Floats]
    agree: bool
    queries: Queries

    def ratios(self, name: str, beside: str) -> list[float]:
        """Return how many times faster a reader was than another one, turn by turn, sorted."""
        return sorted((self.seconds[beside] / self.seconds[name]).tolist())


def compare(file: Path, rounds: int = 3) -> Comparison:
    """Compare readers on ranking text with qid: whose queries are adjacent."""
    found: dict[str, Any] = {}

    def keep(name: str, reader: Callable[[], object]) -> Callable[[], None]:
        def work() -> None:
            found[name] = reader()

        return work

    single, double = OURS
    seconds = turns(
        {
            single: keep(single, lambda: read_text(file, dtype=np.float32)),
            double: keep(double, lambda: read_text(file, dtype=np.float64)),
            THEIRS: keep(THEIRS, lambda: load_svmlight_file(str(file), query_id=True, zero_based=False)),
        },
        rounds,
    )
    X, y, qid = found[THEIRS]
    agree = _same(found[double], X, y, qid) and _same(found[single], X.astype(np.float32), y, qid)
    return Comparison(seconds, agree, found[single])


def compare_csv(queries: Queries, folder: Path, rounds: int = 3) -> Comparison:
    """Compare readers of csv on queries that are written to a folder first; polars and pandas where installed."""
    file = folder / "table.csv"
    columns = [np.repeat(np.arange(queries.n_queries), queries.lengths), queries.grades, np.asarray(queries.features)]
    names = ["qid", "grade", *(f"feature{k}" for k in range(queries.n_features))]
    kinds = ["%d", "%d", *["%.6g"] * queries.n_features]
    np.savetxt(file, np.column_stack(columns), kinds, ",", header=",".join(names), comments="")
    found: dict[str, Queries] = {}

    def ours() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RankTuneWarning)
            found["ours"] = read(file, grade="grade", qid="qid")

    works: dict[str, Callable[[], object]] = {OURS[0]: ours}
    if find_spec("polars"):
        import polars

        works["polars read_csv"] = lambda: polars.read_csv(file)
    if find_spec("pandas"):
        import pandas

        works["pandas read_csv"] = lambda: pandas.read_csv(file)
    seconds = turns(works, rounds)
    same = np.allclose(np.asarray(found["ours"].features), np.asarray(queries.features), atol=1e-5)
    return Comparison(seconds, same and bool((found["ours"].grades == queries.grades).all()), queries)


def main(
    file: Annotated[
        Path | None,
        typer.Argument(help="LETOR or SVMlight text with qid: (default: generated, with a csv of the same numbers)"),
    ] = None,
    rounds: Annotated[int, typer.Option(help="Turns of each reader.", min=1)] = 3,
    queries: Annotated[int, typer.Option(help="Queries of the generated data, of about 120 documents.", min=1)] = 400,
) -> list[Table]:
    """Compare the time of readers, and check that their arrays are equal."""
    with threadpool_limits(1), tempfile.TemporaryDirectory() as name:
        if file is not None:
            return [_table(file.name, file.stat().st_size, compare(file, rounds), THEIRS)]
        generated, folder = many_queries(queries, 11), Path(name)
        text = _write_text(generated, folder / "generated.txt")
        found = [_table("ranking text", text.stat().st_size, compare(text, rounds), THEIRS)]
        csv = compare_csv(generated.select(np.arange(min(CSV_QUERIES, queries))), folder, rounds)
        return [*found, _table("csv", (folder / "table.csv").stat().st_size, csv, OURS[0])]


def _write_text(queries: Queries, path: Path) -> Path:
    ids = np.repeat(queries.query_ids, queries.lengths)
    with path.open("w", encoding="ascii") as file:
        for grade, own, values in zip(queries.grades, ids, np.asarray(queries.features).tolist(), strict=True):
            pairs = " ".join(f"{k}:{value:.6g}" for k, value in enumerate(values, 1))
            file.write(f"{grade:g} qid:{own} {pairs}\n")
    return path


def _table(what: str, size: int, found: Comparison, base: str) -> Table:
    """Return the seconds of each reader, and how many times faster than the base each is."""
    rows: list[Row] = []
    for name, seconds in found.seconds.items():
        ratios = found.ratios(name, base)
        middle = float(np.median(seconds))
        rows.append(
            {
                "reader": name, "s": middle, "MB/s": size / 1e6 / middle, "times faster": float(np.median(ratios)),
                "lowest": ratios[0], "highest": ratios[-1],
            }
        )  # fmt: skip
    shape = f"{found.queries.n_documents:,} x {found.queries.n_features}"
    note = "The arrays are equal." if found.agree else "THE ARRAYS DIFFER."
    title = f"{what}: {size / 1e6:.1f} MB, {shape}, times faster than {base}"
    return Table(title, rows, note, failed=not found.agree)


def _same(queries: Queries, X: sparse.csr_matrix, y: Floats, qid: Ints) -> bool:
    differences = sparse.csr_array(queries.features) - sparse.csr_array(X)
    same_ids = (np.repeat(queries.query_ids, queries.lengths) == qid).all()
    return bool(abs(differences).max() == 0.0 and (queries.grades == y).all() and same_ids)
