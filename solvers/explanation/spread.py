"""How far each feature moves the scores of a query apart: the deviation of its contributions within queries.

For a linear model this is the weight times the deviation of the feature. It has the unit of the score, so that features
of different ranges can be compared, and those of the parts of a blend.
"""

from __future__ import annotations

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.explanation.contributions import contributions, linear_terms
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel

DOCUMENTS = 10
"""Documents of a query whose contributions by trees are computed, at most."""
SECONDS = 2.5e-7
"""Time of the contributions of one tree to the difference of two documents, and of one value by a linear model."""


def contribution_spread(
    model: LinearModel | TreeModel, queries: Queries, generator: np.random.Generator, seconds: float
) -> Floats:
    """Return the deviation of each feature's contributions from their mean in a query, (n_features,).

    It is the root of the mean square over documents, then over queries. The queries are drawn, as many as take about
    the given time; NaN if that is not enough for a single one.
    """
    linear = isinstance(model, LinearModel)
    documents = queries.n_documents / queries.n_queries
    cost = documents * model.nonzeros if linear else min(documents, DOCUMENTS) ** 2 * _trees(model)
    count = min(int(seconds / (SECONDS * max(cost, 1.0))), queries.n_queries)
    squares = np.zeros(model.n_features)
    for q in generator.choice(queries.n_queries, count, replace=False):
        query = queries.select([int(q)])
        rows = _drawn(query, generator)
        if isinstance(model, LinearModel):
            squares[model.used_features] += _variance(linear_terms(model, query))
        else:
            squares += (contributions(model, query, rows, rows) ** 2).mean(axis=0)
    spread: Floats = np.sqrt(squares / count) if count else np.full(model.n_features, np.nan)
    return spread


def _variance(terms: Floats) -> Floats:
    """Return the variance of each column, infinite where squares overflow."""
    with np.errstate(over="ignore"):
        variances: Floats = terms.var(axis=0)
    return variances


def _trees(model: LinearModel | TreeModel) -> int:
    return model.trees.n_trees if isinstance(model, TreeModel) else 1


def _drawn(query: Queries, generator: np.random.Generator) -> Ints:
    if query.n_documents <= DOCUMENTS:
        return np.arange(query.n_documents)
    return generator.choice(query.n_documents, DOCUMENTS, replace=False)
