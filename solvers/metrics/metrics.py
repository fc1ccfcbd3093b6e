"""Ranking metrics: values with one spelling, computed over all queries at once.

Spelling: NAME[@K][:[CONVENTION][,OPTION=VALUE]...], for example ndcg@10, ndcg@10:letor, map@5:lightgbm,empty=skip or
precision@5:relevant=2,ties=input. What is left out has the value of the convention, else the default;
metrics.presets lists names, options and conventions.

ndcg, dcg   (normalised) discounted cumulative gain, of the first k ranks or of all
mean-ndcg   the mean of ndcg@m over all ranks m of the query (up to k)
map         average precision          mrr        reciprocal rank of the first relevant document
precision   relevant share of the top k    recall     share of the relevant documents that is in the top k
wta         whether the first document has the query's highest grade (winner takes all)
pairwise    share of the pairs of different grades that are ranked right; a tied pair counts 1/2
kendall     rank correlation tau-b of scores and grades: ties in both are accounted for; 0 where all scores are equal

Every metric is in [0, 1] but dcg and kendall ([-1, 1]), and higher is better. Cost: one pass for small k, else
n log n a query; what depends on the grades alone is computed once for each Queries.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, fields

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints, Mask, Matrix, as_floats
from ranktune.solvers.core.errors import DataError, ParameterError, nearest
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.gains import can_double, discounts, gains
from ranktune.solvers.metrics.judgements import Judgements
from ranktune.solvers.metrics.kernels import (
    discounted_sums,
    mean_normalised_sums,
    pair_counts,
    precision_sums,
    rank,
    reciprocal_ranks,
)
from ranktune.solvers.metrics.presets import MEASURES, PRESETS, check_option, conventions

__all__ = ["Judgements", "Metric", "discounts", "gains", "parse_metric"]


@dataclass(frozen=True)
class Metric:
    """A ranking metric with its cutoff and conventions.

    An option that is not given has the value of the preset, else the default (see metrics.presets); one that does not
    apply to the metric is None. Metrics are equal if their options are. str(metric) is its shortest spelling.

    Parameters
    ----------
    name : str
        "ndcg", "dcg", "mean-ndcg", "map", "mrr", "precision", "recall", "wta", "pairwise" or "kendall".
    at : int or None, default=None
        The cutoff k: only the first k ranks count.
    preset : str or None, default=None
        The conventions of a tool: "letor", "lightgbm", "xgboost", "catboost", "sklearn", "trec_eval" or "ranklib".
    gain : {"exp2", "linear"}, optional
        The gain of a grade: 2^grade - 1, or the grade.
    discount : {"log2", "letor"}, optional
        The discount of a rank: 1 / log2(rank + 1), or 1 at ranks 1 and 2, then 1 / log2(rank).
    ties : {"average", "input", "reverse", "pessimistic", "optimistic", "docid", "threshold"}, optional
        The order of documents with equal scores.
    empty : {"skip", "0", "1"}, optional
        The value of a query in which no order is better than another.
    short : {"pad", "cut", "0"}, optional
        The treatment of a query with fewer than k documents.
    norm : {"top", "all"}, optional
        The divisor of average precision at k: min(k, relevant documents), or all relevant documents.
    relevant : str, optional
        The lowest relevant grade.

    Raises
    ------
    ParameterError
        If a name, cutoff, preset, option or value is invalid.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktune.solvers import Metric, Queries
    >>> queries = Queries.from_arrays(np.zeros((4, 1)), [2, 0, 1, 0], group=[2, 2])
    >>> metric = Metric("ndcg", 10)
    >>> metric.per_query(np.array([1.0, 0.0, 0.0, 1.0]), queries).round(3).tolist()
    [1.0, 0.631]
    >>> str(Metric("ndcg", 10, gain="linear"))
    'ndcg@10:gain=linear'
    """

    name: str
    at: int | None = None
    preset: str | None = None
    gain: str | None = None
    discount: str | None = None
    ties: str | None = None
    empty: str | None = None
    short: str | None = None
    norm: str | None = None
    relevant: str | None = None

    def __post_init__(self) -> None:
        """Check everything and fill in what was not given."""
        if self.at is not None:
            object.__setattr__(self, "at", _checked_cutoff(self.name, self.at))
        resolved = conventions(self.name, self.at, self.preset)
        _check_presence_of_cutoff(self.name, self.at)
        for option in _OPTIONS:
            given = getattr(self, option)
            if given is not None:
                resolved[option] = check_option(self.name, self.at, option, str(given))
            object.__setattr__(self, option, resolved.get(option))

    def __str__(self) -> str:
        """Return the one spelling: what the preset or the defaults say anyway is left out."""
        usual = conventions(self.name, self.at, self.preset)
        parts = [] if self.preset is None else [self.preset]
        parts += [f"{o}={getattr(self, o)}" for o in _OPTIONS if o in usual and getattr(self, o) != usual[o]]
        cutoff = "" if self.at is None else f"@{self.at}"
        return f"{self.name}{cutoff}" + (":" + ",".join(parts) if parts else "")

    def per_query(self, scores: Matrix, queries: Queries | Judgements) -> Floats:
        """Return the metric of each query.

        Parameters
        ----------
        scores : ndarray of shape (n_documents,)
            In the order of queries, without NaN; only their order matters.
        queries : Queries or Judgements
            The grades of the documents.

        Returns
        -------
        ndarray of shape (n_queries,)
            NaN where the query is skipped.

        Raises
        ------
        DataError
            For invalid scores, for grades that the gain cannot take, and for ties=docid without document ids.
        """
        judged = queries if isinstance(queries, Judgements) else Judgements.of(queries)
        checked = _checked_scores(scores, len(judged.grades))
        if self.ties == "docid":
            with np.errstate(over="ignore"):
                checked = checked.astype(np.float32).astype(np.float64)  # trec_eval keeps scores as float
        values, empty = _FORMULAS[self.name](self, checked, judged)
        if self.short == "0":
            values = np.where(judged.lengths < (self.at or 0), 0.0, values)
        return np.where(empty, np.nan if self.empty == "skip" else float(self.empty or 0), values)

    def mean(self, scores: Matrix, queries: Queries | Judgements) -> float:
        """Return the mean over the queries that are not skipped.

        Parameters
        ----------
        scores : ndarray of shape (n_documents,)
            In the order of queries, without NaN.
        queries : Queries or Judgements
            The grades of the documents.

        Returns
        -------
        float
            The mean of per_query.

        Raises
        ------
        DataError
            As per_query, and if every query is skipped.
        """
        values = self.per_query(scores, queries)
        kept = values[~np.isnan(values)]
        if len(kept) == 0:
            raise DataError(
                f"{self} skips all {len(values)} queries: in none of them is one order better than another. "
                "Check the grades and the grouping, or count such queries with empty=0."
            )
        return float(kept.mean())


_OPTIONS = tuple(field.name for field in fields(Metric))[3:]


def parse_metric(text: str | Metric) -> Metric:
    """Return the metric that a text spells.

    Parameters
    ----------
    text : str or Metric
        NAME[@K][:[CONVENTION][,OPTION=VALUE]...], such as "ndcg@10" or "map@5:lightgbm,empty=skip"; a Metric is
        returned as it is.

    Returns
    -------
    Metric
        The metric; str(metric) is its shortest spelling.

    Raises
    ------
    ParameterError
        If the text spells no metric; the message names the nearest spelling.

    Examples
    --------
    >>> from ranktune.solvers import parse_metric
    >>> metric = parse_metric("NDCG@5:letor")
    >>> metric.at, metric.discount, str(metric)
    (5, 'letor', 'ndcg@5:letor')
    """
    if isinstance(text, Metric):
        return text
    if not isinstance(text, str):
        raise ParameterError(f"{text!r} is not a metric: give its name, such as 'ndcg@10'.")
    head, _, tail = "".join(text.lower().split()).partition(":")
    name, has_cutoff, cutoff = head.partition("@")
    name = name.replace("_", "-")
    if name not in MEASURES:
        raise ParameterError(f"metric '{text}' is unknown. {nearest(name, MEASURES)}")
    preset, options = _parse_options(text, name, tail)
    return Metric(name, _parse_cutoff(text, cutoff) if has_cutoff else None, preset, **options)


def _parse_cutoff(text: str, cutoff: str) -> int:
    if not (cutoff.isascii() and cutoff.isdigit()):
        raise ParameterError(f"metric '{text}': the cutoff after @ must be a whole number, as in 'ndcg@10'.")
    return int(cutoff.lstrip("0")[:18] or 0)  # more digits than any list has documents


def _parse_options(text: str, name: str, tail: str) -> tuple[str | None, dict[str, str]]:
    preset: str | None = None
    options: dict[str, str] = {}
    for number, part in enumerate(tail.split(",") if tail else []):
        option, equals, value = part.partition("=")
        if not equals:
            if number > 0 or part not in PRESETS:
                known = [*PRESETS, *(f"{o}=" for o in MEASURES[name].options)]
                raise ParameterError(f"metric '{text}': '{part}' is unknown. {nearest(part, known)}")
            preset = part
        elif option in options:
            raise ParameterError(f"metric '{text}' gives {option} twice: give it once.")
        elif option not in _OPTIONS:
            hint = nearest(option, MEASURES[name].options)
            raise ParameterError(f"metric '{text}': the option '{option}' is unknown. {hint}")
        else:
            options[option] = value
    return preset, options


def _checked_cutoff(name: str, at: object) -> int:
    try:
        k = operator.index(at)  # type: ignore[arg-type]
    except TypeError:
        k = 0
    if isinstance(at, bool) or k < 1:
        raise ParameterError(f"{name}@{at}: the cutoff must be a whole number of at least 1, as in {name}@10.")
    return k


def _check_presence_of_cutoff(name: str, at: int | None) -> None:
    cutoff = MEASURES[name].cutoff
    if at is None and cutoff == "required":
        raise ParameterError(f"'{name}' needs a cutoff: write for example {name}@10.")
    if at is not None and cutoff == "none":
        raise ParameterError(
            f"'{name}' measures the whole query and takes no cutoff: write '{name}' instead of '{name}@{at}'."
        )


def _checked_scores(scores: Matrix, n_documents: int) -> Floats:
    checked: Floats = as_floats(scores)
    if checked.shape != (n_documents,):
        raise DataError(
            f"scores have shape {checked.shape} for {n_documents} documents: there must be one score a document."
        )
    if np.isnan(checked).any():
        row = int(np.flatnonzero(np.isnan(checked))[0])
        raise DataError(f"the score of document {row} is NaN: a document without a score has no rank. Fix the model.")
    return checked


def _ranked(metric: Metric, scores: Floats, judged: Judgements, k: int) -> tuple[Ints, bool]:
    """Return the order of the documents and whether ties are to be averaged."""
    ties = metric.ties or "average"
    return rank(scores, judged.tiebreak(ties), judged.starts, k), ties in ("average", "threshold")


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    result = np.zeros(len(numerator))
    np.divide(numerator, denominator, out=result, where=denominator > 0)
    return result


def _dcg(metric: Metric, scores: Floats, judged: Judgements) -> tuple[Floats, Mask]:
    k = judged.ranks(metric.at)
    order, average = _ranked(metric, scores, judged, k)
    gain, discount = str(metric.gain), str(metric.discount)
    by_rank = judged.discounts(discount, metric.at)
    sums = discounted_sums(scores, order, judged.gains(gain), judged.starts, k, by_rank, average)
    return sums, judged.ideal(gain, discount, metric.at) <= 0


def _ndcg(metric: Metric, scores: Floats, judged: Judgements) -> tuple[Floats, Mask]:
    sums, empty = _dcg(metric, scores, judged)
    ideal = judged.ideal(str(metric.gain), str(metric.discount), metric.at)
    return np.minimum(_ratio(sums, ideal), 1.0), empty  # a mean over ties may round up


def _mean_ndcg(metric: Metric, scores: Floats, judged: Judgements) -> tuple[Floats, Mask]:
    k = judged.ranks(metric.at)
    order, average = _ranked(metric, scores, judged, k)
    worth, by_rank = judged.gains(str(metric.gain)), judged.discounts(str(metric.discount), metric.at)
    means = mean_normalised_sums(scores, order, judged.by_grade(), worth, judged.starts, k, by_rank, average)
    return np.minimum(means, 1.0), judged.ideal(str(metric.gain), str(metric.discount), 1) <= 0


def _average_precision(metric: Metric, scores: Floats, judged: Judgements) -> tuple[Floats, Mask]:
    lowest, k = float(metric.relevant or 1), judged.ranks(metric.at)
    order, average = _ranked(metric, scores, judged, k)
    relevance, relevant = judged.relevance(lowest), judged.relevant(lowest)
    sums = precision_sums(scores, order, relevance, judged.starts, k, average, metric.ties == "threshold")
    counted = np.minimum(relevant, float(metric.at)) if metric.at is not None and metric.norm == "top" else relevant
    return np.minimum(_ratio(sums, counted), 1.0), relevant == 0


def _reciprocal_rank(metric: Metric, scores: Floats, judged: Judgements) -> tuple[Floats, Mask]:
    lowest, k = float(metric.relevant or 1), judged.ranks(metric.at)
    order, average = _ranked(metric, scores, judged, k)
    values = reciprocal_ranks(scores, order, judged.relevance(lowest), judged.starts, k, average)
    return values, judged.relevant(lowest) == 0


def _found(metric: Metric, scores: Floats, judged: Judgements, worth: Floats, at: int | None) -> Floats:
    """Return the summed worth of the first at documents of each query."""
    k = judged.ranks(at)
    order, average = _ranked(metric, scores, judged, k)
    return discounted_sums(scores, order, worth, judged.starts, k, np.ones(k), average)


def _precision(metric: Metric, scores: Floats, judged: Judgements) -> tuple[Floats, Mask]:
    lowest, k = float(metric.relevant or 1), float(metric.at or 1)
    found = _found(metric, scores, judged, judged.relevance(lowest), metric.at)
    ranks = np.minimum(judged.lengths, k) if metric.short == "cut" else k
    return np.minimum(found / ranks, 1.0), judged.relevant(lowest) == 0


def _recall(metric: Metric, scores: Floats, judged: Judgements) -> tuple[Floats, Mask]:
    lowest = float(metric.relevant or 1)
    found = _found(metric, scores, judged, judged.relevance(lowest), metric.at)
    relevant = judged.relevant(lowest)
    return np.minimum(_ratio(found, relevant), 1.0), relevant == 0


def _winner_takes_all(metric: Metric, scores: Floats, judged: Judgements) -> tuple[Floats, Mask]:
    return _found(metric, scores, judged, judged.top(), 1), judged.pairs() == 0


_TIED_PAIR = {"average": 0.5, "pessimistic": 0.0, "optimistic": 1.0}


def _pairs(scores: Floats, judged: Judgements) -> tuple[Floats, Floats, Floats]:
    """Return, a number a query, the pairs ranked right, those ranked wrong, and the pairs of equal scores."""
    order = rank(scores, judged.tiebreak("input"), judged.starts, judged.ranks(None))
    right, wrong, tied = pair_counts(scores, order, *judged.levels(), judged.starts).T
    return right, wrong, tied


def _pairwise(metric: Metric, scores: Floats, judged: Judgements) -> tuple[Floats, Mask]:
    right, wrong, _ = _pairs(scores, judged)
    pairs = judged.pairs()
    return _ratio(right + _TIED_PAIR[str(metric.ties)] * (pairs - right - wrong), pairs), pairs == 0


def _kendall(metric: Metric, scores: Floats, judged: Judgements) -> tuple[Floats, Mask]:
    right, wrong, tied = _pairs(scores, judged)
    pairs = judged.pairs()
    untied = 0.5 * judged.lengths * (judged.lengths - 1.0) - tied
    return np.clip(_ratio(right - wrong, np.sqrt(pairs) * np.sqrt(untied)), -1.0, 1.0), pairs == 0


_FORMULAS = {
    "ndcg": _ndcg,
    "dcg": _dcg,
    "mean-ndcg": _mean_ndcg,
    "map": _average_precision,
    "mrr": _reciprocal_rank,
    "precision": _precision,
    "recall": _recall,
    "wta": _winner_takes_all,
    "pairwise": _pairwise,
    "kendall": _kendall,
}
"""Each returns the values, (n_queries,), and the mask of the queries that have nothing to measure."""


def chosen_metric(spelling: str, *parts: Queries | None) -> Metric:
    """Return the metric of that spelling; "auto" is ndcg@10, or pairwise where a grade has no gain of 2^grade - 1."""
    if spelling != "auto":
        return parse_metric(spelling)
    return parse_metric("ndcg@10" if all(can_double(part.grades) for part in parts if part is not None) else "pairwise")
