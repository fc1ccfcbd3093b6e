"""TREC runs: a line is QUERY Q0 DOCUMENT RANK SCORE TAG.

The score is the only feature, named after the tag. Of a folder of runs each gives a feature, named after its file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.columns.grammar import number_of, repeated
from ranktune.solvers.data.columns.roles import RESERVED
from ranktune.solvers.data.readers.formats import READERS, ending
from ranktune.solvers.data.readers.frames import Table
from ranktune.solvers.data.readers.parsing.streams import Position, words_of
from ranktune.solvers.data.readers.tables.files import frame_of

Columns: TypeAlias = Mapping[str, Sequence[str] | Sequence[float]]
"""Columns by name."""

_FORM = "A line of a TREC run is QUERY Q0 DOCUMENT RANK SCORE TAG."


def read_run_table(path: Path) -> Table:
    """Return a run, or the runs in a folder, as a table."""
    columns, scores = read_runs(runs_in(path)) if path.is_dir() else read_run(path)
    return Table(frame_of(path, columns), scores)


def runs_in(folder: Path) -> list[Path]:
    """Return the runs in a folder, files called NAME.run or NAME.trec, plain or compressed, by name."""
    return sorted(path for path in folder.iterdir() if ending(path) in READERS["run"].endings)


def read_runs(paths: Sequence[Path]) -> tuple[Columns, tuple[str, ...]]:
    """Return the columns of the documents that any of several runs holds, and the names of their features.

    A document that a run does not hold gets the lowest score that the run has for the query, 0 if it has none.
    """
    scores: list[dict[tuple[str, str], float]] = []
    for path in paths:
        columns, (name,) = read_run(path)
        keys = zip(columns["qid"], columns["docid"], strict=True)
        pairs = ((str(query), str(document)) for query, document in keys)
        scores.append(dict(zip(pairs, map(float, columns[name]), strict=True)))
    documents = list(dict.fromkeys(key for run in scores for key in run))
    names = tuple(path.name.split(".")[0] for path in paths)
    taken = next((name for name in names if name.lower() in RESERVED), repeated(names))
    if taken is not None:
        raise DataError(
            f"{paths[0].parent}: the runs must have names that differ, and that are not those of grades, queries or "
            f"documents. Rename {taken!r}."
        )
    table: dict[str, Sequence[str] | Sequence[float]] = {
        "qid": [query for query, _ in documents],
        "docid": [document for _, document in documents],
    }
    for name, run in zip(names, scores, strict=True):
        lowest: dict[str, float] = {}
        for (query, _), score in run.items():
            lowest[query] = min(score, lowest.get(query, score))
        table[name] = [run.get(key, lowest.get(key[0], 0.0)) for key in documents]
    return table, names


def read_run(path: Path) -> tuple[Columns, tuple[str]]:
    """Return the columns of a run, and the name of its feature: its tag, or score where lines differ in it."""
    position = Position(path)
    rows: list[tuple[str, str, float]] = []
    tags: set[str] = set()
    for words in words_of(position):
        score = number_of(words[4]) if len(words) == 6 else None
        if score is None or not math.isfinite(score):
            what = "judgments, which qrels= takes" if len(words) == 4 else "no such line"
            raise DataError(f"{path}:{position.lines}: {' '.join(words)[:60]!r} is {what}. {_FORM}")
        rows.append((words[0], words[2], score))
        tags.add(words[5])
    if not rows:
        raise DataError(f"{path}: holds no documents. {_FORM}")
    name = tags.pop() if len(tags) == 1 else "score"
    name = "score" if name.lower() in RESERVED else name
    queries, documents, scores = zip(*rows, strict=True)
    if len(set(zip(queries, documents, strict=True))) < len(rows):
        raise _twice(path)
    return {"qid": queries, "docid": documents, name: scores}, (name,)


def _twice(path: Path) -> DataError:
    """Return the error about a run that has a document twice in a query."""
    position = Position(path)
    pair = repeated((words[0], words[2]) for words in words_of(position))
    assert pair is not None
    return DataError(f"{path}:{position.lines}: document {pair[1]} is in query {pair[0]} twice. Keep one line.")
