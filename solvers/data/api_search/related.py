"""Functions and classes related to a given one: by a model trained on api-search, and by BM25 for comparison."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints, Json
from ranktune.solvers.core.errors import DataError, ParameterError, listed
from ranktune.solvers.data.api_search.dataset import FEATURE_NAMES, PARTS, Table, load_table
from ranktune.solvers.data.queries import Queries

_NICKNAMES = {"np": "numpy", "sp": "scipy", "skl": "sklearn"}
_SHOWN = 8


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


def related(name: str, model: Scorer, *, count: int = 10, table: Table | None = None) -> Related:
    """Return the count candidates that model ranks first for the documented object called name, and BM25's.

    name is a public name (numpy.argsort, np.argsort) or an end of one that no other shares (RidgeCV).
    Raises DataError where no object or several have that name, or where the model was fitted on other features.
    """
    if count < 1:
        raise ParameterError(f"count is {count}: it must be at least 1.")
    table = load_table() if table is None else table
    number = find(name, table)
    scores = _scores(model, table.queries(np.array([number])))
    order = np.argsort(-scores, kind="stable")  # equal scores keep the order of BM25
    part = int(table.part[number])
    return Related(
        query=table.names[number],
        summary=table.summaries[number],
        ours=_entries(table, number, order[:count]),
        bm25=_entries(table, number, np.arange(len(scores))[:count]),
        judged=int(np.count_nonzero(table.grades[number])),
        part=PARTS[part - 1] if part else None,
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


def find(name: str, table: Table) -> int:
    """Return the number of the object of table called name, a public name or the end of one.

    Raises DataError, with names to choose from, where no object or several have that name.
    """
    name = name.strip().removesuffix("()")
    known = table.aliases | {full: at for at, full in enumerate(table.names)}
    first, dot, rest = name.partition(".")
    full = f"{_NICKNAMES[first]}.{rest}" if dot and first in _NICKNAMES else name
    if full in known:
        return known[full]
    matches: set[int] = set()
    for fold in (str, str.lower):  # letter case is ignored if no name ends so
        matches = matches or {at for other, at in known.items() if name and fold(other).endswith("." + fold(name))}
    if len(matches) == 1:
        return matches.pop()
    if matches:
        names = sorted((table.names[at] for at in matches), key=lambda match: (match.count("."), match))
        raise DataError(f"'{name}' is the end of several names: {listed(names, _SHOWN)}. Write one in full.")
    raise DataError(f"nothing documented is called '{name}'. {_nearest(name, table.names)}")


def _nearest(name: str, names: tuple[str, ...]) -> str:
    ends = [full.rpartition(".")[2].lower() for full in names]
    near_ends = set(difflib.get_close_matches(name.rpartition(".")[2].lower(), sorted(set(ends)), n=3, cutoff=0.6))
    near = sorted(full for full, end in zip(names, ends, strict=True) if end in near_ends)
    near.sort(key=lambda full: -difflib.SequenceMatcher(None, name.lower(), full.lower()).ratio())
    if near:
        return f"Nearest: {', '.join(near[:_SHOWN])}."
    packages = sorted({full.partition(".")[0] for full in names})
    return f"Known are the public functions and classes of {', '.join(packages)}, such as {names[0]}."
