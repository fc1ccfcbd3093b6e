"""The expected clicks of a ranking by the files of a click log, with intervals between sessions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from ranktune.solvers.clicks.counterfactual import ClickEstimate, ratio
from ranktune.solvers.clicks.counts import Impressions, added, sums
from ranktune.solvers.clicks.judging.gains import ClickGains, clicked
from ranktune.solvers.clicks.propensities import given_propensities
from ranktune.solvers.clicks.reading.click_log import ClickLog
from ranktune.solvers.core.arrays import Floats, as_floats, as_ints
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.presets import CLICK_METRICS


def values_of(
    log: Iterable[Impressions], gains: ClickGains, queries: Queries, rankings: Sequence[Floats]
) -> list[Mapping[str, ClickEstimate]]:
    """Return by metric the clicks a search that the log expects of rankings, and then of the first less each other.

    The searches are those of queries that are in the data. Sessions, or users where they stand in the log's column of
    sessions, are independent: the ratio of the sums of clicks and of searches is linearised between them.

    Parameters
    ----------
    log : iterable of Impressions
        The log of the gains, which is read once more.
    gains : ClickGains
        What it tells.
    queries : Queries
        The data, with ids of documents.
    rankings : sequence of ndarray of shape (n_documents,)
        Scores; the expectation over the orders of equal ones counts.

    Returns
    -------
    list of dict of str to Estimate
        One for each ranking, then one for the first less each other.
    """
    counts, n_pairs = gains.counts, gains.expected.shape[1]
    query, pair = gains.places_of(queries)
    asked = np.zeros(len(counts.queries), dtype=bool)
    asked[query[query >= 0]] = True
    there, of_pair = pair >= 0, counts.query[counts.firsts]
    examined = np.stack(
        [sums(pair[there], _examined(gains, queries, scores)[there], n_pairs) for scores in rankings]
    )  # (n_rankings, n_pairs)
    direct = np.stack(
        [[sums(of_pair, expected * curve, len(asked)) for expected in gains.expected] for curve in examined]
    )  # (n_rankings, 3, n_queries)
    top, bottom = np.zeros((*direct.shape[:2], 0)), np.zeros(0)
    for batch in clicked(log):
        row = counts.rows_of(batch)
        at, where, n = counts.pair[row], batch.session, len(batch.sessions)
        rest = gains.weights[:, row] * (batch.click - gains.seen[row] * gains.expected[:, at])
        search = asked[batch.query] & (batch.position == gains.counted_at[batch.query])
        value = examined[:, at][:, None] * rest + direct[:, :, batch.query] * search
        top, bottom = added(top, where, value, n), added(bottom, where, search.astype(float), n)
    judging = (bottom > 0.0) | (top != 0.0).any(axis=(0, 1))
    session, bottom = as_ints(np.arange(int(judging.sum()))), bottom[judging]

    def estimates(tops: Floats) -> dict[str, ClickEstimate]:
        return {name: ratio(as_floats(each), bottom, session) for name, each in zip(CLICK_METRICS, tops, strict=True)}

    values = top[:, :, judging]
    return [estimates(each) for each in (*values, *(values[0] - values[1:]))]


def _examined(gains: ClickGains, queries: Queries, scores: Floats) -> Floats:
    """Return the examination of the rank of each document, (n_documents,), the mean of the ranks of equal scores."""
    of_query = queries.query_of_document
    order = np.lexsort((-scores, of_query))
    ranked = gains.examined(int(queries.lengths.max()))[np.arange(len(order)) - queries.starts[of_query]]
    new = np.diff(scores[order], prepend=np.nan) != 0.0
    new[queries.starts[:-1]] = True
    block = as_ints(np.cumsum(new) - 1)
    mean = sums(block, ranked, block[-1] + 1) / np.bincount(block)
    examined = np.empty(len(order))
    examined[order] = mean[block]
    return examined


def open_gains(
    logs: Sequence[str | Path], columns: Mapping[str, str], propensities: Mapping[int, float] | str | Path | None
) -> tuple[ClickLog, ClickGains]:
    """Return a log, and the gains of its documents.

    Raises DataError where it cannot be read or is too small for a click model, ParameterError for a role or a
    propensity that cannot be.
    """
    examination = None if propensities is None else given_propensities(propensities)
    try:
        log = ClickLog.open(*logs, columns=columns)
        return log, ClickGains.of(log, examination)
    except DataError as error:
        raise DataError(str(error).replace(" columns={", " click_columns={")) from None
