"""A data frame as queries, read as a table is that holds training data."""

from typing import Any

from ranktune.solvers.data.columns.roles import WantedRoles
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.frames import FrameTable, queries_of


def from_frame(frame: object, *, missing: Any = "keep", **columns: Any) -> Queries:
    """Return the rows of a frame; columns are those of `WantedRoles`."""
    return queries_of(FrameTable(frame), WantedRoles(**columns), missing)
