"""A data frame as queries, read as a table is that holds training data."""

from typing import Any

from ranktune.solvers.data.columns.roles import Wanted
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.frames import Table, queries_of


def from_frame(frame: object, *, missing: Any = "keep", **columns: Any) -> Queries:
    """Return the rows of a frame; columns are those of `Wanted`."""
    return queries_of(Table(frame), Wanted(**columns), missing)
