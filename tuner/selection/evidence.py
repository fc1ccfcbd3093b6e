"""What is kept of a split's models so that pages show them without the data: evidence, and explanations.

Evidence is in evidence.npz, plain arrays and one JSON text, so that pages can compare any two models by query:

labels    the rows of the leaderboard, the chosen first        part   "test", or "vali" where there is no test set
values    metric -> (n_labels, n_queries), NaN where the metric skips a query
weights   (n_queries,) how often each query counts; None if each counts once
periods   where times are known, what the chosen model and the baseline scored by period
closely   a few queries with all their documents, grades, and the scores that each model gave

Explanations are in explanations.json. The time for them is limited, and what takes longer is left out: `ranktune
explain` computes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import StudyError
from ranktune.solvers.core.files.archives import readable, write_archive
from ranktune.solvers.data.queries import Queries
from ranktune.tuner.selection.typed import typed
from ranktune.tuner.splits.seals import check_sealed, read_sealed_arrays, write_sealed
from ranktune.tuner.statistics.measured import Interval
from ranktune.tuner.statistics.periods import Period

EVIDENCE = "evidence.npz"
MAX_EXAMPLES = 40
"""Queries whose documents are kept: those with the worst scores of the chosen model, and those where models differ."""
MAX_DOCUMENTS = 200
"""Documents kept of one query at most: those that any model ranks first."""


@dataclass(frozen=True)
class QueryDocuments:
    """One query with its documents: ids, grades, and scores by label, all (n_documents,)."""

    query: str
    documents: tuple[str, ...]
    grades: tuple[float, ...]
    scores: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True, eq=False)
class Evidence:
    """See the module; models are the labels' files, relative to the evidence's folder, "" where there is none."""

    part: str
    labels: tuple[str, ...]
    models: tuple[str, ...]
    queries: tuple[str, ...]
    values: Mapping[str, Floats]
    closely: tuple[QueryDocuments, ...]
    weights: Floats | None = None
    periods: tuple[Period, ...] = ()


def select_queries(values: Floats) -> list[int]:
    """Return numbers of queries: half that the first row ranks worst, half where rows differ most; values (rows, n)."""
    scored = np.flatnonzero(~np.isnan(values).all(axis=0))
    spread = np.nanmax(values[:, scored], axis=0) - np.nanmin(values[:, scored], axis=0)
    worst = scored[np.argsort(np.nan_to_num(values[0, scored], nan=1.0), kind="stable")]
    differing = scored[np.argsort(-spread, kind="stable")]
    chosen = dict.fromkeys(int(q) for q in [*worst[: MAX_EXAMPLES // 2], *differing[:MAX_EXAMPLES]])
    return list(chosen)[:MAX_EXAMPLES]


def query_documents(
    queries: Queries, numbers: Sequence[int], labels: Sequence[str], scores: Sequence[Floats]
) -> tuple[QueryDocuments, ...]:
    """Return the documents of the queries of these numbers; scores are (n_documents,) each, in the order of queries."""
    shown = []
    ids = queries.document_ids
    for q in numbers:
        a, b = int(queries.starts[q]), int(queries.starts[q + 1])
        rows = np.arange(a, b)
        if b - a > MAX_DOCUMENTS:
            ranks = np.min([np.argsort(np.argsort(-values[a:b], kind="stable")) for values in scores], axis=0)
            rows = a + np.sort(np.argsort(ranks, kind="stable")[:MAX_DOCUMENTS])
        names = tuple(str(ids[i]) if ids is not None else f"document {i - a + 1}" for i in rows)
        by_label = {label: tuple(values[rows].tolist()) for label, values in zip(labels, scores, strict=True)}
        shown.append(QueryDocuments(str(queries.query_ids[q]), names, tuple(queries.grades[rows].tolist()), by_label))
    return tuple(shown)


def write_evidence(evidence: Evidence, path: Path) -> None:
    """Write evidence atomically."""
    header = {
        "part": evidence.part,
        "labels": evidence.labels,
        "models": evidence.models,
        "queries": evidence.queries,
        "metrics": list(evidence.values),
        "periods": [asdict(period) for period in evidence.periods],
        "closely": [asdict(query) for query in evidence.closely],
    }
    arrays = {f"values{k}": values for k, values in enumerate(evidence.values.values())}
    if evidence.weights is not None:
        arrays["weights"] = evidence.weights
    write_sealed(path, write_archive(arrays, header, small=True))


def read_evidence(path: Path) -> Evidence:
    """Return what write_evidence wrote. Raises Damaged (a StudyError) where the file is not that."""
    header, arrays = read_sealed_arrays(path)
    with readable(path):
        values = {name: np.asarray(arrays[f"values{k}"], np.float64) for k, name in enumerate(header["metrics"])}
        examples = tuple(typed(QueryDocuments, query) for query in header["closely"])
        labels, models, queries = (tuple(header[name]) for name in ("labels", "models", "queries"))
        weights = np.asarray(arrays["weights"], np.float64) if "weights" in arrays else None
        periods = tuple(typed(Period, period) for period in header.get("periods", ()))
        return Evidence(header["part"], labels, models, queries, values, examples, weights, periods)


EXPLANATIONS = "explanations.json"
MAX_FEATURES = 2_000
"""Features whose spread is kept: those of the greatest."""


@dataclass(frozen=True)
class FeatureImportance:
    """What the metric loses where the values of a feature, or of those of one column, are shuffled within queries.

    loss has the 95 percent interval over queries.
    """

    feature: str
    loss: Interval


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
    importance: tuple[FeatureImportance, ...]
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


def write_explanations(explanations: Explanations, path: Path) -> None:
    """Write explanations atomically."""
    write_sealed(path, json.dumps(asdict(explanations)))


def read_explanations(path: Path) -> Explanations:
    """Return what write_explanations wrote. Raises StudyError for an invalid file."""
    check_sealed(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return typed(Explanations, content)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StudyError(f"cannot read {path}: {error}.") from None
