"""Learning grades from one document at a time: a score and thresholds between the grades (Prank)."""

from __future__ import annotations

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.online.rows import Rows, add_row, row_score


@compiled
def learn(
    rows: Rows,
    levels: Ints,
    starts: Ints,
    places: Ints,
    order: Ints,
    stretch: Floats,
    weights: Floats,
    thresholds: Floats,
    now: Floats,
    scores: Floats,
) -> None:
    """Learn from the documents of the queries in order; before each query, if scores has room, write its scores.

    levels (n_documents,) grades numbered from 0; thresholds (n_grades - 1,); now: queries, documents, sum of the
    distances between the grade predicted and the grade.
    """
    for q in order:
        if len(scores) > 0:
            for i in range(starts[q], starts[q + 1]):
                scores[i] = row_score(rows, i, weights)
        now[0] += 1.0
        for p in range(starts[q], starts[q + 1]):
            learn_document(rows, places[p], levels[places[p]], stretch, weights, thresholds, now)


@compiled
def learn_document(
    rows: Rows, i: int, level: int, stretch: Floats, weights: Floats, thresholds: Floats, now: Floats
) -> None:
    """Learn from document i, whose grade is number level: thresholds below level must lie below its score."""
    score = row_score(rows, i, weights)
    now[1] += 1.0
    predicted = len(thresholds)
    for r in range(len(thresholds)):
        if score < thresholds[r]:
            predicted = r
            break
    if predicted == level:
        return
    now[2] += abs(predicted - level)
    total = 0.0
    for r in range(len(thresholds)):
        side = 1.0 if level > r else -1.0
        if (score - thresholds[r]) * side <= 0.0:
            total += side
            thresholds[r] -= side
    add_row(rows, i, total, stretch, weights)
