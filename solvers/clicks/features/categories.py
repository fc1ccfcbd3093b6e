"""Columns of text beside a click log: what tune makes of them, and numbers by which tests for leaks rank them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ranktune.solvers.clicks.counts import sums
from ranktune.solvers.clicks.features.future import drawn
from ranktune.solvers.core.arrays import Array, Floats, Ints, as_floats, as_ints
from ranktune.solvers.data.columns.learning import FeatureColumn, taken
from ranktune.solvers.data.columns.roles import Roles


def texts_of(values: Floats, texts: Array) -> list[str | None]:
    """Return the texts of the values of a column, (n,), None where they are nan; texts end with None."""
    return list(texts[as_ints(np.where(np.isnan(values), -1.0, values))])


def category_of(column: list[str | None], search: Ints) -> FeatureColumn:
    """Return what tune takes a column of text as, (n,); search is the number of the search of each row."""
    table = pa.table({"x": pa.array(column, pa.string())})
    return taken(table, Roles({}, ("x",)), lambda: search, "keep", len(column))["x"]


def in_order(values: Floats, texts: Array) -> Floats:
    """Return the places of the values of a column among its texts in alphabetical order, -1 where there is none."""
    order = np.argsort(np.argsort(texts[:-1].astype(str)))
    return as_floats(np.append(order, -1)[as_ints(np.where(np.isnan(values), -1.0, values))])


def rates(rows: Array, level: Floats) -> Floats:
    """Return the rate of clicks of each row's level, (n,), in that half of the searches that does not have the row."""
    code, half = as_ints(level + 1.0), drawn(rows["search"], 0.5)
    n = int(code.max()) + 1
    cell = as_ints(code + n * ~half)  # of the rows of the other half
    clicks, shown = (sums(as_ints(code + n * half), values, 2 * n) for values in (rows["click"], np.ones(len(code))))
    mean = rows["click"].mean()
    return as_floats(((clicks + mean) / (shown + 1.0))[cell])


def predicted_by(level: Floats, position: Ints) -> float:
    """Return the share of the errors of guessing a level that the position spares (Goodman & Kruskal's lambda)."""
    code = np.unique(level, return_inverse=True)[1]
    table = np.zeros((int(position.max()) + 1, int(code.max()) + 1))
    np.add.at(table, (position, code), 1.0)
    right, commonest = table.max(axis=1).sum(), table.sum(axis=0).max()
    return float((right - commonest) / max(len(level) - commonest, 1.0))
