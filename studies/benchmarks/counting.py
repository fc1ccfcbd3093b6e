"""The cost of summing over all active pairs, by data structure, number of documents l and number of grades k.

Nanoseconds a document of one product with the Laplacian of the active pairs, by the structures of papers/counting.py.
RankSVM uses that of the last column.
"""

from __future__ import annotations

from typing import Annotated

import typer

from ranktune.solvers.data.grades import MAX_TABLE_GRADES as FEW
from ranktune.studies.papers.counting import measure

LENGTHS = (1000, 10_000, 100_000)
GRADES = (2, 3, 5, 7, 8, 16, 32, 64, 128, 1000, 10_000, 100_000)


def main(
    length: Annotated[list[int] | None, typer.Option(help=f"Documents. Repeatable. (default: {LENGTHS})")] = None,
    repeats: Annotated[int, typer.Option(help="Runs of each structure.", min=1)] = 5,
) -> None:
    """Compare structures that count active pairs: nanoseconds a document for each l and k, and which one is used."""
    typer.echo(f"{'l':>8} {'k':>8} {'direct':>10} {'Fenwick':>10} {'tree of 32':>10} {'table':>10}  taken")
    for documents in length or LENGTHS:
        for n_grades in (k for k in GRADES if k <= documents):
            found = measure(documents, n_grades, repeats)
            taken = "table" if n_grades <= FEW else "tree of 32"
            measured = " ".join(f"{value:10.1f}" for value in found.values())
            typer.echo(f"{documents:8} {n_grades:8} {measured}  {taken}")
