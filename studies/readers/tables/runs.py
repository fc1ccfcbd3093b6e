"""TREC runs: a line is QUERY Q0 DOCUMENT RANK SCORE TAG. The score is the only feature, named after the tag."""

from __future__ import annotations

import math
from pathlib import Path

from ranktune.solvers.core.errors import DataError
from ranktune.studies.readers.streams import Position, lines_of

_FORM = "A line of a TREC run is QUERY Q0 DOCUMENT RANK SCORE TAG."


def is_run_line(line: str) -> bool:
    """Return whether line can be one of a TREC run."""
    words = line.split()
    return len(words) == 6 and ":" not in words[1] and words[3].isdecimal() and _number(words[4]) is not None


def read_run(path: Path) -> tuple[dict[str, list[str] | list[float]], tuple[str]]:
    """Return the columns of a run, and the name of its feature: its tag, or score where lines differ in it."""
    position = Position(path)
    queries: list[str] = []
    documents: list[str] = []
    scores: list[float] = []
    tags: set[str] = set()
    for line in lines_of(position):
        words = line.split()
        if not words:
            continue
        score = _number(words[4]) if len(words) == 6 else None
        if score is None:
            what = "judgments, which --qrels takes (in Python, qrels=)" if len(words) == 4 else "no such line"
            raise DataError(f"{path}:{position.lines}: {line[:60]!r} is {what}. {_FORM}")
        queries.append(words[0])
        documents.append(words[2])
        scores.append(score)
        tags.add(words[5])
    if not scores:
        raise DataError(f"{path}: holds no documents. {_FORM}")
    name = tags.pop() if len(tags) == 1 else "score"
    name = "score" if name in ("qid", "docid") else name
    return {"qid": queries, "docid": documents, name: scores}, (name,)


def _number(word: str) -> float | None:
    try:
        number = float(word)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
