"""Further columns of a click log that a ranker may not learn from: positions, outcomes, and what later events made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from scipy.stats import binom, rankdata

from ranktune.solvers.clicks.counts import sums
from ranktune.solvers.clicks.features.future import Future, drawn
from ranktune.solvers.clicks.features.history import FEATURES, SearchEvents
from ranktune.solvers.clicks.reading.events import MOST_TEXTS
from ranktune.solvers.core.arrays import Array, Floats, Ints, as_floats, as_ints
from ranktune.solvers.data.columns.encoding import Age
from ranktune.solvers.data.columns.learning import FeatureColumn, feature_columns
from ranktune.solvers.data.columns.roles import Roles
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.sources.inspection import MIN_PAIRS, MIN_QUERIES, NEARLY_ALL, POSITION
from ranktune.solvers.metrics.metrics import parse_metric

OUTCOME, FUTURE, CONSTANT, TEXT = "outcome", "future", "constant", "text"
MOST_ROWS = 1_000_000
"""Impressions that are looked at, about: those of some documents, and those of some searches."""
FOLLOWS = 0.95
"""Rank correlation from which a column follows positions: that of a page of ten with four swaps of neighbours."""
CHANCE = 1e-9
"""Probability below which it is no chance that something was clicked wherever a column says something."""


@dataclass(frozen=True)
class Leak:
    """A column that a ranker may not learn from.

    Attributes
    ----------
    name : str
        The column.
    kind : str
        "position": it follows the position within searches; "outcome": the click of its own row sets it; "future": it
        knows the clicks or impressions that came after it; "constant": it says nothing, and is no leak, as is "text":
        it is of text that tune makes no category of.
    reason : str
        Why, as the end of a sentence that begins with the column.
    seemed : float
        NDCG@10 of the clicks in the later half of the searches, ranked by the column alone, up or down; NaN without
        clicks.
    known : float
        The same by clicks over expected clicks as of the search, of documents or of pairs, whichever is higher.
    """

    name: str
    kind: str
    reason: str
    seemed: float
    known: float

    def __str__(self) -> str:
        """Return a description."""
        if self.kind in (CONSTANT, TEXT):
            return f"{self.name} {self.reason}"
        return (
            f"{self.name} {self.reason} Ranking later searches by it alone seems to bring NDCG@10 {self.seemed:.3f}; "
            f"by what was known before them it is {self.known:.3f}."
        )


def leaks(
    history: Iterable[SearchEvents],
    names: Sequence[str],
    values: Callable[[SearchEvents], Floats],
    n_impressions: float,
    texts: Mapping[str, Array],
) -> list[Leak]:
    """Return the leaks among further columns.

    Named are columns that say nothing, that follow the position within searches, that the click of the own row sets or
    changes, and that know the chance in the clicks or impressions of their documents, or of queries and documents, over
    the log, its later half, or a day (`future`). A log of fewer than about thirty documents does not tell the last.
    Text is taken as tune takes it: of a category, what is clicked is predicted by the rates of clicks of its values in
    other searches, and the position by the commonest value of each.

    Parameters
    ----------
    history : iterable of SearchEvents
        All of a log.
    names : sequence of str
        The columns.
    values : callable
        Returns them for a window, (n, n_names), NaN where there is none.
    n_impressions : float
        Of the log.
    texts : mapping of str to ndarray
        Column -> the texts whose places are its values, and None.
    """
    if not names:
        return []
    share = min(1.0, MOST_ROWS / n_impressions)
    parts: list[tuple[Array, ...]] = []
    for window in history:
        of_search, of_document = (drawn(window.rows[name], share) for name in ("search", "document"))
        ratios = window.features[:, [FEATURES.index("document_ratio"), FEATURES.index("pair_ratio")]]
        rows_drawn = of_search | of_document
        columns = window.rows, window.time, of_search, of_document, values(window), ratios
        parts.append(tuple(column[rows_drawn] for column in columns))
    rows, time, of_search, of_document, further, ratios = (np.concatenate(each) for each in zip(*parts, strict=True))
    shown, future = _Searches(rows[of_search]), Future(rows[of_document], time[of_document])
    before = max(map(shown.ndcg, ratios[of_search].T))
    unknown = float("nan"), before
    found = []
    for name, column in zip(names, further.T, strict=True):
        present = column[~np.isnan(column)]
        if not present.size or not (len(present) < len(column) or present.min() < present.max()):
            found.append(Leak(name, CONSTANT, "is the same in all impressions.", *unknown))
            continue
        x = np.where(np.isnan(column), np.nextafter(present.min(), -np.inf), column)
        value = x
        if name in texts:
            learnt = category_of(texts_of(column[of_search], texts[name]), shown.search)
            if not learnt.is_usable or len(texts[name]) > MOST_TEXTS:
                found.append(Leak(name, TEXT, f"is left out: {learnt.what}, of which no category is made.", *unknown))
                continue
            x = in_order(column, texts[name])
            value = x if isinstance(learnt.kind, Age) else rates(rows, x)
        kind, reason = shown.suspicion(value[of_search], x[of_search], name in texts)
        if not kind and _changes_with_clicks(rows[of_document], value[of_document]):
            kind, reason = OUTCOME, "changes with the click of its own row."
        if not kind and (reason := future.reason(x[of_document], len(names))):
            kind = FUTURE
        if kind:
            seemed = max(shown.ndcg(sign * value[of_search]) for sign in (1.0, -1.0))
            found.append(Leak(name, kind, reason, seemed, before))
    return found


class _Searches:
    """Whole searches, the rows of each adjacent, and what a column says of positions and clicks in them."""

    def __init__(self, rows: Array) -> None:
        self.click = rows["click"]
        self.search = as_ints(np.cumsum(np.diff(rows["search"], prepend=rows["search"][:1]) != 0))
        self.sizes = as_floats(np.bincount(self.search))
        self.position, self.place = as_ints(rows["position"]), self._ranks(rows["position"])
        self.later = self.search >= len(self.sizes) // 2
        grades = self.click[self.later]
        self.queries = Queries.from_arrays(np.zeros((len(grades), 1)), grades, qid=self.search[self.later])

    def _ranks(self, values: Array) -> Floats:
        """Return the ranks of values within searches, (n,), less their mean."""
        levels, level = np.unique(values, return_inverse=True)
        middle = np.cumsum(self.sizes) - (self.sizes - 1.0) / 2.0
        return np.asarray(rankdata(self.search * len(levels) + level) - middle[self.search])

    def suspicion(self, x: Floats, level: Floats, is_text: bool) -> tuple[str, str]:
        """Return the kind of leak that a column is within searches and why, two empty texts if it is none.

        level is the column itself, x what it is ranked by.
        """
        ranks, clicked = self._ranks(x), self.click > 0.0
        ordered = len(np.unique(self.search[(ranks != 0.0) & (self.place != 0.0)]))
        size = float(np.sqrt((ranks @ ranks) * (self.place @ self.place)))
        follows = float(ranks @ self.place) / max(size, 1.0)
        if ordered >= MIN_QUERIES and abs(follows) >= FOLLOWS:
            return POSITION, f"follows the position within searches (rank correlation {follows:.3f})."
        if is_text and ordered >= MIN_QUERIES and (share := predicted_by(level, self.position)) >= FOLLOWS:
            return POSITION, f"is predicted by the position: it errs {1.0 - share:.0%} as often as the commonest value."
        hits = sums(self.search, clicked.astype(float), len(self.sizes))
        pairs = float((hits * (self.sizes - hits)).sum())
        agreement = 0.5 + abs(ranks[clicked].sum()) / max(pairs, 1.0)
        if pairs >= MIN_PAIRS and agreement >= NEARLY_ALL:
            return OUTCOME, f"alone tells what is clicked in a search in {agreement:.1%} of the pairs."
        levels, counts = np.unique(level, return_counts=True)
        differs = level != levels[counts.argmax()]
        n, n_clicked = int(differs.sum()), int(clicked[differs].sum())
        if n_clicked >= NEARLY_ALL * n and binom.sf(n_clicked - 1, n, clicked.mean()) < CHANCE:
            return OUTCOME, "has more than its commonest value only where something was clicked."
        return "", ""

    def ndcg(self, scores: Floats) -> float:
        """Return NDCG@10 of the clicks in the later half."""
        values = parse_metric("ndcg@10").per_query(scores[self.later], self.queries)
        return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")


def _changes_with_clicks(rows: Array, x: Floats) -> bool:
    """Return whether the change of a column since the impression of its document before tells the click."""
    for unit in ("document", "pair"):
        order = np.argsort(rows[unit], kind="stable")
        same = np.diff(rows[unit][order]) == 0
        change, clicked = np.diff(x[order])[same], rows["click"][order][1:][same] > 0.0
        n = float(clicked.sum())
        pairs = n * (len(clicked) - n)
        if pairs >= MIN_PAIRS:
            agreement = (rankdata(change)[clicked].sum() - n * (n + 1.0) / 2.0) / pairs
            if max(agreement, 1.0 - agreement) >= NEARLY_ALL:
                return True
    return False


def texts_of(values: Floats, texts: Array) -> list[str | None]:
    """Return the texts of the values of a column, (n,), None where they are nan; texts end with None."""
    return list(texts[as_ints(np.where(np.isnan(values), -1.0, values))])


def category_of(column: list[str | None], search: Ints) -> FeatureColumn:
    """Return what tune takes a column of text as, (n,); search is the number of the search of each row."""
    table = pa.table({"x": pa.array(column, pa.string())})
    return feature_columns(table, Roles({}, ("x",)), lambda: search, "keep", len(column))["x"]


def in_order(values: Floats, texts: Array) -> Floats:
    """Return the places of the values of a column among its texts in alphabetical order, -1 where there is none."""
    order = np.argsort(np.argsort(texts[:-1].astype(str)))
    return as_floats(np.append(order, -1)[as_ints(np.where(np.isnan(values), -1.0, values))])


def rates(rows: Array, level: Floats) -> Floats:
    """Return the rate of clicks of each row's level, (n,), in that half of the searches that does not have the row."""
    code, half = as_ints(level + 1.0), drawn(rows["search"], 0.5)
    n = int(code.max()) + 1
    cell = as_ints(code + n * ~half)  # of the rows of the other half
    clicks, shown = (sums(as_ints(code + n * half), values, 2 * n) for values in (rows["click"], np.ones(len(code))))
    mean = rows["click"].mean()
    return as_floats(((clicks + mean) / (shown + 1.0))[cell])


def predicted_by(level: Floats, position: Ints) -> float:
    """Return the share of the errors of guessing a level that the position spares (Goodman & Kruskal's lambda)."""
    code = np.unique(level, return_inverse=True)[1]
    table = np.zeros((int(position.max()) + 1, int(code.max()) + 1))
    np.add.at(table, (position, code), 1.0)
    right, commonest = table.max(axis=1).sum(), table.sum(axis=0).max()
    return float((right - commonest) / max(len(level) - commonest, 1.0))
