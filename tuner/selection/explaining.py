"""Explains the models of a split at its end, in a given time."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.errors import LeftOut, ParameterError, or_left_out
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.explanation.contributions import (
    POINTS,
    SECONDS,
    contribution_spread,
    contributions,
    dense_columns,
    grid_of,
    is_exact,
    partial_effects,
    shuffling_losses,
)
from ranktune.solvers.metrics.metrics import Metric, parse_metric
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.blend import BlendModel, parts_of
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.tuner.selection.evidence import (
    EXPLANATIONS,
    Effect,
    ExplainedQuery,
    Explanations,
    FeatureImportance,
    largest,
    write_explanations,
)
from ranktune.tuner.statistics.intervals import stratified_interval
from ranktune.tuner.study.home import writing

if TYPE_CHECKING:
    from ranktune.tuner.selection.finals import Finalist
    from ranktune.tuner.study.problem import SplitProblem

SPREADS, CLOSELY, IMPORTANCE, EFFECTS = 0.2, 0.15, 0.55, 0.1
"""How the time is divided."""
MIN_QUERIES, TIMED = 10, 50
"""Queries that an importance needs, and on which the time of scoring is measured."""
MAX_REPEATS, RESAMPLES = 5, 500
MAX_GROUPS = 500
"""Features of which the importance is computed; of more the spread says which matter."""
MAX_QUERIES, MAX_DOCUMENTS, MAX_BACKGROUND, MAX_SHOWN = 5, 10, 100, 8
"""Of the queries that are explained: their number, documents, documents of which they have the mean, and features."""
MAX_EFFECTS = 6


def explained(
    entry: Finalist, problem: SplitProblem, metric: str, seconds: float
) -> tuple[Explanations, list[LeftOut]]:
    """Return the explanations of the chosen model, without spreads, and what failed of them."""
    left_out: list[LeftOut] = []
    made_or_left_out = partial(or_left_out, into=left_out)
    (queries, part), model = _queries(problem), entry.model
    tried, count, repeats = made_or_left_out(
        "the importance of features",
        lambda: _importance(model, queries, parse_metric(metric), IMPORTANCE * seconds),
        ((), 0, 0),
    )
    by_query = entry.test.get(metric)
    worst = np.zeros(0, dtype=np.int64) if by_query is None else _worst(by_query)
    explanations = Explanations(
        label=entry.candidate.solver,
        part=part,
        metric=metric,
        queries=count,
        total=queries.n_queries,
        repeats=repeats,
        importance=tried,
        effects=made_or_left_out(
            "the effect of features", lambda: _effects(model, queries, tried, EFFECTS * seconds), ()
        ),
        spreads={},
        closely=made_or_left_out(
            "the explanation of single queries", lambda: _closely(model, queries, worst, CLOSELY * seconds), ()
        ),
    )
    return explanations, left_out


def save_explanations(
    explanations: Explanations, entries: Sequence[Finalist], problem: SplitProblem, folder: Path, seconds: float
) -> list[LeftOut]:
    """Write the explanations of the chosen model and the spreads of all models; return what failed of these."""
    left_out: list[LeftOut] = []
    measured = partial(_spreads, entries, _queries(problem)[0], SPREADS * seconds)
    spreads = or_left_out("the spread of contributions", measured, {}, into=left_out)
    with writing(folder):
        write_explanations(replace(explanations, spreads=spreads), folder / EXPLANATIONS)
    return left_out


def _queries(problem: SplitProblem) -> tuple[Queries, str]:
    """Return the queries that models are explained on, and what they are."""
    queries, part = (problem.development, "training") if problem.test is None else (problem.test, "test")
    return replace(queries, rows=None), part


def _importance(
    model: Model, queries: Queries, metric: Metric, seconds: float
) -> tuple[tuple[FeatureImportance, ...], int, int]:
    """Return the importance of the features, on how many queries, and with how many shuffles; nothing without time."""
    groups = len(groups_of(model))
    documents = _documents_in(model, queries, seconds / max(groups, 1), metric)
    repeats = int(np.clip(documents // queries.n_documents, 1, MAX_REPEATS))
    count = int(min(documents * queries.n_queries // queries.n_documents, queries.n_queries))
    if not 0 < groups <= MAX_GROUPS or count < min(MIN_QUERIES, queries.n_queries):
        return (), 0, 0
    sample = sampled(queries, count)
    return feature_importance(model, sample, metric, repeats=repeats, resamples=RESAMPLES), sample.n_queries, repeats


def _documents_in(model: Model, queries: Queries, seconds: float, metric: Metric | None = None) -> int:
    """Return how many documents can be scored, and evaluated by the metric, in the given time."""
    few, best = sampled(queries, TIMED), np.inf
    for _ in range(3):  # the first time code may be loaded
        begun = time.process_time()
        scores = model.predict(few)
        if metric is not None:
            metric.per_query(scores, few)
        best = min(best, (time.process_time() - begun) / few.n_documents)
    return int(seconds / max(best, 1e-9))


def _spreads(
    entries: Sequence[Finalist], queries: Queries, seconds: float
) -> Mapping[str, Mapping[str, Mapping[int, float]]]:
    """Return the spread of the contributions of every model, by kind of its parts."""
    parts = [(entry.candidate.solver, member) for entry in entries for member in _parts(entry.model)]
    spreads: dict[str, dict[str, dict[int, float]]] = {}
    for label, member in parts:
        if not isinstance(member, LinearModel | TreeModel):
            continue
        spread = contribution_spread(member, queries, np.random.default_rng(0), seconds / len(parts))
        if not np.isnan(spread).any():
            (kind,) = parts_of(member)
            spreads.setdefault(label, {})[kind] = largest(spread)
    return spreads


def _parts(model: Model) -> Sequence[Model]:
    return model.parts if isinstance(model, BlendModel) else (model,)


def _worst(by_query: Floats) -> Ints:
    order = np.argsort(np.nan_to_num(by_query, nan=np.inf), kind="stable")
    return order[~np.isnan(by_query[order])][:MAX_QUERIES]


def _closely(model: Model, queries: Queries, numbers: Ints, seconds: float) -> tuple[ExplainedQuery, ...]:
    """Return the contributions in the queries of these numbers, as many as there is time for."""
    if not is_exact(model) or model.nonzeros == 0:
        return ()
    trees = sum(member.trees.n_trees for member in _parts(model) if isinstance(member, TreeModel))
    explained, cost, names = [], 0.0, names_of(model)
    for number in numbers:
        query = queries.select([int(number)])
        scores = model.predict(query)
        order = np.argsort(-scores, kind="stable")
        places = _places(query.grades[order])
        shown = order[places]
        background = np.unique(np.linspace(0, query.n_documents - 1, MAX_BACKGROUND).astype(np.int64))
        cost += SECONDS * trees * len(shown) * len(background)
        if cost > seconds:
            break
        parts = contributions(model, query, shown, background)
        largest = np.argsort(-np.abs(parts).mean(axis=0), kind="stable")[:MAX_SHOWN]
        largest = largest[np.abs(parts[:, largest]).max(axis=0) > 0.0]
        rest = parts.sum(axis=1) - parts[:, largest].sum(axis=1)
        ids = query.document_ids
        explained.append(
            ExplainedQuery(
                query=str(query.query_ids[0]),
                documents=tuple(f"document {i + 1}" if ids is None else str(ids[i]) for i in shown),
                ranks=tuple((places + 1).tolist()),
                scores=tuple(scores[shown].tolist()),
                mean=float(scores[background].mean()),
                background=len(background),
                features=tuple(names[j] for j in largest),
                contributions=tuple(tuple(row) for row in np.column_stack([parts[:, largest], rest]).tolist()),
            )
        )
    return tuple(explained)


def _places(grades: Floats) -> Ints:
    """Return the places, from 0, of the documents to show: the first ones, and the first of the best grade.

    grades are those of the documents in the order of the ranking.
    """
    first = np.arange(min(len(grades), MAX_DOCUMENTS))
    best = int(np.argmax(grades))
    return first if best < len(first) else np.append(first[:-1], best)


def _effects(model: Model, queries: Queries, tried: Sequence[FeatureImportance], seconds: float) -> tuple[Effect, ...]:
    """Return the effects of the most important features, on as many queries as there is time for."""
    names = list(names_of(model))
    columns = [names.index(importance.feature) for importance in tried if importance.feature in names][:MAX_EFFECTS]
    documents = _documents_in(model, queries, seconds / (POINTS * max(len(columns), 1)))
    count = min(documents * queries.n_queries // queries.n_documents, queries.n_queries)
    if count < min(MIN_QUERIES, queries.n_queries):
        return ()
    sample, shown = sampled(queries, count), []
    for column in columns:
        values = np.sort(dense_columns(sample, np.array([column])).ravel())
        grid = grid_of(sample, column)
        try:
            effects = partial_effects(model, sample, column, grid)
        except ParameterError:  # an estimator of the user's that sees the whole query
            return ()
        shares = np.searchsorted(values, grid, side="right") / len(values)
        shown.append(Effect(names[column], tuple(grid.tolist()), tuple(shares.tolist()), tuple(effects.tolist())))
    return tuple(shown)


DRAWS = 2_000
"""Draws of queries for each interval."""


def feature_importance(
    model: Model, queries: Queries, metric: Metric, *, repeats: int, seed: int = 0, resamples: int = DRAWS
) -> tuple[FeatureImportance, ...]:
    """Return the importance of each feature that the model uses, the greatest loss first.

    The features of one column of a table, such as those of a category, are shuffled together. queries have the model's
    features. The interval holds the noise of the queries, and that of the shuffles on them.
    """
    groups = groups_of(model)
    losses = shuffling_losses(model, queries, metric, tuple(groups.values()), repeats=repeats, seed=seed)
    importances = [
        FeatureImportance(
            name,
            stratified_interval(
                [loss], np.random.default_rng([seed, k]), resamples=resamples, weights=[queries.query_weights]
            ),
        )
        for k, (name, loss) in enumerate(zip(groups, losses, strict=True))
    ]
    return tuple(sorted(importances, key=lambda importance: -np.nan_to_num(importance.loss.mean)))


def groups_of(model: Model) -> dict[str, Ints]:
    """Return the features that the model uses by their name, or by that of the column of the table that gave them."""
    names = names_of(model)
    columns = {} if model.encoding is None else model.encoding.sources(names)
    groups: dict[str, list[int]] = {}
    for j in model.used_features.tolist():
        groups.setdefault(columns.get(names[j], names[j]), []).append(j)
    return {name: np.array(columns, dtype=np.int64) for name, columns in groups.items()}


def names_of(model: Model) -> Sequence[str]:
    """Return the names of a model's features; those of a model without names are numbered from 1."""
    return model.feature_names or [f"feature {j + 1}" for j in range(model.n_features)]


def sampled(queries: Queries, count: int, seed: int = 0) -> Queries:
    """Return at most count of the queries, drawn at random, in their order."""
    if queries.n_queries <= count:
        return replace(queries, rows=None)
    drawn: Ints = np.random.default_rng([seed, 1]).choice(queries.n_queries, count, replace=False)
    return queries.select(np.sort(drawn))
