"""Counts of clicks for tests: by hand, and of simulated logs whose truth is known."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from scipy.special import xlog1py, xlogy

from ranktune.solvers.clicks.counts import ClickCounts, Impressions
from ranktune.solvers.clicks.fitted import SURE, FittedClicks
from ranktune.solvers.core.arrays import Floats, Ints, as_ints
from ranktune.solvers.data.queries import Queries
from tests.support.click_simulation import Users, simulated


def impressions(query: Ints, document: Ints, position: Ints, click: Floats) -> Impressions:
    """Impressions without times, a session each."""
    names = [f"q{number}" for number in range(int(query.max()) + 1)]
    documents = [f"d{number}" for number in range(int(document.max()) + 1)]
    return Impressions(query, document, position, click, np.arange(len(query)), None, None, names, documents, [])


def counted(rows: Iterable[tuple[int, int, int, int, float]]) -> ClickCounts:
    """Counts from rows of query, document, position, impressions and clicks, in any order."""
    query, document, position, shown, clicks = np.array(sorted(rows), dtype=float).T
    batch = impressions(as_ints(query), as_ints(document), as_ints(position), clicks)
    return replace(ClickCounts.of([batch]), shown=shown)


def drawn_counts(
    generator: np.random.Generator, *, queries: int = 4, documents: int = 6, positions: int = 5
) -> ClickCounts:
    """A few pairs that were seen at some positions, with clicks of a position-based model."""
    attraction = generator.uniform(0.1, 0.7, (queries, documents))
    rows = []
    for q, d, k in np.ndindex(queries, documents, positions):
        if generator.random() < 0.6:
            shown = int(generator.integers(20, 200))
            rows.append((q, d, k + 1, shown, int(generator.binomial(shown, attraction[q, d] / (k + 1)))))
    return counted(rows)


def graded_queries(generator: np.random.Generator, n_queries: int, n_documents: int = 20) -> tuple[Queries, Floats]:
    """Queries with grades 0 to 3, and scores of a ranking that is better than chance."""
    n = n_queries * n_documents
    X = generator.normal(size=(n, 4))
    grades = np.clip(np.round(X @ [1.0, 0.5, 0.2, 0.0] + generator.normal(size=n)), 0, 3)
    return Queries.from_arrays(X, grades, group=[n_documents] * n_queries), X[:, 0] + 0.5 * generator.normal(size=n)


def simulated_counts(
    users: Users, seed: int, *, n_queries: int = 50, sessions: int = 100_000
) -> tuple[ClickCounts, Floats]:
    """Counts of sessions over graded queries, and the true probability of a click at position 1 of each pair."""
    generator = np.random.default_rng(seed)
    queries, scores = graded_queries(generator, n_queries)
    counts = ClickCounts.of([simulated(queries, users, sessions, generator, scores=scores, spread=0.7)])
    up, down = (rates[0] for rates in users.rates(np.array([1])))
    attraction = users.attraction(queries.grades)[counts.document[counts.firsts]]
    return counts, down + (up - down) * attraction


def log_loss(fitted: FittedClicks, counts: ClickCounts) -> float:
    """Mean negative logarithm of the likelihood of an impression, in nats; counts are those of a later log."""
    p = np.clip(fitted.click_probability(counts), SURE, 1.0 - SURE)
    gains = xlogy(counts.clicks, p) + xlog1py(counts.shown - counts.clicks, -p)
    return float(-gains.sum() / counts.shown.sum())
