"""Whether a column was made of the clicks or impressions that come after it.

A column that was known before a search cannot know by what chance its documents are clicked after it. Clicks of each
document are counted in two halves of the searches, and compared with those of documents of about the same value. If
the column was known, the deviations of the halves are independent or, since documents differ in more than one column,
alike. If it was made of these clicks, documents of about the same value have about the same total, so that what one
half has more than that, the other has less: the deviations are opposite. They also are where all documents have the
same total, as where all are always shown. Then random numbers seem to know it too, and nothing is concluded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from ranktune.solvers.clicks.counts import sums
from ranktune.solvers.clicks.reading.events import DAY
from ranktune.solvers.core.arrays import Array, Floats, Ints, Mask, as_ints

NEIGHBOURS = 5
"""Documents on each side, in the order of the column, to whose rates the line is fitted that a document is compared
with."""
MOST_BY_CHANCE = 1e-3
"""Probability that one of all columns is taken for made of later clicks by chance, or less."""
MATTERS = 0.1
"""Share of what chance does to clicks that such a column must know: less of it brings little."""
MIN_UNITS = 30


def drawn(numbers: Ints, share: float) -> Mask:
    """Return which numbers are in a sample, (n,), that holds this share of all numbers, always the same ones."""
    mixed = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return np.asarray((mixed >> np.uint64(11)) < share * 2.0**53)


@dataclass(frozen=True, eq=False)
class _Windows:
    """Documents, or pairs of query and document, in windows of time.

    what    as in "the clicks of a document in a day"
    first   (n,) the row of the first impression of each, where the value of a column is taken
    counts  what -> the counts in both halves after that, (2, n), and what these are in proportion to
    """

    what: str
    first: Ints
    counts: dict[str, tuple[Floats, Floats]]


class Future:
    """What happened in a log, (n,) rows in the order of time, by documents and pairs in windows."""

    def __init__(self, rows: Array, time: Ints) -> None:
        self.generator = np.random.default_rng(0)
        self.windows = list(_windows(rows, time)) if len(rows) else []
        for each in self.windows:
            x = self.generator.random(len(each.first))
            for what in [what for what, counts in each.counts.items() if self._seems(x, counts)]:
                del each.counts[what]

    def _seems(self, x: Floats, counts: tuple[Floats, Floats]) -> bool:
        """Return whether random numbers seem to know what comes after them."""
        z, share = _opposition(x, *counts, self.generator)
        return share >= MATTERS and z < norm.ppf(MOST_BY_CHANCE)

    def reason(self, x: Floats, n_columns: int) -> str:
        """Return why a column, (n,), was made of later events, as the end of a sentence; empty if it was not."""
        tests = [
            (*_opposition(x[each.first], *counts, self.generator), f"{what} of {each.what}")
            for each in self.windows
            for what, counts in each.counts.items()
        ]
        limit = norm.ppf(MOST_BY_CHANCE / max(len(tests) * n_columns, 1))
        z, share, what = min(((z, s, what) for z, s, what in tests if s >= MATTERS), default=(0.0, 0.0, ""))
        return f"knows {share:.0%} of the chance in the {what}, which later events tell." if z < limit else ""


def _windows(rows: Array, time: Ints) -> Iterator[_Windows]:
    half = drawn(rows["search"], 0.5)
    shown, clicks = np.bincount(rows["position"]), np.bincount(rows["position"], rows["click"])
    expected = ((clicks + 0.5) / (shown + 1.0))[rows["position"]]
    middle, day = np.median(time), time // DAY - time.min() // DAY
    spans = {"over the log": np.zeros_like(day), "over its later half": np.where(time >= middle, 0, -1)}
    if day.max() > 1:
        spans["in a day"] = day
    for unit, name in (("document", "a document"), ("pair", "a query and document")):
        for span, window in spans.items():
            inside = np.flatnonzero(window >= 0)
            _, first, code = np.unique(
                rows[unit][inside] * (int(window.max()) + 1) + window[inside], return_index=True, return_inverse=True
            )
            cell = as_ints(code + len(first) * half[inside])
            after = np.ones(len(inside))
            after[first] = 0.0  # its time depends on how many there are
            each = (after, after * rows["click"][inside], after * expected[inside])
            n, c, e = (sums(cell, values, 2 * len(first)).reshape(2, -1) for values in each)
            counted = (n > 0.0).all(axis=0)
            if counted.sum() >= MIN_UNITS:
                n, c, e = n[:, counted], c[:, counted], e[:, counted]
                one = np.ones_like(n)
                counts = {
                    "impressions": (n, one),
                    "clicks": (c, one),
                    "click rate": (c, n),
                    "clicks by position": (c, e),
                }
                yield _Windows(f"{name} {span}", inside[first[counted]], counts)


def _opposition(x: Floats, count: Floats, size: Floats, generator: np.random.Generator) -> tuple[float, float]:
    """Return how far the correlation of the halves' deviations is below 0, in standard errors, and how far in itself.

    Noise of the halves is independent, so that the correlation has a variance of about 1 / n after Fisher's
    transformation, and can only be raised by what both share.
    """
    order = np.lexsort((generator.random(len(x)), x))
    x, count, size = x[order] / max(float(np.abs(x).max()), 1e-300), count[:, order], size[:, order]
    middle = np.arange(NEIGHBOURS, len(x) - NEIGHBOURS)
    near = middle[:, None] + np.r_[-NEIGHBOURS:0, 1 : NEIGHBOURS + 1]
    weight = size.sum(axis=0)[near]
    rate = count.sum(axis=0)[near] / weight
    weight = weight / weight.sum(axis=1, keepdims=True)
    mean, height = (weight * x[near]).sum(axis=1), (weight * rate).sum(axis=1)
    apart = x[near] - mean[:, None]
    spread = (weight * apart**2).sum(axis=1)
    slope = np.divide((weight * apart * rate).sum(axis=1), spread, out=np.zeros(len(mean)), where=spread > 1e-24)
    line = np.clip(height + slope * (x[middle] - mean), rate.min(axis=1), rate.max(axis=1))
    count, awaited = count[:, middle], size[:, middle] * line
    deviation = (count - awaited) / np.sqrt(awaited + 0.5)
    variance = float((deviation**2).sum()) / 2.0
    correlation = -float(deviation[0] @ deviation[1]) / variance if variance > 0.0 else 0.0
    return -float(np.arctanh(np.clip(correlation, -0.999, 0.999)) * np.sqrt(len(middle) - 3.0)), correlation
