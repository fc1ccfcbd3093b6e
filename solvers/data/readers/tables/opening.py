"""One way into every table: its columns, what they are, and its rows in Arrow record batches.

Training tables, click logs, judgments, scores and logs of searches are opened here, so that a date, a missing value, a
number and a row that is not whole are the same in each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from ranktune.solvers.core.errors import DataError, in_file
from ranktune.solvers.data.columns.arrow import as_arrow, table_column
from ranktune.solvers.data.columns.usual import USUAL, find_roles, no_column
from ranktune.solvers.data.columns.values import numbers
from ranktune.solvers.data.readers.tables.arrow_files import open_file
from ranktune.solvers.data.readers.tables.batches import Fixed, OpenTable, as_text


def open_table(
    source: object,
    roles: Mapping[str, Sequence[str]] = MappingProxyType({}),
    named: Mapping[str, str | None] = MappingProxyType({}),
    needed: Sequence[str] = (),
) -> OpenTable:
    """Return the table in a file or a data frame, and which of its columns have which role.

    Parameters
    ----------
    source : path, data frame or OpenTable
        A csv, tsv, Parquet, Arrow or JSON lines file, text packed or not; or any object of the Arrow PyCapsule
        interface, such as a frame of pandas or polars.
    roles : mapping of str to sequence of str
        Role -> the names that suggest it, in any capitals, the likeliest first.
    named : mapping of str to str or None
        Option, which is a role too -> the column that the user says it is, if any.
    needed : sequence of str
        Roles that there must be.

    Raises
    ------
    DataError
        If the source is no table, or a column that is named or needed is not there.
    """
    if isinstance(source, OpenTable):
        table = source
    elif isinstance(source, str | Path):
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
    for role in needed:
        if role not in found:
            remedy = f'Name it: {role}="COLUMN"' if role in named else f"Call it {role}"
            raise DataError(f"{table.name}: {no_column(USUAL[role].what or role, remedy, roles[role], table.names)}")
    return replace(table, roles=found)


def read_roles(table: OpenTable) -> dict[str, list[Any]]:
    """Return role -> its first column: numbers, NaN where one is missing, or text, empty where it is."""
    places = {role: columns[0] for role, columns in table.roles.items()}
    whole = table.read(list(dict.fromkeys(places.values())), text=True)
    try:
        return {
            role: numbers(table_column(whole, name), USUAL[role].what or role, "keep").tolist()
            if USUAL[role].kind is float
            else [text or "" for text in whole[name].to_pylist()]
            for role, name in places.items()
        }
    except DataError as error:
        raise in_file(table.name, error) from None
