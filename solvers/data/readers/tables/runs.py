"""TREC runs: a line is QUERY Q0 DOCUMENT RANK SCORE TAG.

The score is the only feature, named after the tag. Of a folder of runs each gives a feature, named after its file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.columns.grammar import number_of, repeated
from ranktune.solvers.data.columns.roles import RESERVED
from ranktune.solvers.data.columns.usual import plain
from ranktune.solvers.data.readers.formats import READERS, ending
from ranktune.solvers.data.readers.frames import FrameTable
from ranktune.solvers.data.readers.parsing.streams import Position, words_of
from ranktune.solvers.data.readers.tables.arrow_files import frame_of

_FORM = "A line of a TREC run is QUERY Q0 DOCUMENT RANK SCORE TAG."


def runs_in(folder: Path) -> list[Path]:
    """Return the runs in a folder, files called NAME.run or NAME.trec, plain or compressed, by name."""
    return sorted(path for path in folder.iterdir() if ending(path) in READERS["run"].endings)


def read_run_table(path: Path) -> FrameTable:
    """Return a run, or the documents that any of the runs in a folder holds, as a table.

    A document that a run does not hold gets the lowest score that the run has for the query, 0 if it has none.
    """
    paths = runs_in(path) if path.is_dir() else [path]
    runs, names = zip(*map(read_run, paths), strict=True)
    if path.is_dir():
        names = tuple(each.name.split(".")[0] for each in paths)
        taken = next((name for name in names if plain(name) in RESERVED), repeated(names))
        if taken is not None:
            raise DataError(
                f"{path}: the runs must have names that differ, and that are not those of grades, queries or "
                f"documents. Rename {taken!r}."
            )
    pairs = list(dict.fromkeys(chain.from_iterable(runs)))
    columns: dict[str, Sequence[object]] = dict(zip(("qid", "docid"), zip(*pairs, strict=True), strict=True))
    for name, run in zip(names, runs, strict=True):
        lowest: dict[str, float] = {}
        for (query, _), score in run.items():
            lowest[query] = min(score, lowest.get(query, score))
        columns[name] = [run.get(pair, lowest.get(pair[0], 0.0)) for pair in pairs]
    return FrameTable(frame_of(path, columns), names)


def read_run(path: Path) -> tuple[dict[tuple[str, str], float], str]:
    """Return the scores of a run by query and document, and its name: its tag, or score where lines differ in it."""
    position = Position(path)
    scores: dict[tuple[str, str], float] = {}
    tags: set[str] = set()
    for words in words_of(position):
        score = number_of(words[4]) if len(words) == 6 else None
        if score is None or not math.isfinite(score):
            what = "judgments, which qrels= takes" if len(words) == 4 else "no such line"
            raise DataError(f"{path}:{position.lines}: {' '.join(words)[:60]!r} is {what}. {_FORM}")
        query, document = pair = words[0], words[2]
        if pair in scores:
            raise DataError(f"{path}:{position.lines}: document {document} is in query {query} twice. Keep one line.")
        scores[pair] = score
        tags.add(words[5])
    if not scores:
        raise DataError(f"{path}: holds no documents. {_FORM}")
    name = tags.pop() if len(tags) == 1 else "score"
    return scores, "score" if plain(name) in RESERVED else name
