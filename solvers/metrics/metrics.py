"""Ranking metrics: values with one spelling, computed over all queries at once.

Spelling: NAME[@K][:[CONVENTION][,OPTION=VALUE]...], for example ndcg@10, ndcg@10:letor, map@5:lightgbm,empty=skip or
precision@5:relevant=2,ties=input. What is left out has the value of the convention, else the default;
metrics.presets lists names, options and conventions, and what other tools call them (p@10, P_10, recip_rank).

ndcg, dcg   (normalised) discounted cumulative gain, of the first k ranks or of all
mean-ndcg   the mean of ndcg@m over all ranks m of the query (up to k)
map         average precision          mrr        reciprocal rank of the first relevant document
precision   relevant share of the top k    recall     share of the relevant documents that is in the top k
err         expected reciprocal rank: of the document at which a user stops who reads from the top
rbp         rank-biased precision: (1 - p) sum of p^(rank - 1) over the relevant documents
wta         whether the first document has the query's highest grade (winner takes all)
pairwise    share of the pairs of different grades that are ranked right; a tied pair counts 1/2
kendall     rank correlation tau-b of scores and grades: ties in both are accounted for; 0 where all scores are equal
auc         share of the pairs of a relevant and another document that are ranked right; a tied pair counts 1/2
domination  share of the documents above the query's lowest grade that rank above all documents of lower grades; the
            domination error is 1 minus it
ips, snips, dr
            expected clicks a search, by a click log and not by grades (ranktune.solvers.clicks.judging.gains)

Every metric is in [0, 1] but dcg, kendall ([-1, 1]) and those of clicks, and higher is better. The best order has 1
under all but these, err and rbp, and under precision and recall where k ranks do not allow it. Cost: one pass for small
k, else n log n a query; what depends on the grades alone is computed once for each Queries.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, fields, replace

import numpy as np

from ranktune.solvers.core.arrays import Floats, Matrix, as_floats
from ranktune.solvers.core.errors import DataError, ParameterError, listed, nearest, warn
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics import formulas
from ranktune.solvers.metrics.custom import metric_at
from ranktune.solvers.metrics.judgements import Judgements, can_double, discounts, gains
from ranktune.solvers.metrics.means import mean_of
from ranktune.solvers.metrics.presets import (
    AUTO,
    CUSTOM,
    KNOWN,
    PRESETS,
    check_option,
    conventions,
    is_of_clicks,
    nearest_name,
    read_name,
)

__all__ = ["Judgements", "Metric", "discounts", "gains", "parse_metric"]


@dataclass(frozen=True)
class Metric:
    """A ranking metric with its cutoff and conventions.

    An option that is not given has the value of the preset, else the default (see metrics.presets); one that does not
    apply to the metric is None. Metrics are equal if their options are. str(metric) is its shortest spelling.

    Parameters
    ----------
    name : str
        "ndcg", "dcg", "mean-ndcg", "map", "mrr", "err", "rbp", "precision", "recall", "r-precision", "wta", "pairwise",
        "kendall", "auc" or "domination"; of a click log "ips", "snips" or "dr".
    at : int or None, default=None
        The cutoff k: only the first k ranks count.
    preset : str or None, default=None
        The conventions of a tool: "letor", "lightgbm", "xgboost", "catboost", "sklearn", "trec_eval" or "ranklib".
    gain : {"auto", "exp2", "linear"}, optional
        The gain of a grade: 2^grade - 1 (exp2), or the grade (linear). "auto" is exp2 if all grades are whole numbers
        from 0 to 30, else linear.
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
    highest : str, optional
        The highest grade of the scale, for "err".
    p : str, optional
        The persistence of "rbp", between 0 and 1.

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
    highest: str | None = None
    p: str | None = None

    def __post_init__(self) -> None:
        """Check everything and fill in what was not given."""
        if self.at is not None:
            object.__setattr__(self, "at", _checked_cutoff(self.name, self.at))
        resolved = conventions(self.name, self.at, self.preset)
        _check_presence_of_cutoff(self.name, self.at)
        for option in _OPTIONS:
            value = getattr(self, option)
            if value is not None:
                resolved[option] = check_option(self.name, self.at, option, str(value))
            object.__setattr__(self, option, resolved.get(option))

    def __str__(self) -> str:
        """Return the one spelling: what the preset or the defaults say anyway is left out."""
        usual = conventions(self.name, self.at, self.preset)
        parts = [] if self.preset is None else [self.preset]
        parts += [f"{o}={getattr(self, o)}" for o in _OPTIONS if o in usual and getattr(self, o) != usual[o]]
        cutoff = "" if self.at is None else f"@{self.at}"
        return f"{self.name}{cutoff}" + (":" + ",".join(parts) if parts else "")

    @property
    def range(self) -> tuple[float, float]:
        """The lowest and the highest value of a query."""
        return KNOWN[self.name].range

    @property
    def lowest(self) -> float:
        """The lowest grade that is relevant."""
        return float(str(self.relevant))

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
        judgements = queries if isinstance(queries, Judgements) else Judgements.of(queries)
        checked = _checked_scores(scores, len(judgements.grades))
        if self.ties == "docid":
            with np.errstate(over="ignore"):
                checked = checked.astype(np.float32).astype(np.float64)  # trec_eval keeps scores as float
        return formulas.per_query(self, checked, judgements)

    def mean(self, scores: Matrix, queries: Queries | Judgements) -> float:
        """Return the mean over the queries that are not skipped, by their weights where they have weights.

        Parameters
        ----------
        scores : ndarray of shape (n_documents,)
            In the order of queries, without NaN.
        queries : Queries or Judgements
            The grades of the documents. Judgements have no weights of queries.

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
        if np.isnan(values).all():
            raise DataError(
                f"{self} skips all {len(values)} queries: in none of them is one order better than another. "
                f"{self._remedy(queries.grades)}"
            )
        return mean_of(values, queries.query_weights if isinstance(queries, Queries) else None)

    def _remedy(self, grades: Floats) -> str:
        """Return what to do where every query is skipped."""
        positive = grades[grades > grades.min()]
        if self.relevant is not None and len(positive) and grades.max() < float(self.relevant):
            metric = replace(self, relevant=f"{positive.min():g}")
            return f"No grade is at least relevant={self.relevant}, the highest is {grades.max():g}: write {metric}."
        return "Check the grades and the grouping, or count such queries with empty=0."


_OPTIONS = tuple(field.name for field in fields(Metric))[3:]
USUAL = "ndcg@10"
"""The metric where none is given and none is known to have chosen the model."""


def parse_metric(text: str | Metric) -> Metric:
    """Return the metric that a text spells.

    Parameters
    ----------
    text : str or Metric
        NAME[@K][:[CONVENTION][,OPTION=VALUE]...], such as "ndcg@10" or "map@5:lightgbm,empty=skip", in any case;
        also "p@10", "rr" or "ap" for precision, mrr and map. trec_eval's names, such as "P_10", "ndcg_cut_10" and
        "Rprec", have its conventions. A Metric is returned as it is.

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
    >>> str(parse_metric("P@10")), str(parse_metric("P_10"))
    ('precision@10', 'precision@10:trec_eval')
    """
    if isinstance(text, Metric):
        return text
    if not isinstance(text, str):
        raise ParameterError(f"{text!r} is not a metric: give its name, such as 'ndcg@10'.")
    head, _, tail = "".join(text.lower().split()).partition(":")
    name, cutoff, convention = read_name(head)
    if name not in KNOWN:
        path, _, after = text.strip().partition("@")
        if (by_path := metric_at(path)) is not None:
            name, (cutoff, _, tail) = by_path, after.lower().partition(":")
            cutoff = cutoff or None
        else:
            CUSTOM.spelling(name)  # imports it if an installed package offers it
    if name not in KNOWN:
        raise ParameterError(
            f"metric '{text}' is unknown. {nearest_name(name, KNOWN)} A function is given as module:function."
        )
    preset, options = _parse_options(text, name, tail)
    return Metric(name, None if cutoff is None else _parse_cutoff(text, cutoff), preset or convention, **options)


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
                spellings = [*PRESETS, *(f"{o}=" for o in KNOWN[name].options)]
                raise ParameterError(f"metric '{text}': '{part}' is unknown. {nearest(part, spellings)}")
            preset = part
        elif option in options:
            raise ParameterError(f"metric '{text}' gives {option} twice: give it once.")
        elif option not in _OPTIONS:
            hint = nearest(option, KNOWN[name].options)
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
    cutoff = KNOWN[name].cutoff
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
            f"scores have shape {checked.shape} for {n_documents} documents: there must be one score per document."
        )
    if np.isnan(checked).any():
        row = int(np.flatnonzero(np.isnan(checked))[0])
        raise DataError(f"the score of document {row} is NaN: a document without a score has no rank. Fix the model.")
    return checked


def chosen_metric(spelling: str, *parts: Queries | None) -> Metric:
    """Return the metric of that spelling, with one gain for all parts (for_grades).

    "auto" is ndcg@10, or pairwise where a grade is negative, which has no gain.
    """
    grades = [part.grades for part in parts if part is not None]
    if spelling == "auto":
        spelling = "ndcg@10" if all(part.min() >= 0.0 for part in grades) else "pairwise"
    return for_grades(parse_metric(spelling), *grades)


def metric_for(queries: Queries, chosen: str | Metric | None, *tuned: str | None) -> Metric:
    """Return the metric given, else the first of those that models were tuned for, else ndcg@10, for_grades of queries.

    A RankTuneWarning says where models were tuned for others than the one that is returned. A model's metric is never
    looked up as an import path.
    """
    wanted = dict.fromkeys(spelling for spelling in tuned if spelling) if chosen is None else {}
    usable = (spelling for spelling in wanted if _is_known(spelling, queries))
    metric = for_grades(parse_metric(chosen or next(usable, USUAL)), queries.grades)
    if wanted.keys() - {str(metric)}:
        warn(f"The metric here is {metric}, and what it measures was tuned for {listed(wanted)}.")
    return metric


def _is_known(spelling: str, queries: Queries) -> bool:
    """Return whether the metric of a model can be computed here: it may be of the user's, or of a click log."""
    try:
        name = read_name(spelling.partition(":")[0].lower()).measure
        exists = name in KNOWN or CUSTOM.spelling(name) is not None
        return exists and bool(parse_metric(spelling)) and (queries.clicks is not None or not is_of_clicks(spelling))
    except ParameterError:
        return False


def for_grades(metric: Metric, *grades: Floats) -> Metric:
    """Return metric with a gain that is the same for any part of these grades, each (n_documents,).

    The gain "auto" becomes linear if some of the grades are not whole numbers from 0 to 30; else it stays, and is exp2.
    """
    return metric if all(can_double(part) for part in grades) else linear_gain(metric)


def linear_gain(metric: Metric) -> Metric:
    """Return metric with the gain linear if its gain is "auto"."""
    return replace(metric, gain="linear") if metric.gain == AUTO else metric
