"""What is kept of the explanations of a split's models, so that pages show them without the data.

Kept in explanations.json. The time for them is limited, and what takes longer is left out: `ranktune explain` computes
it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import StudyError
from ranktune.tuner.selection.importance import Importance
from ranktune.tuner.selection.typed import typed
from ranktune.tuner.splits.sealing import check_sealed, write_sealed

EXPLANATIONS = "explanations.json"
MAX_FEATURES = 2_000
"""Features whose spread is kept: those of the greatest."""


@dataclass(frozen=True)
class Effect:
    """The effect of the values of a feature on the score; shares are those of the documents up to each value."""

    feature: str
    values: tuple[float, ...]
    shares: tuple[float, ...]
    effects: tuple[float, ...]

    def __post_init__(self) -> None:
        """Raise ValueError where the lengths differ."""
        if not len(self.values) == len(self.shares) == len(self.effects):
            raise ValueError("an effect has values, shares and effects of different lengths")


@dataclass(frozen=True)
class ExplainedQuery:
    """The contributions of features to the scores of the first documents of a query, and of the best of them.

    ranks count from 1. A score is that above the mean of `background` documents of the query. contributions has a row
    for each document, whose last number is the sum of all features that are not named.
    """

    query: str
    documents: tuple[str, ...]
    ranks: tuple[int, ...]
    scores: tuple[float, ...]
    mean: float
    background: int
    features: tuple[str, ...]
    contributions: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        """Raise ValueError where the numbers of documents or of features differ."""
        if not len(self.documents) == len(self.contributions) == len(self.scores) == len(self.ranks):
            raise ValueError("a query has another number of scores than of documents")
        if any(len(row) != len(self.features) + 1 for row in self.contributions):
            raise ValueError("a document has another number of contributions than of features")


@dataclass(frozen=True)
class Explanations:
    """The explanations of a split.

    label       the chosen model, of which importance, effects and closely are
    part        the queries that they are computed on: "test", or "training" where there are no test queries
    queries     how many of the importance, of how many in all; repeats: shuffles of each feature
    spreads     label -> kind of part -> feature number -> deviation of its contributions within queries
    """

    label: str
    part: str
    metric: str
    queries: int
    total: int
    repeats: int
    importance: tuple[Importance, ...]
    effects: tuple[Effect, ...]
    spreads: Mapping[str, Mapping[str, Mapping[int, float]]]
    closely: tuple[ExplainedQuery, ...]

    def __post_init__(self) -> None:
        """Raise ValueError where a number of queries or shuffles is negative."""
        if min(self.queries, self.total, self.repeats) < 0:
            raise ValueError("a number of queries or shuffles is negative")


def largest(spread: Floats) -> dict[int, float]:
    """Return the greatest entries of a spread by number of the feature, those of 0 left out."""
    order = np.argsort(-spread, kind="stable")[:MAX_FEATURES]
    return {int(j): float(f"{spread[j]:.6g}") for j in order if spread[j] > 0.0}


def write_explanations(found: Explanations, path: Path) -> None:
    """Write explanations atomically."""
    write_sealed(path, json.dumps(asdict(found)))


def read_explanations(path: Path) -> Explanations:
    """Return what write_explanations wrote. Raises StudyError for an invalid file."""
    check_sealed(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return typed(Explanations, content)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StudyError(f"cannot read {path}: {error}.") from None
