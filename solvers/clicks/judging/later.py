"""Click models compared by the clicks of later sessions, and by how well their judgments agree with those of people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ranktune.solvers.clicks.counterfactual import ClickEstimate, ratio
from ranktune.solvers.clicks.counts import ClickCounts, added
from ranktune.solvers.clicks.fitted import SURE, FittedClicks
from ranktune.solvers.clicks.judgments import Judgments
from ranktune.solvers.clicks.reading.click_log import ClickLog
from ranktune.solvers.core.arrays import Floats, as_floats
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.judgments import GradeTable as Given
from ranktune.solvers.metrics.metrics import chosen_metric

Scaled = Callable[[Floats], Floats]


@dataclass(frozen=True)
class ModelLoss:
    """The log-loss of a model, fitted to earlier sessions, on later clicks.

    Attributes
    ----------
    loss, low, high : float
        Nats an impression, and the 95 % interval over sessions.
    behind, behind_low, behind_high : float
        How much more that is than the loss of the best model, paired by session; 0 of the best.
    """

    loss: float
    low: float
    high: float
    behind: float
    behind_low: float
    behind_high: float

    @property
    def ties(self) -> bool:
        """Whether the model is the best, or not significantly worse."""
        return self.behind_low <= 0.0


@dataclass(frozen=True)
class LaterClicks:
    """The losses of models on later clicks.

    Attributes
    ----------
    losses : dict of str to ModelLoss
        Model -> its loss, the best one first.
    unfitted : dict of str to str
        Model -> why it could not be fitted to the earlier sessions.
    impressions, sessions : int
        Those that judge.
    """

    losses: Mapping[str, ModelLoss]
    unfitted: Mapping[str, str]
    impressions: int
    sessions: int

    @property
    def best(self) -> str:
        """The model of the lowest loss."""
        return next(iter(self.losses))

    @property
    def ties(self) -> list[str]:
        """The models that are not significantly worse than the best."""
        return [name for name, row in self.losses.items() if row.ties and name != self.best]


def losses_on(later: ClickLog, fitted: Mapping[str, FittedClicks], scaled: Scaled) -> LaterClicks:
    """Return the losses of fitted models on a log; scaled makes shares of impressions of the weights of clicks.

    Raises DataError where the log has fewer than two sessions.
    """
    counts = ClickCounts.of(later)
    sure = [np.clip(model.click_probability(counts), SURE, 1.0 - SURE) for model in fitted.values()]
    clicked, others = -np.log(sure), -np.log1p(-np.asarray(sure))  # (n_models, n_rows) each
    total, shown = np.zeros((len(fitted), 0)), np.zeros(0)
    for batch in later:
        row, click = counts.rows_of(batch), scaled(batch.click)
        where, n, loss = batch.session, len(batch.sessions), click * clicked[:, row] + (1.0 - click) * others[:, row]
        total, shown = added(total, where, loss, n), added(shown, where, np.ones(len(row)), n)
    judging = shown > 0.0
    shown, mean = shown[judging], total[:, judging] / shown[judging]
    if len(shown) < 2:
        raise DataError(f"{len(shown)} later session judges, which tells no interval. Give more of the log.")
    return LaterClicks(_compared(list(fitted), mean, shown), {}, int(shown.sum()), len(shown))


def _compared(names: list[str], loss: Floats, shown: Floats) -> dict[str, ModelLoss]:
    """Return the losses of models by their mean losses in sessions, (n_models, n_sessions), the best first."""
    best = loss[np.argmin(loss @ shown)]
    session = np.arange(len(shown))

    def mean(values: Floats) -> ClickEstimate:
        return ratio(as_floats(shown * values), shown, session)

    rows = {}
    for name, losses in zip(names, loss, strict=True):
        value, behind = mean(losses), mean(losses - best)
        rows[name] = ModelLoss(value.value, value.low, value.high, behind.value, behind.low, behind.high)
    return dict(sorted(rows.items(), key=lambda item: item[1].loss))


METRIC = "ndcg@10"


def mean_of(values: Floats) -> ClickEstimate:
    """Return the mean of the values of queries that are known, (n_queries,), with its 95 % interval."""
    present = values[~np.isnan(values)]
    if not len(present):
        return ClickEstimate(np.nan, np.nan, np.nan)
    return ratio(present, np.ones(len(present)), np.arange(len(present)))


@dataclass(frozen=True)
class ClickAgreement:
    """How judgments of models order what people judged; the same pairs for all models.

    Attributes
    ----------
    ndcg, kendall : dict of str to Estimate
        Model -> NDCG@10 of its order by the grades of people, and Kendall's tau-b of the two.
    pairs, queries : int
        Pairs of query and document that all models and people judge, and their queries with different grades.
    """

    ndcg: Mapping[str, ClickEstimate]
    kendall: Mapping[str, ClickEstimate]
    pairs: int
    queries: int


def agreement(models: Mapping[str, Judgments], judged: Given) -> ClickAgreement:
    """Return the agreement of judgments of the same log. Raises DataError where no query has two different grades."""
    from scipy.stats import kendalltau

    first = next(iter(models.values()))
    relevance = np.array([each.relevance for each in models.values()])  # (n_models, n_pairs)
    grades = np.array([judged.grade(*pair) for pair in zip(first.query, first.document, strict=True)])
    both = np.flatnonzero(~np.isnan(grades) & ~np.isnan(relevance).any(axis=0))
    ids = np.array(first.query, dtype=object)[both]
    different = _different(ids.tolist(), grades[both])
    if not different:
        raise DataError(
            f"{judged.path} and the log share {len(both)} pairs of a query and a document with a known judgment, and "
            "no query has two different grades among them. Query and document ids must be the same text in both."
        )
    in_both = np.isin(ids, list(different))
    both, ids = both[in_both], ids[in_both]
    queries = Queries.from_arrays(np.zeros((len(both), 1)), grades[both], qid=ids)
    order = np.arange(len(both)) if queries.rows is None else queries.rows
    metric, ends = chosen_metric(METRIC, queries), queries.starts
    ndcg, kendall = {}, {}
    for name, values in zip(models, relevance[:, both[order]], strict=True):
        ndcg[name] = mean_of(metric.per_query(values, queries))
        parts = zip(np.split(values, ends[1:-1]), np.split(queries.grades, ends[1:-1]), strict=True)
        kendall[name] = mean_of(np.array([kendalltau(scores, theirs).statistic for scores, theirs in parts]))
    return ClickAgreement(ndcg, kendall, len(both), queries.n_queries)


def _different(queries: Sequence[str], grades: Floats) -> set[str]:
    """Return the queries with two different grades."""
    lowest: dict[str, float] = {}
    return {query for query, grade in zip(queries, grades, strict=True) if lowest.setdefault(query, grade) != grade}
