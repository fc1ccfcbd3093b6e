"""Time of reading data: ranking text beside scikit-learn's reader, csv beside polars and pandas.

All read the same file in turns in one process, and their arrays are compared; processor seconds, medians. Those of
RankTune end in checked queries; the others in arrays or a frame, without checks of a ranking data set.
"""

from __future__ import annotations

import tempfile
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.text import read_text
from ranktune.solvers.data.sources.catalogue import read
from ranktune.studies.benchmarks.cases import many_queries, write_text
from ranktune.studies.benchmarks.tables import BenchmarkTable, Row, Turns, Work, judged, take_turns

OURS = ("RankTune, float32", "RankTune, float64")
WANTED = {"polars read_csv": "times faster <= 1.5"}
"""How much faster another reader may be, which does not check."""
THEIRS = "scikit-learn load_svmlight_file"
CSV_QUERIES = 250
"""Queries of csv at most: of larger files RankTune keeps a binary copy, which would be measured in their place."""


def compare(file: Path, rounds: int = 3) -> tuple[Turns, bool]:
    """Compare readers on ranking text with qid, and say whether their arrays are equal."""
    single, double = OURS
    turns = take_turns(
        {
            single: partial(read_text, file, dtype=np.float32),
            double: partial(read_text, file, dtype=np.float64),
            THEIRS: partial(load_svmlight_file, str(file), query_id=True, zero_based=False),
        },
        rounds,
    )
    X, y, qid = turns.values[THEIRS]
    return turns, _same(turns.values[double], X, y, qid) and _same(turns.values[single], X.astype(np.float32), y, qid)


def compare_csv(queries: Queries, folder: Path, rounds: int = 3) -> tuple[Turns, bool]:
    """Compare readers of csv on queries that are written to a folder first; polars and pandas where installed."""
    file = folder / "table.csv"
    columns = [np.repeat(np.arange(queries.n_queries), queries.lengths), queries.grades, np.asarray(queries.features)]
    names = ["qid", "grade", *(f"feature{k}" for k in range(queries.n_features))]
    kinds = ["%d", "%d", *["%.6g"] * queries.n_features]
    np.savetxt(file, np.column_stack(columns), kinds, ",", header=",".join(names), comments="")
    works: dict[str, Work] = {OURS[0]: partial(read, file, grade="grade", qid="qid")}
    for library in ("polars", "pandas"):
        if find_spec(library):
            works[f"{library} read_csv"] = partial(import_module(library).read_csv, file)
    turns = take_turns(works, rounds)
    reference: Queries = turns.values[OURS[0]]
    same = np.allclose(np.asarray(reference.features), np.asarray(queries.features), atol=1e-5)
    return turns, same and bool((reference.grades == queries.grades).all())


def main(
    rounds: int = 3,
    queries: int = 400,
) -> list[BenchmarkTable]:
    """Compare the time of readers, and check that their arrays are equal.

    Parameters
    ----------
    rounds : int
        Turns of each reader.
    queries : int
        Queries of the generated data, of about 120 documents.
    """
    with tempfile.TemporaryDirectory() as name:
        generated, folder = many_queries(queries, 11), Path(name)
        text = write_text(generated, folder / "generated.txt")
        tables = [_table("ranking text", text, compare(text, rounds), THEIRS)]
        csv = compare_csv(generated.select(np.arange(min(CSV_QUERIES, queries))), folder, rounds)
        return [*tables, _table("csv", folder / "table.csv", csv, OURS[0])]


def _table(what: str, file: Path, compared: tuple[Turns, bool], base: str) -> BenchmarkTable:
    """Return the seconds of each reader, and how many times faster than the base each is."""
    turns, same = compared
    megabytes, queries = file.stat().st_size / 1e6, turns.values[OURS[0]]
    rows: list[Row] = []
    for name in turns.seconds:
        seconds = turns.median(name)
        row: Row = {"reader": name, "s": seconds, "MB/s": megabytes / seconds, "times faster": turns.ratio(base, name)}
        rows.append(judged(row, WANTED.get(name, "")))
    shape = f"{queries.n_documents:,} x {queries.n_features}"
    note = "The arrays are equal." if same else "THE ARRAYS DIFFER."
    return BenchmarkTable(f"{what}: {megabytes:.1f} MB, {shape}, times faster than {base}", rows, note, failed=not same)


def _same(queries: Queries, X: sparse.csr_matrix, y: Floats, qid: Ints) -> bool:
    differences = sparse.csr_array(queries.features) - sparse.csr_array(X)
    same_ids = (np.repeat(queries.query_ids, queries.lengths) == qid).all()
    return bool(abs(differences).max() == 0.0 and (queries.grades == y).all() and same_ids)
