"""Functions and classes related to a given one: by a model trained on api-search, and by BM25 for comparison."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints, Json
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.api_search.dataset import Progress, Table, load_table
from ranktune.solvers.data.api_search.features import FEATURE_NAMES
from ranktune.solvers.data.queries import Queries


class Scorer(Protocol):
    """A model of api-search, fitted or loaded: higher scores are more related."""

    def predict(self, X: Queries) -> Floats:
        """Return the scores of the documents of X, (n_documents,)."""


class Entry(NamedTuple):
    """A candidate: its name, its summary, and its grade by "See Also", 2, 1 or 0."""

    name: str
    summary: str
    grade: int


@dataclass(frozen=True)
class Related:
    """The first candidates of a query by the model (ours) and by BM25.

    judged  number of candidates that "See Also" names
    part    part of the data: train (a model was fitted on it), vali or test; None if no candidate is graded
    """

    query: str
    summary: str
    ours: list[Entry]
    bm25: list[Entry]
    judged: int
    part: str | None

    def as_dict(self) -> Json:
        """Return the fields as JSON values; an entry becomes {name, summary, grade}."""
        rankings = {"ours": [each._asdict() for each in self.ours], "bm25": [each._asdict() for each in self.bm25]}
        return {"query": self.query, "summary": self.summary, **rankings, "judged": self.judged, "part": self.part}


def related(
    name: str,
    model: Scorer,
    *,
    count: int = 10,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Related:
    """Return the count candidates that model ranks first for the documented object called name, and BM25's.

    name is a public name (numpy.argsort, np.argsort) or an end of one that no other shares (RidgeCV).
    Raises DataError where no object or several have that name, or where the model was fitted on other features.
    """
    return related_in(load_table(cache, progress), name, model, count=count)


def related_in(table: Table, name: str, model: Scorer, *, count: int = 10) -> Related:
    """Return the result of `related` for a loaded table."""
    if count < 1:
        raise ParameterError(f"count is {count}: it must be at least 1.")
    number = table.known.find(name)
    scores = _scores(model, table.queries(np.array([number])))
    order = np.argsort(-scores, kind="stable")  # equal scores keep the order of BM25
    part = next((part for part, numbers in table.parts.items() if number in numbers), None)
    return Related(
        query=table.names[number],
        summary=table.summaries[number],
        ours=_entries(table, number, order[:count]),
        bm25=_entries(table, number, np.arange(len(scores))[:count]),
        judged=int(np.count_nonzero(table.grades[number])),
        part=part,
    )


def _scores(model: Scorer, query: Queries) -> Floats:
    names = getattr(model, "feature_names", None)
    if names is not None and tuple(names) != FEATURE_NAMES:
        raise DataError(
            f"the model has {len(names)} features, not the {len(FEATURE_NAMES)} of api-search: "
            "train one on api-search with this version (ranktune tune)."
        )
    return np.asarray(model.predict(query), dtype=np.float64)


def _entries(table: Table, query: int, places: Ints) -> list[Entry]:
    numbers = table.candidates[query, places]
    grades = table.grades[query, places]
    return [Entry(table.names[i], table.summaries[i], int(g)) for i, g in zip(numbers, grades, strict=True)]
