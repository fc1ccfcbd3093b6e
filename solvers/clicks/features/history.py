"""What a click log knew of documents before each search: impressions, clicks and their rates, less a gap.

An event is known from its time plus the gap, and counts for the searches that begin after that; the clicks of an
impression are known once all of them are. An impression is expected to be clicked as its position was before it. Then
clicks over expected clicks are a rate that is corrected for positions, and shrunken to 1, which is the rate of the
positions where the document was shown (`shrinkage`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from ranktune.solvers.clicks.counts import ClickCounts
from ranktune.solvers.clicks.features.runs import Runs
from ranktune.solvers.clicks.impressions import Impressions
from ranktune.solvers.clicks.reading.times import span_of
from ranktune.solvers.core.arrays import Array, Floats, Ints, as_floats, as_ints
from ranktune.solvers.core.compiled import compiled

FEATURES = (
    "document_shown",
    "document_clicks",
    "document_ratio",
    "pair_shown",
    "pair_clicks",
    "pair_ratio",
    "document_recent",
    "document_age",
)
"""Of a document, and of the pair of a query and a document: impressions, clicks, and clicks over expected clicks; the
clicks of a document, each halved every HALF_LIFE since it was known; the hours since its first impression was known, 0
before that."""
STRENGTH = 2.0
"""Expected clicks that the prior of a ratio counts for: those of factors whose standard deviation is 0.7."""
HALF_LIFE = 7 * 86_400_000.0
"""Milliseconds in which a click counts for half in "document_recent"."""
_LAST = np.iinfo(np.int64).max
_HOUR = 3_600_000.0


@dataclass(frozen=True, eq=False)
class SearchEvents:
    """Impressions in the order of time, those of a search together, and what was known before each.

    time      (n,) when its search began, in milliseconds
    rows      (n,) with the fields search, query, document, pair, position, session, click and further
    features  (n, 8) by `FEATURES`
    """

    time: Ints
    rows: Array
    features: Floats


class ClickHistory:
    """The impressions of a log with features as of their searches, in windows of time. It can be iterated repeatedly.

    Parameters
    ----------
    log : iterable of Impressions
        It is read twice.
    gap : str or float, default="1h"
        How long events take to arrive, as text such as "30m" or in seconds. An impression that is more than this before
        a search is known, and its clicks if they are more than this before it too.

    Raises
    ------
    DataError
        The log has no times, or no impressions.
    ParameterError
        gap is no length of time.

    Notes
    -----
    Memory is that of six numbers a document and three a pair of query and document, besides the counts of the log.

    Examples
    --------
    >>> import numpy as np
    >>> n = np.arange(3)
    >>> log = [Impressions(0 * n, 0 * n, 0 * n + 1, n % 2.0, n, 1000 * n, None, ["q"], ["d"], ["a", "b", "c"])]
    >>> (known,) = History(log, gap=0.5)
    >>> known.features[:, :2].tolist()
    [[0.0, 0.0], [1.0, 0.0], [2.0, 1.0]]
    """

    def __init__(self, log: Iterable[Impressions], *, gap: str | float = "1h") -> None:
        self.gap = span_of("gap", gap)
        self.counts = ClickCounts.of(log)
        self.runs = Runs(log, self.counts)

    def __iter__(self) -> Iterator[SearchEvents]:
        """Yield the impressions in windows."""
        counts = self.counts
        documents, pairs = np.zeros((len(counts.documents), 6)), np.zeros((len(counts.firsts), 3))
        positions = np.zeros((int(counts.position.max()) + 1, 2))
        documents[:, 5] = np.nan
        for time, rows, happened, events in self.runs.windows(self.gap):
            features = np.empty((len(time), len(FEATURES)))
            asked = as_ints(np.stack([time, rows["document"], rows["pair"]]))
            fields = (events[name] for name in ("document", "pair", "position", "shown"))
            known = as_ints(np.stack([happened, *fields]))
            state = documents, pairs, positions
            _follow(asked, known, as_floats(events["amount"]), *state, HALF_LIFE, features)
            yield SearchEvents(time, rows, features)


@compiled
def _follow(
    asked: Ints,
    known: Ints,
    amount: Floats,
    documents: Floats,
    pairs: Floats,
    positions: Floats,
    half_life: float,
    features: Floats,
) -> None:
    """Fill the features of impressions, and bring the state up to date.

    asked       (3, n) times in rising order, documents and pairs of impressions
    known       (5, n) times, in rising order, from which events are known, their documents, pairs and positions, and
                whether each is an impression; amount: (n,) what their clicks weigh
    documents   (n, 6) impressions, clicks, expected clicks, recent clicks, the time of these, and the first time
    pairs       (n, 3) impressions, clicks, expected clicks
    positions   (n, 2) impressions and clicks; in place of position 0 those of all
    """
    happened, of_document, of_pair, position, shown = known
    expected = np.empty(len(happened))
    event = 0
    for row in range(asked.shape[1] + 1):
        until = asked[0, row] if row < asked.shape[1] else _LAST
        while event < len(happened) and happened[event] < until:
            now, end = happened[event], event
            while end < len(happened) and happened[end] == now:  # events of one time do not know each other
                mean = (positions[0, 1] + 0.5) / (positions[0, 0] + 1.0)
                at = positions[position[end]]
                expected[end] = shown[end] * mean * (at[1] + STRENGTH) / (at[0] * mean + STRENGTH)
                end += 1
            for k in range(event, end):
                d, p = documents[of_document[k]], pairs[of_pair[k]]
                for state in (d, p, positions[position[k]], positions[0]):
                    state[0] += shown[k]
                    state[1] += amount[k]
                d[2] += expected[k]
                p[2] += expected[k]
                d[3] = d[3] * 0.5 ** ((now - d[4]) / half_life) + amount[k]
                d[4] = now
                if np.isnan(d[5]):
                    d[5] = now
            event = end
        if row < asked.shape[1]:
            d, p, out = documents[asked[1, row]], pairs[asked[2, row]], features[row]
            out[0], out[1], out[2] = d[0], d[1], (d[1] + STRENGTH) / (d[2] + STRENGTH)
            out[3], out[4], out[5] = p[0], p[1], (p[1] + STRENGTH) / (p[2] + STRENGTH)
            out[6] = d[3] * 0.5 ** ((until - d[4]) / half_life)
            out[7] = 0.0 if np.isnan(d[5]) else (until - d[5]) / _HOUR
