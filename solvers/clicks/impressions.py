"""What was shown, and what happened: a batch of impressions, in arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ranktune.solvers.core.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class Impressions:
    """Impressions of a log, (n,) each; numbers of queries, documents and sessions are places in their names.

    query, document  what was shown
    position         the rank at which it was shown, from 1
    click            the weight of what happened: 0 where nothing did, 1 for a click, other weights for other events
    session          the session or user
    time             milliseconds since 1970 in UTC, or None where the log has no times
    propensity       the probability that what was shown was shown there, or None where the log does not say
    settled          when the last of what happened to it did, in milliseconds; None: at its own time
    search           numbers that tell searches apart, None where sessions do
    further          (n, n_further) the numbers in other columns of the log, NaN where there is none
    further_names    their titles
    further_texts    title -> the texts of a column whose numbers are places in them
    queries, documents, sessions: the names; they may grow from batch to batch, and never change place
    """

    query: Ints
    document: Ints
    position: Ints
    click: Floats
    session: Ints
    time: Ints | None
    propensity: Floats | None
    queries: Sequence[str]
    documents: Sequence[str]
    sessions: Sequence[str]
    settled: Ints | None = None
    search: Ints | None = None
    further: Floats | None = None
    further_names: Sequence[str] = ()
    further_texts: Mapping[str, Sequence[str]] = field(default_factory=dict)
