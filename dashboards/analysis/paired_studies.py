"""Rows of several studies, models and baselines, paired by query: which were evaluated on the same queries, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ranktune.dashboards.records.study import StudyData
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import StudyError
from ranktune.tuner.study.home import StudyFolder

_SOURCES = ("data", "vali", "test", "time", "gap", "group_by_time", "qrels", "seed", "plan", "folds", "outer")


@dataclass(frozen=True, eq=False)
class PairedRows:
    """Rows of studies on the same queries.

    labels  study and row; chosen: the numbers of the rows that the studies chose, study by study
    splits  (n_labels, n_queries) a split, NaN where the metric skips a query
    weights  (n_queries,) a split, how often each query counts; None if each counts once
    part    "test", or "vali" where there were no test queries
    """

    labels: tuple[str, ...]
    chosen: tuple[int, ...]
    splits: tuple[Floats, ...]
    weights: tuple[Floats | None, ...]
    part: str


def paired_rows(studies: Sequence[StudyData], names: Sequence[str]) -> PairedRows | str:
    """Return the rows of studies by query, or why they cannot be paired, in a sentence."""
    metric = studies[0].metric
    if any(study.result is None for study in studies):
        return "Queries are compared once all studies are finished."
    if any(study.metric != metric for study in studies):
        return "The studies maximise different metrics: their values are not comparable."
    known = [study.evidence for study in studies]
    queries = {tuple((name, scores.part, scores.queries) for name, scores in of_study) for of_study in known}
    if not all(known) or len(queries) > 1 or not _same_data(studies):
        return "The studies were not evaluated on the same queries: they cannot be compared query by query."
    weights = [evidence.weights for _, evidence in known[0]]
    if any(
        not _is_same(scores.weights, first)
        for study_scores in known
        for (_, scores), first in zip(study_scores, weights, strict=True)
    ):
        return "The queries have other weights in one study than in another: the means are not comparable."
    labels: list[str] = []
    chosen: list[int] = []
    parts: list[list[Floats]] = [[] for _ in known[0]]
    for study, scores, name in zip(studies, known, names, strict=True):
        chosen.append(len(labels))
        everywhere = [label for label in study.common_labels if label != scores[0][1].labels[0]]
        labels += [f"{name}: {label}" for label in ("the chosen", *everywhere)]
        for place, (_, evidence) in enumerate(scores):
            values = evidence.values[metric]
            parts[place].append(values[[0, *(evidence.labels.index(label) for label in everywhere)]])
    stacked = tuple(np.concatenate(values) for values in parts)
    return PairedRows(tuple(labels), tuple(chosen), stacked, tuple(weights), known[0][0][1].part)


def _is_same(first: Floats | None, second: Floats | None) -> bool:
    """Return whether weights are the same; None stands for weights of 1."""
    return bool(np.all((1.0 if first is None else first) == (1.0 if second is None else second)))


def _same_data(studies: Sequence[StudyData]) -> bool:
    """Return whether the studies have data of one digest, or name the same files: features may differ."""
    declared = [study.study.as_dict() for study in studies]
    if all(all(source.get(name) == declared[0].get(name) for name in _SOURCES) for source in declared):
        return True
    try:
        digests = [StudyFolder(study.folder).digests() for study in studies]
    except StudyError:
        return False
    return all(digest == digests[0] for digest in digests)
