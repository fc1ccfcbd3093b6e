"""A ranking on data: its mean, the comparison of two, and the baseline of a study."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Unpack

import numpy as np

from ranktune.solvers.clicks.counterfactual import ClickEstimate
from ranktune.solvers.clicks.judging.values import open_gains, values_of
from ranktune.solvers.clicks.reading.roles import named_columns
from ranktune.solvers.core.arrays import Floats, Json
from ranktune.solvers.core.errors import DataError, listed, warn
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.parsing.options import ReadOptions
from ranktune.solvers.data.sources import catalogue
from ranktune.solvers.metrics.metrics import chosen_metric, metric_for
from ranktune.solvers.metrics.presets import KNOWN
from ranktune.solvers.models.columns import TEXT_RULES
from ranktune.solvers.rankings.base import FeatureRanking, Ranking
from ranktune.solvers.rankings.opening import COLUMN, open_ranking
from ranktune.solvers.rankings.parts import QuerySource, Side, measured, read_for, scores_of_parts, scores_on
from ranktune.solvers.rankings.scores import RowScores
from ranktune.tuner.statistics import comparisons
from ranktune.tuner.statistics.intervals import stratified_interval
from ranktune.tuner.statistics.measured import Comparison, direction
from ranktune.tuner.study.baseline import PARTS, Baseline, load_baseline
from ranktune.tuner.study.declaration import Study


def compare(
    scores_a: object,
    scores_b: object,
    queries: object,
    metric: str | None = None,
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
    metric : str, optional
        The metric; by default the one that the first tuned model was tuned for, else ndcg@10. By trec_eval's names it
        is trec_eval's, over all that is judged.
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
    chosen = metric_for(read, metric, *map(tuned_for, (first, second)))
    sides = [side_of(first, QuerySource(read)), side_of(second, QuerySource(read, queries, options))]
    (ours, theirs), weights, judged = measured(sides, read, [chosen], options)
    if not judged:
        warn_if_worse(sides, read, str(chosen))
    return _paired(str(chosen), ours, theirs, weights, level, random_state)


def evaluate(
    model: object,
    data: object,
    metric: str | None = None,
    *,
    also: Sequence[str] | str = (),
    against: object = None,
    clicks: Sequence[str | Path] | str | Path = (),
    click_columns: Mapping[str, str] | Sequence[str] = (),
    propensities: Mapping[int, float] | str | Path | None = None,
    complete: bool = False,
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
    metric : str, optional
        The metric; by default the one that the model, else that of against, was tuned for, else ndcg@10. Where grades
        with fractions, or above 30, make gains linear, its name says so: ndcg@10:gain=linear.
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
    complete : bool, default=False
        Judged queries without results count as 0, as trec_eval -c has it. It needs qrels, or a TREC run.
    **options
        Options of read, such as qid="session" for a table.

    Returns
    -------
    dict
        The number of queries, and metrics: for each its mean, its 95 percent interval, and the number of queries that
        it skips; mean and interval are None where it skips all. With qrels, or for a TREC run, judged: the numbers of
        judged documents and queries, and of those outside the ranking. With against, metrics of it, and
        comparisons: for each metric what compare finds. With a click log clicks: what it has and lacks, and for ips,
        snips and dr the value of the model, with against also that of the other and the difference, each with its
        interval.

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
    logs = (clicks,) if isinstance(clicks, str | Path) else tuple(clicks)
    ranking, queries = ranked(model, data, options)
    opened = None
    if logs:
        opened = open_gains(logs, named_columns(click_columns), propensities)
        opened[1].check(opened[1].about([queries]), queries, listed(logs))
        queries = opened[1].on(queries)
    sides = [side_of(ranking, QuerySource(queries))]
    if against is not None:
        other = open_ranking(against, data, "the scores of against", options.get("position"))
        sides.append(side_of(other, QuerySource(queries, data, options)))
    first = metric_for(queries, metric, *(tuned_for(side) for side, _ in sides))
    more = (metric_for(queries, name) for name in ([also] if isinstance(also, str) else also))
    metrics = list(dict.fromkeys([first, *more]))
    (ours, *others), weights, judged = measured(sides, queries, metrics, options, complete=complete)
    evaluation: Json = {"queries": queries.n_queries, "metrics": _means(ours, queries.n_queries, weights)}
    if judged:
        evaluation["judged"] = judged
    else:
        warn_if_worse(sides, queries, str(first))
    for theirs in others:
        paired = {name: _paired(name, ours, theirs, weights).as_dict() for name in ours}
        means = _means(theirs, queries.n_queries, weights)
        evaluation["against"] = {"model": sides[1][0].name, "metrics": means, "comparisons": paired}
    if opened is not None:
        found = values_of(*opened, queries, [scores() for _, scores in sides])
        measured_clicks = dict(zip(("model", "against", "difference"), map(_intervals, found), strict=False))
        evaluation["clicks"] = {"log": opened[1].about([queries]), **measured_clicks}
    return evaluation


def side_of(ranking: Ranking, source: QuerySource) -> Side:
    """Return a ranking and what computes its scores on a part, once."""
    return ranking, cache(partial(scores_on, ranking, source))


def warn_if_worse(sides: Sequence[Side], queries: Queries, metric: str) -> None:
    """Warn (RankTuneWarning) of scores or a column that rank significantly worse than a random order does."""
    measure = chosen_metric(metric, queries)
    if "average" not in KNOWN[measure.name].options.get("ties", ("average",)):
        return
    of_all_orders = replace(measure, preset=None, ties=None if measure.ties is None else "average")
    for ranking, scores in sides:
        if type(ranking) is FeatureRanking:  # a model
            continue
        ours = measure.per_query(scores(), queries)
        theirs = of_all_orders.per_query(np.zeros(queries.n_documents), queries)
        found = comparisons.compare(ours, theirs, np.random.default_rng(0), weights=queries.query_weights)
        if direction(found.low, found.high, found.p_randomisation) < 0:
            warn(
                f"{ranking.name} ranks worse than a random order: {measure} is {found.mean_a:.4f}, and "
                f"{found.mean_b:.4f} in a random order (p = {found.p_randomisation:.2g}). If its lowest values are the "
                "best, negate them: column:-NAME turns a column round."
            )


def tuned_for(ranking: Ranking) -> str | None:
    """Return the metric that a ranking was tuned for, if it is a model that says it."""
    return ranking.metric if isinstance(ranking, FeatureRanking) else None


def ranked(model: object, data: object, options: ReadOptions) -> tuple[Ranking, Queries]:
    """Return a ranking, and the queries of data with the features that it needs."""
    ranking = open_ranking(model, data, position=options.get("position"))
    return ranking, read_for(ranking, data, options)


def _paired(
    name: str,
    ours: Mapping[str, Floats],
    theirs: Mapping[str, Floats],
    weights: Floats | None,
    level: float = 0.95,
    seed: int = 0,
) -> Comparison:
    generator = np.random.default_rng(seed)
    return replace(comparisons.compare(ours[name], theirs[name], generator, level=level, weights=weights), metric=name)


def _intervals(estimates: Mapping[str, ClickEstimate]) -> Json:
    """Return estimates as plain values, without an interval where there is one session only."""
    return {
        name: {"value": each.value, "interval": [each.low, each.high] if np.isfinite(each.low) else None}
        for name, each in estimates.items()
    }


def _means(values: Mapping[str, Floats], n_queries: int, weights: Floats | None) -> Json:
    """Return the mean of each metric, and how many of the first n_queries, those of the data, it skips."""
    means: Json = {}
    for name, by_query in values.items():
        interval = stratified_interval([by_query], np.random.default_rng(0), weights=[weights])
        skipped = np.isnan(by_query)
        limits = None if skipped.all() else [interval.low, interval.high]
        mean = None if skipped.all() else interval.mean
        means[name] = {"mean": mean, "interval": limits, "skipped": int(skipped[:n_queries].sum())}
    return means


def baseline_text(baseline: object, data: object) -> str | None:
    """Return how the settings of a study write a baseline: a path, column:NAME, or the kind of an object in memory.

    Raises DataError for text that is neither a file nor a column of the data.
    """
    if baseline is None:
        return None
    if not isinstance(baseline, str | Path):
        return f"<{type(baseline).__name__} in memory>"
    if os.path.exists(baseline):
        return str(Path(baseline).resolve())
    if str(baseline).startswith(COLUMN):
        return str(baseline)
    ranking = open_ranking(baseline, data)
    assert isinstance(ranking, FeatureRanking)
    return ranking.name


def baseline_of(
    study: Study, splits: Sequence[QuerySplit], sources: tuple[object, ...], options: ReadOptions, home: Path
) -> Baseline | None:
    """Return the baseline of a study on splits as they were read from sources: data, vali, test and the baseline.

    Where the baseline is not given, that in the folder of the study is taken; without it, it is read again. A model may
    have learnt from the training and validation queries, so that it scores test queries alone where they are given; one
    of an earlier study has not.
    """
    if study.baseline is None:
        return None
    *read, baseline = sources
    if baseline is None:
        stored = load_baseline(home, study.baseline)
        if stored is not None:
            return stored
        baseline = study.baseline
    ranking = open_ranking(baseline, read[0], "the scores of the baseline", study.position)
    whole = len(splits) == 1 and splits[0].test is not None and read[2] is None  # the source holds several parts
    if isinstance(ranking, RowScores) and (whole or len(splits) > 1):
        raise DataError(
            f"{study.baseline} has scores in the order of rows, and {study.data} holds several parts. Give scores with "
            "query and document ids, a model, or a column."
        )
    is_model = isinstance(ranking, FeatureRanking) and not ranking.name.startswith(COLUMN)
    if is_model and not study.after and any(split.test is None for split in splits):
        warn(
            f"the baseline {study.baseline} is a model: on queries that it learned from it scores too high. Give test "
            "queries that it has not seen (test=)."
        )
    rules = TEXT_RULES.get(ranking.wanted.solver, {})
    if rules and (whole or len(splits) > 1) and catalogue.is_text(read[0]):
        splits = catalogue.load(read[0], **{**options, **rules})
    scores: dict[tuple[str, str], Floats] = {}
    for split in splits:
        files = read if len(splits) == 1 and not whole else [None] * len(PARTS)
        parts = [
            None if queries is None else QuerySource(queries, source, options)
            for queries, source in zip((split.train, split.vali, split.test), files, strict=True)
        ]
        if is_model and split.test is not None and not study.after:
            parts[:-1] = [None] * (len(PARTS) - 1)
        scores_of_part = zip(PARTS, scores_of_parts(ranking, parts), strict=True)
        scores |= {(split.name, part): values for part, values in scores_of_part if values is not None}
        compared = "train" if split.test is None else "test"
        if (values := scores.get((split.name, compared))) is not None:
            warn_if_worse([(ranking, partial(np.asarray, values))], getattr(split, compared), study.metric)
    return Baseline(study.baseline, scores)
