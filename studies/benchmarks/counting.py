"""The cost of summing over all active pairs, by data structure, number of documents l and number of grades k.

Nanoseconds a document of one product with the Laplacian of the active pairs, by the structures of papers/counting.py.
RankSVM uses that of the last column.
"""

from __future__ import annotations

import math
from typing import Annotated

import typer

from ranktune.solvers.data.grades import MAX_TABLE_GRADES as FEW
from ranktune.studies.benchmarks.tables import Row, Table
from ranktune.studies.papers.counting import measure

LENGTHS = (1000, 10_000, 100_000)
GRADES = (2, 3, 5, 7, 8, 16, 32, 64, 128, 1000, 10_000, 100_000)


def main(
    length: Annotated[list[int] | None, typer.Option(help=f"Documents. Repeatable. (default: {LENGTHS})")] = None,
    repeats: Annotated[int, typer.Option(help="Runs of each structure.", min=1)] = 5,
) -> list[Table]:
    """Compare structures that count active pairs: nanoseconds a document for each l and k, and which one is used."""
    rows: list[Row] = []
    for documents in length or LENGTHS:
        for n_grades in (k for k in GRADES if k <= documents):
            values = measure(documents, n_grades, repeats)
            measured = {name: None if math.isnan(value) else value for name, value in values.items()}
            taken = "table" if n_grades <= FEW else "tree of 32"
            rows.append({"l": documents, "k": n_grades, **measured, "taken": taken})
    return [Table("Nanoseconds a document of a sum over all active pairs: l documents, k grades", rows)]
