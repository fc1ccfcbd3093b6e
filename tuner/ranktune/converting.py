"""Data of any size to a folder that is opened without reading it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Unpack

from ranktune.solvers.data.conversion.convert import write_converted
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.formats import check_options, check_part, reader_of
from ranktune.solvers.data.readers.parsing.options import LoadOptions
from ranktune.solvers.data.readers.parsing.streams import check_path
from ranktune.solvers.data.sources import catalogue


def convert(
    data: object,
    output: str | Path,
    *,
    progress: Callable[[str], object] | None = None,
    **options: Unpack[LoadOptions],
) -> Queries:
    """Write data into a folder that every function and command takes as data, and that is opened without reading it.

    Ranking text of any size takes the memory of one block. Of csv, tsv, Parquet and Arrow files the features are read
    in batches, and ids, grades, dates and categories as a whole. Other files are read as a whole first.

    Parameters
    ----------
    data : str, Path, data frame, tuple or Queries
        What `read` takes.
    output : str or Path
        The new folder. It appears when it is complete.
    progress : callable, optional
        Called with a line of progress each second, after the first two.
    **options
        Options of `read`.

    Returns
    -------
    Queries
        What was written, mapped from the folder.

    Raises
    ------
    DataError
        The data cannot be read, or change meanwhile; or the folder exists already, or cannot be written.
    ParameterError
        An option does not exist for this kind of data, or has a value that it cannot have.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import ranktune
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     queries = ranktune.convert((np.eye(3), [2, 0, 1], ["a", "a", "b"]), Path(folder) / "small")
    ...     again = ranktune.read(Path(folder) / "small")
    >>> again.n_queries, again.grades.tolist()
    (2, [2.0, 0.0, 1.0])
    """
    check_path(data)
    check_path(output)
    reader = reader_of(data)
    check_part(reader, data)
    check_options(reader, options, data)
    return write_converted(data, Path(output), lambda: catalogue.read(data, **options), options, progress)
