"""The mean of a ranking on data, and the paired comparison of two: evaluate and compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Unpack

import numpy as np

from ranktune.solvers.clicks.counterfactual import Estimate
from ranktune.solvers.clicks.judging.opening import open_gains
from ranktune.solvers.clicks.judging.values import values_of
from ranktune.solvers.clicks.reading.roles import named_columns
from ranktune.solvers.core.arrays import Floats, Json
from ranktune.solvers.core.errors import listed
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.parsing.options import ReadOptions
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.studies.rankings.base import Ranking
from ranktune.studies.rankings.opening import open_ranking
from ranktune.studies.rankings.parts import Part, read_for, scores_on, warn_if_worse_than_random
from ranktune.tuner.statistics import comparisons
from ranktune.tuner.statistics.comparisons import Comparison
from ranktune.tuner.statistics.intervals import bootstrap_interval


def compare(
    scores_a: object,
    scores_b: object,
    queries: object,
    metric: str = "ndcg@10",
    *,
    level: float = 0.95,
    random_state: int = 0,
    **options: Unpack[ReadOptions],
) -> Comparison:
    """Return whether a ranks the same queries better than b: a paired comparison by query.

    Parameters
    ----------
    scores_a, scores_b : array of shape (n_documents,), model, str or Path
        What is compared: scores in the order of the rows; a model, ours or of another library; or a file of either, a
        TREC run, or "column:NAME", a column of the data. A document that a TREC run does not rank comes below all that
        it ranks in its query.
    queries : Queries, str, Path, data frame or tuple
        The documents with grades: what read takes. With query weights, means and tests are weighted.
    metric : str, default="ndcg@10"
        The metric.
    level : float, default=0.95
        Level of the interval.
    random_state : int, default=0
        Seed of the interval, and of the test where there are more than 2**12 patterns of signs.
    **options
        Options of read, such as qid="session" for a table.

    Returns
    -------
    Comparison
        mean_a, mean_b, difference, low and high (a bootstrap interval over queries), p_randomisation (two-sided, by
        random signs of the queries' differences), wins, ties, losses and queries; as_dict() gives plain values.

    Raises
    ------
    DataError
        The data or scores cannot be read, or there is not one finite score a document.
    ParameterError
        The metric is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> import ranktune
    >>> queries = ranktune.Queries.from_arrays(np.zeros((9, 1)), [2, 1, 0] * 3, group=[3, 3, 3])
    >>> result = ranktune.compare([3, 2, 1] * 3, [1, 2, 3] * 3, queries, "mrr")
    >>> result.wins, round(result.difference, 3), result.p_randomisation
    (3, 0.5, 0.25)
    """
    first, read = ranked(scores_a, queries, options)
    second = open_ranking(scores_b, queries, "scores_b", options.get("position"))
    name = str(parse_metric(metric))
    scores = scores_on(first, Part(read)), scores_on(second, Part(read, queries, options))
    for ranking, values in zip((first, second), scores, strict=True):
        warn_if_worse_than_random(ranking, values, read, name)
    ours, theirs = (per_query(values, read, (name,))[name] for values in scores)
    generator = np.random.default_rng(random_state)
    return comparisons.compare(ours, theirs, generator, level=level, weights=read.query_weights)


def evaluate(
    model: object,
    data: object,
    metric: str = "ndcg@10",
    *,
    also: Sequence[str] | str = (),
    against: object = None,
    clicks: Sequence[str | Path] | str | Path = (),
    click_columns: Mapping[str, str] | Sequence[str] = (),
    propensities: Mapping[int, float] | str | Path | None = None,
    **options: Unpack[ReadOptions],
) -> Json:
    """Return, for each metric, the mean of a model over the queries of data with its bootstrap interval.

    Parameters
    ----------
    model : Model, str, Path, array or model of another library
        A model, or the file of one: ours, of LightGBM, XGBoost, CatBoost, RankLib or ONNX. Or scores: an array
        (n_documents,), a file (one a line, csv or tsv with columns qid, docid and score, TREC run), or "column:NAME" of
        the data.
    data : str, Path, data frame, tuple, lightgbm.Dataset, xgboost.DMatrix or Queries
        What read takes, with grades. With query weights, means and tests are weighted.
    metric : str, default="ndcg@10"
        The metric.
    also : str or sequence of str, optional
        Further metrics.
    against : Model, str, Path, array or model of another library, optional
        What to compare the model with, query by query. A document that a TREC run does not rank comes below all that it
        ranks in its query.
    clicks : str, Path or sequence of these, optional
        The files of a click log, by which clicks a search are estimated too: as metrics ips, snips and dr, means over
        searches with intervals over queries; and under "clicks", with intervals over sessions.
    click_columns, propensities
        As those of `clicks`: columns by role, and examination that is known.
    **options
        Options of read, such as qid="session" for a table.

    Returns
    -------
    dict
        The number of queries, and metrics: for each its mean, its 95 percent interval, and the number of queries that
        it skips; mean and interval are None where it skips all. With against, the same of it, and comparisons: for each
        metric what compare finds. With a click log clicks: what it has and lacks, and for ips, snips and dr the value
        of the model, with against also that of the other and the difference, each with its interval.

    Raises
    ------
    DataError
        The data cannot be read, or lack features of the model; the click log cannot, or shows none of the documents.
    ParameterError
        A metric is unknown.

    Examples
    --------
    >>> import pandas as pd
    >>> import ranktune
    >>> frame = pd.DataFrame({"qid": [1, 1, 2, 2], "grade": [0, 1, 0, 1], "bm25": [0.1, 0.7, 0.2, 0.4]})
    >>> train = ranktune.read(frame)
    >>> model = ranktune.RankSVM().fit(train).as_model(feature_names=train.feature_names)
    >>> ranktune.evaluate(model, frame, "map")["metrics"]["map"]["mean"]
    1.0
    >>> result = ranktune.evaluate(model, frame, "map", against="column:bm25")
    >>> result["against"]["comparisons"]["map"]["difference"]
    0.0
    """
    given = (metric, also) if isinstance(also, str) else (metric, *also)
    names = tuple(dict.fromkeys(str(parse_metric(name)) for name in given))
    logs = (clicks,) if isinstance(clicks, str | Path) else tuple(clicks)
    ranking, queries = ranked(model, data, options)
    opened = None
    if logs:
        opened = open_gains(logs, named_columns(click_columns), propensities)
        opened[1].check(opened[1].about([queries]), queries, listed(logs))
        queries = opened[1].on(queries)
    scores = [scores_on(ranking, Part(queries))]
    warn_if_worse_than_random(ranking, scores[0], queries, names[0])
    ours = per_query(scores[0], queries, names)
    evaluation: Json = {"queries": queries.n_queries, "metrics": _means(ours, queries)}
    if against is not None:
        other = open_ranking(against, data, "the scores of against", options.get("position"))
        scores.append(scores_on(other, Part(queries, data, options)))
        warn_if_worse_than_random(other, scores[1], queries, names[0])
        theirs = per_query(scores[1], queries, names)
        paired = {
            name: comparisons.compare(
                ours[name], theirs[name], np.random.default_rng(0), weights=queries.query_weights
            ).as_dict()
            for name in names
        }
        evaluation["against"] = {"model": other.name, "metrics": _means(theirs, queries), "comparisons": paired}
    if opened is not None:
        found = values_of(*opened, queries, scores)
        measured = dict(zip(("model", "against", "difference"), map(_intervals, found), strict=False))
        evaluation["clicks"] = {"log": opened[1].about([queries]), **measured}
    return evaluation


def ranked(given: object, data: object, options: ReadOptions) -> tuple[Ranking, Queries]:
    """Return a ranking, and the queries of data with the features that it needs."""
    ranking = open_ranking(given, data, position=options.get("position"))
    return ranking, read_for(ranking, data, options)


def per_query(scores: Floats, queries: Queries, names: Sequence[str]) -> Mapping[str, Floats]:
    """Return metric -> (n_queries,), NaN where a metric skips a query."""
    return {name: parse_metric(name).per_query(scores, queries) for name in names}


def _intervals(estimates: Mapping[str, Estimate]) -> Json:
    """Return estimates as plain values, without an interval where there is one session only."""
    return {
        name: {"value": each.value, "interval": [each.low, each.high] if np.isfinite(each.low) else None}
        for name, each in estimates.items()
    }


def _means(values: Mapping[str, Floats], queries: Queries) -> Json:
    means: Json = {}
    for name, by_query in values.items():
        interval = bootstrap_interval(by_query, np.random.default_rng(0), weights=queries.query_weights)
        skipped = int(np.isnan(by_query).sum())
        empty = skipped == len(by_query)
        limits = None if empty else [interval.low, interval.high]
        means[name] = {"mean": None if empty else interval.mean, "interval": limits, "skipped": skipped}
    return means
