"""What each feature contributes to the scores of the documents of one query.

linear models   weight times the difference of the features; a missing value contributes what the model adds for it.
                Features that the model scales in each query have the scale of that query
trees           Shapley values: see tree_contributions
blends          the sum over their parts
other models    sampled Shapley values: see sampled_contributions; not where the scores of a document depend on which
                others there are
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints, Matrix, dense
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.data.missing import Imputation
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import scaled_by_list
from ranktune.solvers.explanation.sampled_contributions import sampled_contributions
from ranktune.solvers.explanation.tree_contributions import tree_contributions
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
