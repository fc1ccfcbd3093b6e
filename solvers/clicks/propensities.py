"""Examination by position from propensities in the log, or from a file, without a model of the documents.

Both can be given to PositionBased as propensities, and are an independent check of what it estimates itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from ranktune.solvers.clicks.counts import Impressions, sums
from ranktune.solvers.clicks.examination import Examination
from ranktune.solvers.core.arrays import Floats, as_ints
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.columns.usual import usual
from ranktune.solvers.data.readers.tables.opening import open_table, read_roles

EQUAL = 1e-6
"""Relative difference of propensities that is one of rounding."""


def randomised(batches: Iterable[Impressions]) -> Examination:
    """Return examination from a log that says how likely what was shown was to be shown there.

    Impressions weigh the inverse of their propensity, so that every position shows the same documents on average; the
    rates of clicks then differ by examination alone. That holds where every document could be shown at every position.
    Raises DataError where a propensity is missing or is no probability.
    """
    totals: dict[int, Floats] = {}
    for batch in batches:
        if batch.propensity is None or not ((batch.propensity > 0.0) & (batch.propensity <= 1.0)).all():
            raise DataError(
                "an impression has no propensity, or one that is not above 0 and at most 1. Leave out such impressions."
            )
        weight, click = 1.0 / batch.propensity, batch.click
        terms = (weight, weight * click, weight**2, weight**2 * click, (weight * click) ** 2)
        places, row = np.unique(batch.position, return_inverse=True)
        parts = np.stack([sums(as_ints(row), term, len(places)) for term in terms], axis=1)
        for place, part in zip(places.tolist(), parts, strict=True):
            totals[place] = totals.get(place, 0.0) + part
    places = np.array(sorted(totals))
    weight, clicks, squares, crossed, squared = np.array([totals[place] for place in places]).T
    rate = clicks / weight
    if not rate[0] > 0.0:
        raise DataError(f"position {places[0]} has no clicks: others cannot be compared with it. Give more of the log.")
    variance = (
        np.maximum(squared - 2.0 * rate * crossed + rate**2 * squares, 0.0) / weight**2 / np.maximum(rate, 1e-300) ** 2
    )
    value = rate / rate[0]
    error = value * np.sqrt(variance + variance[0]) * (places != places[0])
    return Examination(as_ints(places), value, error, np.ones(len(places), dtype=bool))


def of_column(batches: Iterable[Impressions], column: str) -> tuple[Examination | None, str]:
    """Return examination by the propensities in a log, and how they are taken; None where they tell nothing.

    Where they follow the position alone they are examination; else they are how likely what was shown was to be shown
    there (`randomised`). batches are read twice; column is what the log calls them.
    """
    low, high, instead = dict[int, float](), dict[int, float](), "it is not used, and examination is estimated"
    for batch in batches:
        propensity = np.full(len(batch.position), np.nan) if batch.propensity is None else batch.propensity
        for place in np.unique(batch.position).tolist():
            values = propensity[batch.position == place]
            low[place] = np.minimum(low.get(place, np.inf), values.min())  # which keeps nan
            high[place] = np.maximum(high.get(place, 0.0), values.max())
    least, most = (np.array(list(ends.values())) for ends in (low, high))
    if (least == 1.0).all():
        return None, f"The column {column} is 1 everywhere, which tells nothing of positions: {instead}."
    if (most - least <= EQUAL * most).all() and np.ptp(most) > EQUAL:
        return Examination.given(low), f"Examination is that of the column {column}, which follows the position alone."
    try:
        found = randomised(batches)
    except DataError as error:
        return None, f"The column {column} does not tell examination: {instead}. ({error})"
    return found, (
        f"Examination is estimated from the column {column}, taken for how likely a document was shown where it was. "
        "If it is examination itself, give that by position (propensities)."
    )


def given_propensities(values: Mapping[int, float] | str | Path) -> Examination:
    """Return examination by position that is given, or is in a csv or Parquet file with the two columns.

    Raises DataError where the file cannot be read, ParameterError where a value is not positive.
    """
    if isinstance(values, Mapping):
        return Examination.given(values)
    roles = {role: usual(role) for role in ("position", "propensity")}
    pairs = zip(*read_roles(open_table(Path(values), roles, needed=[*roles])).values(), strict=True)
    return Examination.given({int(place): value for place, value in pairs if not np.isnan(place + value)})
