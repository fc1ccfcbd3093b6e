"""One way into every table: its columns, what they are, and its rows in Arrow record batches.

Training tables, click logs, judgments, scores and logs of searches are opened here, so that a date, a missing value, a
number and a row that is not whole are the same in each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa

from ranktune.solvers.core.errors import DataError, nearest
from ranktune.solvers.data.columns.arrow import as_arrow
from ranktune.solvers.data.readers.tables.arrow_files import open_file
from ranktune.solvers.data.readers.tables.batches import Fixed, OpenTable, as_text


def open_table(
    source: object,
    roles: Mapping[str, Sequence[str]] = MappingProxyType({}),
    named: Mapping[str, str] = MappingProxyType({}),
) -> OpenTable:
    """Return the table in a file or a data frame, and which of its columns have which role.

    Parameters
    ----------
    source : path or data frame
        A csv, tsv, Parquet, Arrow or JSON lines file, text packed or not; or any object of the Arrow PyCapsule
        interface, such as a frame of pandas or polars.
    roles : mapping of str to sequence of str
        Role -> the names that suggest it, in any capitals, the likeliest first.
    named : mapping of str to str
        Role -> the column that the user says it is.

    Raises
    ------
    DataError
        If the source is no table, or a column that is named is not there.
    """
    if isinstance(source, str | Path):
        table = open_file(Path(source))
    else:
        whole = as_arrow(source)

        def batches(names: Sequence[str], rows: int, text: bool) -> Iterator[pa.RecordBatch]:
            chosen = whole.select(names)
            for batch in chosen.to_batches(max_chunksize=rows):
                arrays = [as_text(array) for array in batch.columns] if text else batch.columns
                yield pa.RecordBatch.from_arrays(arrays, list(names))

        table = OpenTable("the frame", Fixed(whole.schema, batches))
    found = find_roles(table.names, roles, named, table.name)
    return replace(table, roles=found)


def find_roles(
    names: Sequence[str], roles: Mapping[str, Sequence[str]], named: Mapping[str, str], table: str
) -> dict[str, list[str]]:
    """Return role -> its columns among those of these names: the one that is named, else those of usual names."""
    by_name = {name.lower(): name for name in reversed(names)}
    found = dict[str, list[str]]()
    for role, usual in roles.items():
        given = named.get(role)
        if given is not None and given.lower() not in by_name:
            raise DataError(f"{table}: has no column {given!r} for the {role}. {nearest(given, names)}")
        present = [by_name[name.lower()] for name in ([given] if given else usual) if name.lower() in by_name]
        if present:
            found[role] = list(dict.fromkeys(present))
    return found
