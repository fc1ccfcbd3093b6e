"""Partial effects: how the score changes with the value of one feature.

The value is given to one document after another, whose other features stay, as do the other documents of its query.
The effect is the mean, over the documents of a query and then over queries, of the document's score less the mean
score of its query. Source: Friedman 2001.
"""

from __future__ import annotations

import numpy as np

from ranktune.solvers.core.arrays import Floats, dense
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import MIN_SPREAD
from ranktune.solvers.explanation.contributions import check_alone, dense_columns, linear_terms, used_columns
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.blend import BlendModel
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel

POINTS = 20
"""Values of a feature at which its effect is computed, at most."""


def grid_of(queries: Queries, column: int, points: int = POINTS) -> Floats:
    """Return quantiles of a feature, ascending and distinct; none where all of its values are missing."""
    values = dense_columns(queries, np.array([column])).ravel()
    known = values[~np.isnan(values)]
    if len(known) == 0:
        return np.zeros(0)
    return np.unique(np.quantile(known, np.linspace(0.0, 1.0, points), method="nearest")).astype(np.float64)


def partial_effects(model: Model, queries: Queries, column: int, grid: Floats) -> Floats:
    """Return the effect of each value of a feature, (len(grid),); queries have the model's features.

    Features that a model scales in each query keep their scale. Raises ParameterError where a document's score depends
    on the others of its query in an unknown way.
    """
    if isinstance(model, BlendModel):
        parts = [partial_effects(part, queries, column, grid) for part in model.parts]
        added: Floats = np.sum(parts, axis=0)
        return added
    if column not in model.used_features:
        return np.zeros(len(grid))
    weights = 1.0 / (queries.n_queries * queries.lengths[queries.query_of_document])  # of documents
    if isinstance(model, LinearModel):
        return _linear_effects(model, queries, column, grid, weights)
    if isinstance(model, TreeModel):
        trees, X = used_columns(model, queries)
        scores, place = trees.scores, int(np.searchsorted(model.used_features, column))
    else:
        check_alone(model)
        scores, X, place = model.predict, dense(queries.features), column
    changed = np.array(X)
    before = float(weights @ scores(X))
    effects = np.empty(len(grid))
    for k, value in enumerate(grid):
        changed[:, place] = value
        effects[k] = weights @ scores(changed) - before
    return effects


def _linear_effects(model: LinearModel, queries: Queries, column: int, grid: Floats, weights: Floats) -> Floats:
    terms = linear_terms(model, queries)[:, np.searchsorted(model.used_features, column)]
    scale = float(weights @ _scales(queries, column)) if model.list_scaling else 1.0
    effects: Floats = model.weights[column] * scale * grid - weights @ terms
    return effects


def _scales(queries: Queries, column: int) -> Floats:
    """Return what a model that scales features in each query multiplies this one by, (n_documents,)."""
    values = dense_columns(queries, np.array([column])).ravel().astype(np.float64)
    low = np.fmin.reduceat(values, queries.starts[:-1])
    spread = np.fmax.reduceat(values, queries.starts[:-1]) - low
    known = spread >= MIN_SPREAD  # false where all values are missing too
    return (known / np.where(known, spread, 1.0))[queries.query_of_document]
