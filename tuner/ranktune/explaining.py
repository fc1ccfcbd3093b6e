"""Explanations of a model on data: what orders the documents of a query, which features matter, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

import numpy as np

from ranktune.solvers.core.arrays import Array, Floats, Ints, Json, dense
from ranktune.solvers.core.checks import check_count
from ranktune.solvers.core.errors import DataError, ParameterError, listed, nearest
from ranktune.solvers.data.blocks import SCORED_ROWS, block_of, query_ranges
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.parsing.options import ReadOptions
from ranktune.solvers.data.sources import catalogue
from ranktune.solvers.data.sources.scoring import model_of
from ranktune.solvers.explanation.contributions import contributions, grid_of, is_exact, partial_effects
from ranktune.solvers.metrics.means import mean_or_zero
from ranktune.solvers.metrics.metrics import Metric, metric_for
from ranktune.solvers.models.base import Model
from ranktune.tuner.selection.explaining import feature_importance, names_of, sampled

MEAN = "mean of the query"
"""What a document is compared with that is given alone."""


def explain(
    model: Model | str | Path,
    data: object,
    *,
    query: object = None,
    documents: Sequence[object] | str | None = None,
    effect_of: str | int | None = None,
    metric: str | None = None,
    max_queries: int = 500,
    repeats: int = 5,
    seed: int = 0,
    **options: Unpack[ReadOptions],
) -> Json:
    """Return why a model ranks documents in its order.

    With a query, the contribution of each feature to the difference of two documents' scores. They add up to that
    difference: of linear models it is the weight times the difference of the features, of trees the interventional
    Shapley value, of blends the sum over their parts; of a model of another library it is sampled. With effect_of, how
    the score changes with the value of a feature. With neither, the importance of the features: what the metric loses
    if the values of one are shuffled within queries.

    Parameters
    ----------
    model : Model, str or Path
        A model, or the file of one.
    data : str, Path, data frame, tuple, lightgbm.Dataset, xgboost.DMatrix or Queries
        What read takes. Grades are needed for the importance alone.
    query : object, optional
        The id of a query.
    documents : sequence of two, or str, optional
        With a query, the ids of two of its documents, or their numbers from 1 in the order of the data where these have
        no ids. One alone is compared with the mean of the query. By default the two that the model ranks first.
    effect_of : str or int, optional
        The name of a feature, or its number from 1 where the model has no names.
    metric : str, optional
        The metric of the importance; by default the one that the model was tuned for, or ndcg@10.
    max_queries : int, default=500
        The most queries of which the importance is computed; of more a part is drawn at random.
    repeats : int, default=5
        Shuffles of each feature.
    seed : int, default=0
        Seed of the draw and the shuffles.
    **options
        Options of read, such as qid="session" for a table.

    Returns
    -------
    dict
        With a query: query, documents (id, rank, score and grade of both), difference (of their scores), is_exact, and
        contributions (feature, both values and contribution), the largest first. With effect_of: feature and effects
        (value, and the mean effect on the score of a document, beside the mean of its query). Else: metric, mean,
        queries, repeats, unused (features) and features (feature, loss and its 95 percent interval), the most important
        first.

    Raises
    ------
    DataError
        The data cannot be read, lack features of the model, or do not hold the query or a document.
    ParameterError
        An option is invalid, or a document's score depends on the other documents of its query in an unknown way.

    Examples
    --------
    >>> import ranktune
    >>> X, grades = [[1.0, 0.5], [0.0, 0.7], [0.3, 0.1]], [2, 0, 1]
    >>> queries = ranktune.Queries.from_arrays(X, grades, feature_names=["bm25", "length"])
    >>> model = ranktune.RankSVM().fit(queries).as_model(feature_names=queries.feature_names)
    >>> result = ranktune.explain(model, queries, query=0)
    >>> [entry["feature"] for entry in result["contributions"]]
    ['bm25', 'length']
    >>> added = sum(entry["contribution"] for entry in result["contributions"])
    >>> abs(added - result["difference"]) < 1e-9
    True
    >>> ranktune.explain(model, queries)["features"][0]["feature"]
    'bm25'
    """
    chosen = model_of(model)
    if query is None and documents is not None:
        raise ParameterError("documents are compared within a query, and none is given: say which.")
    if query is not None and effect_of is not None:
        raise ParameterError("a query and the effect of a feature are different explanations: ask for one.")
    queries = catalogue.read_for(chosen, data, graded=query is None and effect_of is None, **options)
    if query is not None:
        return _of_query(chosen, queries, query, documents)
    if effect_of is not None:
        return _of_feature(chosen, queries, effect_of)
    check_count("max_queries", max_queries)
    check_count("repeats", repeats)
    by = metric_for(queries, metric, chosen.metric)
    return _of_all(chosen, chosen.arranged(sampled(queries, max_queries, seed)), by, repeats, seed)


def _of_query(model: Model, queries: Queries, name: object, documents: Sequence[object] | str | None) -> Json:
    number = _position(queries.query_ids, name, "query")
    selected = model.arranged(queries.select([number]))
    scores = model.predict(selected)
    order = np.argsort(-scores, kind="stable")
    pair = order[:2] if documents is None else _rows_of(selected, documents)
    first, others = pair[:1], pair[1:] if len(pair) > 1 else np.arange(selected.n_documents)
    contributed = contributions(model, selected, first, others)[0]
    ranks = np.argsort(order, kind="stable") + 1
    X = dense(selected.features[np.append(first, others)]).astype(np.float64)
    second: Json = {"id": MEAN, "rank": None, "grade": None, "score": float(scores.mean())}
    if len(pair) > 1:
        second = _document(selected, int(pair[1]), ranks, scores)
    with np.errstate(all="ignore"):
        values = np.stack([X[0], X[1:].mean(axis=0)])
    return {
        "query": str(queries.query_ids[number]),
        "documents": [_document(selected, int(first[0]), ranks, scores), second],
        "difference": float(scores[first[0]]) - second["score"],
        "is_exact": is_exact(model),
        "contributions": [
            {
                "feature": names_of(model)[j],
                "values": [None if np.isnan(value) else float(value) for value in values[:, j]],
                "contribution": float(contributed[j]),
            }
            for j in np.argsort(-np.abs(contributed), kind="stable")
            if contributed[j] != 0.0
        ],
    }


def _document(query: Queries, row: int, ranks: Ints, scores: Floats) -> Json:
    name = str(row + 1) if query.document_ids is None else str(query.document_ids[row])
    return {"id": name, "rank": int(ranks[row]), "grade": float(query.grades[row]), "score": float(scores[row])}


def _rows_of(query: Queries, documents: Sequence[object] | str) -> Ints:
    """Return the rows of one or two documents of a query."""
    wanted = [documents] if isinstance(documents, str) else list(documents)
    if not 1 <= len(wanted) <= 2:
        raise ParameterError(f"documents= has {len(wanted)} entries: give two documents of the query, or one.")
    names = np.arange(1, query.n_documents + 1) if query.document_ids is None else query.document_ids
    return np.array([_position(names, name, "document") for name in wanted])


def _position(names: Array, wanted: object, what: str) -> int:
    """Return where an id is among names. Raises DataError, with the nearest, where it is not."""
    texts = [str(name) for name in names.tolist()]
    if str(wanted) not in texts:
        listed_ids = texts if len(texts) <= 10 else []
        hint = nearest(str(wanted), listed_ids) if listed_ids else f"Known: {listed(texts)}."
        raise DataError(f"there is no {what} '{wanted}'. {hint}")
    return texts.index(str(wanted))


def _of_feature(model: Model, queries: Queries, feature: str | int) -> Json:
    names = names_of(model)
    wanted = f"feature {feature}" if model.feature_names is None and str(feature).isdigit() else str(feature)
    if wanted not in names:
        raise ParameterError(f"effect_of={feature!r}: the model has no such feature. {_known(model, wanted)}")
    column = names.index(wanted)
    model.predict(queries)  # raises where values are missing that the model does not know
    named = model.feature_names is not None and queries.feature_names is not None
    grid = grid_of(queries, queries.feature_names.index(wanted) if named and queries.feature_names else column)
    if queries.n_documents <= SCORED_ROWS:
        effects = partial_effects(model, model.arranged(queries), column, grid)
    else:
        effects = np.zeros(len(grid))
        for first, last in query_ranges(queries.starts, SCORED_ROWS):  # each query counts alike
            block = model.arranged(block_of(queries, first, last))
            effects += block.n_queries / queries.n_queries * partial_effects(model, block, column, grid)
    points = [{"value": float(x), "effect": float(y)} for x, y in zip(grid, effects, strict=True)]
    return {"feature": wanted, "queries": queries.n_queries, "effects": points}


def _known(model: Model, wanted: str) -> str:
    if model.feature_names is None:
        return f"They have the numbers 1 to {model.n_features}."
    return nearest(wanted, model.feature_names) if model.n_features <= 60 else f"Known: {listed(model.feature_names)}."


def _of_all(model: Model, queries: Queries, metric: Metric, repeats: int, seed: int) -> Json:
    values = metric.per_query(model.predict(replace(queries, rows=None)), queries)
    rows = feature_importance(model, queries, metric, repeats=repeats, seed=seed)
    return {
        "metric": str(metric),
        "mean": mean_or_zero(values, queries.query_weights),
        "queries": queries.n_queries,
        "repeats": repeats,
        "unused": model.n_features - model.nonzeros,
        "features": [
            {
                "feature": row.feature,
                "loss": row.loss.mean,
                "interval": [row.loss.low, row.loss.high],
            }
            for row in rows
        ],
    }
