"""What each feature contributes to the scores of the documents of one query, and to a metric.

linear models   weight times the difference of the features; a missing value contributes what the model adds for it.
                Features that the model scales in each query have the scale of that query
trees           Shapley values: see tree_contributions
blends          the sum over their parts
other models    sampled Shapley values: see sampled_contributions; not where the scores of a document depend on which
                others there are

The importance of a feature is what a metric loses when its values are shuffled among the documents of a query. Then the
feature keeps its distribution there, and no longer says which document is better. What depends on the query alone stays
as it is, and can lose nothing. Features that measure the same, such as the columns of a category, can be shuffled
together. Source: Breiman 2001; Fisher, Rudin & Dominici 2019.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from scipy import sparse

from ranktune.solvers.core.arrays import Features, Floats, Ints, Matrix, dense
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.data.missing import Imputation
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import MIN_SPREAD, scaled_by_list
from ranktune.solvers.explanation.tree_contributions import tree_contributions
from ranktune.solvers.metrics.judgements import Judgements
from ranktune.solvers.metrics.metrics import Metric
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.blend import BlendModel
from ranktune.solvers.models.custom import CustomModel, takes_queries
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import Trees


def contributions(model: Model, query: Queries, documents: Ints, background: Ints) -> Floats:
    """Return the contribution of each feature to the scores of documents, (len(documents), n_features).

    documents and background are rows of query, a single query with the model's features. The contributions of a
    document add up to its score less the mean score of the background. Raises ParameterError for a model of which this
    cannot be said.
    """
    if isinstance(model, BlendModel):
        parts = [contributions(part, query, documents, background) for part in model.parts]
        added: Floats = np.sum(parts, axis=0)
        return added
    total = np.zeros((len(documents), query.n_features))
    used = model.used_features
    if len(used) == 0:
        return total
    if isinstance(model, LinearModel):
        terms = linear_terms(model, query)
        total[:, used] = terms[documents] - terms[background].mean(axis=0)
    elif isinstance(model, TreeModel):
        total[:, used] = tree_contributions(*used_columns(model, query), documents, background)
    else:
        check_alone(model)
        X, generator = dense(query.features), np.random.default_rng(0)
        total[:] = sampled_contributions(model.predict, X, documents, background, generator)
    return total


def is_exact(model: Model) -> bool:
    """Return whether the contributions are computed exactly, not sampled."""
    parts = model.parts if isinstance(model, BlendModel) else (model,)
    return all(isinstance(part, LinearModel | TreeModel) for part in parts)


def linear_terms(model: LinearModel, queries: Queries) -> Floats:
    """Return what each used feature of each document adds to its score, (n_documents, n_used)."""
    used = model.used_features
    if len(used) == 0:
        return np.zeros((queries.n_documents, 0))
    X = dense_columns(queries, used)
    missing = np.isnan(X)
    if model.list_scaling:
        X = _scaled(queries, X)
    terms: Floats = np.where(missing & (not model.list_scaling), 0.0, X.astype(np.float64)) * model.weights[used]
    if model.missing is not None:
        terms += missing * model.missing[used]
    return terms


def _scaled(queries: Queries, X: Matrix) -> Matrix:
    """Return features of the documents of queries as the model scales them, missing values filled in."""
    as_dense = replace(queries, features=X, feature_names=None)
    completed = Imputation.within_queries().completed(as_dense) if queries.has_missing else as_dense
    return dense(scaled_by_list(completed.features, queries.starts))


def used_columns(model: TreeModel, queries: Queries) -> tuple[Trees, Matrix]:
    """Return the trees of a model over the features that they use alone, and these, (n_documents, n_used)."""
    used = model.used_features
    place = np.searchsorted(used, model.trees.feature).astype(np.int32)
    return replace(model.trees, feature=place), dense_columns(queries, used)


def dense_columns(queries: Queries, columns: Ints) -> Matrix:
    """Return some features of all documents, (n_documents, len(columns))."""
    return np.ascontiguousarray(dense(queries.features[:, columns]))


def check_alone(model: Model) -> None:
    """Raise ParameterError where a document's score depends on the other documents of its query."""
    if model.needs_queries:
        raise ParameterError(
            f"the model, by {model.solver}, compares each document with the others of its query: its score cannot be "
            "divided among its features alone. What can be computed is the importance of features over all queries."
        )
    if isinstance(model, CustomModel) and takes_queries(model.estimator):
        raise ParameterError(
            f"the predict of {type(model.estimator).__name__} takes qid: a document's score depends on the other "
            "documents of its query, and cannot be divided among its features. What can be computed is the "
            "importance of features over all queries."
        )


POINTS = 20
"""Values of a feature at which its effect is computed, at most."""


def grid_of(queries: Queries, column: int, points: int = POINTS) -> Floats:
    """Return quantiles of a feature, ascending and distinct; none where all of its values are missing."""
    values = dense_columns(queries, np.array([column])).ravel()
    present = values[~np.isnan(values)]
    if len(present) == 0:
        return np.zeros(0)
    return np.unique(np.quantile(present, np.linspace(0.0, 1.0, points), method="nearest")).astype(np.float64)


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
    varies = spread >= MIN_SPREAD  # false where all values are missing too
    return (varies / np.where(varies, spread, 1.0))[queries.query_of_document]


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
    trees = model.trees.n_trees if isinstance(model, TreeModel) else 1
    cost = documents * model.nonzeros if linear else min(documents, DOCUMENTS) ** 2 * trees
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


def _drawn(query: Queries, generator: np.random.Generator) -> Ints:
    if query.n_documents <= DOCUMENTS:
        return np.arange(query.n_documents)
    return generator.choice(query.n_documents, DOCUMENTS, replace=False)


ORDERS = 64
"""Orders of the features for each document at least, reverses included."""


def sampled_contributions(
    score: Callable[[Matrix], Floats], X: Matrix, documents: Ints, background: Ints, generator: np.random.Generator
) -> Floats:
    """Return each column's contribution to the score of the rows in documents, as tree_contributions does.

    score maps rows to their scores, each by itself. Cost: ORDERS times the columns in which two rows differ.
    """
    total = np.zeros((len(documents), X.shape[1]))
    orders = max(1, ORDERS // (2 * len(background)))
    for k, document in enumerate(documents):
        for other in background:
            a, b = X[document], X[other]
            differing = np.flatnonzero((a != b) & ~(np.isnan(a) & np.isnan(b)))
            for _ in range(orders if len(differing) else 0):
                order = generator.permutation(differing)
                for way in (order, order[::-1]):
                    rows = np.repeat(b[None, :], len(way) + 1, axis=0)
                    for place, j in enumerate(way):
                        rows[place + 1 :, j] = a[j]
                    total[k, way] += np.diff(score(rows)) / (2 * orders)
    return total / len(background)


REPEATS = 5
"""Shuffles of each feature."""


def shuffling_losses(
    model: Model, queries: Queries, metric: Metric, groups: Sequence[Ints], *, repeats: int = REPEATS, seed: int = 0
) -> Floats:
    """Return the loss of the metric on each query, the mean over shuffles, for each group of columns.

    The result is (len(groups), n_queries), NaN where the metric skips a query. queries have the model's features. The
    shuffles of a group depend on the seed and its first column alone. Cost: repeats times scoring for each group.
    """
    queries = replace(queries, rows=None)
    judgements = Judgements.of(queries)
    before = metric.per_query(model.predict(queries), judgements)
    losses = np.empty((len(groups), queries.n_queries))
    shuffle = _shuffler(queries)
    for k, columns in enumerate(groups):
        generator = np.random.default_rng([seed, int(columns[0])])
        after = [
            metric.per_query(model.predict(shuffle(columns, shuffled_rows(queries, generator))), judgements)
            for _ in range(repeats)
        ]
        losses[k] = before - np.mean(after, axis=0)
    return losses


def shuffled_rows(queries: Queries, generator: np.random.Generator) -> Ints:
    """Return a random order of the documents of each query, (n_documents,): the row that each row takes from."""
    return np.argsort(queries.query_of_document + generator.random(queries.n_documents))


def _shuffler(queries: Queries) -> Callable[[Ints, Ints], Queries]:
    """Return a function of columns and rows to queries in which these columns are those of other rows.

    Dense queries are valid until it is called again.
    """
    X = queries.features
    if isinstance(X, np.ndarray):
        changed = np.array(X)
        last = np.zeros(0, dtype=np.int64)

        def shuffle(columns: Ints, rows: Ints) -> Queries:
            nonlocal last
            changed[:, last] = X[:, last]
            changed[:, columns] = X[np.ix_(rows, columns)]
            last = columns
            return replace(queries, features=changed)

        return shuffle
    return lambda columns, rows: replace(queries, features=_with_rows(X, columns, rows))


def _with_rows(X: sparse.csr_array, columns: Ints, rows: Ints) -> Features:
    """Return a CSR array with the entries of some columns moved to other rows."""
    moved = np.isin(X.indices, columns)
    place = np.empty(len(rows), dtype=np.int64)
    place[rows] = np.arange(len(rows))
    row = np.repeat(np.arange(X.shape[0], dtype=X.indices.dtype), np.diff(X.indptr))
    row[moved] = place[row[moved]]
    return sparse.csr_array((X.data, (row, X.indices)), shape=X.shape, dtype=X.dtype)
