"""What is kept of the explanations of a split's models, so that pages show them without the data.

Kept in explanations.json. The time for them is limited, and what takes longer is left out: `ranktune explain` computes
it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import StudyError
from ranktune.tuner.selection.importance import Importance
from ranktune.tuner.splits.sealing import check_sealed, write_sealed
from ranktune.tuner.statistics.intervals import Interval

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
        return Explanations(
            label=_text(content["label"]),
            part=_text(content["part"]),
            metric=_text(content["metric"]),
            queries=_count(content["queries"]),
            total=_count(content["total"]),
            repeats=_count(content["repeats"]),
            importance=tuple(_importance(one) for one in content["importance"]),
            effects=tuple(_effect(one) for one in content["effects"]),
            spreads={
                label: {kind: {int(j): _number(x) for j, x in own.items()} for kind, own in parts.items()}
                for label, parts in content["spreads"].items()
            },
            closely=tuple(_query(one) for one in content["closely"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StudyError(f"cannot read {path}: {error}.") from None


def _importance(value: Any) -> Importance:
    loss = value["loss"]
    return Importance(_text(value["feature"]), Interval(*(_number(loss[end]) for end in ("mean", "low", "high"))))


def _effect(value: Any) -> Effect:
    values, shares, effects = (_numbers(value[name]) for name in ("values", "shares", "effects"))
    if not len(values) == len(shares) == len(effects):
        raise ValueError("an effect has values, shares and effects of different lengths")
    return Effect(_text(value["feature"]), values, shares, effects)


def _query(value: Any) -> ExplainedQuery:
    documents, features = (tuple(_text(one) for one in value[name]) for name in ("documents", "features"))
    contributions = tuple(_numbers(row) for row in value["contributions"])
    scores, ranks = _numbers(value["scores"]), tuple(_count(one) for one in value["ranks"])
    if not len(documents) == len(contributions) == len(scores) == len(ranks):
        raise ValueError("a query has another number of scores than of documents")
    if any(len(row) != len(features) + 1 for row in contributions):
        raise ValueError("a document has another number of contributions than of features")
    mean, background = _number(value["mean"]), _count(value["background"])
    return ExplainedQuery(_text(value["query"]), documents, ranks, scores, mean, background, features, contributions)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{str(value)[:40]!r} is no text")
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{str(value)[:40]!r} is no number")
    return float(value)


def _numbers(values: Any) -> tuple[float, ...]:
    return tuple(_number(value) for value in values)


def _count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{str(value)[:40]!r} is no count")
    return value
