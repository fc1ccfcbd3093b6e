"""Write api-search as tables, to try RankTune on: python -m ranktune.studies.api_search FOLDER.

FOLDER/train.csv, vali.csv and test.csv have the columns query, document, the features by name, and grade.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated

import typer

from ranktune.solvers.data.api_search.dataset import load_split
from ranktune.solvers.data.queries import Queries


def write_table(queries: Queries, path: Path) -> None:
    """Write queries as a csv file: query, document, features, grade."""
    assert queries.feature_names is not None and queries.document_ids is not None
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["query", "document", *queries.feature_names, "grade"])
        for query, (start, stop) in enumerate(zip(queries.starts[:-1], queries.starts[1:], strict=True)):
            for row in range(start, stop):
                values = (format(value, ".6g") for value in queries.features[row])
                document, grade = queries.document_ids[row], format(queries.grades[row], "g")
                writer.writerow([queries.query_ids[query], document, *values, grade])


def main(folder: Annotated[Path, typer.Argument(help="Folder of the files; made if it does not exist.")]) -> None:
    """Write train.csv, vali.csv and test.csv: functions and classes of five packages as queries."""
    folder.mkdir(parents=True, exist_ok=True)
    split = load_split()
    for name, part in (("train", split.train), ("vali", split.vali), ("test", split.test)):
        assert part is not None
        write_table(part, folder / f"{name}.csv")
        print(f"{folder / name}.csv: {part.n_queries} queries, {part.n_documents} documents")


if __name__ == "__main__":
    typer.run(main)
